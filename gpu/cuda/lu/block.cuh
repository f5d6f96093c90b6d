/* gpu/cuda/lu/block.cuh: LU of a matrix in shared memory: the kernel, and the way from an order to
 * its instance. Launches: host code, any thread.
 */
#ifndef GPU_CUDA_LU_BLOCK_CUH
#define GPU_CUDA_LU_BLOCK_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/panel.cuh"
#include "gpu/cuda/base/mma_tile.cuh"

/* ---- The kernel ---- */

/* LU with partial pivoting of one matrix a block, which is in shared memory from load to store.
 *
 * Of A (n x n, padded with zeros to Order x Order) a panel of Block columns goes into registers, a
 * row a thread, and is eliminated there (panel.cuh). It leaves M (n x Block), the panel's part
 * of -L. Right of the panel the chosen rows are solved with L and become R, a part of U; other
 * rows C become C + M R: one product of rank Block, by tiles (base/mma_tile.cuh). Rows are never
 * moved: row r, chosen in step k, ends as row k.
 *
 * Cost, by counting, in cycles of a multiprocessor of an H200, n = Order: n^3 / 384 of arithmetic,
 * on the tensor cores in FP64; of shared memory n^3 / (24 Block) for C in FP64, half of it in FP32,
 * and half as much again for M and R; n steps of some 350 that nothing else of the block hides.
 * Several blocks a multiprocessor hide each other's.
 */

/* Block: columns of a panel. A warp's tile is TileRows x TileColumns units of 16 x 16. */
template <typename T, int Order_, int Block_, int Warps_, int TileRows, int TileColumns>
struct cuda__lu_shape {
    typedef T real_type;
    static constexpr int order = Order_, block = Block_, warps = Warps_;
    static constexpr int threads = warps * CUDA__WARP;
    static constexpr int tile_rows = TileRows * CUDA__UNIT, tile_columns = TileColumns * CUDA__UNIT;
    static constexpr int line = cuda__mma_line<T>::of_tile(order);
    static constexpr int m_line = cuda__mma_line<T>::of_factor(block);
    static constexpr int r_line = cuda__mma_line<T>::of_factor(order);
    typedef cuda__mma_tile<T, TileRows, TileColumns> tile;
    static_assert(order % tile_rows == 0 && order % tile_columns == 0, "tiles divide the matrix");
    static_assert(order % block == 0 && block % 8 == 0, "panels divide the matrix");
    static_assert(threads >= order, "a thread for each row and column");
};

template <typename Shape> struct cuda__lu_shared {
    typedef typename Shape::real_type T;
    alignas(16) T c[Shape::order * Shape::line];
    alignas(16) T m[Shape::order * Shape::m_line];
    alignas(16) T r[Shape::block * Shape::r_line];
    cuda__lu_proposals<T, Shape::block, Shape::warps> proposals;
    T pivot[Shape::order];
    int order[Shape::order], place[Shape::order];
    int votes[Shape::warps];
};

template <typename Shape> struct cuda__lu_block {
    typedef typename Shape::real_type T;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_shared<Shape> shared;
    typedef cuda__lu_panel<T, Shape::block, true> panel;
    static constexpr int width = real::width;
    static constexpr int line = Shape::line;

    shared &of;
    int n, thread, warp, lane;

    __device__ __forceinline__ cuda__lu_block(shared &memory, int order)
        : of(memory), n(order), thread((int)threadIdx.x), warp(thread / CUDA__WARP),
          lane(thread % CUDA__WARP)
    {
    }

    /* ---- In ---- */

    template <int Width> __device__ void copy_in(const T *a)
    {
        for (int i = warp; i < n; i += Shape::warps) {
            for (int j = lane * Width; j < n; j += CUDA__WARP * Width)
                cuda__copy_async<Width *(int)sizeof(T)>(&of.c[i * line + j],
                                                        a + (int64_t)i * n + j);
        }
    }

    __device__ void read(const T *a)
    {
        for (int i = warp; i < Shape::order; i += Shape::warps) {
            for (int j = (i < n ? n : 0) + lane; j < Shape::order; j += CUDA__WARP)
                of.c[i * line + j] = 0;
        }
        if (n % width == 0 && (uintptr_t)a % 16 == 0)
            copy_in<width>(a);
        else
            copy_in<1>(a);
        cuda__copy_arrive();
        __syncthreads();
    }

    /* ---- Elimination ---- */

    /* R, right of the panel, becomes U; a thread a column. */
    __device__ void solve(int first)
    {
        T x[Shape::block];
        int j = thread;
        if (j >= Shape::order)
            return;
#pragma unroll
        for (int q = 0; q < Shape::block; q++) {
            const T *lower = of.c + of.order[first + q] * line + first;
            x[q] = j >= first + Shape::block ? of.c[of.order[first + q] * line + j] : T(0);
#pragma unroll
            for (int p = 0; p < q; p++)
                x[q] = fma(-lower[p], x[p], x[q]);
            of.r[q * Shape::r_line + j] = x[q];
            if (j >= first + Shape::block)
                of.c[of.order[first + q] * line + j] = x[q];
        }
    }

    /* C += M R, for the tiles that reach beyond column `from`. */
    __device__ void update(int from)
    {
        constexpr int columns = Shape::order / Shape::tile_columns;
        constexpr int tiles = columns * (Shape::order / Shape::tile_rows);
        __syncwarp(); /* the tensor cores want the lanes together */
#pragma unroll 1
        for (int t = warp; t < tiles; t += Shape::warps) {
            int i = t / columns * Shape::tile_rows, j = t % columns * Shape::tile_columns;
            typename Shape::tile tile;
            if (j + Shape::tile_columns <= from)
                continue;
            cuda__mma_load<T>(tile, of.c + i * line + j, line, lane);
            tile.template multiply<Shape::block>(of.m + i * Shape::m_line, Shape::m_line, of.r + j,
                                                 Shape::r_line, lane);
            cuda__mma_store<T>(tile, of.c + i * line + j, line, lane);
        }
    }

    /* What follows a panel: the columns right of it. */
    __device__ void spread(panel &mine, int first)
    {
        if (thread < Shape::order) {
            mine.write(of.c + thread * line + first, 1);
            if (mine.place < 0)
                mine.clear();
            mine.write(of.m + thread * Shape::m_line, T(-1));
        }
        __syncthreads();
        if (first + Shape::block >= n)
            return;
        solve(first);
        __syncthreads();
        update(first + Shape::block);
        __syncthreads();
    }

    __device__ void eliminate()
    {
        panel mine;
        mine.steps = cuda__lu_steps<T>{of.pivot, of.order, of.place};
        mine.row = thread;
        mine.place = thread < n ? thread : CUDA__LU_NO_ROW;
#pragma unroll 1
        for (int first = 0; first < n; first += Shape::block) {
            int count = n - first < Shape::block ? n - first : Shape::block;
            if (thread < Shape::order)
                mine.read(of.c + thread * line + first);
            else
                mine.clear();
            mine.run(of.proposals, first, count, warp, lane);
            spread(mine, first);
        }
    }

    /* INFO of pivots: the first zero's step, or 0. */
    __device__ int first_zero()
    {
        bool zero = thread < n && of.pivot[thread] == 0;
        int at = __reduce_min_sync(CUDA__ALL, zero ? thread + 1 : INT32_MAX);
        if (lane == 0)
            of.votes[warp] = at;
        __syncthreads();
        at = of.votes[0];
#pragma unroll
        for (int w = 1; w < Shape::warps; w++)
            at = of.votes[w] < at ? of.votes[w] : at;
        return at == INT32_MAX ? 0 : at;
    }

    __device__ void write_factors(T *result, bool none) const
    {
        for (int k = warp; k < n; k += Shape::warps) {
            const T *from = of.c + (none ? k : of.order[k]) * line;
            for (int j = lane; j < n; j += CUDA__WARP)
                result[(int64_t)k * n + j] = none ? real::nan() : from[j];
        }
    }

    __device__ void factor(const cuda__place<T> &place)
    {
        bool finite = true;
        read(place.a);
        for (int i = 0; thread < n && i < n; i++)
            finite = finite && fabs(of.c[i * line + thread]) <= real::largest;
        int info = __syncthreads_or(!finite) ? -1 : 0;
        if (info == 0) {
            eliminate();
            info = first_zero();
        }
        if (place.result)
            write_factors(place.result, info < 0);
        if (place.extra && thread < n)
            ((int *)place.extra)[place.within * n + thread] = info < 0 ? 0 : of.place[thread] + 1;
        if (place.info && thread == 0)
            place.info[place.within] = info;
    }
};

template <typename Shape, int Blocks>
static __global__ void __launch_bounds__(Shape::threads, Blocks)
    cuda__lu_block_kernel(const cuda_batch batch, int n)
{
    typedef typename Shape::real_type T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_block<Shape> block(*(cuda__lu_shared<Shape> *)cuda__memory, n);
    for (int64_t index = blockIdx.x; index < batch.matrices; index += gridDim.x) {
        block.factor(cuda__find<T>(batch, index, n * n));
        __syncthreads();
    }
}

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_block_launch(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    static_assert(sizeof(cuda__lu_shared<Shape>) <= CUDA__LU_SHARED_MAX, "the matrix fits");
    int64_t blocks = batch.matrices < INT32_MAX ? batch.matrices : INT32_MAX;
    return cuda__start(cuda__lu_block_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(cuda__lu_shared<Shape>), stream, batch, n);
}

/* For orders that cuda__lu_block_bytes knows. */
template <typename T>
static cudaError_t cuda__lu_block_pick(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
#define CUDA__LU_BLOCK(type, order, block, warps, rows, columns, blocks)                           \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (n <= order)                                                                            \
            return cuda__lu_block_launch<cuda__lu_shape<type, order, block, warps, rows, columns>, \
                                         blocks>(n, batch, stream);                                \
    }
#include "gpu/cuda/tuning/h200/lu.cuh"
#undef CUDA__LU_BLOCK
    return cudaErrorInvalidValue;
}

/* Shared memory that a block takes for order n; 0: there is no kernel for it. */
template <typename T> static inline size_t cuda__lu_block_bytes(int64_t n)
{
#define CUDA__LU_BLOCK(type, order, block, warps, rows, columns, blocks)                           \
    if (std::is_same<type, T>::value && n <= order)                                                \
        return sizeof(cuda__lu_shared<cuda__lu_shape<type, order, block, warps, rows, columns>>);
#include "gpu/cuda/tuning/h200/lu.cuh"
#undef CUDA__LU_BLOCK
    return 0;
}

/* Of the type of strip_launch.cuh's; they need no workspace. */
typedef cudaError_t cuda__lu_block_launcher(int64_t n, const cuda_batch &batch, void *, size_t,
                                            cudaStream_t stream);
cuda__lu_block_launcher cuda__lu_factor_f32, cuda__lu_factor_f64;

#endif
