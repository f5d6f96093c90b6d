/* gpu/cuda/ism/form.cuh: what the last algorithm of `ism` makes of what is given before it solves
 * or inverts anything: the columns of X and Y scaled, and A formed where its terms cancel. Device
 * code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_FORM_CUH
#define GPU_CUDA_ISM_FORM_CUH

#include "gpu/cuda/ism/double_double.cuh"

#define CUDA__ISM_IDLE (-20) /* exponent of a column next to zeros; n is 2^14 at most */
#define CUDA__ISM_FORM_TILE CUDA__WARP
#define CUDA__ISM_FORM_HELD (CUDA__ISM_FORM_TILE / CUDA__ISM_WARPS) /* rows of a thread */
/* How many times |A| its terms may be where it is formed in one precision, up to m = n: their
 * rounding errors are m / 2 eps times the terms at most. */
#define CUDA__ISM_FORM_RATIO 8.0

/* ---- X and Y ---- */

/* By what power of two a column of X is multiplied and one of Y divided, x and y being their
 * largest magnitudes; see gpu/host/ism/column_scaling.c. */
template <typename T> static __device__ __forceinline__ int cuda__ism_scaling_of(T x, T y)
{
    constexpr int apart = sizeof(T) == sizeof(float) ? 32 : 256;
    const double larger = fmax((double)x, (double)y), smaller = fmin((double)x, (double)y);
    int of_x = CUDA__ISM_IDLE, of_y = CUDA__ISM_IDLE;
    if (!(larger <= (double)cuda__real<T>::largest) || larger == 0)
        return 0;
    if (x > 0)
        frexp((double)x, &of_x);
    if (y > 0)
        frexp((double)y, &of_y);
    if (smaller > 0 && larger <= ldexp(smaller, apart))
        return 0;
    return smaller > 0 ? (of_y - of_x) / 2 : of_y - of_x;
}

/* Columns of X and Y whose sizes are far apart are brought to one size, X Y^T being what it is:
 * else products of the small one with A0^-1 may underflow. A block a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_scale_columns_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y, c = blockIdx.x;
    T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X) + c, largest_x = 0;
    T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y) + c, largest_y = 0;
    for (int64_t i = threadIdx.x; i < call.n; i += CUDA__ISM_THREADS) {
        largest_x = cuda__max_or_nan(largest_x, (T)fabs(x[i * call.ldm]));
        largest_y = cuda__max_or_nan(largest_y, (T)fabs(y[i * call.ldm]));
    }
    largest_x = cuda__block_max<CUDA__ISM_WARPS>(largest_x, scratch);
    largest_y = cuda__block_max<CUDA__ISM_WARPS>(largest_y, scratch);
    const int shift = cuda__ism_scaling_of(largest_x, largest_y);
    for (int64_t i = threadIdx.x; shift != 0 && i < call.n; i += CUDA__ISM_THREADS) {
        x[i * call.ldm] = (T)ldexp((double)x[i * call.ldm], shift);
        y[i * call.ldm] = (T)ldexp((double)y[i * call.ldm], -shift);
    }
}

/* ---- A ---- */

/* The answer's `twice`, by its terms and the sums of the columns of FORMED in SIZES. A block a
 * slot.
 */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_cancel_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y;
    const T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    T norm = 0;
    for (int64_t j = threadIdx.x; j < call.n; j += CUDA__ISM_THREADS)
        norm = cuda__max_or_nan(norm, sizes[j]);
    norm = cuda__block_max<CUDA__ISM_WARPS>(norm, scratch);
    const double share = call.m > call.n ? (double)call.n / (double)call.m : 1;
    const double terms_max = CUDA__ISM_FORM_RATIO * share * CUDA__ISM_TERMS_SCALE * (double)norm;
    const bool holds = norm <= cuda__real<T>::largest && cuda__ism_terms(answer) <= terms_max;
    if (threadIdx.x == 0)
        answer->twice = !holds;
}

/* FORMED = A0 + X Y^T, of the slots that are to be formed in double-double: rounded once. A
 * block a tile of rows and columns, a thread some rows of a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_form_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    constexpr int tile = CUDA__ISM_FORM_TILE, held = CUDA__ISM_FORM_HELD;
    __shared__ T rows[tile][tile], columns[tile][tile + 1];
    const int64_t slot = blockIdx.y, across = (call.n + tile - 1) / tile;
    const int64_t row = blockIdx.x / across * tile, column = blockIdx.x % across * tile;
    const int lane = (int)threadIdx.x % tile, first = (int)threadIdx.x / tile * held;
    const bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    const T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X);
    const T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    const T *a0 = cuda__ism_array_of<T>(call, slot, CUDA__ISM_A0);
    T *formed = cuda__ism_array_of<T>(call, slot, CUDA__ISM_FORMED);
    cuda__ism_sum<T> sums[held] = {};
    if (!cuda__ism_answer_of<T>(call, slot)->twice)
        return;
    for (int64_t c = 0; c < call.m; c += tile) {
        const bool inside = c + lane < call.m;
#pragma unroll
        for (int r = first; r < first + held; r++) {
            rows[r][lane] = inside && row + r < call.n ? x[(row + r) * call.ldm + c + lane] : T(0);
            columns[r][lane] =
                inside && column + r < call.n ? y[(column + r) * call.ldm + c + lane] : T(0);
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < tile; k++) {
#pragma unroll
            for (int r = 0; r < held; r++)
                sums[r].add(rows[first + r][k], columns[lane][k], T(0));
        }
        __syncthreads();
    }
    const int64_t j = column + lane;
#pragma unroll
    for (int r = 0; r < held; r++) {
        const int64_t i = row + first + r;
        if (i < call.n && j < call.n) {
            const T own = !diagonal ? a0[i * call.ld + j] : i == j ? d[i] : T(0);
            sums[r].add(own, T(1), T(0));
            formed[i * call.ld + j] = sums[r].high();
        }
    }
}

#endif
