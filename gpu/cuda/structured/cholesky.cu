/* gpu/cuda/structured/cholesky.cu: see cholesky.h. The kernels, and their launches. */
#include "gpu/cuda/structured/cholesky.h"

#include "base/minmax.h"
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/mma_tile.cuh"
#include "gpu/cuda/gemm/simt.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/tuning/h200/structured.h"

/* ---- Kernels ---- */

/* The kernels of cholesky.h. W is n x n; its columns go by groups, and those by corners
 * (cholesky.cu). The last part of grids numbers the matrices.
 *
 * Where matrices are small, V V^T is made of tiles of 64 x 64, in one launch for all of a group: so
 * they keep the device busy where cuBLAS's products, one for each strip of columns, would not.
 */

/* ---- A corner ---- */

/* The inverse of the Cholesky factor of a diagonal block, by one block of threads in shared
 * memory.
 *
 * The block goes by 32 columns as in cholesky.h a matrix: a warp makes the inverse of 32 x 32
 * numbers' factor in registers, a column a lane; the rows below become L's; what L does to all rows
 * below is done by all warps, but for the one that goes on with the next 32 x 32 numbers at once.
 * That chain bounds it: a step a column, of which each waits for a reciprocal and a round through
 * shared memory.
 *
 * In a row of 32 x 32 blocks that is done, what L does to the columns behind is kept above the
 * diagonal, where the block itself has nothing: the row is then the second factor of all products.
 * Device code.
 */

#define CUDA__CHOL_CORNER CUDA_CHOLESKY_CORNER
#define CUDA__CHOL_PANEL 32 /* rows that are taken together; a lane each */
#define CUDA__CHOL_WARPS 8

template <typename T> struct cuda__chol_corner_memory {
    static constexpr int line = cuda__mma_line<T>::of_factor(CUDA__CHOL_CORNER);
    static constexpr int short_line = cuda__mma_line<T>::of_factor(CUDA__CHOL_PANEL);
    alignas(16) T c[CUDA__CHOL_CORNER * line];
    alignas(16) T l[CUDA__CHOL_CORNER * short_line];     /* -L, of rows below the panel */
    alignas(16) T turned[CUDA__CHOL_PANEL * short_line]; /* the panel's M, transposed */
    alignas(16) T column[2][CUDA__CHOL_PANEL];
};

/* One panel: its 32 x 32 numbers in the registers of a warp. Lane c has column c of the upper
 * triangle, and in the rows that are done column c of M without the roots of the pivots: L D L^T
 * with ones on L's diagonal. */
template <typename T> struct cuda__chol_panel {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width, order = CUDA__CHOL_PANEL;
    alignas(16) T a[order];
    T pivot; /* of the lane's column */

    /* Column c of the upper triangle is row c of the lower one. */
    __device__ __forceinline__ void load(const T *block, int line, int lane)
    {
#pragma unroll
        for (int r = 0; r < order; r += width)
            *(vector *)(a + r) = *(const vector *)(block + lane * line + r);
    }

    /* Row `step`, which all lanes have shared, is taken from the rows below it. */
    __device__ __forceinline__ bool eliminate(int step, const T *shared, int lane)
    {
        T d = shared[step];
        bool positive = d > 0;
        T inverse = cuda__real<T>::reciprocal(positive ? d : T(1));
        T factor = (lane == step ? T(1) : a[step]) * inverse;
        pivot = lane == step ? d : pivot;
#pragma unroll
        for (int r = 0; r < order; r++) {
            if (r > step)
                a[r] = fma(-shared[r], factor, lane == step ? T(0) : a[r]);
        }
        return positive;
    }

    /* False: a pivot is not positive. */
    __device__ __forceinline__ bool run(T (*column)[order], int lane)
    {
        bool good = true;
#pragma unroll
        for (int step = 0; step < order; step++) {
            T *shared = column[step % 2];
            shared[lane] = a[step];
            __syncwarp();
            good = eliminate(step, shared, lane) && good;
        }
        return good;
    }

    /* M, with zeros above the diagonal, and its transpose. */
    __device__ __forceinline__ void store(T *block, int line, T *turned, int turned_line, T *column,
                                          int lane)
    {
        T root = 1 / (T)sqrt(pivot);
        __syncwarp();
        column[lane] = root;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < order; r++) {
            a[r] = lane == r ? root : lane < r ? a[r] * column[r] : T(0);
            block[r * line + lane] = a[r];
        }
#pragma unroll
        for (int r = 0; r < order; r += width)
            *(vector *)(turned + lane * turned_line + r) = *(const vector *)(a + r);
    }
};

template <typename T> struct cuda__chol_corner {
    typedef cuda__chol_corner_memory<T> memory_type;
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__mma_tile<T, 1, 2> tile; /* 16 x 32 */
    static constexpr int width = cuda__real<T>::width, order = CUDA__CHOL_PANEL;
    static constexpr int line = memory_type::line, short_line = memory_type::short_line;
    static constexpr int threads = CUDA__CHOL_WARPS * CUDA__WARP;

    memory_type &memory;
    int size, warp, lane;

    __device__ __forceinline__ T *at(int row, int column)
    {
        return memory.c + row * line + column;
    }

    /* Rows first .. end - 1 of the lower triangle, in whole panels, by `warps` warps. */
    __device__ __forceinline__ void load_rows(const T *from, int64_t stride, int first, int end,
                                              int warps)
    {
        for (int i = first; i < end; i += warps) {
            for (int j = lane * width; j < (i / order + 1) * order; j += CUDA__WARP * width)
                cuda__copy_async<16>(at(i, j), from + i * stride + j);
        }
        cuda__copy_arrive();
    }

    /* The first panel by the warp that begins with it, all else by the others. */
    __device__ __forceinline__ void load(const T *from, int64_t stride)
    {
        if (warp == 0)
            load_rows(from, stride, 0, order, 1);
        else
            load_rows(from, stride, order + warp - 1, size, CUDA__CHOL_WARPS - 1);
        __syncwarp();
    }

    /* A panel's rows, with zeros above the diagonal, by `warps` warps, this one being `own`. */
    __device__ __forceinline__ void store(T *to, int64_t stride, int first, int own, int warps)
    {
        for (int i = first + own; i < first + order; i += warps) {
            for (int j = lane * width; j < size; j += CUDA__WARP * width) {
                vector piece = {};
                if (j < first + order)
                    piece = *(const vector *)at(i, j);
                *(vector *)(to + i * stride + j) = piece;
            }
        }
    }

    /* By one warp. */
    __device__ __forceinline__ bool panel(int first)
    {
        cuda__chol_panel<T> own;
        own.load(at(first, first), line, lane);
        __syncwarp();
        bool good = own.run(memory.column, lane);
        own.store(at(first, first), line, memory.turned, short_line, memory.column[0], lane);
        __syncwarp();
        return good;
    }

    /* 16 rows below the panel become L's. */
    __device__ __forceinline__ void make_l(int first, int row)
    {
        tile product;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(at(row, first), line, memory.turned, short_line, lane);
        product.each(lane, [&](int i, int j, T *from) {
#pragma unroll
            for (int v = 0; v < width; v++) {
                *at(first + j + v, row + i) = from[v];
                memory.l[(row + i) * short_line + j + v] = -from[v];
            }
        });
    }

    /* 16 columns of the panel's rows become M's. */
    __device__ __forceinline__ void make_m(int first, int column)
    {
        cuda__mma_tile<T, 2, 1> product;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(at(first, first), line, at(first, column), line, lane);
        __syncwarp();
        cuda__mma_store(product, at(first, column), line, lane);
    }

    /* Some rows below the panel, in columns of one panel. The product is added up by itself: many
     * small numbers would does not change a large one, one by one. */
    template <typename Tile> __device__ __forceinline__ void bring(int first, int row, int column)
    {
        Tile product;
        bool fresh = column / order == first / order;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(memory.l + row * short_line, short_line, at(first, column),
                                         line, lane);
        __syncwarp();
        product.each(lane, [&](int i, int j, T *from) {
            T *to = at(row + i, column + j);
#pragma unroll
            for (int v = 0; v < width; v++)
                to[v] = fresh ? from[v] : to[v] + from[v];
        });
    }

    /* The next panel's own columns, by four warps. */
    __device__ __forceinline__ void bring_next(int first)
    {
        typedef cuda__mma_tile<T, 1, 1> quarter;
        int next = first + order, half = warp % 2 * CUDA__UNIT;
        if (warp < 4 && next < size)
            bring<quarter>(first, next + warp / 2 * CUDA__UNIT, next + half);
    }

    /* All rows below but those of the next panel's own columns, by all warps but the first. */
    __device__ __forceinline__ void bring_others(int first)
    {
        int next = first + order, count = 0;
        for (int row = next; row < size; row += CUDA__UNIT) {
            for (int column = 0; column <= row / order * order; column += order) {
                if (row < next + order && column == next)
                    continue;
                if (count++ % (CUDA__CHOL_WARPS - 1) == warp - 1)
                    bring<tile>(first, row, column);
            }
        }
    }

    /* The block goes from W and back. False, in the first warp: a pivot is not positive. */
    __device__ __forceinline__ bool run(T *w, int64_t stride)
    {
        load(w, stride);
        bool good = warp > 0 || panel(0);
        __syncthreads();
        for (int first = 0; first < size; first += order) {
            int below = (size - first - order) / CUDA__UNIT, left = first / CUDA__UNIT;
            for (int t = warp; t < below + left; t += CUDA__CHOL_WARPS) {
                if (t < below)
                    make_l(first, first + order + t * CUDA__UNIT);
                else
                    make_m(first, (t - below) * CUDA__UNIT);
            }
            __syncthreads();
            bring_next(first);
            __syncthreads();
            if (first + order == size) {
                store(w, stride, first, warp, CUDA__CHOL_WARPS);
            } else if (warp == 0) {
                good = panel(first + order) && good;
            } else {
                bring_others(first);
                store(w, stride, first, warp - 1, CUDA__CHOL_WARPS - 1);
            }
            __syncthreads();
        }
        return good;
    }
};

#define CUDA__CHOL_TILE 64
#define CUDA__CHOL_THREADS 256

/* Tiles of CUDA__CHOL_TILE, and smaller ones, of which there are more. Turned: of a product whose
 * second factor is stored transposed. */
template <typename T, bool Turned>
using cuda__chol_shape = cuda__own_shape<T, 2, 2, 2, 2, 3, 32, Turned>;
template <typename T, bool Turned>
using cuda__chol_small_shape = cuda__own_shape<T, 1, 1, 2, 2, 3, 64, Turned>;

/* Numbers in device memory, matrices `step` apart. */
template <typename T> struct cuda__chol_part {
    T *at;
    int64_t stride, step;

    __device__ __forceinline__ T *of(int64_t matrix, int64_t row, int64_t column) const
    {
        return at + matrix * step + row * stride + column;
    }
};

/* The corner of `size` rows at `first` becomes M's. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_WARPS *CUDA__WARP, 1)
    cuda__chol_corner_kernel(const cuda__chol_part<T> w, int64_t first, int size, int32_t *failed)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__chol_corner<T> corner = {*(cuda__chol_corner_memory<T> *)cuda__memory, size,
                                   (int)threadIdx.x / CUDA__WARP, (int)threadIdx.x % CUDA__WARP};
    if (!corner.run(w.of(blockIdx.x, first, first), w.stride) && corner.lane == 0)
        failed[blockIdx.x] = 1;
}

/* V (n x group), which is the group's part of W = W +- V V^T: M's rows, turned, above where the
 * group ends, and -L below. In the rows from a corner on, and in its columns: what is M's, turned,
 * and zeros. 32 columns x 8 rows of threads; a block 32 x 32 numbers. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_THREADS)
    cuda__chol_turn_kernel(const cuda__chol_part<T> m, const cuda__chol_part<T> v, int size)
{
    __shared__ T tile[CUDA__WARP][CUDA__WARP + 1];
    int lane = (int)threadIdx.x % CUDA__WARP, group = (int)threadIdx.x / CUDA__WARP;
    int across = size / CUDA__WARP, row = (int)blockIdx.x / across * CUDA__WARP;
    int column = (int)blockIdx.x % across * CUDA__WARP;
    for (int i = group; i < CUDA__WARP; i += CUDA__CHOL_THREADS / CUDA__WARP)
        tile[i][lane] = row < size ? *m.of(blockIdx.y, column + i, row + lane) : T(0);
    __syncthreads();
    for (int i = group; i < CUDA__WARP; i += CUDA__CHOL_THREADS / CUDA__WARP)
        *v.of(blockIdx.y, row + i, column + lane) = tile[lane][i];
}

/* Of W's lower triangle the group's rows and columns, from .. end - 1, become zero. A block a row,
 * from `from` on. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_THREADS)
    cuda__chol_clear_kernel(const cuda__chol_part<T> w, int64_t from, int64_t end)
{
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width, step = CUDA__CHOL_THREADS * width;
    int64_t i = from + blockIdx.x, first = i < end ? 0 : from;
    T *row = w.of(blockIdx.y, i, 0);
    for (int64_t j = first + (int)threadIdx.x * width; j < end; j += step)
        *(vector *)(row + j) = vector{};
}

/* W's lower triangle: + V V^T in the columns before `end`, - V V^T behind; columns end .. rest - 1
 * are left alone. */
template <typename T> struct cuda__chol_update {
    cuda__chol_part<T> w, v;
    int64_t n, group, end, rest;
};

template <typename T>
static __global__ void __launch_bounds__(cuda__chol_shape<T, true>::threads,
                                         cuda__chol_shape<T, true>::blocks)
    cuda__chol_update_kernel(const cuda__chol_update<T> of)
{
    typedef cuda__chol_shape<T, true> shape;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int64_t row = (int64_t)((sqrt(8.0 * blockIdx.x + 1) - 1) / 2);
    row -= row * (row + 1) / 2 > blockIdx.x;
    row += (row + 1) * (row + 2) / 2 <= blockIdx.x;
    int64_t column = (blockIdx.x - row * (row + 1) / 2) * CUDA__CHOL_TILE;
    row *= CUDA__CHOL_TILE;
    if (column >= of.end && column < of.rest)
        return;
    cuda__operand<T> v = {of.v.at, of.v.stride, of.v.step, false, true}, turned = v;
    turned.transposed = true;
    cuda__operand<T> w = {of.w.at, of.w.stride, of.w.step, false, true};
    cuda__own_product<T> product = {
        v, turned, w, of.n, of.n, of.group, 1, column < of.end ? T(1) : T(-1), T(1)};
    cuda__own_block<shape> block = {product, *(typename shape::shared *)cuda__memory, row, column};
    block.run(blockIdx.y);
}

#define CORNER CUDA_CHOLESKY_CORNER

static_assert(CORNER % CUDA__CHOL_TILE == 0, "tiles begin where groups do");

struct cuda_cholesky_manner cuda_cholesky_manner_of(int64_t n)
{
    static const struct {
        int64_t n_max;
        struct cuda_cholesky_manner manner;
    } rows[] = {CUDA__CHOL_ROWS};
    int row = 0;
    while (n > rows[row].n_max)
        row++;
    return rows[row].manner;
}

static bool is_manner(const struct cuda_cholesky_manner *manner)
{
    return manner->group >= CORNER && manner->group % CORNER == 0 && manner->strip >= 0 &&
           manner->strip % CORNER == 0;
}

/* ---- Scratch ---- */

/* Of all matrices V of two groups, n x group each; and what FP32's products take. */
static size_t v_bytes(const struct cuda_cholesky_manner *manner, enum precision precision,
                      int64_t n, int64_t count)
{
    return 2 * (size_t)manner->group * (size_t)n * (size_t)count *
           (size_t)precision_bytes(precision);
}

size_t cuda_cholesky_scratch_as(const struct cuda_cholesky_manner *manner, enum precision precision,
                                int64_t n, int64_t count)
{
    struct cuda_product largest = {};
    largest.precision = precision;
    largest.rows = n;
    largest.columns = manner->strip > manner->group ? manner->strip : manner->group;
    largest.inner = manner->group;
    size_t product = manner->strip > 0 ? cuda_product_scratch(&largest) : 0;
    return v_bytes(manner, precision, n, count) + product;
}

size_t cuda_cholesky_scratch(enum precision precision, int64_t n, int64_t count)
{
    struct cuda_cholesky_manner manner = cuda_cholesky_manner_of(n);
    return cuda_cholesky_scratch_as(&manner, precision, n, count);
}

/* ---- A call on its way ---- */

template <typename T> struct cuda__chol_sequence {
    typedef cuda__chol_part<T> part;
    typedef cuda__chol_shape<T, true> shape;

    const struct cuda_cholesky &task;
    const struct cuda_cholesky_manner &manner;
    struct cuda_products *products;
    cudaStream_t stream, where; /* where: what is launched goes, other than gemm/gemm.h's */
    int64_t n, group;
    part w;
    void *product_scratch;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */

    void note(cudaError_t result)
    {
        status = status == cudaSuccess ? result : status;
    }

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        if (status == cudaSuccess && blocks > 0)
            note(cuda__start(kernel, dim3((unsigned)blocks, (unsigned)task.count), threads,
                             shared_bytes, where, arguments...));
    }

    static part at(const part &of, int64_t row, int64_t column)
    {
        return part{of.at + row * of.stride + column, of.stride, of.step};
    }

    /* V of a group: of the even ones or the odd ones. */
    part v_of(int64_t from) const
    {
        int64_t odd = from / group % 2;
        return part{(T *)task.scratch + odd * task.count * n * group, group, n * group};
    }

    struct factor {
        part of;
        bool transposed;
    };

    /* C = beta C + alpha op(A) op(B), by gemm/gemm.h. */
    void multiply(double alpha, factor a, factor b, double beta, part c, int64_t height,
                  int64_t width, int64_t inner)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = height;
        product.columns = width;
        product.inner = inner;
        product.transpose_a = a.transposed;
        product.transpose_b = b.transposed;
        product.alpha = alpha;
        product.beta = beta;
        product.a = cuda_matrices{a.of.at, a.of.stride, a.of.step};
        product.b = cuda_matrices{b.of.at, b.of.stride, b.of.step};
        product.c = cuda_matrices{c.at, c.stride, c.step};
        product.count = task.count;
        product.scratch = product_scratch;
        if (status == cudaSuccess && height > 0 && width > 0)
            note(cuda_product(products, &product, stream));
    }

    template <typename Shape> void tiles(const cuda__own_product<T> &product)
    {
        int64_t down = (product.rows + Shape::rows - 1) / Shape::rows;
        int64_t across = (product.columns + Shape::columns - 1) / Shape::columns;
        start(cuda__own_product_kernel<Shape>, down * across, Shape::threads,
              sizeof(typename Shape::shared), product);
    }

    static cuda__operand<T> operand(const part &of, bool transposed)
    {
        return cuda__operand<T>{of.at, of.stride, of.step, transposed, true};
    }

    /* The same by our own tiles. */
    void multiply_tiles(double alpha, factor a, factor b, double beta, part c, int64_t height,
                        int64_t width, int64_t inner)
    {
        cuda__own_product<T> product = {operand(a.of, a.transposed),
                                        operand(b.of, b.transposed),
                                        operand(c, false),
                                        height,
                                        width,
                                        inner,
                                        task.count,
                                        (T)alpha,
                                        (T)beta};
        if (height <= 0 || width <= 0)
            return;
        bool small = height * width * task.count <= CUDA__CHOL_SMALL_TILES_MAX;
        if (small && b.transposed)
            tiles<cuda__chol_small_shape<T, true>>(product);
        else if (small)
            tiles<cuda__chol_small_shape<T, false>>(product);
        else if (b.transposed)
            tiles<shape>(product);
        else
            tiles<cuda__chol_shape<T, false>>(product);
    }

    /* By the one or the other, as V V^T is. */
    void multiply_any(double alpha, factor a, factor b, double beta, part c, int64_t height,
                      int64_t width, int64_t inner)
    {
        if (manner.strip > 0)
            multiply(alpha, a, b, beta, c, height, width, inner);
        else
            multiply_tiles(alpha, a, b, beta, c, height, width, inner);
    }

    /* ---- A group ---- */

    void corner(int64_t first, int64_t size, cudaEvent_t begun)
    {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
        attribute.val.launchCompletionEvent.event = begun;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned)task.count);
        config.blockDim = dim3(CUDA__CHOL_WARPS * CUDA__WARP);
        config.dynamicSmemBytes = sizeof(cuda__chol_corner_memory<T>);
        config.stream = where;
        config.attrs = &attribute;
        config.numAttrs = begun ? 1 : 0;
        if (status == cudaSuccess)
            note(cuda__allow_shared((const void *)cuda__chol_corner_kernel<T>,
                                    config.dynamicSmemBytes));
        if (status == cudaSuccess)
            note(cudaLaunchKernelEx(&config, cuda__chol_corner_kernel<T>, w, first, (int)size,
                                    task.failed));
    }

    /* The group's corners, and -L below each of them. begun: records that the first corner has its
     * multiprocessor. */
    void make_l(int64_t from, cudaEvent_t begun)
    {
        int64_t end = min_i64(from + group, n);
        part v = v_of(from);
        for (int64_t first = from; first < end; first += CORNER) {
            int64_t size = min_i64(CORNER, end - first), next = first + size;
            part l = at(v, next, first - from);
            corner(first, size, first == from ? begun : nullptr);
            multiply_tiles(-1, {at(w, next, first), false}, {at(w, first, first), true}, 0, l,
                           n - next, size, size);
            multiply_tiles(-1, {l, false}, {l, true}, 1, at(w, next, next), n - next, end - next,
                           size);
        }
    }

    /* What -L of a group does to the next one's columns. */
    void bring_next(int64_t from)
    {
        int64_t next = min_i64(from + group, n), rest = min_i64(next + group, n);
        part l = at(v_of(from), next, 0);
        multiply_any(-1, {l, false}, {l, true}, 1, at(w, next, next), n - next, rest - next,
                     next - from);
    }

    /* Of M's rows the group's own columns, turned, to V. */
    void make_own_m(int64_t from)
    {
        int64_t end = min_i64(from + group, n);
        for (int64_t first = from; first < end; first += CORNER) {
            int64_t size = min_i64(CORNER, end - first), next = first + size, before = first - from;
            part m = at(w, first, first), own = at(v_of(from), from, before);
            part l = at(own, next - from, 0);
            multiply_tiles(1, {at(w, first, from), true}, {m, true}, 0, own, before, size, size);
            multiply_tiles(1, {l, false}, {own, true}, 1, at(w, next, from), end - next, before,
                           size);
            multiply_tiles(1, {l, false}, {m, false}, 0, at(w, next, first), end - next, size,
                           size);
            start(cuda__chol_turn_kernel<T>, (end - first) / CUDA__WARP * (size / CUDA__WARP),
                  CUDA__CHOL_THREADS, 0, m, at(own, before, 0), (int)size);
        }
    }

    /* The group's rows of M, turned, to V; in W they are zeros then, and so are its columns. */
    void make_m(int64_t from)
    {
        int64_t end = min_i64(from + group, n);
        part v = v_of(from);
        make_own_m(from);
        multiply_any(1, {at(w, from, 0), true}, {at(v, from, 0), false}, 0, v, from, end - from,
                     end - from);
        start(cuda__chol_clear_kernel<T>, n - from, CUDA__CHOL_THREADS, 0, w, from, end);
    }

    /* W's columns first .. end - 1, by strips: W + factor V V^T. inner: V's columns. */
    void bring_strips(double factor, const part &v, int64_t inner, int64_t first, int64_t end)
    {
        for (; first < end; first += manner.strip)
            multiply(factor, {at(v, first, 0), false}, {at(v, first, 0), true}, 1,
                     at(w, first, first), n - first, min_i64(manner.strip, end - first), inner);
    }

    /* V V^T, but for the next group's columns. */
    void bring(int64_t from)
    {
        int64_t end = min_i64(from + group, n), rest = min_i64(end + group, n);
        part v = v_of(from);
        if (manner.strip > 0) {
            bring_strips(1, v, end - from, 0, end);
            bring_strips(-1, v, end - from, rest, n);
            return;
        }
        int64_t side = (n + CUDA__CHOL_TILE - 1) / CUDA__CHOL_TILE;
        cuda__chol_update<T> update = {w, v, n, end - from, end, rest};
        start(cuda__chol_update_kernel<T>, side * (side + 1) / 2, shape::threads,
              sizeof(typename shape::shared), update);
    }

    /* ---- All groups ---- */

    void record(cudaEvent_t event, cudaStream_t by)
    {
        if (status == cudaSuccess)
            note(cudaEventRecord(event, by));
    }

    void await(cudaStream_t who, cudaEvent_t event)
    {
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(who, event, 0));
    }

    /* The chain is in the side's stream. It waits for V V^T of the group before, which is long done
     * where the chain is what takes the time. gemm/gemm.h serves one stream: where it is asked, the
     * next group's columns are brought in that one. */
    void go_on(int64_t from, int64_t next)
    {
        const struct cuda_side *side = cuda_products_side(products);
        if (manner.strip > 0) {
            bring_next(from);
            record(side->forked, stream);
        }
        await(side->stream, side->forked);
        where = side->stream;
        if (manner.strip == 0)
            bring_next(from);
        make_l(next, side->begun);
        where = stream;
    }

    void run()
    {
        const struct cuda_side *side = cuda_products_side(products);
        record(side->forked, stream);
        await(side->stream, side->forked);
        where = side->stream;
        make_l(0, nullptr);
        where = stream;
        for (int64_t from = 0; from < n; from += group) {
            int64_t next = min_i64(from + group, n);
            record(side->joined, side->stream);
            await(stream, side->joined);
            if (next < n)
                go_on(from, next);
            make_m(from);
            if (next < n)
                await(stream, side->begun);
            bring(from);
            record(side->forked, stream);
        }
    }
};

template <typename T>
static cudaError_t invert(const struct cuda_cholesky_manner *manner, struct cuda_products *products,
                          const struct cuda_cholesky *task, cudaStream_t stream)
{
    cuda__chol_part<T> w = {(T *)task->w.at, task->w.stride, task->w.step};
    size_t before = v_bytes(manner, task->precision, task->n, task->count);
    cuda__chol_sequence<T> sequence = {
        *task,         *manner, products,
        stream,        stream,  task->n,
        manner->group, w,       (unsigned char *)task->scratch + before,
        cudaSuccess};
    sequence.run();
    return sequence.status;
}

cudaError_t cuda_cholesky_invert_as(const struct cuda_cholesky_manner *manner,
                                    struct cuda_products *products,
                                    const struct cuda_cholesky *task, cudaStream_t stream)
{
    if (task->n < CUDA_CHOLESKY_UNIT || task->n % CUDA_CHOLESKY_UNIT != 0 || task->count < 0 ||
        task->count > CUDA_CHOLESKY_MATRICES_MAX || !is_manner(manner))
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? invert<float>(manner, products, task, stream)
                                             : invert<double>(manner, products, task, stream);
}

cudaError_t cuda_cholesky_invert(struct cuda_products *products, const struct cuda_cholesky *task,
                                 cudaStream_t stream)
{
    struct cuda_cholesky_manner manner = cuda_cholesky_manner_of(task->n);
    return cuda_cholesky_invert_as(&manner, products, task, stream);
}
