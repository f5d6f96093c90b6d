/* gpu/cuda/ism/check.cuh: the kernels of the check of an inverse; the products between them are
 * launched by launcher.cuh. Device code; a slot a blockIdx.y.
 *
 * The check is that of gpu/host/ism/check.c, but always made in double-double: where terms of
 * a known A cancel with four probe vectors, or by last.cuh, which has two, not at all. |A| of
 * orders above CUDA__ISM_NORM_ORDER is the norm of one of eight columns of A, which seem the
 * longest by their products with eight random probe vectors, of four more that the signs of the
 * first ones point at, or of four that are the longest by what bounds them (terms.cuh): never more
 * than |A|, and as a rule |A| itself.
 *
 * Cost: one pass over Z, and some lines of n numbers.
 */
#ifndef GPU_CUDA_ISM_CHECK_CUH
#define GPU_CUDA_ISM_CHECK_CUH

#include "gpu/cuda/ism/double_double.cuh"

#define CUDA__ISM_LOOK_WARPS 16
#define CUDA__ISM_LOOK_ROWS 8 /* of a warp together */
/* How many times |A| its terms may be where two probe vectors are to find an error that may be one
 * column times one row: one whose product with that column is small does not see it. */
#define CUDA__ISM_FEW_RATIO 20.0

/* What is looked at: n x n, rows ld apart. */
struct cuda__ism_sight {
    int array;
    int64_t ld;
    int sizes;  /* line of SIZES */
    int output; /* where it is copied to; -1: nowhere */
};

/* The sums of magnitudes of an array's columns, and TZ = T times it. 32 columns a block: every warp
 * takes rows of them, some together, so that enough of them are on their way; T goes through shared
 * memory. */
template <typename T, int Lines>
static __global__ void __launch_bounds__(CUDA__ISM_LOOK_WARPS *CUDA__WARP)
    cuda__ism_look_kernel(const cuda__ism_call call, const cuda__ism_sight sight)
{
    cuda__follow_previous();
    constexpr int warps = CUDA__ISM_LOOK_WARPS, held = CUDA__ISM_LOOK_ROWS, rows = warps * held;
    __shared__ T sums[warps][Lines + 1][CUDA__WARP];
    __shared__ T weights[rows][Lines > 0 ? Lines : 1];
    int64_t slot = blockIdx.y, n = call.n;
    int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
    int64_t j = (int64_t)blockIdx.x * CUDA__WARP + lane;
    const T *from = cuda__ism_array_of<T>(call, slot, sight.array) + j;
    T *to = nullptr, sum[Lines + 1] = {};
    if (sight.output >= 0)
        to = cuda__ism_output<T>(call, slot, sight.output, n * n);
    for (int64_t first = 0; first < n; first += rows) {
        T values[held];
        __syncthreads();
        for (int e = threadIdx.x; e < Lines * rows; e += warps * CUDA__WARP) {
            const int64_t i = first + e % rows;
            weights[e % rows][e / rows] =
                i < n ? ((const T *)call.probes)[e / rows * call.ld + i] : T(0);
        }
#pragma unroll
        for (int k = 0; k < held; k++) {
            const int64_t i = first + k * warps + warp;
            values[k] = i < n && j < n ? from[i * sight.ld] : T(0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < held; k++) {
            const int64_t i = first + k * warps + warp;
#pragma unroll
            for (int l = 0; l < Lines; l++)
                sum[l] = fma(weights[k * warps + warp][l], values[k], sum[l]);
            sum[Lines] += fabs(values[k]);
            if (to && i < n && j < n)
                to[i * n + j] = values[k];
        }
    }
#pragma unroll
    for (int l = 0; l <= Lines; l++)
        sums[warp][l][lane] = sum[l];
    __syncthreads();
    for (int l = warp; l <= Lines && j < n; l += warps) {
        T all = 0;
        for (int w = 0; w < warps; w++)
            all += sums[w][l][lane];
        if (l == Lines)
            cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES)[sight.sizes * call.ld + j] = all;
        else
            cuda__ism_array_of<T>(call, slot, CUDA__ISM_TZ)[l * call.ld + j] = all;
    }
}

/* ---- |A| ---- */

/* The column with the largest score, the first of equals; a score that is not a number is larger
 * than all. To all threads of the block. */
struct cuda__ism_best {
    double score;
    int64_t at;

    __device__ __forceinline__ void see(double other, int64_t place)
    {
        bool better = other > score || (other == score && place < at);
        at = better ? place : at;
        score = better ? other : score;
    }
};

template <int Warps>
static __device__ __forceinline__ int64_t cuda__ism_agree(cuda__ism_best best,
                                                          cuda__ism_best *scratch)
{
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        double other = __shfl_xor_sync(CUDA__ALL, best.score, reach);
        best.see(other, (int64_t)__shfl_xor_sync(CUDA__ALL, (long long)best.at, reach));
    }
    if (threadIdx.x % CUDA__WARP == 0)
        scratch[threadIdx.x / CUDA__WARP] = best;
    __syncthreads();
    best = scratch[0];
    for (int w = 1; w < Warps; w++)
        best.see(scratch[w].score, scratch[w].at);
    __syncthreads();
    return best.at;
}

/* A number for each column, where REST is. */
template <typename T>
static __device__ __forceinline__ double *cuda__ism_scores(const cuda__ism_call &call, int64_t slot)
{
    return (double *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_REST);
}

/* How long a column of A seems: by its entry on the diagonal, and by the squares of the rest's
 * products with probe vectors; but no longer than it can be. As the host's. */
template <typename T>
static __device__ __forceinline__ double cuda__ism_score_of(int64_t n, T own, double squares,
                                                            double bound)
{
    const double score = fabs((double)own) + sqrt((double)n / CUDA__ISM_PROBES * squares);
    return score < bound ? score : bound <= (double)cuda__real<double>::largest ? bound : HUGE_VAL;
}

/* The scores of A's columns by its product with probe vectors; ERROR has that of X Y^T, or with A0
 * of all. signs: the probe vectors are SIGNS. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_score_kernel(const cuda__ism_call call, bool signs)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, j = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
    const T *product = cuda__ism_array_of<T>(call, slot, CUDA__ISM_ERROR);
    const T *lines =
        signs ? cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIGNS) : (const T *)call.probes;
    bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    if (j >= call.n)
        return;
    const T own = diagonal ? cuda__ism_array_of<T>(call, slot, CUDA__ISM_D)[j]
                           : cuda__ism_array_of<T>(call, slot, CUDA__ISM_A0)[j * (call.ld + 1)];
    double squares = 0;
    for (int l = 0; l < CUDA__ISM_PROBES; l++) {
        double rest = (double)product[l * call.ld + j];
        rest -= diagonal ? 0 : (double)lines[l * call.ld + j] * (double)own;
        squares += rest * rest;
    }
    cuda__ism_scores<T>(call, slot)[j] =
        cuda__ism_score_of(call.n, own, squares, cuda__ism_weights<T>(call, slot)[j]);
}

/* A score in the order of its bits, which is that of numbers that are not negative; 0: there is
 * none.
 */
struct cuda__ism_key {
    unsigned long long value;
    int at;

    __device__ __forceinline__ void see(unsigned long long other, int place)
    {
        at = other > value ? place : at;
        value = other > value ? other : value;
    }
};

/* The largest of the warp's, the first of equals; to all lanes. */
static __device__ __forceinline__ cuda__ism_key cuda__ism_warp_best(cuda__ism_key key)
{
    const unsigned high = (unsigned)(key.value >> 32), low = (unsigned)key.value;
    const unsigned top = __reduce_max_sync(CUDA__ALL, high);
    const unsigned rest = __reduce_max_sync(CUDA__ALL, high == top ? low : 0u);
    const bool best = high == top && low == rest;
    const unsigned first = __reduce_max_sync(CUDA__ALL, best ? ~(unsigned)key.at : 0u);
    return {(unsigned long long)top << 32 | rest, (int)~first};
}

static __device__ __forceinline__ unsigned long long cuda__ism_key_of(double score)
{
    return (unsigned long long)__double_as_longlong(score) + 1;
}

/* The eight columns with the largest scores; by_bounds: four, and four of those with the largest
 * bounds, since neither alone finds every long column. Their bounds become 0, so that none is
 * chosen twice, and their rows of Y go to CHOSEN. A block a slot. */
template <typename T, int Threads>
static __global__ void __launch_bounds__(Threads)
    cuda__ism_choose_kernel(const cuda__ism_call call, bool by_bounds)
{
    cuda__follow_previous();
    constexpr int order_max = Threads == CUDA__ISM_THREADS ? CUDA__ISM_ALONE_ORDER : CUDA_ISM_N_MAX;
    constexpr int held = order_max / Threads, warps = Threads / CUDA__WARP;
    __shared__ cuda__ism_key found[warps];
    const int64_t slot = blockIdx.y;
    const int n = (int)call.n, m = (int)call.m, lane = (int)threadIdx.x % CUDA__WARP;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const double *from = cuda__ism_scores<T>(call, slot);
    double *bounds = cuda__ism_weights<T>(call, slot);
    const T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y);
    T *chosen = cuda__ism_array_of<T>(call, slot, CUDA__ISM_CHOSEN);
    unsigned long long scores[held];
    cuda__ism_key own; /* the thread's best */
    int taken[CUDA__ISM_PROBES];
    auto look = [&] {
        own = {0, n - 1};
#pragma unroll
        for (int k = 0; k < held; k++)
            own.see(scores[k], (int)threadIdx.x + k * Threads);
    };
#pragma unroll
    for (int k = 0; k < held; k++) {
        int j = (int)threadIdx.x + k * Threads;
        scores[k] = j < n ? cuda__ism_key_of(from[j]) : 0;
    }
    look();
#pragma unroll
    for (int c = 0; c < CUDA__ISM_PROBES; c++) {
        if (by_bounds && c == CUDA__ISM_PROBES / 2) {
#pragma unroll
            for (int k = 0; k < held; k++)
                scores[k] = scores[k] > 0 ? cuda__ism_key_of(bounds[threadIdx.x + k * Threads]) : 0;
            look();
        }
        cuda__ism_key best = cuda__ism_warp_best(own);
        if (lane == 0)
            found[threadIdx.x / CUDA__WARP] = best;
        __syncthreads();
        best = cuda__ism_warp_best(found[lane % warps]);
        taken[c] = best.at;
        if (best.at % Threads == (int)threadIdx.x) { /* it has to look for another one */
#pragma unroll
            for (int k = 0; k < held; k++)
                scores[k] = best.at == (int)threadIdx.x + k * Threads ? 0 : scores[k];
            look();
        }
        __syncthreads();
    }
    for (int k = (int)threadIdx.x; k < m; k += Threads) {
#pragma unroll
        for (int c = 0; c < CUDA__ISM_PROBES; c++)
            chosen[c * call.ldm + k] = y[taken[c] * call.ldm + k];
    }
#pragma unroll
    for (int c = 0; c < CUDA__ISM_PROBES; c++) {
        if (threadIdx.x == 0) {
            answer->chosen[c] = taken[c];
            bounds[taken[c]] = 0;
        }
    }
}

/* The norm of a column of A: line blockIdx.x of COLUMNS has that of X Y^T. all: the line's number
 * is the column's; else it was chosen, and its signs go to SIGNS. A block a column. */
template <typename T, int Threads>
static __global__ void __launch_bounds__(Threads)
    cuda__ism_columns_kernel(const cuda__ism_call call, bool all)
{
    cuda__follow_previous();
    __shared__ T scratch[Threads / CUDA__WARP];
    int64_t slot = blockIdx.y, n = call.n;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    int64_t column = all ? (int64_t)blockIdx.x : answer->chosen[blockIdx.x];
    T *line = cuda__ism_array_of<T>(call, slot, CUDA__ISM_COLUMNS) + blockIdx.x * call.ld, sum = 0;
    T *signs = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIGNS) + blockIdx.x * call.ld;
    T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_REST);
    const T *a0 = cuda__ism_array_of<T>(call, slot, CUDA__ISM_A0);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    for (int64_t i = threadIdx.x; i < n; i += Threads) {
        T value = line[i];
        if (!diagonal)
            value += a0[i * call.ld + column];
        else if (i == column)
            value += d[i];
        if (!all)
            signs[i] = value < 0 ? T(-1) : T(1);
        sum += fabs(value);
    }
    sum = cuda__warp_sum(sum);
    if (threadIdx.x % CUDA__WARP == 0)
        scratch[threadIdx.x / CUDA__WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < Threads / CUDA__WARP; w++)
        sum += scratch[w];
    sizes[blockIdx.x] = sum;
}

/* norm_a: the largest of the `count` norms that cuda__ism_columns_kernel left in REST, and of
 * those before. A block a slot. */
template <typename T>
static __global__ void cuda__ism_largest_kernel(const cuda__ism_call call, int count)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_REST);
    double largest = answer->norm_a;
    for (int c = 0; c < count; c++)
        largest = cuda__max_or_nan(largest, (double)sizes[c]);
    answer->norm_a = largest;
}

/* ---- A0_INVERSE alone ---- */

/* Line 0 of COLUMNS: the column of A0^-1 at which X Y^T A0^-1 seems the largest; T times that is in
 * the first half of ERROR. A block a slot. */
template <typename T, int Threads>
static __global__ void __launch_bounds__(Threads) cuda__ism_change_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ cuda__ism_best scratch[Threads / CUDA__WARP];
    int64_t slot = blockIdx.y, n = call.n;
    const T *product = cuda__ism_array_of<T>(call, slot, CUDA__ISM_ERROR);
    const T *b = cuda__ism_given_inverse<T>(call, slot);
    const int64_t ld = call.plan.in_place ? n : call.ld;
    T *line = cuda__ism_array_of<T>(call, slot, CUDA__ISM_COLUMNS);
    cuda__ism_best best = {-1, n - 1};
    for (int64_t j = threadIdx.x; j < n; j += Threads)
        best.see((double)fabs(product[j]), j);
    int64_t column = cuda__ism_agree<Threads / CUDA__WARP>(best, scratch);
    for (int64_t i = threadIdx.x; i < n; i += Threads)
        line[i] = b[i * ld + column];
}

/* ---- The verdict ---- */

/* A block that measures. */
template <typename T, int Threads> struct cuda__ism_measurer {
    const cuda__ism_call &call;
    int64_t slot;
    T *scratch;

    __device__ __forceinline__ const T *line(int array, int64_t number) const
    {
        return cuda__ism_array_of<T>(call, slot, array) + number * call.ld;
    }

    /* The largest of f(j). */
    template <typename F> __device__ __forceinline__ double largest(F f) const
    {
        T largest = 0;
#pragma unroll 4
        for (int64_t j = threadIdx.x; j < call.n; j += Threads)
            largest = cuda__max_or_nan(largest, f(j));
        return (double)cuda__block_max<Threads / CUDA__WARP>(largest, scratch);
    }

    /* The largest magnitude of f(l, j) over probe vectors l, Probes of them at most; of their sums
     * where they are all of a matrix. */
    template <int Probes, typename F>
    __device__ __forceinline__ double measure_lines(int probes, F f) const
    {
        bool whole = cuda__ism_is_whole(call.n);
        return largest([&](int64_t j) {
            T largest = 0;
#pragma unroll
            for (int l = 0; l < Probes; l++) {
                T size = l < probes ? (T)fabs(f(l, j)) : T(0);
                largest = whole ? largest + size : cuda__max_or_nan(largest, size);
            }
            return largest;
        });
    }

    template <typename F> __device__ __forceinline__ double measure(int probes, F f) const
    {
        return probes <= CUDA__ISM_CHECK_PROBES ? measure_lines<CUDA__ISM_CHECK_PROBES>(probes, f)
                                                : measure_lines<CUDA__ISM_PROBES>(probes, f);
    }

    /* |X Y^T A0^-1|. */
    __device__ __forceinline__ double change(int probes) const
    {
        const T *product = line(CUDA__ISM_ERROR, 0), *column = line(CUDA__ISM_COLUMNS, 1);
        if (call.m == 0)
            return 0;
        if (cuda__ism_is_whole(call.n))
            return measure(probes, [&](int l, int64_t j) { return product[l * call.ld + j]; });
        T sum = 0;
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < call.n; i += Threads)
            sum += fabs(column[i]);
        return (double)add_up(sum);
    }

    __device__ __forceinline__ T add_up(T value) const
    {
        T sum = cuda__warp_sum(value);
        __syncthreads();
        if (threadIdx.x % CUDA__WARP == 0)
            scratch[threadIdx.x / CUDA__WARP] = sum;
        __syncthreads();
        sum = 0;
        for (int w = 0; w < Threads / CUDA__WARP; w++)
            sum += scratch[w];
        __syncthreads();
        return sum;
    }

    /* T (I - Z A), or T (A0^-1 - Z M). solved: from what is in ERROR T Z is to be taken. */
    __device__ __forceinline__ double error(int probes, bool solved) const
    {
        const T *tz = line(CUDA__ISM_TZ, 0);
        const T *error = line(CUDA__ISM_ERROR, cuda__ism_knows(call) ? 0 : probes);
        return measure(probes, [&](int l, int64_t j) {
            return error[l * call.ld + j] - (solved ? tz[l * call.ld + j] : T(0));
        });
    }
};

/* What has been found out about the answer in Z. solved: see recover.cuh. A block a slot. */
template <typename T, int Threads>
static __device__ __forceinline__ cuda__ism_check cuda__ism_weigh(const cuda__ism_call &call,
                                                                  T *scratch, bool solved)
{
    int64_t slot = blockIdx.y;
    int probes = cuda__ism_probes_of(call);
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_measurer<T, Threads> of = {call, slot, scratch};
    const T *size_z = of.line(CUDA__ISM_SIZES, 0), *size_a = of.line(CUDA__ISM_SIZES, 1);
    bool known = cuda__ism_knows(call), given = !known || (call.inputs >> METHOD_ISM_A & 1);
    cuda__ism_check check = {};
    check.error = of.error(probes, solved);
    check.norm_x = of.largest([&](int64_t j) { return size_z[j]; });
    check.norm_a = given ? of.largest([&](int64_t j) { return size_a[j]; }) : answer->norm_a;
    const T *sums = of.line(CUDA__ISM_SIGNS, 0);
    check.change = known    ? 0
                   : solved ? of.largest([&](int64_t j) { return sums[j]; })
                            : of.change(probes);
    check.det_ratio = cuda__ism_value(answer->det, answer->det_exponent);
    check.bad = answer->bad;
    return check;
}

template <typename T, int Threads>
static __global__ void __launch_bounds__(Threads) cuda__ism_judge_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[Threads / CUDA__WARP];
    int64_t slot = blockIdx.y, within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_check check = cuda__ism_weigh<T, Threads>(call, scratch, false);
    const double size = cuda__ism_knows(call) ? check.norm_a : 1 + check.change;
    const double terms_max = CUDA__ISM_FEW_RATIO * CUDA__ISM_TERMS_SCALE * size;
    const bool few =
        cuda__ism_knows(call) && call.plan.last && !(cuda__ism_terms(answer) <= terms_max);
    if (answer->broken || few || cuda__ism_dd_loses<T>(call, answer, size))
        check.error = cuda__real<double>::nan();
    if (threadIdx.x == 0)
        answer->refused = cuda__ism_judge<T>(call, item, within, check, call.plan.algorithm) == -1;
}

#endif
