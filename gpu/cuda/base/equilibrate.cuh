/* gpu/cuda/base/equilibrate.cuh: a block equilibrates a matrix by powers of two, by the rule of
 * gpu/common/equilibrate.h: the exponents are the host engine's. For recovery, where few matrices
 * need it; structured/equilibrate.h is for many, and for large ones.
 *
 * Device code; all threads of the block call. Cost: two passes over the matrix for each one of the
 * rule's.
 */
#ifndef GPU_CUDA_BASE_EQUILIBRATE_CUH
#define GPU_CUDA_BASE_EQUILIBRATE_CUH

#include "gpu/common/equilibrate.h"
#include "gpu/cuda/base/stage.cuh"

/* frexp's exponent. */
static __device__ __forceinline__ int cuda__exponent_of(double x)
{
    const int biased = (int)((uint32_t)__double2hiint(x) >> 20 & 0x7ff);
    if (biased > 0)
        return biased - 1022;
    return x == 0 ? EQUILIBRATE_NONE : ilogb(x) + 1;
}

static __device__ __forceinline__ int cuda__exponent_of(float x)
{
    const int biased = (int)(__float_as_uint(x) >> 23 & 0xff);
    if (biased > 0)
        return biased - 126;
    return x == 0 ? EQUILIBRATE_NONE : ilogbf(x) + 1;
}

/* x times 2^exponent, rounded once. */
static __device__ __forceinline__ double cuda__times_two_to(double x, int exponent)
{
    return ldexp(x, exponent);
}

static __device__ __forceinline__ float cuda__times_two_to(float x, int exponent)
{
    return ldexpf(x, exponent);
}

/* One finite matrix, n x n, rows `stride` apart, and its exponents: 2^(rows[i] + columns[j]) a_ij
 * is equilibrated. */
template <typename T, int Threads> struct cuda__equilibration {
    const T *a;
    int64_t stride;
    int n;
    int *rows, *columns;                 /* n each */
    int *largest_rows, *largest_columns; /* n each: of a pass */

    /* Finds the largest exponents as A is scaled so far; returns the largest of all. */
    __device__ int look() const
    {
        __shared__ int all;
        const int thread = (int)threadIdx.x, lane = thread % CUDA__WARP;
        if (thread == 0)
            all = EQUILIBRATE_NONE;
        for (int j = thread; j < n; j += Threads) {
            int largest = EQUILIBRATE_NONE;
            for (int i = 0; i < n; i++)
                largest = max(largest, cuda__exponent_of(a[i * stride + j]) + rows[i]);
            largest_columns[j] = largest + columns[j];
        }
        __syncthreads();
        for (int i = thread / CUDA__WARP; i < n; i += Threads / CUDA__WARP) {
            int largest = EQUILIBRATE_NONE;
            for (int j = lane; j < n; j += CUDA__WARP)
                largest = max(largest, cuda__exponent_of(a[i * stride + j]) + columns[j]);
            largest = __reduce_max_sync(CUDA__ALL, largest) + rows[i];
            if (lane == 0) {
                largest_rows[i] = largest;
                atomicMax(&all, largest);
            }
        }
        __syncthreads();
        return all;
    }

    /* The next exponents; false: these are the last. */
    __device__ bool grow(int level) const
    {
        bool rows_even = true, columns_even = true;
        for (int i = (int)threadIdx.x; i < n; i += Threads) {
            rows_even = rows_even && EQUILIBRATE_IS_EVEN(largest_rows[i] - level);
            columns_even = columns_even && EQUILIBRATE_IS_EVEN(largest_columns[i] - level);
        }
        rows_even = __syncthreads_and(rows_even);
        columns_even = __syncthreads_and(columns_even);
        for (int i = (int)threadIdx.x; i < n; i += Threads) {
            const int of_row = largest_rows[i], row = of_row - level;
            const int column = largest_columns[i] - level;
            rows[i] += (rows_even ? 0 : EQUILIBRATE_GROWTH(row, columns_even)) -
                       (EQUILIBRATE_IS_ZERO(of_row) ? 0 : level);
            columns[i] += columns_even ? 0 : EQUILIBRATE_GROWTH(column, rows_even);
        }
        __syncthreads();
        return !rows_even && !columns_even;
    }

    /* Finds the exponents. False: A is even as it is, but for one power of two. */
    __device__ bool run() const
    {
        const int most =
            sizeof(T) == sizeof(float) ? EQUILIBRATE_PASSES_FP32 : EQUILIBRATE_PASSES_FP64;
        bool uneven = false;
        for (int i = (int)threadIdx.x; i < n; i += Threads)
            rows[i] = columns[i] = 0;
        __syncthreads();
        for (int pass = 0, more = 1; pass < most && more; pass++) {
            const int largest = look();
            more = grow(pass == 0 ? largest : 0);
        }
        for (int i = (int)threadIdx.x; i < n; i += Threads)
            uneven = uneven || rows[i] != rows[0] || columns[i] != columns[0];
        return __syncthreads_or(uneven);
    }
};

#endif
