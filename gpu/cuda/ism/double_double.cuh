/* gpu/cuda/ism/double_double.cuh: sums in double-double, and the products of a check: probe vectors
 * times X Y^T and times A0 or A0^-1, each a number and what it lacks. A
 * check of one precision might lose the same terms as the sums that it checks, or have the errors
 * of terms that cancel; see gpu/host/ism/check.c. Device code; a slot a blockIdx.y, two or four
 * lines a blockIdx.z. Sums are taken in an order that n and m alone decide.
 *
 * Cost: 13 operations a term in FP64, 3 in FP32; each array is read once.
 */
#ifndef GPU_CUDA_ISM_DD_CUH
#define GPU_CUDA_ISM_DD_CUH

#include "gpu/cuda/ism/terms.cuh"
#include "gpu/cuda/base/compensated.cuh"

#define CUDA__ISM_DD_RATIO 4.0   /* of what sums in double-double may have lost */
#define CUDA__ISM_NORM_ERROR 0.1 /* of |A| that its own sums may have lost, and half of it */
#define CUDA__ISM_DD_LINES 4     /* of a block, at most */
#define CUDA__ISM_DD_HELD 4      /* rows of a warp, or of a thread, at once */

/* ---- Sums ---- */

template <typename T> struct cuda__ism_sum;

template <> struct cuda__ism_sum<double> {
    cuda__compensated<double> sum;

    /* x times a number and what that lacks. */
    __device__ __forceinline__ void add(double x, double high, double low)
    {
        sum.add_product(x, high);
        sum.errors = fma(x, low, sum.errors);
    }
    __device__ __forceinline__ void add(double x, const cuda__ism_sum &by)
    {
        add(x, by.sum.sum, by.sum.errors);
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
    __device__ __forceinline__ void add(double x, const cuda__ism_sum &by)
    {
        sum = fma(x, by.sum, sum);
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
template <typename T> static __device__ __forceinline__ double cuda__ism_dd_error(int64_t terms)
{
    const double eps = (double)cuda__real<double>::eps, plain = (double)terms * eps / 2;
    return sizeof(T) < sizeof(double) ? 32 * eps + plain : plain * plain;
}

/* May a check have lost too much of the answer's terms, or |A| have been measured by sums that did?
 * size: |A|, or |M| where A is not known. */
template <typename T>
static __device__ __forceinline__ bool
cuda__ism_dd_loses(const cuda__ism_call &call, const cuda__ism_answer *answer, double size)
{
    const double eps = (double)cuda__real<T>::eps, terms = cuda__ism_terms(answer);
    const double lost = cuda__ism_dd_error<T>(2 * call.n + call.m) * terms;
    const double measured = cuda__ism_knows(call) ? (double)(call.m + 1) * eps * terms : 0;
    size *= CUDA__ISM_TERMS_SCALE;
    return !(lost <= CUDA__ISM_DD_RATIO * (double)call.n * eps * size &&
             measured <= CUDA__ISM_NORM_ERROR * size);
}

/* ---- Lines ---- */

/* `count` lines: `split` of an array, -1 being T, then those of another. */
struct cuda__ism_lines {
    int array, other;
    int64_t split, ld;
    int64_t low; /* from a number to what it lacks; 0: nothing is lacking */
};

/* What becomes of a sum: both its numbers, or a rounded one. */
enum cuda__ism_dd_end {
    CUDA__ISM_DD_BOTH,
    CUDA__ISM_DD_REST,  /* both; from line `half` on, T less it */
    CUDA__ISM_DD_ROUND, /* rounded */
    CUDA__ISM_DD_ERROR, /* rounded; from line `half` on, it less T Z */
    CUDA__ISM_DD_OWN,   /* rounded: T less it and less T Z D */
    CUDA__ISM_DD_LEFT   /* rounded: REST less it */
};

/* Where lines go. */
struct cuda__ism_place {
    int array;
    int64_t line, ld, low; /* low: from a number to what it lacks */
};

/* to = by times an array, or its transpose: `count` lines. */
struct cuda__ism_dd_product {
    struct cuda__ism_lines by;
    struct cuda__ism_shape from;
    struct cuda__ism_place to;
    int64_t count, half;
    int end;
};

/* The lines that a block has; the last one, where there are no more. */
template <typename T, int Lines> struct cuda__ism_dd_lines {
    const T *at[Lines];
    int64_t low;

    __device__ __forceinline__ cuda__ism_dd_lines(const cuda__ism_call &call,
                                                  const cuda__ism_dd_product &of)
    {
        const cuda__ism_lines &by = of.by;
        low = by.low;
#pragma unroll
        for (int l = 0; l < Lines; l++) {
            int64_t line = (int64_t)blockIdx.z * Lines + l;
            line = line < of.count ? line : of.count - 1;
            const int array = line < by.split ? by.array : by.other;
            line -= line < by.split ? 0 : by.split;
            at[l] = (array < 0 ? (const T *)call.probes
                               : cuda__ism_array_of<T>(call, blockIdx.y, array)) +
                    line * by.ld;
        }
    }

    /* A number of a line, and what it lacks. */
    __device__ __forceinline__ cuda__ism_sum<T> number(int l, int64_t i) const
    {
        return cuda__ism_sum_of(at[l][i], low > 0 ? at[l][i + low] : T(0));
    }
};

/* Number j of a line. */
template <typename T>
static __device__ __forceinline__ void
cuda__ism_dd_store(const cuda__ism_call &call, const cuda__ism_dd_product &of, int64_t line,
                   int64_t j, cuda__ism_sum<T> sum)
{
    const int64_t slot = blockIdx.y;
    if (line >= of.count)
        return;
    const int64_t at = (line < of.half ? line : line - of.half) * call.ld + j;
    const T *t = (const T *)call.probes + at;
    const T *tz = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TZ) + at;
    const T *rest = cuda__ism_array_of<T>(call, slot, CUDA__ISM_REST) + line * call.ld + j;
    T *to = cuda__ism_array_of<T>(call, slot, of.to.array) + (of.to.line + line) * of.to.ld + j;
    if (of.end == CUDA__ISM_DD_OWN || (of.end == CUDA__ISM_DD_REST && line >= of.half))
        sum = sum.taken_from(*t);
    const T high = sum.high(), low = sum.low();
    if (of.end == CUDA__ISM_DD_OWN)
        *to = fma(-*tz, cuda__ism_array_of<T>(call, slot, CUDA__ISM_D)[j], high) + low;
    else if (of.end == CUDA__ISM_DD_LEFT)
        *to = (rest[0] - high) + (rest[of.count * call.ld] - low);
    else if (of.end == CUDA__ISM_DD_ERROR && line >= of.half)
        *to = (high - *tz) + low;
    else
        *to = high;
    if (of.end <= CUDA__ISM_DD_REST)
        to[of.to.low] = low;
}

/* Sums over rows: groups of a block's threads take rows of some columns. */
template <typename T, int Lines>
static __global__ void __launch_bounds__(CUDA__ISM_TERMS_THREADS)
    cuda__ism_dd_kernel(const cuda__ism_call call, const cuda__ism_dd_product of)
{
    cuda__follow_previous();
    constexpr int threads = CUDA__ISM_TERMS_THREADS, held = CUDA__ISM_DD_HELD;
    __shared__ cuda__ism_sum<T> shared[Lines][threads];
    const int at = (int)threadIdx.x, across = cuda__ism_across(of.from.lines, of.from.columns);
    const int group = at / across, groups = threads / across;
    const int64_t n = of.from.lines, first = (int64_t)blockIdx.x * across, j = first + at % across;
    const bool inside = j < of.from.columns;
    const T *from =
        (of.from.array == CUDA__ISM_B ? cuda__ism_given_inverse<T>(call, blockIdx.y)
                                      : cuda__ism_array_of<T>(call, blockIdx.y, of.from.array)) +
        j;
    const cuda__ism_dd_lines<T, Lines> lines(call, of);
    cuda__ism_sum<T> sums[Lines] = {};
    for (int64_t row = group; row < n; row += held * groups) {
        T values[held]; /* all is read before any is used */
        cuda__ism_sum<T> numbers[held][Lines];
#pragma unroll
        for (int k = 0; k < held; k++) {
            const int64_t i = row + k * groups < n ? row + k * groups : n - 1;
            values[k] = inside ? from[i * of.from.ld] : T(0);
#pragma unroll
            for (int l = 0; l < Lines; l++)
                numbers[k][l] = lines.number(l, i);
        }
#pragma unroll
        for (int k = 0; k < held; k++) {
#pragma unroll
            for (int l = 0; l < Lines && row + k * groups < n; l++)
                sums[l].add((double)values[k], numbers[k][l]);
        }
    }
#pragma unroll
    for (int l = 0; l < Lines; l++)
        shared[l][at] = sums[l];
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int l = 0; l < Lines && group < half; l++)
            shared[l][at].join(shared[l][at + half * across]);
    }
    __syncthreads();
    if (group < Lines && inside)
        cuda__ism_dd_store<T>(call, of, (int64_t)blockIdx.z * Lines + group, j,
                              shared[group][at % across]);
}

/* By the transpose: a warp some rows, which it sums over. */
template <typename T, int Lines>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_dd_rows_kernel(const cuda__ism_call call, const cuda__ism_dd_product of)
{
    cuda__follow_previous();
    constexpr int held = CUDA__ISM_DD_HELD;
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int64_t first = ((int64_t)blockIdx.x * CUDA__ISM_WARPS + warp) * held;
    const T *from = cuda__ism_array_of<T>(call, blockIdx.y, of.from.array);
    const cuda__ism_dd_lines<T, Lines> lines(call, of);
    const T *rows[held];
    cuda__ism_sum<T> sums[held * Lines] = {};
#pragma unroll
    for (int r = 0; r < held; r++)
        rows[r] = from + (first + r < of.from.lines ? first + r : of.from.lines - 1) * of.from.ld;
    for (int64_t c = lane; c < of.from.columns; c += CUDA__WARP) {
        cuda__ism_sum<T> by[Lines];
#pragma unroll
        for (int l = 0; l < Lines; l++)
            by[l] = lines.number(l, c);
#pragma unroll
        for (int k = 0; k < held * Lines; k++)
            sums[k].add((double)rows[k / Lines][c], by[k % Lines]);
    }
    cuda__ism_sum<T> own = {};
#pragma unroll
    for (int k = 0; k < held * Lines; k++) {
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
            sums[k].join(sums[k].from_lane(reach));
        if (lane == k)
            own = sums[k];
    }
    const int64_t i = first + lane / Lines;
    if (lane < held * Lines && i < of.from.lines)
        cuda__ism_dd_store<T>(call, of, (int64_t)blockIdx.z * Lines + lane % Lines, i, own);
}

#endif
