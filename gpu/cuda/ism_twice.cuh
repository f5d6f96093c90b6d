/* gpu/cuda/ism_twice.cuh: sums in twice the precision, and the products of the second trial of an
 * update (A0_INVERSE alone): lines times X Y^T and times A0^-1, in pairs of numbers, the second
 * being what the first lacks. They are made for the slots alone whose trial of one precision may
 * share what the update's own sums have lost (`twice` of the answer); see gpu/host/ism_trial.c.
 * Device code; a slot a blockIdx.y, four lines a blockIdx.z. Sums are taken in an order that n and
 * m alone decide.
 *
 * Cost: 13 operations a term in FP64, 3 in FP32; X and Y are read twice, A0^-1 once.
 */
#ifndef GPU_CUDA_ISM_TWICE_CUH
#define GPU_CUDA_ISM_TWICE_CUH

#include "gpu/cuda/ism_terms.cuh"
#include "gpu/cuda/twice.cuh"

#define CUDA__ISM_TWICE_RATIO 4.0 /* of what sums in twice the precision may have lost */
#define CUDA__ISM_TWICE_LINES 4   /* of a block */

/* ---- Sums ---- */

template <typename T> struct cuda__ism_sum;

template <> struct cuda__ism_sum<double> {
    cuda__twice<double> sum;

    /* x times a number and what that lacks. */
    __device__ __forceinline__ void add(double x, double high, double low)
    {
        sum.add_product(x, high);
        sum.errors = fma(x, low, sum.errors);
    }
    __device__ __forceinline__ void join(const cuda__ism_sum &other)
    {
        const double next = sum.sum + other.sum.sum, added = next - sum.sum;
        sum.errors += ((sum.sum - (next - added)) + (other.sum.sum - added)) + other.sum.errors;
        sum.sum = next;
    }
    __device__ __forceinline__ cuda__ism_sum from_lane(int reach) const
    {
        return {{__shfl_xor_sync(CUDA__ALL, sum.sum, reach),
                 __shfl_xor_sync(CUDA__ALL, sum.errors, reach)}};
    }
    __device__ __forceinline__ double high() const
    {
        return sum.value();
    }
    __device__ __forceinline__ double low() const
    {
        return sum.rest();
    }
    /* one less it */
    __device__ __forceinline__ cuda__ism_sum taken_from(double one) const
    {
        cuda__ism_sum whole = {{one, -low()}};
        whole.join({{-high(), 0}});
        return whole;
    }
};

template <> struct cuda__ism_sum<float> {
    double sum;

    __device__ __forceinline__ void add(float x, float high, float low)
    {
        sum = fma((double)x, (double)high + (double)low, sum);
    }
    __device__ __forceinline__ void join(const cuda__ism_sum &other)
    {
        sum += other.sum;
    }
    __device__ __forceinline__ cuda__ism_sum from_lane(int reach) const
    {
        return {__shfl_xor_sync(CUDA__ALL, sum, reach)};
    }
    __device__ __forceinline__ float high() const
    {
        return (float)sum;
    }
    __device__ __forceinline__ float low() const
    {
        return (float)(sum - (double)(float)sum);
    }
    __device__ __forceinline__ cuda__ism_sum taken_from(float one) const
    {
        return {(double)one - sum};
    }
};

static __device__ __forceinline__ cuda__ism_sum<double> cuda__ism_sum_of(double high, double low)
{
    return {{high, low}};
}

static __device__ __forceinline__ cuda__ism_sum<float> cuda__ism_sum_of(float high, float low)
{
    return {(double)high + (double)low};
}

/* How many times the sum of its terms' magnitudes such a sum may be off, as the host's. */
template <typename T> static __device__ __forceinline__ double cuda__ism_twice_error(int64_t terms)
{
    const double eps = (double)cuda__real<double>::eps, plain = (double)terms * eps / 2;
    return sizeof(T) < sizeof(double) ? 32 * eps + plain : plain * plain;
}

/* May those of the answer's terms have lost too much beside |M| = 1 + change? */
template <typename T>
static __device__ __forceinline__ bool
cuda__ism_twice_loses(const cuda__ism_call &call, const cuda__ism_answer *answer, double change)
{
    const double lost = cuda__ism_twice_error<T>(2 * call.n + call.m) * cuda__ism_terms(answer);
    const double most = CUDA__ISM_TWICE_RATIO * (double)call.n * (double)cuda__real<T>::eps;
    return !(lost <= most * CUDA__ISM_TERMS_SCALE * (1 + change));
}

/* ---- Lines ---- */

/* `count` lines: `split` of an array, -1 being T, then those of another. */
struct cuda__ism_lines {
    int array, other;
    int64_t split, ld;
    int64_t low; /* from a number to what it lacks; 0: nothing is lacking */
};

/* What becomes of a sum. */
enum cuda__ism_twice_end {
    CUDA__ISM_TWICE_PAIR,
    CUDA__ISM_TWICE_REST,  /* a pair; from line `half` on, T less it */
    CUDA__ISM_TWICE_ERROR, /* rounded; from line `half` on, once T Z is taken from it */
    CUDA__ISM_TWICE_ROUND
};

/* Where lines go. */
struct cuda__ism_place {
    int array;
    int64_t line, ld, low; /* low: from a number to what it lacks */
};

/* to = by times an array, or its transpose: `count` lines. */
struct cuda__ism_twice_product {
    struct cuda__ism_lines by;
    struct cuda__ism_shape from;
    struct cuda__ism_place to;
    int64_t count, half;
    int end;
};

/* The lines that a block has; the last one, where there are no more. */
template <typename T> struct cuda__ism_twice_lines {
    const T *at[CUDA__ISM_TWICE_LINES];
    int64_t low;

    __device__ __forceinline__ cuda__ism_twice_lines(const cuda__ism_call &call,
                                                     const cuda__ism_twice_product &of)
    {
        const cuda__ism_lines &by = of.by;
        low = by.low;
#pragma unroll
        for (int l = 0; l < CUDA__ISM_TWICE_LINES; l++) {
            int64_t line = (int64_t)blockIdx.z * CUDA__ISM_TWICE_LINES + l;
            line = line < of.count ? line : of.count - 1;
            const int array = line < by.split ? by.array : by.other;
            line -= line < by.split ? 0 : by.split;
            at[l] = (array < 0 ? (const T *)call.lines
                               : cuda__ism_array_of<T>(call, blockIdx.y, array)) +
                    line * by.ld;
        }
    }

    __device__ __forceinline__ void add(T value, int64_t i,
                                        cuda__ism_sum<T> (&sums)[CUDA__ISM_TWICE_LINES]) const
    {
#pragma unroll
        for (int l = 0; l < CUDA__ISM_TWICE_LINES; l++)
            sums[l].add(value, at[l][i], low > 0 ? at[l][i + low] : T(0));
    }
};

/* Number j of the block's line l. */
template <typename T>
static __device__ __forceinline__ void cuda__ism_twice_put(const cuda__ism_call &call,
                                                           const cuda__ism_twice_product &of, int l,
                                                           int64_t j, cuda__ism_sum<T> sum)
{
    const int64_t slot = blockIdx.y, line = (int64_t)blockIdx.z * CUDA__ISM_TWICE_LINES + l;
    T *to = cuda__ism_array_of<T>(call, slot, of.to.array) + (of.to.line + line) * of.to.ld + j;
    if (line >= of.count)
        return;
    if (of.end == CUDA__ISM_TWICE_REST && line >= of.half)
        sum = sum.taken_from(((const T *)call.lines)[(line - of.half) * call.ld + j]);
    *to = sum.high();
    if (of.end == CUDA__ISM_TWICE_ERROR && line >= of.half) {
        const T tz =
            cuda__ism_array_of<T>(call, slot, CUDA__ISM_TZ)[(line - of.half) * call.ld + j];
        *to = (sum.high() - tz) + sum.low();
    } else if (of.end <= CUDA__ISM_TWICE_REST) {
        to[of.to.low] = sum.low();
    }
}

/* Sums over rows: groups of a block's threads take rows of some columns. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TERMS_THREADS)
    cuda__ism_twice_kernel(const cuda__ism_call call, const cuda__ism_twice_product of)
{
    __shared__ cuda__ism_sum<T> shared[CUDA__ISM_TWICE_LINES][CUDA__ISM_TERMS_THREADS];
    const int64_t slot = blockIdx.y;
    const int at = (int)threadIdx.x, across = cuda__ism_across(of.from.columns),
              group = at / across;
    const int groups = CUDA__ISM_TERMS_THREADS / across;
    const int64_t j = (int64_t)blockIdx.x * across + at % across;
    if (!cuda__ism_answer_of<T>(call, slot)->twice)
        return;
    const T *from = cuda__ism_array_of<T>(call, slot, of.from.array) + j;
    const cuda__ism_twice_lines<T> lines(call, of);
    cuda__ism_sum<T> sums[CUDA__ISM_TWICE_LINES] = {};
#pragma unroll 4
    for (int64_t i = group; i < of.from.lines; i += groups)
        lines.add(j < of.from.columns ? from[i * of.from.ld] : T(0), i, sums);
#pragma unroll
    for (int l = 0; l < CUDA__ISM_TWICE_LINES; l++)
        shared[l][at] = sums[l];
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int l = 0; l < CUDA__ISM_TWICE_LINES && group < half; l++)
            shared[l][at].join(shared[l][at + half * across]);
    }
    for (int l = 0; l < CUDA__ISM_TWICE_LINES && group == 0 && j < of.from.columns; l++)
        cuda__ism_twice_put<T>(call, of, l, j, shared[l][at]);
}

/* By the transpose: a warp a row, which it sums over. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_twice_rows_kernel(const cuda__ism_call call, const cuda__ism_twice_product of)
{
    const int64_t slot = blockIdx.y, lane = threadIdx.x % CUDA__WARP;
    const int64_t i = (int64_t)blockIdx.x * CUDA__ISM_WARPS + threadIdx.x / CUDA__WARP;
    if (!cuda__ism_answer_of<T>(call, slot)->twice || i >= of.from.lines)
        return;
    const T *from = cuda__ism_array_of<T>(call, slot, of.from.array) + i * of.from.ld;
    const cuda__ism_twice_lines<T> lines(call, of);
    cuda__ism_sum<T> sums[CUDA__ISM_TWICE_LINES] = {};
#pragma unroll 2
    for (int64_t c = lane; c < of.from.columns; c += CUDA__WARP)
        lines.add(from[c], c, sums);
#pragma unroll
    for (int l = 0; l < CUDA__ISM_TWICE_LINES; l++) {
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
            sums[l].join(sums[l].from_lane(reach));
        if (lane == 0)
            cuda__ism_twice_put<T>(call, of, l, i, sums[l]);
    }
}

#endif
