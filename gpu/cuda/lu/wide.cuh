/* gpu/cuda/lu/wide.cuh: the kernels that invert a matrix in its workspace (space.cuh) by halves, up
 * to n = CUDA__LU_ONE_BLOCK_MAX: panels, and what they do to other columns.
 *
 * The inverse is that of strip.cuh, made recursive: the left half of some columns is eliminated and
 * applied to the right half, then the right half is eliminated and applied to the left half. So
 * most of the work is products of high rank, which read and write memory little. Every panel is
 * applied to every column once, in the order of the panels.
 *
 * blockIdx.y is the matrix. Cost: see each kernel.
 */
#ifndef GPU_CUDA_LU_WIDE_CUH
#define GPU_CUDA_LU_WIDE_CUH

#include "gpu/cuda/lu/space.cuh"

/* ---- Panels ---- */

/* The panel of Block columns at column `at`, by one block. Cost: count steps (panel.cuh), which
 * other blocks of the multiprocessor hide where there is room for them. */
template <typename T, int Block, int Warps>
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
    cuda__lu_panel<T, Block, false> mine;
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
    mine.complete(at);
    mine.write(line, 1);
    view.row_place[thread] = mine.place;
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

/* W's columns at .. at + columns - 1 += M R, M being `inner` columns of W from `from` on. Cost:
 * padded x inner x columns multiplications and additions. */
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
    cuda__lu_product_block<Shape> block = {of, *(typename Shape::shared *)cuda__memory,
                                           (int)blockIdx.x / across * Shape::rows,
                                           (int)blockIdx.x % across * Shape::columns};
    block.run();
}

#endif
