/* gpu/cuda/gemm/residual.cu: see residual.h.
 *
 * A block has a strip of columns of a product, tile by tile from the top, and adds up magnitudes
 * down each column, in a fixed order. The largest sum is raised into the ratio's place, where bits
 * of numbers that are not negative compare as the numbers do, and a NaN is larger than all. Then
 * RCOND, n and eps make a ratio of it.
 */
#include "gpu/cuda/gemm/residual.h"

#include <algorithm>
#include <cfloat>

#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/reduce.cuh"

#define RESIDUAL_SIDE 16 /* rows and columns of threads of a block */
#define RESIDUAL_THREADS (RESIDUAL_SIDE * RESIDUAL_SIDE)
#define RESIDUAL_DEPTH 16 /* indices that go through shared memory together */
#define RESIDUAL_MATRICES_MAX 65535

/* A thread has Per x Per entries, RESIDUAL_SIDE apart. */
template <int Per> struct cuda__residual_tile {
    static constexpr int side = Per * RESIDUAL_SIDE;
    double p[side][RESIDUAL_DEPTH + 1], q[RESIDUAL_DEPTH][side];
    double sums[RESIDUAL_SIDE][side];
};

static __device__ __forceinline__ void cuda__raise(float *to, double value)
{
    atomicMax((unsigned *)to, __float_as_uint(fabsf((float)value)));
}

static __device__ __forceinline__ void cuda__raise(double *to, double value)
{
    atomicMax((unsigned long long *)to, (unsigned long long)__double_as_longlong(fabs(value)));
}

/* Rows from `row` and columns from `column` of P Q: the thread's entries. */
template <typename T, int Per>
static __device__ __forceinline__ void
cuda__residual_product(cuda__residual_tile<Per> &held, const T *p, const T *q, int64_t n,
                       int64_t row, int64_t column, double (&entries)[Per][Per])
{
    typedef cuda__residual_tile<Per> tile;
    const int t = (int)threadIdx.x, x = t % RESIDUAL_SIDE, y = t / RESIDUAL_SIDE;
#pragma unroll 1
    for (int64_t k = 0; k < n; k += RESIDUAL_DEPTH) {
        for (int e = t; e < tile::side * RESIDUAL_DEPTH; e += RESIDUAL_THREADS) {
            int64_t i = row + e / RESIDUAL_DEPTH, l = k + e % RESIDUAL_DEPTH;
            held.p[e / RESIDUAL_DEPTH][e % RESIDUAL_DEPTH] =
                i < n && l < n ? (double)p[i * n + l] : 0;
            int64_t m = k + e / tile::side, j = column + e % tile::side;
            held.q[e / tile::side][e % tile::side] = m < n && j < n ? (double)q[m * n + j] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < RESIDUAL_DEPTH; l++) {
#pragma unroll
            for (int i = 0; i < Per; i++) {
#pragma unroll
                for (int j = 0; j < Per; j++)
                    entries[i][j] = fma(held.p[y + i * RESIDUAL_SIDE][l],
                                        held.q[l][x + j * RESIDUAL_SIDE], entries[i][j]);
            }
        }
        __syncthreads();
    }
}

/* The largest sum of the strip's columns of I - P Q, to the first thread. */
template <typename T, int Per>
static __device__ __forceinline__ double cuda__residual_strip(cuda__residual_tile<Per> &held,
                                                              const T *p, const T *q, int64_t n,
                                                              int64_t column)
{
    typedef cuda__residual_tile<Per> tile;
    const int t = (int)threadIdx.x, x = t % RESIDUAL_SIDE, y = t / RESIDUAL_SIDE;
    double sums[Per] = {};
#pragma unroll 1
    for (int64_t row = 0; row < n; row += tile::side) {
        double entries[Per][Per] = {};
        cuda__residual_product(held, p, q, n, row, column, entries);
#pragma unroll
        for (int i = 0; i < Per; i++) {
#pragma unroll
            for (int j = 0; j < Per; j++) {
                int64_t at = row + y + i * RESIDUAL_SIDE, to = column + x + j * RESIDUAL_SIDE;
                sums[j] += at < n && to < n ? fabs((at == to ? 1 : 0) - entries[i][j]) : 0;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < Per; j++)
        held.sums[y][x + j * RESIDUAL_SIDE] = sums[j];
    __syncthreads();
    double largest = 0;
    for (int c = 0; t == 0 && c < tile::side; c++) {
        double sum = 0;
        for (int i = 0; i < RESIDUAL_SIDE; i++)
            sum += held.sums[i][c];
        largest = cuda__max_or_nan(largest, sum);
    }
    __syncthreads();
    return largest;
}

/* A matrix of the batch: the item that has it, and which of the item's it is. */
struct cuda__residual_place {
    const cuda_residual_item &item;
    int64_t within;

    /* NULL: it is not wanted. */
    template <typename T> __device__ __forceinline__ T *ratio(int side) const
    {
        return item.ratios[side] ? (T *)item.ratios[side] + within : NULL;
    }
};

static __device__ __forceinline__ cuda__residual_place
cuda__residual_find(const cuda_residual_batch &batch, int64_t index)
{
    const cuda_residual_item &item =
        batch.items[cuda__item_of(batch.items, batch.item_count, batch.matrices, index)];
    return {item, index - item.first};
}

template <typename T> static __global__ void cuda__residual_begin(const cuda_residual_batch batch)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t m = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; m < batch.matrices;
         m += step) {
        cuda__residual_place place = cuda__residual_find(batch, m);
        for (int side = 0; side < 2; side++) {
            T *ratio = place.ratio<T>(side);
            if (ratio)
                *ratio = 0;
        }
    }
}

template <typename T> static __global__ void cuda__residual_end(const cuda_residual_batch batch)
{
    const double eps = sizeof(T) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t m = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; m < batch.matrices;
         m += step) {
        cuda__residual_place place = cuda__residual_find(batch, m);
        double rcond = (double)((const T *)place.item.rcond)[place.within];
        for (int side = 0; side < 2; side++) {
            T *ratio = place.ratio<T>(side);
            if (ratio)
                *ratio = (T)((double)*ratio * rcond / ((double)batch.n * eps));
        }
    }
}

/* blockIdx: strip of columns, matrix, side. */
template <typename T, int Per>
static __global__ void __launch_bounds__(RESIDUAL_THREADS)
    cuda__residual_kernel(const cuda_residual_batch batch)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__residual_tile<Per> &held = *(cuda__residual_tile<Per> *)cuda__memory;
    const int side = (int)blockIdx.z;
    const int64_t column = (int64_t)blockIdx.x * cuda__residual_tile<Per>::side;
    for (int64_t m = blockIdx.y; m < batch.matrices; m += gridDim.y) {
        cuda__residual_place place = cuda__residual_find(batch, m);
        T *ratio = place.ratio<T>(side);
        if (!ratio)
            continue;
        const T *a = (const T *)place.item.a + place.within * batch.n * batch.n;
        const T *x = (const T *)place.item.x + place.within * batch.n * batch.n;
        double largest = side == METHOD_LEFT ? cuda__residual_strip(held, x, a, batch.n, column)
                                             : cuda__residual_strip(held, a, x, batch.n, column);
        if (threadIdx.x == 0)
            cuda__raise(ratio, largest);
    }
}

template <typename T, int Per>
static cudaError_t cuda__residual_start(const cuda_residual_batch &batch, cudaStream_t stream)
{
    typedef cuda__residual_tile<Per> tile;
    const dim3 blocks((unsigned)((batch.n + tile::side - 1) / tile::side),
                      (unsigned)std::min<int64_t>(batch.matrices, RESIDUAL_MATRICES_MAX), 2);
    return cuda__start(cuda__residual_kernel<T, Per>, blocks, RESIDUAL_THREADS, sizeof(tile),
                       stream, batch);
}

template <typename T>
static cudaError_t cuda__residuals(const cuda_residual_batch &batch, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)std::min<int64_t>(
        (batch.matrices + RESIDUAL_THREADS - 1) / RESIDUAL_THREADS, RESIDUAL_MATRICES_MAX);
    cudaError_t status =
        cuda__start(cuda__residual_begin<T>, blocks, RESIDUAL_THREADS, 0, stream, batch);
    if (status == cudaSuccess)
        status = batch.n <= RESIDUAL_SIDE       ? cuda__residual_start<T, 1>(batch, stream)
                 : batch.n <= 2 * RESIDUAL_SIDE ? cuda__residual_start<T, 2>(batch, stream)
                                                : cuda__residual_start<T, 4>(batch, stream);
    if (status == cudaSuccess)
        status = cuda__start(cuda__residual_end<T>, blocks, RESIDUAL_THREADS, 0, stream, batch);
    return status;
}

cudaError_t cuda_residuals(enum precision precision, const struct cuda_residual_batch *batch,
                           cudaStream_t stream)
{
    return precision == PRECISION_FP32 ? cuda__residuals<float>(*batch, stream)
                                       : cuda__residuals<double>(*batch, stream);
}
