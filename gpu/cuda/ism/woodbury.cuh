/* gpu/cuda/ism/woodbury.cuh: A0 diagonal, and all columns as one block in double-double, for
 * matrices whose answer was unverified: the digits of a tiny A0 are lost once A is formed. The
 * formulas, and what the sums lose, are those of gpu/host/ism/woodbury.c. Host code but for the
 * kernels; any thread; nothing is awaited. Device code: a slot a blockIdx.y.
 *
 * Every matrix of a chunk takes this and then lu, whose answer counts where this one does not:
 * nothing is awaited to find out which.
 *
 * Cost: 2 n^2 m + 8 n m^2 operations in double-double, each 14 (FP32: 1), of which a block of
 * threads takes those for the factors of the capacitance matrix.
 */
#ifndef GPU_CUDA_ISM_WOODBURY_CUH
#define GPU_CUDA_ISM_WOODBURY_CUH

#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/ism/algorithm.cuh"

#define CUDA__ISM_DD_THREADS 512 /* of a block that has a matrix to itself */
#define CUDA__ISM_DD_WARPS (CUDA__ISM_DD_THREADS / CUDA__WARP)
#define CUDA__ISM_DD_TILE CUDA__WARP /* rows and columns of Z that a block makes */
#define CUDA__ISM_DD_MADE (CUDA__ISM_DD_TILE / CUDA__ISM_WARPS)
/* Of the inverse's norm, which what double-double may have lost must not exceed. */
#define CUDA__ISM_DD_LOST 1024.0

/* ---- Numbers and what they lack ---- */

/* An array of them: lines of numbers, and `low` behind each what it lacks. */
template <typename T> struct cuda__ism_dd_array {
    T *at;
    int64_t ld, low;

    __device__ __forceinline__ cuda__ism_sum<T> get(int64_t line, int64_t j) const
    {
        return cuda__ism_sum_of(at[line * ld + j], at[line * ld + j + low]);
    }
    __device__ __forceinline__ void set(int64_t line, int64_t j,
                                        const cuda__ism_sum<T> &value) const
    {
        at[line * ld + j] = value.high();
        at[line * ld + j + low] = value.low();
    }
    __device__ __forceinline__ double size(int64_t line, int64_t j) const
    {
        return fabs((double)at[line * ld + j]);
    }
};

/* Of the slot; with lines of n numbers, or of m. */
template <typename T>
static __device__ __forceinline__ cuda__ism_dd_array<T>
cuda__ism_dd_array_of(const cuda__ism_call &call, int array)
{
    const int64_t ld = array == CUDA__ISM_DD_C || array == CUDA__ISM_DD_R ? call.ldm : call.ld;
    return {cuda__ism_array_of<T>(call, blockIdx.y, array), ld, call.m * ld};
}

/* to += one times other, or less that. */
static __device__ __forceinline__ void cuda__ism_add_product(cuda__ism_sum<double> &to,
                                                             const cuda__ism_sum<double> &one,
                                                             const cuda__ism_sum<double> &other)
{
    to.add(one.sum.sum, other);
    to.sum.errors = fma(one.sum.errors, other.sum.sum, to.sum.errors);
}

static __device__ __forceinline__ void cuda__ism_take_product(cuda__ism_sum<double> &to,
                                                              const cuda__ism_sum<double> &one,
                                                              const cuda__ism_sum<double> &other)
{
    to.add(-one.sum.sum, other);
    to.sum.errors = fma(-one.sum.errors, other.sum.sum, to.sum.errors);
}

static __device__ __forceinline__ void cuda__ism_add_product(cuda__ism_sum<float> &to,
                                                             const cuda__ism_sum<float> &one,
                                                             const cuda__ism_sum<float> &other)
{
    to.add(one.sum, other);
}

static __device__ __forceinline__ void cuda__ism_take_product(cuda__ism_sum<float> &to,
                                                              const cuda__ism_sum<float> &one,
                                                              const cuda__ism_sum<float> &other)
{
    to.add(-one.sum, other);
}

static __device__ __forceinline__ cuda__ism_sum<double> cuda__ism_quotient(double number, double by)
{
    const double quotient = number / by;
    return {{quotient, fma(-quotient, by, number) / by}};
}

static __device__ __forceinline__ cuda__ism_sum<float> cuda__ism_quotient(float number, float by)
{
    return {(double)number / (double)by};
}

static __device__ __forceinline__ cuda__ism_sum<double>
cuda__ism_reciprocal(const cuda__ism_sum<double> &of)
{
    const double first = 1 / of.sum.sum;
    cuda__ism_sum<double> rest = {{1, 0}};
    rest.add(-first, of);
    return {{first, rest.high() * first}};
}

static __device__ __forceinline__ cuda__ism_sum<float>
cuda__ism_reciprocal(const cuda__ism_sum<float> &of)
{
    return {1 / of.sum};
}

/* ---- G, K and C ---- */

/* X divided by A0, to G^T, and in blockIdx.z 1 Y to K. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_divide_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const bool of_y = blockIdx.z > 0;
    const T *x = cuda__ism_array_of<T>(call, slot, of_y ? (int)CUDA__ISM_Y : (int)CUDA__ISM_X);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    const cuda__ism_dd_array<T> to =
        cuda__ism_dd_array_of<T>(call, of_y ? (int)CUDA__ISM_DD_K : (int)CUDA__ISM_DD_G);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < call.n * call.m;
         e += step) {
        const int64_t i = e % call.n, c = e / call.n;
        to.set(c, i, cuda__ism_quotient(x[i * call.ldm + c], d[i]));
    }
}

/* Has the slot's C numbers that are too large, or A0 some that are too small, or all too large, for
 * a reciprocal and what that lacks? By the block. */
template <typename T>
static __device__ __forceinline__ bool cuda__ism_leaves_range(const cuda__ism_call &call)
{
    constexpr int room = sizeof(T) == sizeof(float) ? 128 - 2 * 24 : 1024 - 2 * 53;
    __shared__ double scratch[CUDA__ISM_DD_WARPS];
    const double far = ldexp(1.0, room);
    const cuda__ism_dd_array<T> c = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_C);
    const T *d = cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_D);
    double inverse = 0, largest = 0;
    for (int64_t i = threadIdx.x; i < call.n; i += CUDA__ISM_DD_THREADS)
        inverse = cuda__max_or_nan(inverse, 1 / fabs((double)d[i]));
    for (int64_t e = threadIdx.x; e < call.m * call.m; e += CUDA__ISM_DD_THREADS)
        largest = cuda__max_or_nan(largest, c.size(e / call.m, e % call.m));
    inverse = cuda__block_max<CUDA__ISM_DD_WARPS>(inverse, scratch);
    largest = cuda__block_max<CUDA__ISM_DD_WARPS>(largest, scratch);
    return !(inverse <= far && inverse >= 1 / far && largest <= far);
}

/* Row `step` of C^T changes places with the one that has the largest number of its column, whose
 * number is returned. By the block. */
template <typename T>
static __device__ __forceinline__ int64_t cuda__ism_exchange(const cuda__ism_dd_array<T> &c,
                                                             int64_t m, int64_t step,
                                                             cuda__ism_best *scratch)
{
    cuda__ism_best best = {-1, m};
    for (int64_t i = step + threadIdx.x; i < m; i += CUDA__ISM_DD_THREADS)
        best.see(c.size(i, step), i);
    const int64_t other = cuda__ism_agree<CUDA__ISM_DD_WARPS>(best, scratch);
    for (int64_t j = threadIdx.x; other != step && j < m; j += CUDA__ISM_DD_THREADS) {
        const cuda__ism_sum<T> one = c.get(step, j), two = c.get(other, j);
        c.set(step, j, two);
        c.set(other, j, one);
    }
    __syncthreads();
    return other;
}

/* C^T, whose I is added here, becomes its factors L, without its ones, and U, by partial pivoting;
 * DD_BY the reciprocals of the pivots; the answer's dd_det. A block a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_DD_THREADS)
    cuda__ism_factor_dd_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ cuda__ism_best scratch[CUDA__ISM_DD_WARPS];
    const int64_t m = call.m;
    const int at = (int)threadIdx.x;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, blockIdx.y);
    const cuda__ism_dd_array<T> c = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_C);
    const cuda__ism_dd_array<T> by = {cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_DD_BY),
                                      call.ldm, call.ldm};
    int32_t *pivots = (int32_t *)cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_DD_PIVOTS);
    double det = 1;
    int64_t exponent = 0;
    for (int64_t k = at; k < m; k += CUDA__ISM_DD_THREADS) {
        cuda__ism_sum<T> own = cuda__ism_sum_of(T(1), T(0));
        own.join(c.get(k, k));
        c.set(k, k, own);
    }
    __syncthreads();
    bool lost = cuda__ism_leaves_range<T>(call);
    for (int64_t s = 0; s < m && !lost; s++) {
        const int64_t other = cuda__ism_exchange<T>(c, m, s, scratch);
        const cuda__ism_sum<T> pivot = c.get(s, s), inverse = cuda__ism_reciprocal(pivot);
        const double own = (double)pivot.high();
        lost = !(fabs(own) > 0 && fabs(own) <= (double)cuda__real<T>::largest);
        cuda__ism_times(&det, &exponent, other == s ? own : -own);
        if (at == 0) {
            pivots[s] = (int32_t)other;
            by.set(0, s, inverse);
        }
        for (int64_t i = s + 1 + at; i < m; i += CUDA__ISM_DD_THREADS) {
            cuda__ism_sum<T> factor = cuda__ism_sum_of(T(0), T(0));
            cuda__ism_add_product(factor, c.get(i, s), inverse);
            c.set(i, s, factor);
        }
        __syncthreads();
        const int64_t rest = m - s - 1;
        for (int64_t e = at; e < rest * rest; e += CUDA__ISM_DD_THREADS) {
            const int64_t i = s + 1 + e / rest, j = s + 1 + e % rest;
            cuda__ism_sum<T> number = c.get(i, j);
            cuda__ism_take_product(number, c.get(i, s), c.get(s, j));
            c.set(i, j, number);
        }
        __syncthreads();
    }
    if (at == 0) {
        answer->dd_lost = lost;
        answer->dd_det = det;
        answer->dd_det_exponent = exponent;
    }
}

/* ---- Substitution ---- */

/* Column j of lines: L^-1 times it, or U^-1; transposed: U^-T, or L^-T. */
template <typename T>
static __device__ __forceinline__ void cuda__ism_substitute(const cuda__ism_call &call,
                                                            const cuda__ism_dd_array<T> &lines,
                                                            int64_t j, bool upper, bool transposed)
{
    const cuda__ism_dd_array<T> c = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_C);
    const cuda__ism_dd_array<T> by = {cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_DD_BY),
                                      call.ldm, call.ldm};
    for (int64_t turn = 0; turn < call.m; turn++) {
        const int64_t i = upper ? call.m - 1 - turn : turn, first = upper ? i + 1 : 0;
        cuda__ism_sum<T> sum = lines.get(i, j);
        for (int64_t k = first; k < first + turn; k++)
            cuda__ism_take_product(sum, transposed ? c.get(k, i) : c.get(i, k), lines.get(k, j));
        if (upper != transposed) {
            const cuda__ism_sum<T> number = cuda__ism_sum_of(sum.high(), sum.low());
            sum = cuda__ism_sum_of(T(0), T(0));
            cuda__ism_add_product(sum, number, by.get(0, i));
        }
        lines.set(i, j, sum);
    }
}

template <typename T>
static __device__ __forceinline__ void cuda__ism_interchange(const cuda__ism_dd_array<T> &lines,
                                                             int64_t j, int64_t one, int64_t other)
{
    const cuda__ism_sum<T> old = lines.get(one, j);
    lines.set(one, j, lines.get(other, j));
    lines.set(other, j, old);
}

/* to = C^-T from, or with `inverse` C^-1 from; from -1: the identity. A thread a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_solve_dd_kernel(const cuda__ism_call call, int from, int to, int64_t columns,
                              bool inverse)
{
    cuda__follow_previous();
    const int64_t j = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x, m = call.m;
    const int32_t *pivots =
        (const int32_t *)cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_DD_PIVOTS);
    const cuda__ism_dd_array<T> lines = cuda__ism_dd_array_of<T>(call, to);
    if (j >= columns || cuda__ism_answer_of<T>(call, blockIdx.y)->dd_lost)
        return;
    for (int64_t c = 0; c < m; c++)
        lines.set(c, j,
                  from < 0 ? cuda__ism_sum_of(T(c == j), T(0))
                           : cuda__ism_dd_array_of<T>(call, from).get(c, j));
    for (int64_t s = 0; !inverse && s < m; s++)
        cuda__ism_interchange(lines, j, s, pivots[s]);
    cuda__ism_substitute(call, lines, j, false, inverse);
    cuda__ism_substitute(call, lines, j, true, inverse);
    for (int64_t s = m - 1; inverse && s >= 0; s--)
        cuda__ism_interchange(lines, j, s, pivots[s]);
}

/* ---- What is lost ---- */

/* The sum of f(i) over i < n, to all lanes of the warp. */
template <typename F> static __device__ __forceinline__ double cuda__ism_warp_sum_of(int64_t n, F f)
{
    double sum = 0;
    for (int64_t i = threadIdx.x % CUDA__WARP; i < n; i += CUDA__WARP)
        sum += f(i);
    return cuda__warp_sum(sum);
}

/* The answer's `amplified`: the norm of |P| (|Y^T| |G| + I) |Q| + |P| |K| + |A0^-1|. WEIGHTS are
 * used up. A block a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_DD_THREADS)
    cuda__ism_amplified_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ double left[CUDA__ISM_DD_MAX], all[CUDA__ISM_DD_MAX], scratch[CUDA__ISM_DD_WARPS];
    const int64_t slot = blockIdx.y, n = call.n, m = call.m;
    const int warp = (int)threadIdx.x / CUDA__WARP;
    const cuda__ism_dd_array<T> g = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_G);
    const cuda__ism_dd_array<T> k = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_K);
    const cuda__ism_dd_array<T> p = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_P);
    const cuda__ism_dd_array<T> q = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_Q);
    const T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    double *rows = cuda__ism_weights<T>(call, slot), largest = 0;
    for (int64_t c = warp; c < m; c += CUDA__ISM_DD_WARPS)
        left[c] = cuda__ism_warp_sum_of(n, [&](int64_t i) { return p.size(c, i); });
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += CUDA__ISM_DD_THREADS) {
        double sum = 0;
        for (int64_t c = 0; c < m; c++)
            sum += left[c] * fabs((double)y[i * call.ldm + c]);
        rows[i] = sum;
    }
    __syncthreads();
    for (int64_t c = warp; c < m; c += CUDA__ISM_DD_WARPS)
        all[c] =
            left[c] + cuda__ism_warp_sum_of(n, [&](int64_t i) { return rows[i] * g.size(c, i); });
    __syncthreads();
    for (int64_t j = threadIdx.x; j < n; j += CUDA__ISM_DD_THREADS) {
        double sum = 1 / fabs((double)d[j]);
        for (int64_t c = 0; c < m; c++)
            sum += all[c] * q.size(c, j) + left[c] * k.size(c, j);
        largest = cuda__max_or_nan(largest, sum);
    }
    largest = cuda__block_max<CUDA__ISM_DD_WARPS>(largest, scratch);
    if (threadIdx.x == 0)
        cuda__ism_answer_of<T>(call, slot)->amplified = largest;
}

/* ---- The inverse ---- */

/* Z = A0^-1 - P K, rounded once. A block a tile, a thread some rows of a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_assemble_dd_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    constexpr int tile = CUDA__ISM_DD_TILE, made = CUDA__ISM_DD_MADE;
    __shared__ cuda__ism_sum<T> rows[tile][tile], columns[tile][tile];
    const int64_t slot = blockIdx.y, n = call.n, across = (n + tile - 1) / tile;
    const int64_t row = blockIdx.x / across * tile, column = blockIdx.x % across * tile;
    const int lane = (int)threadIdx.x % tile, first = (int)threadIdx.x / tile * made;
    const cuda__ism_dd_array<T> p = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_P);
    const cuda__ism_dd_array<T> k = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_K);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    T *z = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z);
    const int64_t j = column + lane;
    cuda__ism_sum<T> sums[made];
#pragma unroll
    for (int r = 0; r < made; r++)
        sums[r] = row + first + r == j && j < n ? cuda__ism_quotient(T(1), d[j])
                                                : cuda__ism_sum_of(T(0), T(0));
    for (int64_t begin = 0; begin < call.m; begin += tile) {
        const int count = (int)(call.m - begin < tile ? call.m - begin : tile);
        for (int c = first; c < first + made && c < count; c++) {
            const int64_t i = row + lane < n ? row + lane : n - 1;
            rows[c][lane] = p.get(begin + c, i);
            columns[c][lane] = k.get(begin + c, j < n ? j : n - 1);
        }
        __syncthreads();
        for (int c = 0; c < count; c++) {
#pragma unroll
            for (int r = 0; r < made; r++)
                cuda__ism_take_product(sums[r], rows[c][first + r], columns[c][lane]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < made; r++) {
        const int64_t i = row + first + r;
        if (i < n && j < n)
            z[i * call.ld + j] = sums[r].high();
    }
}

/* ---- The report ---- */

/* Is the inverse in Z a good one, and do A0, X and Y determine it, or is RCOND no less than eps?
 * Then it is reported, and lu's will not be. Where terms of A cancel, lu's is: |A| was measured in
 * one precision. A block a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_judge_dd_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y;
    int64_t within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const cuda__ism_check check = cuda__ism_weigh<T, CUDA__ISM_THREADS>(call, scratch, false);
    const double eps = cuda__real<T>::eps, largest = (double)cuda__real<T>::largest;
    const double rcond = 1 / check.norm_a / check.norm_x, size = check.norm_a * check.norm_x;
    const double condition = answer->amplified / check.norm_x;
    const double terms_max = CUDA__ISM_FEW_RATIO * CUDA__ISM_TERMS_SCALE * check.norm_a;
    const bool sized = check.norm_x <= largest && check.norm_a <= largest && check.norm_a > 0 &&
                       cuda__ism_terms(answer) <= terms_max;
    const bool good = sized && !check.bad && !answer->dd_lost &&
                      check.error <= cuda__ism_allowed<T>(call.n, size) &&
                      !cuda__ism_dd_loses<T>(call, answer, check.norm_a) &&
                      condition * cuda__ism_dd_error<T>(call.n) <= CUDA__ISM_DD_LOST * eps &&
                      (condition * eps < 1 || rcond >= eps);
    if (threadIdx.x > 0)
        return;
    answer->restored = good;
    if (good)
        cuda__ism_store<T>(call, item, within, 0, (T)rcond, METHOD_ALGORITHM_BLOCK,
                           (T)cuda__ism_value(answer->dd_det, answer->dd_det_exponent));
}

/* U, V and R of one block, where its inverse goes out: X, Y and the transpose of DD_R. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_factors_dd_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS, m = call.m;
    const cuda__ism_dd_array<T> r = cuda__ism_dd_array_of<T>(call, CUDA__ISM_DD_R);
    const T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X);
    const T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y);
    T *to_u = cuda__ism_output<T>(call, slot, METHOD_ISM_U, call.n * m);
    T *to_v = cuda__ism_output<T>(call, slot, METHOD_ISM_V, call.n * m);
    T *to_r = cuda__ism_output<T>(call, slot, METHOD_ISM_R, m * m);
    if (!cuda__ism_answer_of<T>(call, slot)->restored)
        return;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < call.n * m;
         e += step) {
        const int64_t at = e / m * call.ldm + e % m;
        if (to_u)
            to_u[e] = x[at];
        if (to_v)
            to_v[e] = y[at];
    }
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; to_r && e < m * m;
         e += step)
        to_r[e] = r.get(e % m, e / m).high();
}

/* ---- The launches ---- */

/* Behind `bring`. What is restored is in Z. */
template <typename T> static void cuda__ism_restore(cuda__ism_sequence<T> &sequence)
{
    const cuda__ism_call &call = sequence.call;
    const int64_t n = call.n, m = call.m, tiles = sequence.pieces(n, CUDA__ISM_DD_TILE);
    sequence.over_both(n * m, cuda__ism_divide_kernel<T>, call);
    sequence.multiply_dd({sequence.dd_lines(CUDA__ISM_DD_G, m), sequence.thin(CUDA__ISM_Y),
                          sequence.place(CUDA__ISM_DD_C, 0, m), m, m, CUDA__ISM_DD_BOTH},
                         false);
    sequence.start(cuda__ism_factor_dd_kernel<T>, 1, CUDA__ISM_DD_THREADS, 0, call);
    sequence.start(cuda__ism_solve_dd_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                   CUDA__ISM_THREADS, 0, call, (int)CUDA__ISM_DD_G, (int)CUDA__ISM_DD_P, n, false);
    sequence.start(cuda__ism_solve_dd_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                   CUDA__ISM_THREADS, 0, call, (int)CUDA__ISM_DD_K, (int)CUDA__ISM_DD_Q, n, true);
    sequence.start(cuda__ism_amplified_kernel<T>, 1, CUDA__ISM_DD_THREADS, 0, call);
    sequence.start(cuda__ism_assemble_dd_kernel<T>, tiles * tiles, CUDA__ISM_THREADS, 0, call);
    sequence.look_at_inverse(-1);
    sequence.measure_a();
    sequence.check_known();
    sequence.start(cuda__ism_judge_dd_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
    if (!sequence.wants_factors())
        return;
    if (sequence.wants(METHOD_ISM_R))
        sequence.start(cuda__ism_solve_dd_kernel<T>, sequence.pieces(m, CUDA__ISM_THREADS),
                       CUDA__ISM_THREADS, 0, call, -1, (int)CUDA__ISM_DD_R, m, false);
    sequence.over(n * m, cuda__ism_factors_dd_kernel<T>, call);
}

#endif
