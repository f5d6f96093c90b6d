/* gpu/cuda/lu/ends.cuh: the kernels before and behind the elimination of wide.cuh: A comes into
 * the workspace and is measured; the inverse, or the factors, are measured and written out.
 *
 * A and the results are touched once each, row by row. blockIdx.y is the matrix of the chunk.
 *
 * An inverse that growth has spoilt is recovered by mixing: A (I - 2 v v^T), with v of signs
 * without a pattern, has the same condition, but none of the structure that makes elements grow. It
 * is inverted like any matrix, and (I - 2 v v^T) times that is the inverse of A. What has INFO 1 to
 * n + 1 then is inverted once more, equilibrated: S = R A C in the place of A, R and C being powers
 * of two, and A^-1 = C S^-1 R. Where S is no good INFO is what it was, and INVERSE with n + 1 the
 * inverse of S, scaled back.
 *
 * Cost: a pass over a matrix each, but for those of one block a matrix. These cost n, or where a
 * matrix is equilibrated, passes over all of it: for its exponents and RCOND.
 */
#ifndef GPU_CUDA_LU_ENDS_CUH
#define GPU_CUDA_LU_ENDS_CUH

#include "gpu/cuda/base/equilibrate.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/lu/space.cuh"
#include "gpu/cuda/base/check.cuh"
#include "gpu/cuda/tuning/h200/lu.h"

#define CUDA__LU_ROWS 8      /* of a block: a warp each */
#define CUDA__LU_THREADS 256 /* of every block here */

template <typename T>
static __device__ __forceinline__ cuda__place<T> cuda__lu_place(const cuda_batch &batch,
                                                                const cuda__lu_chunk &chunk)
{
    return cuda__find<T>(batch, chunk.first + blockIdx.y, chunk.n * chunk.n);
}

/* The block's row, and the thread's lane. */
static __device__ __forceinline__ int cuda__lu_row(int &lane)
{
    lane = (int)(threadIdx.x % CUDA__WARP);
    return (int)(blockIdx.x * CUDA__LU_ROWS + threadIdx.x / CUDA__WARP);
}

/* The row of W that was chosen in step k; clusters leave it at that place. */
template <typename T>
static __device__ __forceinline__ int cuda__lu_row_of(const cuda__lu_chunk &chunk,
                                                      const cuda__lu_view<T> &view, int k, int info)
{
    return info < 0 || chunk.manner.width > 0 ? k : view.order[k];
}

/* The other way round. */
template <typename T>
static __device__ __forceinline__ int cuda__lu_step_of(const cuda__lu_chunk &chunk,
                                                       const cuda__lu_view<T> &view, int row)
{
    return chunk.manner.width > 0 ? row : view.step[row];
}

template <typename T> static __device__ __forceinline__ T cuda__lu_block_max(T value, T *scratch)
{
    return cuda__block_max<CUDA__LU_THREADS / CUDA__WARP>(value, scratch);
}

/* Entry (k, j) of the inverse, found as x: what it is of A as sent. */
template <typename T>
static __device__ __forceinline__ T cuda__lu_scaled_back(const cuda__lu_chunk &chunk,
                                                         const cuda__lu_view<T> &view, T x, int k,
                                                         int j)
{
    return chunk.manner.equilibrated
               ? cuda__times_two_to(x, view.exponents[chunk.n + k] + view.exponents[j])
               : x;
}

/* ---- In ---- */

/* W = A, maybe equilibrated, and its rows times the vector of signs. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_read_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    const T *a = cuda__lu_place<T>(batch, chunk).a;
    int lane, n = chunk.n, i = cuda__lu_row(lane);
    T sum = 0;
    if (i >= chunk.padded)
        return;
    T *to = view.w + (int64_t)i * chunk.padded;
    for (int j = lane; j < chunk.padded; j += CUDA__WARP) {
        T x = i < n && j < n ? a[(int64_t)i * n + j] : T(0);
        if (chunk.manner.equilibrated && i < n && j < n)
            x = cuda__times_two_to(x, view.exponents[i] + view.exponents[n + j]);
        to[j] = x;
        sum += cuda__negative(j) ? -x : x;
    }
    sum = cuda__warp_sum(sum);
    if (lane == 0 && i < n)
        view.product[i] = sum;
}

/* A matrix of norms beyond the usual is scaled. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_scale_kernel(const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T factor = view.numbers->factor, sum = 0;
    int lane, i = cuda__lu_row(lane);
    if (factor == 1 || i >= chunk.n)
        return;
    T *row = view.w + (int64_t)i * chunk.padded;
    for (int j = lane; j < chunk.n; j += CUDA__WARP) {
        T x = row[j] * factor;
        row[j] = x;
        sum += cuda__negative(j) ? -x : x;
    }
    sum = cuda__warp_sum(sum);
    if (lane == 0)
        view.product[i] = sum;
}

/* ---- Norms ---- */

/* Of each strip of columns the largest sum of magnitudes; of A also that of A scaled down, of the
 * inverse (`Last`) with rows divided by their pivots. 32 columns x 8 rows of threads. */
template <typename T, bool Last>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_sums_kernel(const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    typedef cuda__real<T> real;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T *sums = (T *)cuda__memory, sum = 0, lowered = 0, factor = Last ? view.numbers->factor : T(1);
    int lane = (int)(threadIdx.x % CUDA__WARP), group = (int)(threadIdx.x / CUDA__WARP);
    int j = (int)blockIdx.x * CUDA__LU_STRIP + lane, n = chunk.n;
    constexpr int together = 8; /* as many reads on their way */
    for (int first = group; j < n && first < n; first += together * CUDA__LU_ROWS) {
        T x[together];
#pragma unroll
        for (int q = 0; q < together; q++) {
            int i = first + q * CUDA__LU_ROWS;
            x[q] = i < n ? view.w[(int64_t)i * chunk.padded + j] : T(0);
            x[q] = Last && i < n ? x[q] * view.scale[i] * factor : x[q];
        }
#pragma unroll
        for (int q = 0; q < together; q++) {
            sum += fabs(x[q]);
            lowered += fabs(x[q] * real::lower);
        }
    }
    sums[threadIdx.x] = sum;
    sums[CUDA__LU_THREADS + threadIdx.x] = lowered;
    __syncthreads();
    for (int g = 1; g < CUDA__LU_ROWS && group == 0; g++) {
        sum += sums[g * CUDA__WARP + lane];
        lowered += sums[CUDA__LU_THREADS + g * CUDA__WARP + lane];
    }
    T *most = sums + 2 * CUDA__LU_THREADS;
    sum = cuda__lu_block_max(group == 0 ? sum : T(0), most);
    lowered = cuda__lu_block_max(group == 0 ? lowered : T(0), most);
    if (threadIdx.x == 0) {
        view.sums[2 * blockIdx.x] = sum;
        view.sums[2 * blockIdx.x + 1] = lowered;
    }
}

#define CUDA__LU_SUMS_NUMBERS (2 * CUDA__LU_THREADS + CUDA__LU_THREADS / CUDA__WARP)

/* The largest of the strips' sums. which: 0 or 1, lowered. */
template <typename T>
static __device__ __forceinline__ T cuda__lu_norm(const cuda__lu_view<T> &view, int n, int which,
                                                  T *most)
{
    T value = 0;
    int strips = (n + CUDA__LU_STRIP - 1) / CUDA__LU_STRIP;
    for (int s = (int)threadIdx.x; s < strips; s += CUDA__LU_THREADS)
        value = cuda__max_or_nan(value, view.sums[2 * s + which]);
    return cuda__lu_block_max(value, most);
}

/* What follows from the norm of A; one block. LU takes A as it is. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_prepare_kernel(const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    typedef cuda__real<T> real;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T *most = (T *)cuda__memory, norm = cuda__lu_norm(view, chunk.n, 0, most);
    T lowered = cuda__lu_norm(view, chunk.n, 1, most), factor = 1;
    if (!chunk.manner.factor && lowered >= real::huge * real::lower)
        factor = real::lower;
    else if (!chunk.manner.factor && norm < real::tiny && norm > 0)
        factor = real::raise;
    for (int i = (int)threadIdx.x; i < chunk.padded; i += CUDA__LU_THREADS) {
        view.row_place[i] = i < chunk.n ? i : CUDA__LU_NO_ROW;
        if (i < chunk.n)
            view.origin[i] = i;
    }
    if (threadIdx.x > 0)
        return;
    view.numbers->norm = factor == real::lower ? lowered : norm * factor;
    view.numbers->factor = factor;
    view.numbers->info = lowered <= real::largest ? 0 : -1;
    view.numbers->beyond = 0;
}

/* ---- Recovery: mixed columns ---- */

/* Which of the chunk's inverses are recovered. */
template <typename T>
static __global__ void cuda__lu_pick_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    int info = place.info ? place.info[place.within] : 0;
    view.numbers->recovered = info < -1 && info <= CUDA_INFO_AWAITING(chunk.n);
    view.numbers->zero_step = view.numbers->recovered ? info - CUDA_INFO_UNVERIFIED : 0;
}

/* The same of those that await their scaling: which are uneven, and their exponents. The others
 * have their answer. One block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_equilibrate_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    const int n = chunk.n, info = place.info ? place.info[place.within] : 0;
    const bool awaits = info < -1 && info > CUDA_INFO_AWAITING(n);
    const cuda__equilibration<T, CUDA__LU_THREADS> equilibration = {
        place.a, n, n, view.exponents, view.exponents + n, view.order, view.place};
    const bool uneven = awaits && equilibration.run();
    __syncthreads(); /* all have read INFO */
    if (threadIdx.x > 0)
        return;
    view.numbers->recovered = uneven;
    view.numbers->zero_step = info - CUDA_INFO_AWAITING(n);
    if (awaits && !uneven)
        place.info[place.within] = info - CUDA_INFO_AWAITING(n);
}

/* Entry j of the vector v of a reflection I - 2 v v^T; |v| = 1. */
template <typename T>
static __device__ __forceinline__ T cuda__lu_mirror(int reflection, int j, T size)
{
    return cuda__negative((reflection + 1) * 40009 + j) ? -size : size;
}

/* W = W (I - 2 v v^T). */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_mix_kernel(const cuda__lu_chunk chunk, int reflection)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int lane, n = chunk.n, i = cuda__lu_row(lane);
    T *row = view.w + (int64_t)i * chunk.padded, sum = 0, size = 1 / (T)sqrt((T)n);
    if (i >= n)
        return;
    for (int j = lane; j < n; j += CUDA__WARP)
        sum = fma(row[j], cuda__lu_mirror(reflection, j, size), sum);
    sum = -2 * cuda__warp_sum(sum);
    for (int j = lane; j < n; j += CUDA__WARP)
        row[j] = fma(sum, cuda__lu_mirror(reflection, j, size), row[j]);
}

/* v^T X, to view.error, X being W with its rows at their steps and multiplied by their scales. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_mirrored_sums_kernel(const cuda__lu_chunk chunk, int reflection)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T *sums = (T *)cuda__memory, sum = 0, size = 1 / (T)sqrt((T)chunk.n);
    int lane = (int)(threadIdx.x % CUDA__WARP), group = (int)(threadIdx.x / CUDA__WARP);
    int j = (int)blockIdx.x * CUDA__LU_STRIP + lane, n = chunk.n;
    for (int i = group; j < n && i < n; i += CUDA__LU_ROWS)
        sum = fma(view.w[(int64_t)i * chunk.padded + j] * view.scale[i],
                  cuda__lu_mirror(reflection, cuda__lu_step_of(chunk, view, i), size), sum);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int g = 1; g < CUDA__LU_ROWS && group == 0; g++)
        sum += sums[g * CUDA__WARP + lane];
    if (group == 0 && j < n)
        view.error[j] = sum;
}

/* X = (I - 2 v v^T) X; the scales become 1. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_unmix_kernel(const cuda__lu_chunk chunk, int reflection)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int lane, n = chunk.n, i = cuda__lu_row(lane);
    if (i >= n)
        return;
    T *row = view.w + (int64_t)i * chunk.padded, scale = view.scale[i];
    T size = 1 / (T)sqrt((T)n);
    T twice = -2 * cuda__lu_mirror(reflection, cuda__lu_step_of(chunk, view, i), size);
    for (int j = lane; j < n; j += CUDA__WARP)
        row[j] = fma(twice, view.error[j], row[j] * scale);
    __syncwarp();
    if (lane == 0)
        view.scale[i] = 1;
}

/* INFO of a recovered inverse. none: it is neither good nor that of a singular matrix. */
template <typename T>
static __device__ __forceinline__ int cuda__lu_last_word(const cuda__lu_numbers<T> &numbers, int n,
                                                         bool good, T *rcond, bool *none)
{
    bool singular = !(*rcond >= cuda__real<T>::eps);
    *none = numbers.info != 0 || (singular ? numbers.zero_step > 0 : !good);
    if (!*none)
        return singular ? n + 1 : 0;
    *rcond = 0;
    return numbers.zero_step ? numbers.zero_step : n + 1;
}

/* ---- Between ---- */

/* INFO of the pivots, and what the rows of the inverse are multiplied by; one block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_settle_kernel(const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    typedef cuda__real<T> real;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T bound = CUDA__LU_GROWN * view.numbers->norm;
    bool beyond = false;
    int *zeros = (int *)cuda__memory, zero = INT32_MAX;
    for (int k = (int)threadIdx.x; k < chunk.n; k += CUDA__LU_THREADS) {
        bool moved = chunk.manner.width > 0;
        T pivot = view.pivot[k];
        int row = moved ? view.origin[k] : view.order[k];
        zero = pivot == 0 && k + 1 < zero ? k + 1 : zero;
        beyond = beyond || fabs(pivot) > bound;
        view.step[row] = k;
        view.scale[moved ? k : row] = moved ? T(1) : real::reciprocal(pivot);
    }
    zero = __reduce_min_sync(CUDA__ALL, zero);
    if (threadIdx.x % CUDA__WARP == 0)
        zeros[threadIdx.x / CUDA__WARP] = zero;
    beyond = __syncthreads_or(beyond);
    for (int w = 0; w < CUDA__LU_THREADS / CUDA__WARP; w++)
        zero = zeros[w] < zero ? zeros[w] : zero;
    if (threadIdx.x == 0 && view.numbers->info == 0) {
        view.numbers->info = zero == INT32_MAX ? 0 : zero;
        view.numbers->beyond = beyond;
    }
}

/* ---- Out ---- */

/* Writes the inverse, and notes how far each row is from passing the check. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_write_inverse_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    int lane, n = chunk.n, k = cuda__lu_row(lane), info = view.numbers->info;
    if (k >= n)
        return;
    int row = cuda__lu_row_of(chunk, view, k, info);
    const T *from = view.w + (int64_t)row * chunk.padded;
    T *to = place.result ? place.result + (int64_t)k * n : nullptr;
    T scale = view.scale[row], factor = view.numbers->factor, sum = 0;
    for (int j = lane; j < n; j += CUDA__WARP) {
        T x = info ? cuda__real<T>::nan() : from[view.step[j]] * scale * factor;
        sum = fma(x, view.product[j], sum);
        if (to)
            to[j] = cuda__lu_scaled_back(chunk, view, x, k, j);
    }
    sum = cuda__warp_sum(sum) - (cuda__negative(k) ? -factor : factor);
    if (lane == 0)
        view.error[k] = fabs(sum);
}

#define CUDA__LU_STAGED_SUMS (CUDA__LU_THREADS / CUDA__WARP)

/* The same, a block a row, which goes through shared memory, as much of it at a time as there is
 * room for. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_write_long_inverse_kernel(const cuda_batch batch, const cuda__lu_chunk chunk,
                                       int staged)
{
    cuda__follow_previous();
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    T *row = (T *)cuda__memory, *sums = row + staged, sum = 0;
    int n = chunk.n, k = (int)blockIdx.x, info = view.numbers->info, thread = (int)threadIdx.x;
    int number = cuda__lu_row_of(chunk, view, k, info);
    const T *from = view.w + (int64_t)number * chunk.padded;
    T *to = place.result ? place.result + (int64_t)k * n : nullptr;
    T scale = view.scale[number], factor = view.numbers->factor;
    for (int first = 0; first < n; first += staged) {
        __syncthreads();
        for (int j = thread * width; j < staged && first + j < n; j += CUDA__LU_THREADS * width)
            *(vector *)(row + j) = *(const vector *)(from + first + j);
        __syncthreads();
        for (int j = thread; j < n; j += CUDA__LU_THREADS) {
            unsigned at = (unsigned)(view.step[j] - first);
            if (at >= (unsigned)staged)
                continue;
            T x = info ? cuda__real<T>::nan() : row[at] * scale * factor;
            sum = fma(x, view.product[j], sum);
            if (to)
                to[j] = cuda__lu_scaled_back(chunk, view, x, k, j);
        }
    }
    sum = cuda__warp_sum(sum);
    if (thread % CUDA__WARP == 0)
        sums[thread / CUDA__WARP] = sum;
    __syncthreads();
    if (thread > 0)
        return;
    for (int w = 1; w < CUDA__LU_STAGED_SUMS; w++)
        sum += sums[w];
    view.error[k] = fabs(sum - (cuda__negative(k) ? -factor : factor));
}

/* INFO and RCOND of an inverse; one block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_answer_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    typedef cuda__real<T> real;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    cuda__lu_numbers<T> numbers = *view.numbers;
    T *most = (T *)cuda__memory, size = cuda__lu_norm(view, chunk.n, 0, most), error = 0;
    T scale =
        size <= real::largest ? T(1) : real::lower; /* where sums overflow, entries need not */
    if (scale != 1)
        size = cuda__lu_norm(view, chunk.n, 1, most);
    int info = numbers.info;
    for (int k = (int)threadIdx.x; k < chunk.n; k += CUDA__LU_THREADS)
        error = cuda__max_or_nan(error, view.error[k]);
    error = cuda__lu_block_max(error, most);
    T rcond = info < 0 ? real::nan() : T(0);
    bool good = error * scale <= (T)sqrt((T)chunk.n) * real::eps * numbers.norm * size;
    if (info == 0 && size > 0 && size <= real::largest)
        rcond = 1 / numbers.norm / size * numbers.factor * scale;
    bool none = false;
    if (chunk.manner.equilibrated) {
        none = numbers.info != 0 || !good || !(rcond >= real::eps);
        if (threadIdx.x == 0 && !none)
            view.numbers->zero_step = 0;
        if (threadIdx.x == 0 && none && numbers.zero_step <= chunk.n)
            view.numbers->info = numbers.zero_step;
        return;
    }
    if (chunk.manner.recovery) {
        info = cuda__lu_last_word(numbers, chunk.n, good, &rcond, &none);
    } else if (info == 0) {
        bool large = !(rcond >= real::eps); /* so the check says nothing */
        info = !good || (large && numbers.beyond) ? CUDA_INFO_UNVERIFIED : large ? chunk.n + 1 : 0;
    } else if (info > 0 && (numbers.beyond || numbers.factor == real::lower)) {
        info += CUDA_INFO_UNVERIFIED;
    }
    info = cuda__await_scaling(info, chunk.n);
    if (threadIdx.x > 0)
        return;
    view.numbers->info = none ? info : 0;
    if (place.info)
        place.info[place.within] = info;
    if (place.extra)
        ((T *)place.extra)[place.within] = rcond;
    if (info < -1 && batch.unverified)
        atomicAdd(batch.unverified, 1);
}

/* The largest sum of the magnitudes of a column of A, times a factor; all of the block call. */
template <typename T>
static __device__ __forceinline__ T cuda__lu_norm_sent(const T *a, int n, T by, T *most)
{
    T largest = 0;
    for (int j = (int)threadIdx.x; j < n; j += CUDA__LU_THREADS) {
        T sum = 0;
        for (int i = 0; i < n; i++)
            sum += fabs(a[(int64_t)i * n + j] * by);
        largest = cuda__max_or_nan(largest, sum);
    }
    return cuda__lu_block_max(largest, most);
}

/* INFO and RCOND of A as sent, after S; one block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_answer_equilibrated_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    typedef cuda__real<T> real;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    T *most = (T *)cuda__memory, by = 1, size = 0, largest = 0;
    const int n = chunk.n, info = view.numbers->zero_step;
    T sent = cuda__lu_norm_sent(place.a, n, by, most);
    if (!(sent < real::huge) || sent < real::tiny) {
        by = sent < real::tiny ? real::raise : real::lower;
        sent = cuda__lu_norm_sent(place.a, n, by, most);
    }
    for (int j = (int)threadIdx.x; j < n; j += CUDA__LU_THREADS) {
        T sum = 0;
        for (int k = 0; k < n; k++) {
            const int row = cuda__lu_row_of(chunk, view, k, 0);
            const T x = view.w[(int64_t)row * chunk.padded + view.step[j]] * view.scale[row] *
                        view.numbers->factor;
            const T entry = fabs(cuda__lu_scaled_back(chunk, view, x, k, j));
            largest = cuda__max_or_nan(largest, entry);
            sum += entry * real::lower;
        }
        size = cuda__max_or_nan(size, sum);
    }
    size = cuda__lu_block_max(size, most);
    largest = cuda__lu_block_max(largest, most);
    if (threadIdx.x > 0)
        return;
    const bool known = view.numbers->info == 0 && largest <= real::largest;
    place.info[place.within] = info == 0 && !known ? n + 1 : info;
    /* In an order that leaves the range at the end alone. */
    if (place.extra)
        ((T *)place.extra)[place.within] = known ? by / sent / size * real::lower : T(0);
}

/* Fills with NaN what was written of an inverse that cannot be had. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_refuse_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    int lane, n = chunk.n, k = cuda__lu_row(lane);
    if (cuda__lu_rests(chunk, view) || view.numbers->info == 0 || !place.result)
        return;
    for (int j = lane; k < n && j < n; j += CUDA__WARP)
        place.result[(int64_t)k * n + j] = cuda__real<T>::nan();
}

/* Writes LU, a row a warp, and with each row its pivot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_THREADS)
    cuda__lu_write_factors_kernel(const cuda_batch batch, const cuda__lu_chunk chunk)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__place<T> place = cuda__lu_place<T>(batch, chunk);
    int lane, n = chunk.n, k = cuda__lu_row(lane), info = view.numbers->info;
    if (k >= n)
        return;
    const T *from = view.w + (int64_t)cuda__lu_row_of(chunk, view, k, info) * chunk.padded;
    T *to = place.result ? place.result + (int64_t)k * n : nullptr;
    for (int j = lane; to && j < n; j += CUDA__WARP)
        to[j] = info < 0 ? cuda__real<T>::nan() : from[j];
    if (lane == 0 && place.extra)
        ((int *)place.extra)[place.within * n + k] = info < 0 ? 0 : view.place[k] + 1;
    if (lane == 0 && k == 0 && place.info)
        place.info[place.within] = info;
}

#endif
