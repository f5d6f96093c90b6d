/* gpu/cuda/ism/recover.cuh: the last algorithm of `ism`, for matrices whose answer was unverified:
 * A is formed and inverted as by lu, recovery and all; with A0_INVERSE alone, where there is no A,
 * Z M = A0^-1 is solved with M = I + X K, K = Y^T A0^-1, by M's factors, and corrected.
 * The determinant comes from the factors. Where A0 is diagonal and X and Y have few columns, an
 * answer in double-double comes before it (woodbury.cuh). Host code but for the kernels; any
 * thread; nothing is awaited.
 *
 * As many matrices as the workspace holds are picked from the batch, by their INFO, and recovered
 * together; then the next ones.
 *
 * Cost: of lu twice, and 2 n^2 m operations to form A, 14 n^2 m more where its terms cancel (FP32:
 * 2 n^2 m); with A0_INVERSE alone 28 n^2 m to form M (FP32: 4 n^2 m), and 10 n^3 more.
 * A solution is 2 n^3 of those; what is equilibrated takes 12 n^2 next to the factors' 2/3 n^3.
 */
#ifndef GPU_CUDA_ISM_RECOVER_CUH
#define GPU_CUDA_ISM_RECOVER_CUH

#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/ism/measure.cuh"
#include "gpu/cuda/ism/solve.cuh"
#include "gpu/cuda/ism/woodbury.cuh"
#include "gpu/cuda/lu/lu.h"

#define CUDA__ISM_CORRECTIONS 2 /* of a solution by factors */
#define CUDA__ISM_FORM_TILE CUDA__WARP
#define CUDA__ISM_FORM_HELD (CUDA__ISM_FORM_TILE / CUDA__ISM_WARPS) /* rows of a thread */
/* How many times |A| its terms may be where it is formed in one precision, up to m = n: their
 * rounding errors are m / 2 eps times the terms at most. */
#define CUDA__ISM_FORM_RATIO 8.0
#define CUDA__ISM_GROWTH 24          /* powers of two by which factors may grow */
#define CUDA__ISM_ZEROS (-(1 << 20)) /* the exponent of zero */

/* ---- A ---- */

/* The answer's `form_dd`, by its terms and the sums of the columns of FORMED in SIZES. A block a
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
        answer->form_dd = !holds;
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
    if (!cuda__ism_answer_of<T>(call, slot)->form_dd)
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

/* ---- Equilibrated factors, and the determinant ----
 *
 * A matrix at an end of the range is shifted by one power of two. Where rows or columns of A or A0
 * are so far apart in size that a pivot or a multiplier may be denormal, they are equilibrated
 * instead: the largest number of each comes to 1/2 or more and less than 1, by powers of two. Where
 * that would lose numbers, and for a solution, what is factored is only shifted. DET_RATIO is NaN
 * where a pivot is so small that what is lost below the range counts. */

/* The binary exponents of the largest numbers, where TZ is: line 0 of the rows, line 1 of the
 * columns of equilibrated rows. */
template <typename T>
static __device__ __forceinline__ int32_t *cuda__ism_exponents(const cuda__ism_call &call, int line)
{
    return (int32_t *)cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_TZ) + line * call.n;
}

/* |x| is at least 1/2 and less than 1 times 2 to it. */
static __device__ __forceinline__ int cuda__ism_exponent(double x)
{
    int exponent;
    if (x == 0)
        return CUDA__ISM_ZEROS;
    frexp(x, &exponent);
    return exponent;
}

/* A warp a row. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_rows_kernel(const cuda__ism_call call, int array)
{
    cuda__follow_previous();
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int64_t i = (int64_t)blockIdx.x * CUDA__ISM_WARPS + warp, n = call.n;
    const T *row = cuda__ism_array_of<T>(call, blockIdx.y, array) + i * n;
    double largest = 0;
    for (int64_t j = lane; i < n && j < n; j += CUDA__WARP)
        largest = fmax(largest, fabs((double)row[j]));
    const int exponent = __reduce_max_sync(CUDA__ALL, cuda__ism_exponent(largest));
    if (lane == 0 && i < n)
        cuda__ism_exponents<T>(call, 0)[i] = exponent;
}

/* A thread a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_columns_kernel(const cuda__ism_call call, int array)
{
    cuda__follow_previous();
    const int64_t n = call.n, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const T *from = cuda__ism_array_of<T>(call, blockIdx.y, array);
    const int32_t *rows = cuda__ism_exponents<T>(call, 0);
    for (int64_t j = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; j < n; j += step) {
        int largest = CUDA__ISM_ZEROS;
        for (int64_t i = 0; i < n; i++) {
            const int exponent = cuda__ism_exponent((double)from[i * n + j]);
            largest = max(largest, exponent > CUDA__ISM_ZEROS ? exponent - rows[i] : exponent);
        }
        cuda__ism_exponents<T>(call, 1)[j] = largest;
    }
}

/* The smallest exponent of rows or columns that are not zeros, by the block, with its scratch. */
template <typename T>
static __device__ __forceinline__ int cuda__ism_min_exponent(const cuda__ism_call &call, int line,
                                                             int *scratch)
{
    const int32_t *exponents = cuda__ism_exponents<T>(call, line);
    int smallest = INT32_MAX;
    for (int64_t k = threadIdx.x; k < call.n; k += CUDA__ISM_THREADS)
        smallest = exponents[k] > CUDA__ISM_ZEROS ? min(smallest, (int)exponents[k]) : smallest;
    return cuda__block_min<CUDA__ISM_WARPS>(smallest, scratch);
}

/* The exponent of the smallest pivot that rows and columns of such sizes suggest, by the block; of
 * zeros alone 0. */
template <typename T>
static __device__ __forceinline__ int cuda__ism_min_pivot_exponent(const cuda__ism_call &call)
{
    __shared__ int rows[CUDA__ISM_WARPS], columns[CUDA__ISM_WARPS];
    const int row = cuda__ism_min_exponent<T>(call, 0, rows);
    const int column = cuda__ism_min_exponent<T>(call, 1, columns);
    return row < INT32_MAX ? row + column : 0;
}

/* Below it a pivot of what was factored has lost digits to the lower end of the range: its error is
 * the smallest number there is times n, or times the largest numbers that multipliers met. */
template <typename T>
static __device__ __forceinline__ double cuda__ism_min_pivot(int64_t n, double norm)
{
    return (double)n * (double)cuda__real<T>::min_safe * fmax(norm, 1.0);
}

/* The answer's shift: the power of two by which a matrix, whose columns' sums are in SIZES, is
 * brought far enough from either end of the range for its factors. equilibrates: it is equilibrated
 * instead where need be. A block a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_shift_kernel(const cuda__ism_call call, bool equilibrates)
{
    cuda__follow_previous();
    constexpr int top = sizeof(T) == sizeof(float) ? 128 : 1024, high = top - CUDA__ISM_GROWTH;
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y;
    const T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    const int pivot_exponent = equilibrates ? cuda__ism_min_pivot_exponent<T>(call) : 0;
    T norm = 0;
    int exponent = 0, raise = 0;
    for (int64_t j = threadIdx.x; j < call.n; j += CUDA__ISM_THREADS)
        norm = cuda__max_or_nan(norm, sizes[j]);
    norm = cuda__block_max<CUDA__ISM_WARPS>(norm, scratch);
    if (norm <= cuda__real<T>::largest)
        frexp((double)norm, &exponent);
    else
        exponent = top;
    if (norm > 0 && norm < cuda__real<T>::tiny)
        frexp((double)cuda__real<T>::raise / 2, &raise);
    if (threadIdx.x > 0)
        return;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    answer->shift = exponent > high ? high - exponent : raise;
    answer->factored = ldexp(1.0, exponent < top ? exponent + answer->shift : high);
    const double pivot = ldexp(1.0, min(pivot_exponent + answer->shift, top) - 1);
    const double safe = cuda__ism_min_pivot<T>(call.n, answer->factored) / cuda__real<T>::eps;
    answer->equilibrated = equilibrates && pivot < safe;
    answer->lost = 0;
}

/* to = from, shifted. of_lost: but where it has been equilibrated without a loss. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_shifted_kernel(const cuda__ism_call call, int from, int to, bool of_lost)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const T power = (T)ldexp(1.0, answer->shift);
    const T *source = cuda__ism_array_of<T>(call, slot, from);
    T *array = cuda__ism_array_of<T>(call, slot, to);
    if (of_lost && answer->equilibrated && !answer->lost)
        return;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < call.n * call.n;
         e += step)
        array[e] = source[e] * power;
}

/* to = from, equilibrated, where it is to be; whether that loses numbers. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_equilibrated_kernel(const cuda__ism_call call, int from, int to)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const int32_t *rows = cuda__ism_exponents<T>(call, 0),
                  *columns = cuda__ism_exponents<T>(call, 1);
    const T *source = cuda__ism_array_of<T>(call, slot, from);
    T *array = cuda__ism_array_of<T>(call, slot, to);
    if (!answer->equilibrated)
        return;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < call.n * call.n;
         e += step) {
        const double number = (double)source[e];
        const int exponent = number == 0 ? 0 : rows[e / call.n] + columns[e % call.n];
        array[e] = (T)ldexp(number, -exponent);
        if (ldexp((double)array[e], exponent) != number)
            atomicMax(&answer->lost, 1);
    }
}

static __device__ __forceinline__ void cuda__ism_over(double *fraction, int64_t *exponent,
                                                      double divisor)
{
    int shift = 0;
    *fraction /= frexp(divisor, &shift);
    *exponent -= shift;
    cuda__ism_times(fraction, exponent, 1);
}

static __device__ __forceinline__ bool cuda__ism_is_equilibrated(const cuda__ism_answer *answer)
{
    return answer->equilibrated && !answer->lost;
}

/* Powers of two that the determinant of what was factored lacks. */
template <typename T>
static __device__ __forceinline__ int64_t cuda__ism_lacking_exponent(const cuda__ism_call &call,
                                                                     const cuda__ism_answer *answer)
{
    const int32_t *rows = cuda__ism_exponents<T>(call, 0),
                  *columns = cuda__ism_exponents<T>(call, 1);
    int64_t places = 0;
    if (!cuda__ism_is_equilibrated(answer))
        return -call.n * answer->shift;
    for (int64_t i = 0; i < call.n; i++)
        places += rows[i] + columns[i];
    return places;
}

/* The answer's determinant times that of the factors in LU, and over that of a diagonal A0; or over
 * that of the factors, which are A0's. solves: they are M's. One thread a slot. */
template <typename T>
static __global__ void cuda__ism_determinant_kernel(const cuda__ism_call call, bool of_a0,
                                                    bool solves)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const T *lu = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LU);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    const int32_t *pivots = (const int32_t *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIVOTS);
    const double norm = cuda__ism_is_equilibrated(answer) ? (double)call.n : answer->factored;
    const double pivot_min = cuda__ism_min_pivot<T>(call.n, norm);
    double det = answer->det;
    int64_t exponent = answer->det_exponent, places = cuda__ism_lacking_exponent<T>(call, answer);
    const bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    bool lost = false;
    for (int64_t i = 0; i < call.n; i++) {
        double pivot = (double)lu[i * (call.n + 1)];
        lost = lost || (!solves && pivot != 0 && fabs(pivot) < pivot_min);
        pivot = pivots[i] == i + 1 ? pivot : -pivot;
        if (of_a0)
            cuda__ism_over(&det, &exponent, pivot);
        else
            cuda__ism_times(&det, &exponent, pivot);
        if (diagonal)
            cuda__ism_over(&det, &exponent, (double)d[i]);
    }
    answer->det = lost ? (double)cuda__real<T>::nan() : det;
    answer->det_exponent = exponent + (of_a0 ? -places : places);
}

/* ---- Picked matrices and their reports ---- */

/* The numbers of the next call.count unverified matrices, from *call.picked on, to call.list;
 * begins: of the batch's first ones. One block, which looks at each matrix once in all rounds. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_pick_kernel(const cuda__ism_call call, bool begins)
{
    cuda__follow_previous();
    __shared__ int found[CUDA__ISM_WARPS];
    int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
    const int64_t start = begins ? 0 : *call.picked;
    int64_t count = 0, within;
    for (int64_t k = threadIdx.x; k < call.count; k += CUDA__ISM_THREADS)
        call.list[k] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        *call.picked = call.matrices;
    for (int64_t first = start; first < call.matrices && count < call.count;
         first += CUDA__ISM_THREADS) {
        int64_t index = first + threadIdx.x;
        bool unverified = false;
        if (index < call.matrices) {
            const cuda_tensors *item = cuda__ism_item(call, index, &within);
            unverified = ((const int32_t *)item->outputs[METHOD_ISM_INFO])[within] < -1;
        }
        unsigned ballot = __ballot_sync(CUDA__ALL, unverified);
        if (lane == 0)
            found[warp] = __popc(ballot);
        __syncthreads();
        int64_t place = count + __popc(ballot & ((1u << lane) - 1));
        for (int w = 0; w < CUDA__ISM_WARPS; w++) {
            place += w < warp ? found[w] : 0;
            count += found[w];
        }
        if (unverified && place < call.count)
            call.list[place] = index;
        __syncthreads();
        if (unverified && place == call.count - 1)
            *call.picked = index + 1;
    }
}

/* What lu is given: of the inverse of FORMED, and of factors of what is where that will be. */
template <typename T> static __global__ void cuda__ism_items_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda_item item = {};
    item.first = slot;
    item.a = cuda__ism_array_of<T>(call, slot, CUDA__ISM_FORMED);
    item.result = cuda__ism_array_of<T>(call, slot, CUDA__ISM_INVERSE);
    item.extra = &answer->rcond;
    item.info = &answer->info;
    call.items[slot] = item;
    item.a = item.result;
    item.result = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LU);
    item.extra = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIVOTS);
    item.info = &answer->factor_info;
    call.items[call.held + slot] = item;
}

/* By lu, what was not restored. */
template <typename T> static __global__ void cuda__ism_report_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    if (answer->restored)
        return;
    int info = answer->bad ? -1 : answer->info;
    T det_ratio = (T)cuda__ism_value(answer->det, answer->det_exponent);
    T rcond = *(const T *)&answer->rcond;
    if (info < 0)
        det_ratio = rcond = cuda__real<T>::nan();
    else if (info >= 1 && info <= call.n)
        det_ratio = 0;
    answer->refused = info < 0 || (info >= 1 && info <= call.n);
    cuda__ism_store<T>(call, item, within, info, rcond,
                       info < 0 ? (int)METHOD_ALGORITHM_NONE : (int)METHOD_ALGORITHM_LU, det_ratio);
}

/* By solution: refused where a number of it is none, or where it is in range and not good. A block
 * a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_report_solution_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    int64_t slot = blockIdx.y, within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_check check = cuda__ism_weigh<T, CUDA__ISM_THREADS>(call, scratch, true);
    if (threadIdx.x > 0)
        return;
    int n = (int)call.n, info = answer->bad ? -1 : answer->info, algorithm = METHOD_ALGORITHM_LU;
    bool finite = check.norm_x <= (double)cuda__real<T>::largest;
    double size = check.norm_x * (1 + check.change), eps = cuda__real<T>::eps;
    bool good = finite && check.norm_x >= cuda__ism_min_norm<T>(call) &&
                check.error <= cuda__ism_allowed<T>(n, size) &&
                !cuda__ism_dd_loses<T>(call, answer, 1 + check.change);
    T rcond = cuda__real<T>::nan(), det_ratio = (T)check.det_ratio;
    answer->refused = true;
    if (info >= 1 && info <= n) { /* M is singular */
        rcond = det_ratio = 0;
    } else if (answer->bad) {
        algorithm = METHOD_ALGORITHM_NONE;
        det_ratio = cuda__real<T>::nan();
    } else if (info < 0) { /* M overflows */
        info = n + 1;
        det_ratio = cuda__real<T>::nan();
    } else {
        answer->refused = finite ? !good : isnan(check.norm_x);
        info = !good || size * eps > check.norm_a ? n + 1 : 0;
        det_ratio = answer->refused ? cuda__real<T>::nan() : det_ratio;
    }
    cuda__ism_store<T>(call, item, within, info, rcond, algorithm, det_ratio);
}

/* The inverse, dense; NaN where it is refused. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_write_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    int64_t all = call.n * call.n;
    bool refused = cuda__ism_answer_of<T>(call, slot)->refused;
    bool restored = cuda__ism_answer_of<T>(call, slot)->restored;
    const T *from =
        cuda__ism_array_of<T>(call, slot, restored ? (int)CUDA__ISM_Z : (int)CUDA__ISM_INVERSE);
    T *to = cuda__ism_output<T>(call, slot, METHOD_ISM_INVERSE, all);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; to && e < all;
         e += step)
        to[e] = refused ? cuda__real<T>::nan() : from[e];
}

/* ---- The launches ---- */

/* A chunk of matrices that are recovered. */
template <typename T> struct cuda__ism_recovery {
    cuda__ism_sequence<T> sequence;

    static constexpr enum precision precision =
        sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;

    bool solves() const
    {
        return !cuda__ism_knows(sequence.call);
    }

    /* A, or M. */
    void form()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n, m = call.m;
        cuda__ism_shape formed = sequence.square(CUDA__ISM_FORMED);
        if (sequence.has(METHOD_ISM_A)) {
            sequence.over(n * n, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_A, formed);
            return;
        }
        int start = solves()              ? CUDA__ISM_FROM_ONES
                    : sequence.diagonal() ? CUDA__ISM_FROM_D
                                          : CUDA__ISM_FROM_A0;
        sequence.over(n * n, cuda__ism_start_kernel<T>, call, start, formed);
        if (m == 0)
            return;
        if (solves())
            form_m();
        else
            form_a();
    }

    /* FORMED, which is A0, += X Y^T; anew where terms cancel. */
    void form_a()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, tiles = sequence.pieces(n, CUDA__ISM_FORM_TILE);
        sequence.multiply(n, n, call.m, false, true, 1, {CUDA__ISM_X, 0, 0}, {CUDA__ISM_Y, 0, 0}, 1,
                          {CUDA__ISM_FORMED, 0, 0});
        sequence.look_at(CUDA__ISM_FORMED, 0);
        sequence.weigh_thin(true);
        sequence.start(cuda__ism_cancel_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
        sequence.start(cuda__ism_form_kernel<T>, tiles * tiles, CUDA__ISM_THREADS, 0, call);
    }

    /* FORMED, which is I, += X K: terms of K may cancel, and those of X K. What its numbers lack
     * is where the inverse will be. */
    void form_m()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, m = call.m;
        sequence.over(n * n, cuda__ism_clear_kernel<T>, call, (int)CUDA__ISM_INVERSE, (int64_t)0,
                      n * n);
        for (int64_t first = 0; first < m; first += CUDA__ISM_MET) {
            const int64_t count = m - first < CUDA__ISM_MET ? m - first : CUDA__ISM_MET;
            const cuda__ism_twin k = {CUDA__ISM_K, CUDA__ISM_K, count};
            const cuda__ism_twin b = {CUDA__ISM_B, -1, 0};
            const cuda__ism_twin formed = {CUDA__ISM_FORMED, CUDA__ISM_INVERSE, 0};
            multiply_twofold({CUDA__ISM_Y, first, 1, call.ldm, count, n, b, k, false});
            multiply_twofold({CUDA__ISM_X, first, call.ldm, 1, n, count, k, formed, true});
        }
    }

    void multiply_twofold(const cuda__ism_twofold &of)
    {
        sequence.over(sequence.pieces(of.rows, CUDA__ISM_DD_ROWS) * sequence.call.n,
                      cuda__ism_twofold_kernel<T>, sequence.call, of);
    }

    /* LU = the factors of an array, shifted or, but for M, equilibrated, and the answer's
     * determinant times its, or over A0's. INVERSE is used up. */
    void factor(int array)
    {
        const cuda__ism_call &call = sequence.call;
        struct cuda_batch all = {};
        all.items = call.items + call.held;
        all.item_count = all.matrices = call.count;
        sequence.look_at(array, 0);
        if (!solves()) {
            sequence.start(cuda__ism_rows_kernel<T>, sequence.pieces(call.n, CUDA__ISM_WARPS),
                           CUDA__ISM_THREADS, 0, call, array);
            sequence.over(call.n, cuda__ism_columns_kernel<T>, call, array);
        }
        sequence.start(cuda__ism_shift_kernel<T>, 1, CUDA__ISM_THREADS, 0, call, !solves());
        if (!solves())
            sequence.over(call.n * call.n, cuda__ism_equilibrated_kernel<T>, call, array,
                          (int)CUDA__ISM_INVERSE);
        sequence.over(call.n * call.n, cuda__ism_shifted_kernel<T>, call, array,
                      (int)CUDA__ISM_INVERSE, !solves());
        if (sequence.status == cudaSuccess)
            sequence.status =
                call.n <= CUDA_SMALL_N_MAX
                    ? cuda_factor_small(precision, call.n, &all, sequence.stream)
                    : cuda_factor_middle(precision, call.n, &all, call.lu, call.lu_bytes,
                                         sequence.products, sequence.stream);
        sequence.start(cuda__ism_determinant_kernel<T>, 1, 1, 0, call, array == CUDA__ISM_A0,
                       solves());
    }

    /* Z's columns at .. at + columns - 1 times U^-1, or with Lower L^-1: the half that has all it
     * needs, what it does to the other one, that. */
    template <bool Lower> void substitute(int64_t at, int64_t columns)
    {
        const cuda__ism_call &call = sequence.call;
        int64_t half = sequence.pieces(sequence.pieces(columns, CUDA__ISM_PANEL), 2);
        half *= CUDA__ISM_PANEL;
        if (columns <= CUDA__ISM_PANEL) {
            sequence.start(cuda__ism_panel_kernel<T, Lower>,
                           sequence.pieces(call.n, CUDA__ISM_PANEL_ROWS), CUDA__ISM_PANEL_ROWS, 0,
                           call, at);
            return;
        }
        int64_t first = Lower ? at + half : at, other = Lower ? at : at + half;
        int64_t inner = Lower ? columns - half : half, rest = columns - inner;
        substitute<Lower>(first, inner);
        sequence.multiply(call.n, rest, inner, false, false, -1, {CUDA__ISM_Z, 0, first},
                          {CUDA__ISM_LU, first, other}, 1, {CUDA__ISM_Z, 0, other});
        substitute<Lower>(other, rest);
    }

    /* LU = A0^-1 - Z M */
    void find_error()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n;
        sequence.over(n * n, cuda__ism_start_kernel<T>, call, (int)CUDA__ISM_FROM_B,
                      sequence.square(CUDA__ISM_LU));
        sequence.multiply(n, n, n, false, false, -1, {CUDA__ISM_Z, 0, 0}, {CUDA__ISM_FORMED, 0, 0},
                          1, {CUDA__ISM_LU, 0, 0});
    }

    /* Z M = A0^-1 by M's factors, and Z + (A0^-1 - Z M) M^-1 by its inverse, in which growing
     * factors have been recovered: twice, since they may have left little of Z. */
    void solve()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n;
        sequence.over(n * n, cuda__ism_shifted_kernel<T>, call, (int)CUDA__ISM_B, (int)CUDA__ISM_Z,
                      false);
        substitute<false>(0, n);
        substitute<true>(0, n);
        sequence.start(cuda__ism_interchange_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                       CUDA__ISM_THREADS, 0, call);
        for (int k = 0; k < CUDA__ISM_CORRECTIONS; k++) {
            find_error();
            if (k == 0) {
                sequence.look_at(CUDA__ISM_LU, 0);
                sequence.over(n * n, cuda__ism_begin_corrections_kernel<T>, call);
            }
            sequence.multiply(n, n, n, false, false, 1, {CUDA__ISM_LU, 0, 0},
                              {CUDA__ISM_INVERSE, 0, 0}, 1, {CUDA__ISM_Z, 0, 0});
        }
    }

    /* Behind `probes` lines of ERROR: T A0^-1 - T Z (M - I); SIGNS: the sums of the columns of M -
     * I. M was rounded once, so that there is no other one to check. */
    void check_solution()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, probes = sequence.probes();
        sequence.look_at_answer();
        sequence.start(cuda__ism_change_sums_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                       CUDA__ISM_THREADS, 0, call);
        sequence.multiply(probes, n, n, false, false, 1, {-1, 0, 0}, {CUDA__ISM_B, 0, 0}, 0,
                          {CUDA__ISM_ERROR, probes, 0});
        sequence.multiply(probes, n, n, false, false, -1, {CUDA__ISM_TZ, 0, 0},
                          {CUDA__ISM_FORMED, 0, 0}, 1, {CUDA__ISM_ERROR, probes, 0});
    }

    void run(bool begins)
    {
        const cuda__ism_call &call = sequence.call;
        sequence.start_once(cuda__ism_pick_kernel<T>, 1, call, begins);
        sequence.bring(true);
        if (cuda__ism_restores(call.inputs, call.n, call.m))
            cuda__ism_restore(sequence);
        form();
        sequence.start(cuda__ism_items_kernel<T>, 1, 1, 0, call);
        factor(CUDA__ISM_FORMED);
        if (sequence.has(METHOD_ISM_A0_DENSE))
            factor(CUDA__ISM_A0);
        cuda__ism_invert(sequence, call.n);
        if (solves()) {
            solve();
            check_solution();
            sequence.start(cuda__ism_report_solution_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
            sequence.refuse(METHOD_ISM_INVERSE, call.n * call.n);
        } else {
            sequence.start(cuda__ism_report_kernel<T>, 1, 1, 0, call);
            if (sequence.wants(METHOD_ISM_INVERSE))
                sequence.over(call.n * call.n, cuda__ism_write_kernel<T>, call);
        }
        sequence.write_factors(true);
    }

    /* Of what was recovered, in the same workspace. */
    void measure(struct cuda__ism_call measures)
    {
        measures.list = sequence.call.list;
        measures.matrices = sequence.call.count;
        sequence.check(cuda__ism_measure<T>(measures, sequence.products, sequence.stream));
    }
};

template <typename T>
static cudaError_t cuda__ism_recover(const cuda__ism_call &work, struct cuda_products *products,
                                     cudaStream_t stream)
{
    cuda__ism_recovery<T> recovery = {{{{work, products, stream, cudaSuccess}}}};
    cuda__ism_call &call = recovery.sequence.call;
    call.unverified = nullptr;
    recovery.sequence.start_once(cuda__ism_weights_kernel<T>, CUDA__ISM_LINE_BLOCKS, call);
    for (int64_t left = work.count; left > 0; left -= call.count) {
        call.count = left < work.held ? left : work.held;
        recovery.run(left == work.count);
        if (work.measures)
            recovery.measure(*work.measures);
    }
    return recovery.sequence.status;
}

#endif
