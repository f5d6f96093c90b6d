/* gpu/cuda/lu/wide.cuh: the launches that invert or factorise a batch in workspaces, and the
 * kernels of inverses by groups of columns. Host code, any thread; nothing is awaited.
 *
 * The batch goes through in chunks of as many matrices as there is workspace for. Which operations
 * are done, and in which order, depends on n alone; by which kernels, also on the batch.
 */
#ifndef GPU_CUDA_LU_WIDE_CUH
#define GPU_CUDA_LU_WIDE_CUH

#include <algorithm>
#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/cluster.cuh"
#include "gpu/cuda/lu/ends.cuh"
#include "gpu/cuda/lu/group.cuh"
#include "gpu/cuda/lu/rows.cuh"
#include "gpu/cuda/lu/space.cuh"
#include "gpu/cuda/lu/substitute.cuh"
#include "gpu/cuda/gemm/gemm.h"

/* ---- Launches of clusters ---- */

#define CUDA__LU_CLUSTER_THREADS_MIN 256 /* the products want them */

/* Where a cluster goes, and the event that records its start; NULL: none. */
struct cuda__lu_cluster_place {
    unsigned matrices;
    cudaStream_t stream;
    cudaEvent_t begun;
};

/* One launch: what of it does not depend on the kernel. */
struct cuda__lu_cluster_launch {
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config;
    int rows; /* of a block */

    /* height: rows of all blocks. */
    cuda__lu_cluster_launch(int height, int blocks, const cuda__lu_cluster_place &place)
        : attributes{}, config{}
    {
        const int unit = CUDA__LU_CLUSTER_UNIT;
        rows = ((height + blocks - 1) / blocks + unit - 1) / unit * unit;
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim.x = (unsigned)blocks;
        attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
        attributes[1].id = cudaLaunchAttributeLaunchCompletionEvent;
        attributes[1].val.launchCompletionEvent.event = place.begun;
        attributes[1].val.launchCompletionEvent.flags = 0;
        config.gridDim = dim3((unsigned)blocks, place.matrices);
        config.stream = place.stream;
        config.attrs = attributes;
        config.numAttrs = place.begun ? 2 : 1;
    }
};

/* Kernel: cuda__lu_cluster_kernel<T, Block, Rows>. Static as that is: one of each file. */
template <typename T, int Block, int Rows>
static cudaError_t cuda__lu_prepare_cluster(cuda__lu_cluster_launch &launch)
{
    const void *kernel = (const void *)cuda__lu_cluster_kernel<T, Block, Rows>;
    cudaLaunchConfig_t &config = launch.config;
    int threads = (launch.rows + Rows - 1) / Rows;
    threads = threads > CUDA__LU_CLUSTER_THREADS_MIN ? threads : CUDA__LU_CLUSTER_THREADS_MIN;
    config.blockDim = dim3((unsigned)((threads + CUDA__WARP - 1) / CUDA__WARP * CUDA__WARP));
    config.dynamicSmemBytes = cuda__lu_cluster_bytes<T, Block>(launch.rows);
    cudaError_t status = cuda__allow_shared(kernel, config.dynamicSmemBytes);
    if (status != cudaSuccess)
        return status;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

/* f(columns of a panel, rows of a thread) for so many rows of a block; false: they are too many. */
template <typename F> static bool cuda__lu_with_cluster(int rows, F f)
{
    typedef std::integral_constant<int, 16> sixteen;
    typedef std::integral_constant<int, 8> eight;
    if (rows <= CUDA__LU_CLUSTER_THREADS)
        f(sixteen(), std::integral_constant<int, 1>());
    else if (rows <= 2 * CUDA__LU_CLUSTER_THREADS)
        f(sixteen(), std::integral_constant<int, 2>());
    else if (rows <= 4 * CUDA__LU_CLUSTER_THREADS)
        f(eight(), std::integral_constant<int, 4>());
    else
        return false;
    return true;
}

/* The blocks of a cluster for an order on the current device, no more than `most` unless that is 0;
 * 0: no cluster of the device holds the rows. Asks the driver: some 10 us. */
template <typename T> static int cuda__lu_cluster_blocks(int padded, int most)
{
    most = most > 0 && most < CUDA__LU_CLUSTER_MAX ? most : CUDA__LU_CLUSTER_MAX;
    for (int blocks = most; blocks >= 1; blocks /= 2) {
        cuda__lu_cluster_launch launch(padded, blocks, cuda__lu_cluster_place{1, nullptr, nullptr});
        int clusters = 0;
        bool taken = cuda__lu_with_cluster(launch.rows, [&](auto columns, auto rows) {
            if (cuda__lu_prepare_cluster<T, columns, rows>(launch) != cudaSuccess ||
                cudaOccupancyMaxActiveClusters(
                    &clusters, (const void *)cuda__lu_cluster_kernel<T, columns, rows>,
                    &launch.config) != cudaSuccess) {
                clusters = 0;
                (void)cudaGetLastError(); /* the device has no such cluster, and says so */
            }
        });
        if (!taken)
            return 0;
        if (clusters > 0)
            return blocks;
    }
    return 0;
}

/* Columns that are eliminated together, and blocks. */
struct cuda__lu_cluster_shape {
    int width, blocks;
};

/* Of an order, as its row of the table has them. */
template <typename T>
static inline cuda__lu_cluster_shape cuda__lu_cluster_shape_of(bool factors, int64_t n)
{
#define CUDA__LU_CLUSTER(type, factor, order, width, blocks)                                       \
    if (std::is_same<type, T>::value && factors == factor && n <= order)                           \
        return cuda__lu_cluster_shape{width, blocks};
#include "gpu/cuda/tuning/h200/lu_cluster.cuh"
#undef CUDA__LU_CLUSTER
    return cuda__lu_cluster_shape{0, 0};
}

/* The columns at .. at + columns - 1 by a cluster of so many blocks a matrix, or as many as get
 * rows. */
template <typename T>
static cudaError_t cuda__lu_start_cluster(const cuda__lu_chunk &chunk, int at, int columns,
                                          int blocks, const cuda__lu_cluster_place &place)
{
    int height = chunk.padded - at;
    while (blocks > 1 && blocks / 2 * CUDA__LU_CLUSTER_UNIT >= height)
        blocks /= 2;
    cuda__lu_cluster_launch launch(height, blocks, place);
    cudaError_t status = cudaErrorInvalidValue;
    cuda__lu_with_cluster(launch.rows, [&](auto block, auto rows) {
        status = cuda__lu_prepare_cluster<T, block, rows>(launch);
        if (status == cudaSuccess)
            status = cudaLaunchKernelEx(&launch.config, cuda__lu_cluster_kernel<T, block, rows>,
                                        chunk, at, columns, launch.rows);
    });
    return status;
}

/* ---- Kernels ---- */

/* The kernels that invert a matrix in its workspace (space.cuh) by groups of columns, up to n =
 * CUDA__LU_ONE_BLOCK_MAX, as LAPACK's getrf and getri do, but U is inverted on the way.
 *
 * 1. Gauss-Jordan elimination, rows at their places. A column of W becomes the multipliers of its
 * step: of the rows not chosen yet, L's; of those chosen before, the numbers of D U^-1, with the
 * pivots D. So the columns of a group, M, are what other columns take:
 *
 *      U = L^-1 R with R the chosen rows, which become zero; then W += M U for all rows.
 *
 * 2. X L = D U^-1 gives the inverse but for D, from the last column to the first.
 *
 * The factors are kept apart from W. One product of the accumulated transformation,
 * W += (M L^-1) R, would do without them, but |I - A X| would grow with the condition. Both
 * residuals are small where every row, also a chosen one, takes its multiple of the same U.
 *
 * The columns of a group are eliminated by halves, the left one first, so that products have a high
 * rank, and read and write memory little. Phase 2 goes by halves of all groups.
 * blockIdx.y is the matrix. Cost: see each kernel.
 */

/* ---- Panels ---- */

/* m: the multipliers; inverse: of the triangle of L. */
template <typename T, int Block, int Warps> struct cuda__lu_panel_memory {
    cuda__lu_proposals<T, Block, Warps> proposals;
    T inverse[Block][Block];
    T m[Warps * CUDA__WARP][Block + 1];
};

/* A block and its panel. */
template <typename T, int Block, int Warps> struct cuda__lu_panel_block {
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__lu_panel<T, Block, false> panel;
    static constexpr int width = cuda__real<T>::width, threads = Warps * CUDA__WARP;

    const cuda__lu_view<T> &view;
    cuda__lu_panel_memory<T, Block, Warps> &memory;
    int padded, at, count;
    int thread, warp, lane;

    __device__ __forceinline__ T *line(int row, int column) const
    {
        return view.w + (int64_t)row * padded + column;
    }

    /* The thread's row. */
    __device__ __forceinline__ void eliminate() const
    {
        panel mine;
        mine.steps = cuda__lu_steps<T>{view.pivot, view.order, view.place};
        mine.row = thread;
        mine.place = CUDA__LU_NO_ROW;
        mine.clear();
        if (thread < padded) {
            mine.place = view.row_place[thread];
            mine.read(line(thread, at));
        }
        T *m = memory.m[thread];
        mine.run(memory.proposals, at, count, warp, lane, [&](int k, const T *chosen) {
            m[k] = mine.a[Block - 1];
            if (thread < Block)
                memory.inverse[k][lane] = lane < k    ? chosen[Block - k + lane]
                                          : lane == k ? T(1)
                                                      : T(0);
        });
        unsigned step = mine.panel_step(at);
        for (int k = 0; k < Block; k++) {
            if (k >= count || (step < (unsigned)count && k <= (int)step))
                m[k] = k == (int)step ? T(1) : T(0);
            if (k >= count && thread < Block)
                memory.inverse[k][lane] = 0;
        }
        if (thread < padded)
            view.row_place[thread] = mine.place;
    }

    /* Of each row. */
    __device__ __forceinline__ void write_multipliers() const
    {
        constexpr int pieces = Block / width;
        for (int e = thread; e < padded * pieces; e += threads) {
            int row = e / pieces, j = e % pieces * width;
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&piece)[v] = memory.m[row][j + v];
            *(vector *)line(row, at + j) = piece;
        }
    }

    /* Rows of L in the columns from `group` on, which W loses. A warp a row. */
    __device__ __forceinline__ void write_factors(int group) const
    {
        for (int q = warp; q < Block; q += Warps) {
            T *to = view.factors + (int64_t)(at + q) * padded;
            T *from = line(q < count ? view.order[at + q] : 0, 0);
            for (int j = group + lane * width; j < at; j += CUDA__WARP * width) {
                *(vector *)(to + j) = q < count ? *(const vector *)(from + j) : vector{};
                if (q < count)
                    *(vector *)(from + j) = vector{};
            }
            if (lane < Block)
                to[at + lane] = memory.inverse[q][lane];
        }
    }
};

/* The panel of Block columns at column `at` of the group that begins at `group`, by one block.
 * Cost: count steps (panel.cuh), which other blocks of the multiprocessor hide where there is room
 * for them. */
template <typename T, int Block, int Warps>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Warps <= 8 ? 2 : 1)
    cuda__lu_panel_kernel(const cuda__lu_chunk chunk, int at, int group)
{
    cuda__follow_previous();
    static_assert(CUDA__LU_PANEL_MAX % Block == 0, "panels divide the columns");
    static_assert(Block <= CUDA__WARP, "a lane has a column");
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int thread = (int)threadIdx.x, left = chunk.n - at;
    cuda__lu_panel_block<T, Block, Warps> block = {
        view,
        *(cuda__lu_panel_memory<T, Block, Warps> *)cuda__memory,
        chunk.padded,
        at,
        left < Block ? left : Block,
        thread,
        thread / CUDA__WARP,
        thread % CUDA__WARP};
    block.eliminate();
    __syncthreads();
    block.write_multipliers();
    block.write_factors(group);
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
    bool last_first;          /* of the indices, a unit at a time */
};

template <typename Shape> struct cuda__lu_product_block {
    static_assert(Shape::inner == CUDA__UNIT, "as in substitute.cuh");
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

    /* Indices from `done` of them on. Pointers are renewed, so that those of single pieces are not
     * kept from step to step: registers are short. */
    __device__ __forceinline__ void fetch(int done, int turn)
    {
        int k = of.last_first ? of.inner - Shape::inner - done : done;
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

/* W's columns at .. at + columns - 1 += M R, M being `inner` columns of W from `from` on, R as many
 * rows of the factors. Phase 2, to the left of M, takes M's last column first, as substitution
 * does. Cost: padded x inner x columns multiplications and additions. */
template <typename Shape>
static __global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cuda__lu_product_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    cuda__follow_previous();
    typedef typename Shape::T T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int across = (columns + Shape::columns - 1) / Shape::columns;
    const T *r = view.factors + (int64_t)from * chunk.padded + at;
    cuda__lu_product<T> of = {
        view.w + from, r,     view.w + at, chunk.padded, chunk.padded, chunk.padded,
        chunk.padded,  inner, columns,     at < from};
    cuda__lu_product_block<Shape> block = {of, *(typename Shape::shared *)cuda__memory,
                                           (int)blockIdx.x / across * Shape::rows,
                                           (int)blockIdx.x % across * Shape::columns};
    block.run();
}

#define CUDA__LU_CHUNK_MAX 32768 /* of blockIdx.y */

/* f(columns of a panel, warps, columns of a group), as the order's row of the table has them. */
template <typename T, typename F> static int cuda__lu_with_panel(int padded, F f)
{
#define CUDA__LU_PRODUCT(type, most, rows, across, warp_rows, warp_columns, blocks)
#define CUDA__LU_PANEL(type, order, block, warps, group)                                           \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (padded <= order)                                                                       \
            return f(std::integral_constant<int, block>(), std::integral_constant<int, warps>(),   \
                     group);                                                                       \
    }
#include "gpu/cuda/tuning/h200/lu_wide.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
    return 0;
}

/* cuda__lu_group_blocks with the order's panels. */
template <typename T> static int cuda__lu_groups(int64_t n, int columns, int most, int64_t matrices)
{
    return cuda__lu_with_panel<T>(cuda__lu_padded(n), [&](auto block, auto, int) {
        return cuda__lu_group_blocks<T, block>((int)n, columns, most, matrices);
    });
}

/* The launch sequence of a chunk of a batch. */
template <typename T, bool Factor> struct cuda__lu_sequence {
    const cuda_batch &batch;
    cuda__lu_chunk chunk;
    unsigned matrices; /* of the chunk */
    cudaStream_t stream;
    struct cuda_products *products;
    int blocks;                                            /* of a cluster; 0: by groups */
    const bool overlaps = blocks == 0 && cuda__overlaps(); /* by clusters there are events */
    cudaError_t status = cudaSuccess; /* the first other one; nothing is launched after it */

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        if (status == cudaSuccess)
            status = cuda__follow(kernel, dim3((unsigned)blocks, matrices), threads, shared_bytes,
                                  overlaps, stream, arguments...);
    }

    static constexpr int REFLECTIONS = 2; /* one was enough for every matrix tried */

    static int64_t pieces(int64_t count, int64_t size)
    {
        return (count + size - 1) / size;
    }

    /* ---- Elimination ---- */

    template <typename F> int with_panel(F f) const
    {
        return cuda__lu_with_panel<T>(chunk.padded, f);
    }

    int block() const
    {
        return with_panel([](auto columns, auto, int) { return (int)columns; });
    }

    /* Columns of a group. */
    int group() const
    {
        return chunk.manner.group > 0 ? chunk.manner.group
                                      : with_panel([](auto, auto, int columns) { return columns; });
    }

    void panel(int at, int from)
    {
        with_panel([&](auto columns, auto warps, int) {
            start(cuda__lu_panel_kernel<T, columns, warps>, 1, warps * CUDA__WARP,
                  sizeof(cuda__lu_panel_memory<T, columns, warps>), chunk, at, from);
            return 0;
        });
    }

    template <typename Shape> void product_by(int from, int inner, int at, int columns)
    {
        int64_t tiles = pieces(chunk.padded, Shape::rows) * pieces(columns, Shape::columns);
        start(cuda__lu_product_kernel<Shape>, tiles, Shape::threads, sizeof(typename Shape::shared),
              chunk, from, inner, at, columns);
    }

    void product(int from, int inner, int at, int columns)
    {
#define CUDA__LU_PANEL(type, order, block, warps, group)
#define CUDA__LU_PRODUCT(type, most, rows, across, warp_rows, warp_columns, blocks)                \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (columns <= most)                                                                       \
            return product_by<                                                                     \
                cuda__lu_product_shape<T, rows, across, warp_rows, warp_columns, blocks>>(         \
                from, inner, at, columns);                                                         \
    }
#include "gpu/cuda/tuning/h200/lu_wide.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
    }

    /* The rows chosen in a range's steps become rows of the factors. */
    void forward(const cuda__lu_forward_range &of)
    {
        with_panel([&](auto block, auto, int) {
            typedef cuda__lu_forward_memory<T, block> memory;
            const int size = CUDA__LU_SUBSTITUTED;
            int64_t strips = pieces(of.left, size) + pieces(of.columns, size);
            if (strips > 0)
                start(cuda__lu_forward_kernel<T, block>, strips, CUDA__LU_SUBSTITUTE_THREADS,
                      memory::bytes(of.inner), chunk, of);
            return 0;
        });
    }

    /* X L = the columns of a group. */
    void backward(int at, int columns)
    {
        with_panel([&](auto block, auto, int) {
            typedef cuda__lu_backward_memory<T, block> memory;
            start(cuda__lu_backward_kernel<T, block>, pieces(chunk.padded, CUDA__LU_SUBSTITUTED),
                  CUDA__LU_SUBSTITUTE_THREADS, memory::bytes(columns), chunk, at, columns,
                  memory::x_line(columns));
            return 0;
        });
    }

    /* The left part of so many columns: half of the pieces. */
    static int left_half(int columns, int piece)
    {
        return (int)(pieces(pieces(columns, piece), 2) * piece);
    }

    /* The columns at .. at + columns - 1 of the group that begins at `from`, by themselves. */
    void eliminate_by_halves(int at, int columns, int from)
    {
        if (columns <= block())
            return panel(at, from);
        int left = left_half(columns, block()), right = columns - left;
        eliminate_by_halves(at, left, from);
        forward({at, left, 0, at + left, right});
        product(at, left, at + left, right);
        eliminate_by_halves(at + left, right, from);
    }

    /* The same by one launch for each matrix's cluster. */
    void eliminate_by_cluster(int at, int columns)
    {
        with_panel([&](auto block, auto, int) {
            if (status == cudaSuccess)
                note(
                    cuda__lu_start_group<T, block>(chunk, at, columns, matrices, overlaps, stream));
            return 0;
        });
    }

    /* Phase 2, in the columns from `at` on. */
    void substitute_by_halves(int at, int columns)
    {
        if (columns <= group())
            return backward(at, columns);
        int left = left_half(columns, group()), right = columns - left;
        substitute_by_halves(at + left, right);
        product(at + left, right, at, left);
        substitute_by_halves(at, left);
    }

    void eliminate_by_groups()
    {
        /* Panels that are padding alone are left out. */
        const int end = (int)pieces(chunk.n, block()) * block();
        for (int at = 0; at < end; at += group()) {
            int columns = end - at < group() ? end - at : group(), next = at + columns;
            if (chunk.manner.group > 0)
                eliminate_by_cluster(at, columns);
            else
                eliminate_by_halves(at, columns, at);
            forward({at, columns, at, next, end - next});
            if (next < end)
                product(at, columns, next, end - next);
        }
        substitute_by_halves(0, end);
    }

    /* ---- Elimination by clusters ---- */

    void note(cudaError_t result)
    {
        status = status == cudaSuccess ? result : status;
    }

    cuda__lu_view<T> view() const
    {
        cuda__lu_view<T> view;
        cuda__lu_lay_out(view, chunk.space, chunk.n, chunk.padded, chunk.manner);
        return view;
    }

    struct cuda_matrices lying(T *first, int64_t line) const
    {
        return cuda_matrices{first, line, (int64_t)(chunk.stride / sizeof(T))};
    }

    /* In W, from that place on. */
    struct cuda_matrices in_w(int row, int column) const
    {
        return lying(view().w + (int64_t)row * chunk.padded + column, chunk.padded);
    }

    struct cuda_matrices in_r(int column) const
    {
        return lying(view().r + column, chunk.padded);
    }

    struct cuda_matrices in_v(int column) const
    {
        return lying(view().v + column, chunk.padded);
    }

    struct cuda_matrices in_m(int row) const
    {
        int64_t line = chunk.manner.width;
        return lying(view().m + row * line, line);
    }

    /* C = beta C + alpha A B, of all matrices. */
    void multiply(double alpha, struct cuda_matrices a, struct cuda_matrices b, double beta,
                  struct cuda_matrices c, int64_t rows, int64_t columns, int64_t inner)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = rows;
        product.columns = columns;
        product.inner = inner;
        product.alpha = alpha;
        product.beta = beta;
        product.a = a;
        product.b = b;
        product.c = c;
        product.count = matrices;
        size_t bytes = cuda__lu_scratch_bytes<T>(chunk.n, chunk.manner);
        product.scratch = bytes > 0 ? chunk.space + chunk.stride - bytes : nullptr;
        if (status == cudaSuccess && rows > 0 && columns > 0)
            note(cuda_product(products, &product, stream));
    }

    /* The rows chosen in the `inner` columns from `from` on go to their places and to R, in
     * `columns` columns from `at` on. */
    void move(int from, int inner, int at, int columns)
    {
        int64_t blocks =
            pieces(inner, CUDA__LU_MOVED_ROWS) * pieces(columns, CUDA__LU_MOVED_COLUMNS);
        int threads = CUDA__LU_MOVED_ROWS * CUDA__WARP;
        if (columns <= 0)
            return;
        start(cuda__lu_collect_kernel<T>, blocks, threads, 0, chunk, from, inner, at, columns);
        start(cuda__lu_displace_kernel<T>, blocks, threads, 0, chunk, from, inner, at, columns);
    }

    /* LU: L^-1 times some columns of R. */
    void solve(int from, int inner, int at, int columns)
    {
        int64_t width = chunk.manner.width;
        T *lower = view().lower, *r = view().r;
        for (int first = 0; columns > 0 && first < inner; first += CUDA__LU_SOLVED) {
            int left = inner - first, rows = left < CUDA__LU_SOLVED ? left : CUDA__LU_SOLVED;
            int64_t below = first + rows;
            start(cuda__lu_solve_rows_kernel<T>, pieces(columns, CUDA__LU_SOLVED_COLUMNS),
                  CUDA__LU_SOLVED_COLUMNS, sizeof(cuda__lu_solve_memory<T>), chunk, from, first,
                  rows, at, columns);
            multiply(1, lying(lower + below * width + first, width),
                     lying(r + (int64_t)first * chunk.padded + at, chunk.padded), 1,
                     lying(r + below * chunk.padded + at, chunk.padded), inner - below, columns,
                     rows);
        }
    }

    /* Inverse: V in some columns. */
    void make_v(int inner, int at, int columns)
    {
        multiply(1, lying(view().lower, chunk.manner.width), in_r(at), 0, in_v(at), inner, columns,
                 inner);
    }

    void cluster(int at, int columns, cudaStream_t where, cudaEvent_t begun)
    {
        cuda__lu_cluster_place place = {matrices, where, begun};
        if (status == cudaSuccess)
            note(cuda__lu_start_cluster<T>(chunk, at, columns, blocks, place));
    }

    /* The columns at .. at + columns - 1 next to what the stream is given next, which begins when
     * they have got their multiprocessors. */
    void cluster_overlapped(int at, int columns)
    {
        const struct cuda_side *side = cuda_products_side(products);
        if (status == cudaSuccess)
            note(cudaEventRecord(side->forked, stream));
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(side->stream, side->forked, 0));
        cluster(at, columns, side->stream, side->begun);
        if (status == cudaSuccess)
            note(cudaEventRecord(side->joined, side->stream));
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(stream, side->begun, 0));
    }

    int columns_at(int at) const
    {
        int left = at < chunk.n ? chunk.padded - at : 0;
        return left < chunk.manner.width ? left : chunk.manner.width;
    }

    /* Columns behind, below the chosen rows, lose L times L^-1 times those rows. */
    void bring_below(int from, int inner, int at, int columns)
    {
        int next = from + inner;
        if (Factor)
            solve(from, inner, at, columns);
        else
            make_v(inner, at, columns);
        multiply(-1, in_w(next, from), Factor ? in_r(at) : in_v(at), 1, in_w(next, at),
                 chunk.n - next, columns, inner);
    }

    /* Inverse: L^-1 and U^-1. */
    void invert_triangles(int from, int inner)
    {
        start(cuda__lu_triangles_kernel<T>, 2 * inner / CUDA__LU_TRIANGLE,
              CUDA__LU_TRIANGLE_THREADS, sizeof(cuda__lu_triangle_memory<T>), chunk, from, inner);
    }

    /* The other columns of an inverse, where bring_below has not been; and the columns themselves.
     */
    void bring_around(int from, int inner, int rest)
    {
        int n = chunk.n, next = from + inner, right = chunk.padded - rest;
        start(cuda__lu_multipliers_kernel<T>,
              pieces(n > next ? n - next : 1, CUDA__LU_MULTIPLIED_ROWS),
              CUDA__LU_MULTIPLIED_ROWS * CUDA__WARP, 0, chunk, from, inner, next);
        multiply(-1, in_w(0, from), in_m(from), 0, in_m(0), from, inner, inner);
        make_v(inner, 0, from);
        make_v(inner, rest, right);
        multiply(-1, in_m(0), in_v(next), 1, in_w(0, next), next, rest - next, inner);
        multiply(-1, in_m(0), in_v(0), 1, in_w(0, 0), n, from, inner);
        multiply(-1, in_m(0), in_v(rest), 1, in_w(0, rest), n, right, inner);
        multiply(-1, in_m(0), lying(view().lower, chunk.manner.width), 0, in_w(0, from), n, inner,
                 inner);
    }

    /* Each step brings `width` finished columns to the next ones first, so that a cluster works on
     * those while the rest of the device brings the finished ones to all others. */
    void eliminate_by_clusters()
    {
        cluster(0, columns_at(0), stream, nullptr);
        for (int at = 0; columns_at(at) > 0;) {
            int inner = columns_at(at), next = at + inner, columns = columns_at(next);
            int rest = next + columns;
            move(at, inner, at, rest - at);
            if (!Factor)
                invert_triangles(at, inner);
            bring_below(at, inner, next, columns);
            if (columns > 0 && chunk.manner.behind)
                cluster(next, columns, stream, nullptr);
            else if (columns > 0)
                cluster_overlapped(next, columns);
            start(cuda__lu_rename_kernel<T>, 1, CUDA__LU_WIDTH_MAX, 0, chunk, at, inner);
            move(at, inner, 0, at);
            move(at, inner, rest, chunk.padded - rest);
            if (Factor)
                bring_below(at, inner, rest, chunk.padded - rest);
            else
                bring_around(at, inner, rest);
            if (columns > 0 && !chunk.manner.behind && status == cudaSuccess)
                note(cudaStreamWaitEvent(stream, cuda_products_side(products)->joined, 0));
            at = next;
        }
    }

    /* ---- One chunk ---- */

    void write_inverse()
    {
        int most = CUDA__LU_STAGED_BYTES / (int)sizeof(T);
        int staged = chunk.padded < most ? chunk.padded : most;
        bool is_long = chunk.manner.width > 0 || chunk.n * sizeof(T) > CUDA__LU_SHORT_ROW_BYTES;
        if (!is_long)
            start(cuda__lu_write_inverse_kernel<T>, pieces(chunk.n, CUDA__LU_ROWS),
                  CUDA__LU_THREADS, 0, batch, chunk);
        else
            start(cuda__lu_write_long_inverse_kernel<T>, chunk.n, CUDA__LU_THREADS,
                  (size_t)(staged + CUDA__LU_STAGED_SUMS) * sizeof(T), batch, chunk, staged);
    }

    void run()
    {
        const int threads = CUDA__LU_THREADS;
        const size_t sums = CUDA__LU_SUMS_NUMBERS * sizeof(T), most = sums;
        int64_t rows = pieces(chunk.n, CUDA__LU_ROWS), strips = pieces(chunk.n, CUDA__LU_STRIP);
        if (chunk.manner.equilibrated)
            start(cuda__lu_equilibrate_kernel<T>, 1, threads, 0, batch, chunk);
        else if (chunk.manner.recovery)
            start(cuda__lu_pick_kernel<T>, 1, 1, 0, batch, chunk);
        start(cuda__lu_read_kernel<T>, pieces(chunk.padded, CUDA__LU_ROWS), threads, 0, batch,
              chunk);
        start(cuda__lu_sums_kernel<T, false>, strips, threads, sums, chunk);
        start(cuda__lu_prepare_kernel<T>, 1, threads, most, chunk);
        if constexpr (Factor) {
            eliminate_by_clusters();
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            start(cuda__lu_write_factors_kernel<T>, rows, threads, 0, batch, chunk);
        } else {
            start(cuda__lu_scale_kernel<T>, rows, threads, 0, chunk);
            for (int i = 0; chunk.manner.recovery && i < REFLECTIONS; i++)
                start(cuda__lu_mix_kernel<T>, rows, threads, 0, chunk, i);
            if (blocks > 0)
                eliminate_by_clusters();
            else
                eliminate_by_groups();
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            for (int i = REFLECTIONS - 1; chunk.manner.recovery && i >= 0; i--) {
                start(cuda__lu_mirrored_sums_kernel<T>, strips, threads, sums, chunk, i);
                start(cuda__lu_unmix_kernel<T>, rows, threads, 0, chunk, i);
            }
            start(cuda__lu_sums_kernel<T, true>, strips, threads, sums, chunk);
            write_inverse();
            start(cuda__lu_answer_kernel<T>, 1, threads, most, batch, chunk);
            if (chunk.manner.equilibrated)
                start(cuda__lu_answer_equilibrated_kernel<T>, 1, threads, most, batch, chunk);
            if (chunk.manner.recovery)
                start(cuda__lu_refuse_kernel<T>, rows, threads, 0, batch, chunk);
        }
    }
};

/* n up to CUDA_MIDDLE_N_MAX. cudaErrorNotSupported: no cluster of the device holds the rows. */
template <typename T, bool Factor>
static cudaError_t cuda__lu_wide(int64_t n, const cuda_batch &batch, void *space,
                                 size_t space_bytes, cuda__lu_manner manner,
                                 struct cuda_products *products, cudaStream_t stream)
{
    int blocks = 0;
    if (manner.width > 0)
        blocks = cuda__lu_cluster_blocks<T>(cuda__lu_padded(n), manner.blocks);
    else if (Factor || n > CUDA__LU_ONE_BLOCK_MAX)
        return cudaErrorNotSupported;
    if (manner.width > 0 && (blocks == 0 || manner.width > CUDA__LU_WIDTH_MAX || !products))
        return cudaErrorInvalidValue;
    size_t each = cuda__lu_space_bytes<T>(n, manner);
    int64_t held = (int64_t)(space_bytes / each);
    if (held < 1)
        return cudaErrorMemoryAllocation;
    held = held < CUDA__LU_CHUNK_MAX ? held : CUDA__LU_CHUNK_MAX;
    cuda__lu_chunk chunk = {(unsigned char *)space, each, 0, (int)n, cuda__lu_padded(n), manner};
    cudaError_t status = cudaSuccess;
    for (; chunk.first < batch.matrices && status == cudaSuccess; chunk.first += held) {
        const unsigned some = (unsigned)std::min(batch.matrices - chunk.first, held);
        cuda__lu_sequence<T, Factor> sequence = {batch, chunk, some, stream, products, blocks};
        sequence.run();
        status = sequence.status;
    }
    return status;
}

typedef cudaError_t cuda__lu_wide_launcher(int64_t n, const cuda_batch &batch, void *space,
                                           size_t space_bytes, cuda__lu_manner manner,
                                           struct cuda_products *products, cudaStream_t stream);
cuda__lu_wide_launcher cuda__lu_invert_wide_f32, cuda__lu_invert_wide_f64;
cuda__lu_wide_launcher cuda__lu_factor_wide_f32, cuda__lu_factor_wide_f64;

/* cuda__lu_cluster_blocks. */
typedef int cuda__lu_clusters(int padded, int most);
cuda__lu_clusters cuda__lu_clusters_f32, cuda__lu_clusters_f64;

/* cuda__lu_groups. */
typedef int cuda__lu_grouper(int64_t n, int columns, int most, int64_t matrices);
cuda__lu_grouper cuda__lu_groups_f32, cuda__lu_groups_f64;

#endif
