/* gpu/cuda/lu/wide.cuh: the kernels that eliminate a matrix in its workspace (space.cuh):
 * panels, and what they do to other columns.
 *
 * LU is that of block.cuh and the inverse that of strip.cuh, made recursive: the left half of
 * some columns is eliminated, brought to the right half, the right half is eliminated and, for an
 * inverse, brought to the left half. So most of the work is products of high rank, which read and
 * write memory little. Every column meets every panel once, in the order of the panels.
 *
 * blockIdx.y is the matrix. Cost: see each kernel.
 */
#ifndef GPU_CUDA_LU_WIDE_CUH
#define GPU_CUDA_LU_WIDE_CUH

#include "gpu/cuda/lu/space.cuh"

/* ---- Panels ---- */

/* LU: rows chosen by the panel at column `at` take part in no product of their group of columns any
 * more. */
template <typename T, typename Panel>
static __device__ __forceinline__ void cuda__lu_put_multipliers(const cuda__lu_view<T> &view,
                                                                Panel &panel, int at)
{
    int within = at % CUDA__LU_FACTOR_STEP;
    T *to = view.m + (int64_t)panel.row * CUDA__LU_FACTOR_STEP;
    if (panel.place < 0) {
        panel.clear();
        for (int j = 0; j < within; j++)
            to[j] = 0;
    }
    panel.write(to + within, T(-1));
}

/* The panel of Block columns at column `at`, by one block. Cost: count steps (panel.cuh), which
 * other blocks of the multiprocessor hide where there is room for them. */
template <typename T, int Block, int Warps, bool Factor>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Warps <= 8 ? 2 : 1)
    cuda__lu_panel_kernel(const cuda__lu_chunk chunk, int at)
{
    typedef cuda__lu_proposals<T, Block, Warps> proposals;
    static_assert(CUDA__LU_PANEL_MAX % Block == 0, "panels divide the columns");
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int thread = (int)threadIdx.x, left = chunk.n - at, count = left < Block ? left : Block;
    cuda__lu_panel<T, Block, Factor> mine;
    mine.steps = cuda__lu_steps<T>{view.pivot, view.order, view.place};
    mine.row = thread;
    mine.place = CUDA__LU_NO_ROW;
    mine.clear();
    T *line = view.w + (int64_t)thread * chunk.padded + at;
    if (thread < chunk.padded) {
        mine.place = view.row_place[thread];
        mine.read(line);
    }
    mine.run(*(proposals *)cuda__memory, at, count, thread / CUDA__WARP, thread % CUDA__WARP);
    if (thread >= chunk.padded)
        return;
    if (!Factor)
        mine.complete(at);
    mine.write(line, 1);
    view.row_place[thread] = mine.place;
    if (Factor)
        cuda__lu_put_multipliers(view, mine, at);
}

/* ---- Panels of many rows ---- */

/* Whose proposal is taken, of any number. By a warp. */
template <typename Proposals>
static __device__ __forceinline__ int cuda__lu_choose_of_many(const Proposals &of, int k, int count,
                                                              int lane)
{
    int turn = k & 1, lead = -1, place = INT32_MAX, best = 0;
    uint32_t rest = 0;
    for (int i = lane; i < count; i += CUDA__WARP) {
        int other = of.lead[turn][i];
        bool better = other > lead ||
                      (other == lead && (of.rest[turn][i] > rest ||
                                         (of.rest[turn][i] == rest && of.place[turn][i] < place)));
        if (!better)
            continue;
        best = i;
        lead = other;
        rest = of.rest[turn][i];
        place = of.place[turn][i];
    }
    int most = __reduce_max_sync(CUDA__ALL, lead);
    return __shfl_sync(CUDA__ALL, best, cuda__lu_first_largest(most, lead, rest, place));
}

/* One proposal of a block goes among those of all blocks. By a warp; Block <= a warp's lanes. */
template <typename T, int Block, int From, int To>
static __device__ __forceinline__ void
cuda__lu_put_forward(const cuda__lu_proposals<T, Block, From> &from, int one,
                     cuda__lu_proposals<T, Block, To> &to, int other, int k, int lane)
{
    int turn = k & 1;
    if (lane < Block)
        to.row[turn][other][lane] = from.row[turn][one][lane];
    if (lane > 0)
        return;
    to.inverse[turn][other] = from.inverse[turn][one];
    to.scale[turn][other] = from.scale[turn][one];
    to.lead[turn][other] = from.lead[turn][one];
    to.place[turn][other] = from.place[turn][one];
    to.rest[turn][other] = from.rest[turn][one];
}

/* The panel at column `at`, by as many blocks as its rows take, a launch a step: launch k, from 0
 * to the number of steps, does the elimination of step k - 1 and proposes rows for step k. Between
 * launches the rows are in W, turned as in registers. Cost: a launch's latency, some 3 us, and a
 * pass over the panel. */
template <typename T, bool Factor>
static __global__ void __launch_bounds__(CUDA__LU_STEP_ROWS)
    cuda__lu_step_kernel(const cuda__lu_chunk chunk, int at, int k)
{
    const int Block = CUDA__LU_STEP_BLOCK;
    typedef cuda__lu_proposals<T, Block, CUDA__LU_STEP_WARPS> proposals;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    proposals &ours = *(proposals *)cuda__memory;
    int warp = (int)threadIdx.x / CUDA__WARP, lane = (int)threadIdx.x % CUDA__WARP;
    int left = chunk.n - at, count = left < Block ? left : Block;
    cuda__lu_panel<T, Block, Factor> mine;
    mine.steps = cuda__lu_steps<T>{view.pivot, view.order, view.place};
    mine.row = (int)(blockIdx.x * CUDA__LU_STEP_ROWS + threadIdx.x);
    mine.place = CUDA__LU_NO_ROW;
    mine.clear();
    bool inside = mine.row < chunk.padded;
    T *line = view.w + (int64_t)mine.row * chunk.padded + at;
    if (inside) {
        mine.place = view.row_place[mine.row];
        mine.read(line);
    }
    int most = mine.seek();
    if (k > 0) {
        int winner = cuda__lu_choose_of_many(*view.proposals, k - 1, (int)gridDim.x, lane);
        most = mine.eliminate(*view.proposals, k - 1, at + k - 1, winner);
    }
    if (k < count) {
        mine.propose(ours, k, most, warp, lane);
        __syncthreads();
        if (warp == 0)
            cuda__lu_put_forward(ours, mine.choose(ours, k, CUDA__LU_STEP_WARPS, lane),
                                 *view.proposals, (int)blockIdx.x, k, lane);
    } else {
        mine.turn_back(count);
        if (!Factor)
            mine.complete(at);
    }
    if (!inside)
        return;
    mine.write(line, 1);
    view.row_place[mine.row] = mine.place;
    if (Factor && k == count)
        cuda__lu_put_multipliers(view, mine, at);
}

/* ---- Chosen rows ---- */

#define CUDA__LU_GATHER_ROWS 8

/* R = the rows chosen in steps from .. from + inner - 1, in `columns` columns from `at` on; W loses
 * them. A warp a row. Cost: inner x columns numbers read and twice that written. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_GATHER_ROWS *CUDA__WARP)
    cuda__lu_gather_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width;
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int q = (int)(blockIdx.x * CUDA__LU_GATHER_ROWS + threadIdx.x / CUDA__WARP);
    int lane = (int)(threadIdx.x % CUDA__WARP);
    if (q >= inner)
        return;
    bool some = from + q < chunk.n;
    T *row = view.w + (int64_t)(some ? view.order[from + q] : 0) * chunk.padded + at;
    T *to = view.r + (int64_t)q * columns;
    constexpr int reach = CUDA__WARP * width, together = 4; /* as many reads on their way */
    for (int first = lane * width; first < columns; first += together * reach) {
        vector none = {}, pieces[together];
#pragma unroll
        for (int i = 0; i < together; i++) {
            int j = first + i * reach;
            pieces[i] = some && j < columns ? *(const vector *)(row + j) : none;
        }
#pragma unroll
        for (int i = 0; i < together; i++) {
            int j = first + i * reach;
            if (some && j < columns)
                *(vector *)(row + j) = none;
            if (j < columns)
                *(vector *)(to + j) = pieces[i];
        }
    }
}

#define CUDA__LU_SOLVE_COLUMNS 64

/* LU: R = L^-1 times those rows, which goes to W too; inner <= CUDA__LU_FACTOR_STEP, all of them
 * there. A thread a column. Cost: inner^2 / 2 multiplications and additions a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_SOLVE_COLUMNS)
    cuda__lu_solve_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T *lower = (T *)cuda__memory, *x = lower + CUDA__LU_FACTOR_STEP * CUDA__LU_FACTOR_STEP;
    int j = (int)(blockIdx.x * CUDA__LU_SOLVE_COLUMNS + threadIdx.x);
    x += threadIdx.x;
    for (int q = 0; q < inner; q++) {
        const T *row = view.w + (int64_t)view.order[from + q] * chunk.padded + from;
        for (int p = (int)threadIdx.x; p < q; p += CUDA__LU_SOLVE_COLUMNS)
            lower[q * CUDA__LU_FACTOR_STEP + p] = row[p];
    }
    __syncthreads();
    for (int q = 0; q < inner && j < columns; q++) {
        T *to = view.w + (int64_t)view.order[from + q] * chunk.padded + at + j, sum = *to;
        for (int p = 0; p < q; p++)
            sum = fma(-lower[q * CUDA__LU_FACTOR_STEP + p], x[p * CUDA__LU_SOLVE_COLUMNS], sum);
        x[q * CUDA__LU_SOLVE_COLUMNS] = sum;
        view.r[(int64_t)q * columns + j] = sum;
        *to = sum;
    }
}

/* ---- Products ---- */

/* A block's tile of the product: WarpRows x WarpColumns warps of Rows x Columns units. Blocks: of a
 * multiprocessor. */
template <typename T_, int Rows, int Columns, int WarpRows, int WarpColumns, int Blocks>
struct cuda__lu_product_shape {
    typedef T_ T;
    typedef cuda__mma_tile<T, Rows, Columns> tile;
    static constexpr int inner = 16; /* indices staged together */
    static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
    static constexpr int threads = WarpRows * WarpColumns * CUDA__WARP, blocks = Blocks;
    static constexpr int tile_rows = Rows * CUDA__UNIT, tile_columns = Columns * CUDA__UNIT;
    static constexpr int rows = WarpRows * tile_rows, columns = WarpColumns * tile_columns;
    static constexpr int m_line = cuda__mma_line<T>::of_factor(inner);
    static constexpr int r_line = cuda__mma_line<T>::of_factor(columns);
    struct shared {
        alignas(16) T m[2][rows * m_line];
        alignas(16) T r[2][inner * r_line];
    };
};

/* Operands of a product, in units of numbers. */
template <typename T> struct cuda__lu_product {
    const T *m; /* rows x inner */
    const T *r; /* inner x columns */
    T *c;       /* rows x columns */
    int m_line, r_line, c_line;
    int rows, inner, columns; /* multiples of a unit */
};

template <typename Shape> struct cuda__lu_product_block {
    typedef typename Shape::T T;
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;

    cuda__lu_product<T> of;
    typename Shape::shared &memory;
    int row, column; /* of the block's tile */

    /* Rows x Width numbers of a matrix go to shared memory; zeros where it ends. */
    template <int Rows, int Width>
    static __device__ __forceinline__ void stage(T *to, int to_line, const T *from, int line,
                                                 int rows, int columns)
    {
        constexpr int pieces = Width / width;
#pragma unroll
        for (int e = 0; e < Rows * pieces; e += Shape::threads) {
            int at = e + (int)threadIdx.x, i = at / pieces, j = at % pieces * width;
            if (Rows * pieces % Shape::threads != 0 && at >= Rows * pieces)
                break;
            if (i < rows && j < columns)
                cuda__copy_async<16>(to + i * to_line + j, from + (int64_t)i * line + j);
            else
                *(vector *)(to + i * to_line + j) = vector{};
        }
    }

    /* Pointers are renewed, so that those of single pieces are not kept from step to step:
     * registers are short. */
    __device__ __forceinline__ void fetch(int k, int turn)
    {
        const T *m = cuda__renewed(of.m + (int64_t)row * of.m_line + k);
        const T *r = cuda__renewed(of.r + (int64_t)k * of.r_line + column);
        stage<Shape::rows, Shape::inner>(memory.m[turn], Shape::m_line, m, of.m_line, of.rows - row,
                                         Shape::inner);
        stage<Shape::inner, Shape::columns>(memory.r[turn], Shape::r_line, r, of.r_line,
                                            Shape::inner, of.columns - column);
    }

    __device__ __forceinline__ void run()
    {
        int warp = (int)threadIdx.x / CUDA__WARP, lane = (int)threadIdx.x % CUDA__WARP;
        int i0 = warp / Shape::warp_columns * Shape::tile_rows;
        int j0 = warp % Shape::warp_columns * Shape::tile_columns;
        T *c = of.c + (int64_t)(row + i0) * of.c_line + column + j0;
        int rows = of.rows - row - i0, columns = of.columns - column - j0, turn = 0;
        typename Shape::tile tile;
        fetch(0, 0);
        tile.each(lane, [&](int i, int j, T *to) {
            vector piece = {};
            if (i < rows && j < columns)
                piece = *(const vector *)(c + (int64_t)i * of.c_line + j);
            *(vector *)to = piece;
        });
#pragma unroll 1
        for (int k = 0; k < of.inner; k += Shape::inner, turn ^= 1) {
            cuda__copy_arrive();
            __syncthreads();
            if (k + Shape::inner < of.inner)
                fetch(k + Shape::inner, turn ^ 1);
            __syncwarp(); /* the tensor cores want the lanes together */
            tile.template multiply<Shape::inner>(memory.m[turn] + i0 * Shape::m_line, Shape::m_line,
                                                 memory.r[turn] + j0, Shape::r_line, lane);
        }
        c = cuda__renewed(c);
        tile.each(lane, [&](int i, int j, T *from) {
            if (i < rows && j < columns)
                *(vector *)(c + (int64_t)i * of.c_line + j) = *(const vector *)from;
        });
    }
};

/* W's columns at .. at + columns - 1 += M R, M being `inner` columns of W from `from` on, or for LU
 * those of the view's M. Cost: padded x inner x columns multiplications and additions. */
template <typename Shape>
static __global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cuda__lu_product_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    typedef typename Shape::T T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int across = (columns + Shape::columns - 1) / Shape::columns;
    cuda__lu_product<T> of = {view.w + from, view.r,       view.w + at, chunk.padded, columns,
                              chunk.padded,  chunk.padded, inner,       columns};
    if (chunk.manner.factor) {
        of.m = view.m + from % CUDA__LU_FACTOR_STEP;
        of.m_line = CUDA__LU_FACTOR_STEP;
    }
    cuda__lu_product_block<Shape> block = {of, *(typename Shape::shared *)cuda__memory,
                                           (int)blockIdx.x / across * Shape::rows,
                                           (int)blockIdx.x % across * Shape::columns};
    block.run();
}

#endif
