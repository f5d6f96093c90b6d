/* gpu/cuda/ism/terms.cuh: sums of magnitudes for the check of `ism`: what no column of X Y^T is
 * longer than, |Y| times the norms of the columns of X; with what A0 adds that bounds A's columns,
 * and its products with the columns of |A0^-1| bound the terms of X Y^T A0^-1. Device code; a slot
 * a blockIdx.y.
 *
 * Sums are of doubles in both precisions, in an order that n and m alone decide. They are scaled,
 * so that those of numbers near the end of the range do not leave it where X Y^T does not.
 *
 * Cost: one pass over X, Y and A0^-1 each.
 */
#ifndef GPU_CUDA_ISM_TERMS_CUH
#define GPU_CUDA_ISM_TERMS_CUH

#include "gpu/cuda/ism/kernels.cuh"

#define CUDA__ISM_TERMS_THREADS 512
#define CUDA__ISM_TERMS_WARPS (CUDA__ISM_TERMS_THREADS / CUDA__WARP)
#define CUDA__ISM_TERMS_MANY 2048 /* rows */
/* Of X Y^T there are 2^29 terms at most. Those of X Y^T A0^-1 may overflow still, which makes a
 * matrix unverified. */
#define CUDA__ISM_TERMS_SCALE 0x1p-32

/* Columns that a block takes of as many: a power of two. Its threads take rows of them, groups of
 * threads one row each. Few columns make blocks enough too: four of a row are read at once, or one
 * where there are many rows, which few blocks would be long about. */
static __host__ __device__ __forceinline__ int cuda__ism_across(int64_t rows, int64_t columns)
{
    const int across_min = rows < CUDA__ISM_TERMS_MANY ? 4 : 1;
    int across = 1;
    while (across < CUDA__WARP && (across < across_min ? across : across * 128) < columns)
        across *= 2;
    return across;
}

/* The norms of the columns of X, to CHOSEN: scaled, or from 1 downwards as they are, and negative.
 */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TERMS_THREADS)
    cuda__ism_weigh_x_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ double sums[CUDA__ISM_TERMS_THREADS], scaled[CUDA__ISM_TERMS_THREADS];
    const int64_t slot = blockIdx.y, n = call.n, m = call.m;
    const int at = (int)threadIdx.x, across = cuda__ism_across(n, m), group = at / across;
    const int groups = CUDA__ISM_TERMS_THREADS / across;
    const int64_t c = (int64_t)blockIdx.x * across + at % across;
    const T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X) + c;
    double sum = 0, part = 0;
#pragma unroll 8
    for (int64_t i = group; i < n; i += groups) {
        const double size = c < m ? fabs((double)x[i * call.ldm]) : 0;
        sum += size;
        part = fma(size, CUDA__ISM_TERMS_SCALE, part);
    }
    sums[at] = sum;
    scaled[at] = part;
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group < half) {
            sums[at] += sums[at + half * across];
            scaled[at] += scaled[at + half * across];
        }
    }
    if (group == 0 && c < m)
        ((double *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_CHOSEN))[c] =
            sums[at] < 1 ? -sums[at] : scaled[at];
}

/* A number for each column, whatever the precision. */
template <typename T>
static __device__ __forceinline__ double *cuda__ism_weights(const cuda__ism_call &call,
                                                            int64_t slot)
{
    return (double *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_WEIGHTS);
}

/* One of the sums whose largest is the answer's `terms`. */
template <typename T>
static __device__ __forceinline__ void cuda__ism_take_terms(const cuda__ism_call &call,
                                                            int64_t slot, double sum)
{
    atomicMax(&cuda__ism_answer_of<T>(call, slot)->terms,
              (unsigned long long)__double_as_longlong(sum));
}

/* What no column of X Y^T is longer than, scaled; bounds: what none of A is, as it is, A0's columns
 * having their sums in SIZES, line 1, where it is dense, and the largest, scaled, to the answer's
 * `terms`. A warp a row of Y. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_weigh_y_kernel(const cuda__ism_call call, bool bounds)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, lane = threadIdx.x % CUDA__WARP;
    const int64_t j = (int64_t)blockIdx.x * CUDA__ISM_WARPS + threadIdx.x / CUDA__WARP;
    const bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    const T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y) + j * call.ldm;
    const double *of_x = (const double *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_CHOSEN);
    double sum = 0;
    if (j >= call.n)
        return;
#pragma unroll 4
    for (int64_t c = lane; c < call.m; c += CUDA__WARP) {
        const double weight = of_x[c], size = fabs((double)y[c]);
        sum = fma(fabs(weight), weight < 0 ? size * CUDA__ISM_TERMS_SCALE : size, sum);
    }
    sum = cuda__warp_sum(sum);
    if (bounds) {
        const T own = diagonal ? cuda__ism_array_of<T>(call, slot, CUDA__ISM_D)[j]
                               : cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES)[call.ld + j];
        const double size = fabs((double)own);
        if (lane == 0)
            cuda__ism_take_terms<T>(call, slot, fma(size, CUDA__ISM_TERMS_SCALE, sum));
        sum = sum / CUDA__ISM_TERMS_SCALE + size;
    }
    if (lane == 0)
        cuda__ism_weights<T>(call, slot)[j] = sum;
}

/* The sums of magnitudes of the columns of A0^-1, to SIZES, line 1, and the answer's `terms`. 32
 * columns a block: every warp takes rows of them. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TERMS_THREADS)
    cuda__ism_weigh_given_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T sums[CUDA__ISM_TERMS_WARPS][CUDA__WARP];
    __shared__ double terms[CUDA__ISM_TERMS_WARPS][CUDA__WARP];
    const int64_t slot = blockIdx.y, n = call.n;
    const int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
    const int64_t j = (int64_t)blockIdx.x * CUDA__WARP + lane;
    const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_B) + j;
    const double *weights = cuda__ism_weights<T>(call, slot);
    T sum = 0;
    double term = 0;
#pragma unroll 8
    for (int64_t i = warp; i < n; i += CUDA__ISM_TERMS_WARPS) {
        const T size = j < n ? fabs(from[i * call.ld]) : T(0);
        sum += size;
        term = fma(weights[i], (double)size, term);
    }
    sums[warp][lane] = sum;
    terms[warp][lane] = term;
    __syncthreads();
    if (warp > 0)
        return;
    sum = 0;
    term = 0;
    for (int w = 0; w < CUDA__ISM_TERMS_WARPS; w++) {
        sum += sums[w][lane];
        term += terms[w][lane];
    }
    if (j < n) {
        cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES)[call.ld + j] = sum;
        cuda__ism_take_terms<T>(call, slot, term);
    }
}

/* The answer's terms, scaled: what those of a column of A, or of M, come to at most. */
static __device__ __forceinline__ double cuda__ism_terms(const cuda__ism_answer *answer)
{
    return __longlong_as_double((long long)answer->terms);
}

#endif
