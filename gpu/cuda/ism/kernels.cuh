/* gpu/cuda/ism/kernels.cuh: the kernels between the products of `ism`: what is brought to the
 * workspace, and what is written. Device code; a slot a blockIdx.y.
 *
 * Cost: each moves what it names once.
 */
#ifndef GPU_CUDA_ISM_KERNELS_CUH
#define GPU_CUDA_ISM_KERNELS_CUH

#include "gpu/cuda/ism/device.cuh"

#define CUDA__ISM_TILE CUDA__WARP /* rows and columns that are transposed together */
#define CUDA__ISM_BROUGHT 8       /* numbers that a thread has on their way */

/* The shape of an array: lines of `columns` numbers, ld apart. */
struct cuda__ism_shape {
    int array;
    int64_t lines, columns, ld;
};

/* ---- In ---- */

/* T: lines of ld numbers, zeros behind n. For all slots. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_weights_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t step = (int64_t)gridDim.x * CUDA__ISM_THREADS, all = CUDA__ISM_PROBES * call.ld;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < all; e += step) {
        int64_t i = e % call.ld;
        ((T *)call.probes)[e] =
            i < call.n ? (T)cuda__ism_weight(call.n, i, (int)(e / call.ld)) : T(0);
    }
}

template <typename T> static __global__ void cuda__ism_begin_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    cuda__ism_answer answer = {};
    answer.det = 1;
    *cuda__ism_answer_of<T>(call, blockIdx.y) = answer;
}

/* An input, dense, becomes an array; notes what is not finite. blockIdx.z: so many inputs and
 * arrays further, of the same shape. A group of threads takes a piece of a row: a warp, or of few
 * columns as many threads as there are columns, up to a power of two. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_bring_kernel(const cuda__ism_call call, int input, const cuda__ism_shape to)
{
    cuda__follow_previous();
    constexpr int held = CUDA__ISM_BROUGHT;
    const int64_t slot = blockIdx.y;
    const int columns = (int)to.columns;
    const int across = columns >= CUDA__WARP ? CUDA__WARP : 1 << (32 - __clz(columns - 1));
    const int groups = CUDA__ISM_THREADS / across, pieces = (columns - 1) / (across * held) + 1;
    const int all = (int)to.lines * pieces, step = (int)gridDim.x * groups;
    const T *from = cuda__ism_input<T>(call, slot, input + (int)blockIdx.z, to.lines * to.columns);
    T *array = cuda__ism_array_of<T>(call, slot, to.array + (int)blockIdx.z), excess = 0;
    for (int piece = (int)blockIdx.x * groups + (int)threadIdx.x / across; from && piece < all;
         piece += step) {
        const int64_t row = piece / pieces;
        const int first = piece % pieces * across * held + (int)threadIdx.x % across;
        T values[held]; /* are read before any is written */
#pragma unroll
        for (int k = 0; k < held; k++)
            values[k] =
                first + k * across < columns ? from[row * columns + first + k * across] : T(0);
#pragma unroll
        for (int k = 0; k < held; k++) {
            excess += values[k] * 0;
            if (first + k * across < columns)
                array[row * to.ld + first + k * across] = values[k];
        }
    }
    if (!(excess == 0))
        atomicMax(&cuda__ism_answer_of<T>(call, slot)->bad, 1);
}

/* The diagonals of A0 and its inverse, where A0 is diagonal. Of A alone, which is in X: its own, or
 * the 1-norm where that has a zero; the sums of A's columns are in SIZES, line 1. X becomes A - A0
 * then, and a slot has one block. */
template <typename T, int Threads>
static __global__ void __launch_bounds__(Threads)
    cuda__ism_diagonal_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[Threads / CUDA__WARP];
    int64_t slot = blockIdx.y, n = call.n;
    bool alone = call.inputs >> METHOD_ISM_A & 1;
    const T *scale = cuda__ism_input<T>(call, slot, METHOD_ISM_A0_SCALE, 1);
    const T *diagonal = cuda__ism_input<T>(call, slot, METHOD_ISM_A0_DIAGONAL, n);
    const T *sums = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES) + call.ld;
    T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X), *d, *e, zero = 0, size = 0, excess = 0;
    int64_t first = (int64_t)blockIdx.x * Threads + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * Threads;
    d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    e = cuda__ism_array_of<T>(call, slot, CUDA__ISM_E);
    for (int64_t i = threadIdx.x; alone && i < n; i += Threads) {
        zero = x[i * (call.ldm + 1)] == 0 ? T(1) : zero;
        size = cuda__max_or_nan(size, sums[i]);
    }
    zero = cuda__block_max<Threads / CUDA__WARP>(zero, scratch);
    size = cuda__block_max<Threads / CUDA__WARP>(size, scratch);
    for (int64_t i = first; i < n; i += step) {
        T own = alone && zero > 0 ? size
                : alone           ? x[i * (call.ldm + 1)]
                : diagonal        ? diagonal[i]
                : scale           ? *scale
                                  : T(1);
        excess += alone ? T(0) : own * 0;
        d[i] = own;
        e[i] = 1 / own;
        if (alone)
            x[i * (call.ldm + 1)] -= own;
    }
    if (!(excess == 0))
        atomicMax(&cuda__ism_answer_of<T>(call, slot)->bad, 1);
}

/* What an array begins as. */
enum cuda__ism_start {
    CUDA__ISM_FROM_ONES, /* the identity */
    CUDA__ISM_FROM_D,
    CUDA__ISM_FROM_E,
    CUDA__ISM_FROM_B,
    CUDA__ISM_FROM_A0
};

/* A diagonal matrix, or a copy. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_start_kernel(const cuda__ism_call call, int start, const cuda__ism_shape to)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    int source = start == CUDA__ISM_FROM_B    ? CUDA__ISM_B
                 : start == CUDA__ISM_FROM_A0 ? CUDA__ISM_A0
                 : start == CUDA__ISM_FROM_E  ? CUDA__ISM_E
                                              : CUDA__ISM_D;
    const T *from = cuda__ism_array_of<T>(call, slot, source);
    T *array = cuda__ism_array_of<T>(call, slot, to.array);
    bool copies = start >= CUDA__ISM_FROM_B;
    for (int64_t k = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
         k < to.lines * to.columns; k += step) {
        int64_t i = k / to.columns, j = k % to.columns;
        T value = copies                         ? from[i * call.ld + j]
                  : i != j                       ? T(0)
                  : start == CUDA__ISM_FROM_ONES ? T(1)
                                                 : from[i];
        array[i * to.ld + j] = value;
    }
}

/* An array from another one of n x m. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_copy_kernel(const cuda__ism_call call, int from, const cuda__ism_shape to)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const T *source = cuda__ism_array_of<T>(call, slot, from);
    T *array = cuda__ism_array_of<T>(call, slot, to.array);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
         e < to.lines * to.columns; e += step) {
        int64_t at = e / to.columns * to.ld + e % to.columns;
        array[at] = source[at];
    }
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_clear_kernel(const cuda__ism_call call, int array, int64_t first, int64_t numbers)
{
    cuda__follow_previous();
    int64_t step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    T *to = cuda__ism_array_of<T>(call, blockIdx.y, array) + first;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < numbers; e += step)
        to[e] = 0;
}

/* Z += A0^-1, which is diagonal. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_add_diagonal_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t i = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x, slot = blockIdx.y;
    if (i < call.n)
        cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z)[i * (call.ld + 1)] +=
            cuda__ism_array_of<T>(call, slot, CUDA__ISM_E)[i];
}

/* ---- A block's beginning ---- */

/* Columns first to first + count - 1 of X, transposed, times A0^-1, which is diagonal, to W; of Y
 * to K, where lines begin at `first`. blockIdx.x: a tile; blockIdx.z: 0 of X, 1 of Y. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_scale_kernel(const cuda__ism_call call, int64_t first, int64_t count)
{
    cuda__follow_previous();
    __shared__ T tile[CUDA__ISM_TILE][CUDA__ISM_TILE + 1];
    int64_t slot = blockIdx.y, across = (call.n + CUDA__ISM_TILE - 1) / CUDA__ISM_TILE;
    int64_t row = blockIdx.x % across * CUDA__ISM_TILE;
    int64_t column = blockIdx.x / across * CUDA__ISM_TILE;
    int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
    const bool of_y = blockIdx.z > 0;
    const T *x =
        cuda__ism_array_of<T>(call, slot, of_y ? (int)CUDA__ISM_Y : (int)CUDA__ISM_X) + first;
    const T *e = cuda__ism_array_of<T>(call, slot, CUDA__ISM_E);
    T *lines = cuda__ism_array_of<T>(call, slot, of_y ? (int)CUDA__ISM_K : (int)CUDA__ISM_W) +
               (of_y ? first * call.ld : 0);
    for (int r = warp; r < CUDA__ISM_TILE; r += CUDA__ISM_WARPS) {
        if (row + r < call.n && column + lane < count)
            tile[r][lane] = x[(row + r) * call.ldm + column + lane] * e[row + r];
    }
    __syncthreads();
    for (int r = warp; r < CUDA__ISM_TILE; r += CUDA__ISM_WARPS) {
        if (column + r < count && row + lane < call.n)
            lines[(column + r) * call.ld + row + lane] = tile[lane][r];
    }
}

/* All matrices are unverified from the start. For the batch. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_postpone_kernel(const cuda__ism_call call)
{
    int64_t step = (int64_t)gridDim.x * CUDA__ISM_THREADS, within;
    for (int64_t i = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; i < call.matrices;
         i += step) {
        const cuda_tensors *item = cuda__ism_item(call, i, &within);
        cuda__ism_store<T>(call, item, within, CUDA_INFO_UNVERIFIED, T(0), METHOD_ALGORITHM_NONE,
                           T(0));
    }
}

/* ---- Out ---- */

/* A factor, unless it is out; NaN where there is none. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_factor_kernel(const cuda__ism_call call, int output, const cuda__ism_shape from,
                            bool none)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    int64_t all = from.lines * from.columns;
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    T *to = cuda__ism_output<T>(call, slot, output, all);
    const T *array = cuda__ism_array_of<T>(call, slot, from.array);
    if (answer->restored)
        return;
    none = none || answer->bad || answer->broken;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; to && e < all;
         e += step)
        to[e] = none ? cuda__real<T>::nan() : array[e / from.columns * from.ld + e % from.columns];
}

/* Rows first to first + count - 1 of the factor R, block diagonal. R^T of the block is at hand. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_write_r_kernel(const cuda__ism_call call, int64_t first, int64_t count)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    T *to = cuda__ism_output<T>(call, slot, METHOD_ISM_R, call.m * call.m);
    const T *r = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
         to && e < count * call.m; e += step) {
        int64_t i = e / call.m, j = e % call.m - first;
        bool inside = j >= 0 && j < count;
        to[first * call.m + e] = inside ? r[j * call.lds + i] : T(0);
    }
}

/* NaN in place of an output that was refused, or of a factor that broke down. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_refuse_kernel(const cuda__ism_call call, int output, int64_t numbers)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    T *to = cuda__ism_output<T>(call, slot, output, numbers);
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    bool broken = output != METHOD_ISM_INVERSE && (answer->broken || answer->bad);
    if (!answer->refused && !broken)
        return;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; to && e < numbers;
         e += step)
        to[e] = cuda__real<T>::nan();
}

#endif
