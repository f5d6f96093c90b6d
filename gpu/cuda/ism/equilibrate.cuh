/* gpu/cuda/ism/equilibrate.cuh: the kernels that scale what `ism` factors for a determinant, and
 * the determinant by the factors. Device code; a slot a blockIdx.y.
 *
 * A matrix at an end of the range is shifted by one power of two. Where rows or columns of A or A0
 * are so far apart in size that a pivot or a multiplier may be denormal, rows and columns are
 * equilibrated instead: the largest number of each comes to 1/2 or more and less than 1, by powers
 * of two. Where that would lose numbers, and for a solution, what is factored is only shifted.
 * DET_RATIO is NaN where a pivot is so small that what is lost below the range counts.
 *
 * Cost: 12 n^2 operations next to the factors' 2/3 n^3.
 */
#ifndef GPU_CUDA_ISM_EQUILIBRATE_CUH
#define GPU_CUDA_ISM_EQUILIBRATE_CUH

#include "gpu/cuda/ism/check.cuh"
#include "gpu/cuda/base/reduce.cuh"

#define CUDA__ISM_GROWTH 24          /* powers of two by which factors may grow */
#define CUDA__ISM_ZEROS (-(1 << 20)) /* the exponent of zero */

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

/* The smallest exponent of rows or columns that are not zeros, by the block; scratch: of this call.
 */
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
    constexpr int top = sizeof(T) == sizeof(float) ? 128 : 1024,
                  exponent_max = top - CUDA__ISM_GROWTH;
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
    answer->shift = exponent > exponent_max ? exponent_max - exponent : raise;
    answer->factored = ldexp(1.0, exponent < top ? exponent + answer->shift : exponent_max);
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

#endif
