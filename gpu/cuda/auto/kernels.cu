/* gpu/cuda/auto/kernels.cu: the launches of kernels.cuh, in both precisions.
 * Host code, any thread; nothing is awaited.
 */
#include <limits.h>

#include "gpu/cuda/auto/kernels.cuh"
#include "gpu/cuda/base/check.cuh"
#include "gpu/cuda/base/launch.cuh"

/* ---- Definite matrices ---- */

/* The passes of `auto` over matrices that may be positive definite: is one symmetric, with a
 * diagonal that allows it; and what Cholesky (cholesky.h) has made of it.
 *
 * Such a matrix comes into W, ld x ld, times the power of two that brings its diagonal's largest
 * entry near 1, so that A and 2 A are the same there; of halves that differ by rounding, where that
 * is allowed, the mean. A pass over numbers goes by pairs of tiles on either side of the diagonal,
 * 32 x 32 each. When A comes, its lower triangle goes to W; when X goes, it is in the upper one.
 * The other tile of a pair then takes the sums of the pair's lines, which a second pass adds up in
 * an order that n alone decides.
 *
 * Where A is no case for Cholesky, or its answer fails the check, or is near to singular, it is
 * lu's, and so is what INFO says. Cost: A is read once, or twice where it is inverted by lu after
 * all, and X written once.
 */

#define CUDA__AUTO_DEFINITE_RCOND_ULPS 64 /* nearer to singular, what INFO says is left to lu */
#define CUDA__AUTO_PAIR_SUMS 4            /* lines of a tile that take the sums of a pair */

static_assert(CUDA__AUTO_STRIP == CUDA__WARP, "a lane a column");

/* Held matrix blockIdx.y, or another. */
template <typename T> struct cuda__auto_held {
    int64_t n, ld, strips;
    T *w;
    T *product;  /* A times the vector of signs */
    T *own_sums; /* what tiles on the diagonal have of two sums of a line, ld each */
    T *peaks;    /* of each strip of lines, the largest of two sums */
    T factor;
    cuda__auto_claim *claim;
    int32_t *failed;

    __device__ cuda__auto_held(const cuda__auto_call &call, int64_t k)
        : n(call.n), ld(call.ld), strips(ld / CUDA__AUTO_STRIP),
          w(cuda__auto_matrix<T>(call, call.space.w, k)), product((T *)call.space.product + k * ld),
          own_sums((T *)call.space.own + 2 * k * ld), peaks((T *)call.space.peaks + 2 * k * strips),
          factor((T)call.space.claims[k].factor), claim(call.space.claims + k),
          failed(call.space.failed + k)
    {
    }

    /* Line `line` of the upper tile of the pair (row, column), row > column. The first take sums:
     * line `which` of the lines of the lower tile's row, 2 + which of those of its column. */
    __device__ __forceinline__ T *sums(int64_t row, int64_t column, int line) const
    {
        return w + (column * CUDA__AUTO_STRIP + line) * ld + row * CUDA__AUTO_STRIP;
    }
};

template <typename T>
static __device__ __forceinline__ cuda__auto_target<T>
cuda__auto_find_held(const cuda__auto_call &call, int64_t k)
{
    return cuda__auto_find<T>(call, call.space.likely[call.likely_first + k]);
}

/* ---- May it be definite? ---- */

/* The exponent by which that number is brought below 1; far out of range where it has none. */
template <typename T> static __device__ __forceinline__ int cuda__auto_exponent(T x)
{
    int exponent = 0;
    (void)frexp((double)x, &exponent);
    return x > 0 && x <= cuda__real<T>::largest ? exponent : INT_MAX;
}

/* The diagonal is positive, and has a factor; a block a matrix. And none has stood the judgement
 * yet. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_claim_kernel(const cuda__auto_call call)
{
    __shared__ T most[CUDA__AUTO_ROWS];
    int64_t k = blockIdx.x, n = call.n;
    const T *a = cuda__auto_find_held<T>(call, k).a;
    const int end = sizeof(T) == sizeof(float) ? 120 : 1000; /* of exponents that are taken */
    T size = 0;
    bool positive = true;
    for (int64_t i = threadIdx.x; i < n; i += CUDA__AUTO_THREADS) {
        T own = a[i * (n + 1)];
        positive = positive && own > 0;
        size = cuda__max_or_nan(size, own);
    }
    size = cuda__block_max<CUDA__AUTO_ROWS>(size, most);
    bool refuted = __syncthreads_or(!positive);
    if (threadIdx.x > 0)
        return;
    int exponent = cuda__auto_exponent(size);
    refuted = refuted || exponent > end || exponent < -end;
    call.space.claims[k] = {0, refuted ? 1.0 : ldexp(1.0, -exponent), refuted, 0};
    call.space.failed[k] = 0;
    if (k == 0)
        call.space.counts->of[CUDA__AUTO_DEFINITE] = 0;
}

/* ---- Pairs of tiles ---- */

/* 32 columns x 8 rows of threads. */
template <typename T> struct cuda__auto_pair_memory {
    T below[CUDA__AUTO_STRIP][CUDA__AUTO_STRIP + 1], above[CUDA__AUTO_STRIP][CUDA__AUTO_STRIP + 1];
    T columns[2][CUDA__AUTO_ROWS][CUDA__AUTO_STRIP];
};

struct cuda__auto_pair {
    int64_t row, column; /* of the lower tile, in tiles */
    int lane, group;

    __device__ cuda__auto_pair()
        : lane((int)threadIdx.x % CUDA__WARP), group((int)threadIdx.x / CUDA__WARP)
    {
        int64_t index = blockIdx.x;
        row = (int64_t)((sqrt(8.0 * (double)index + 1) - 1) / 2);
        row -= row * (row + 1) / 2 > index;
        row += (row + 1) * (row + 2) / 2 <= index;
        column = index - row * (row + 1) / 2;
    }
    __device__ __forceinline__ int64_t top() const
    {
        return row * CUDA__AUTO_STRIP;
    }
    __device__ __forceinline__ int64_t left() const
    {
        return column * CUDA__AUTO_STRIP;
    }
};

/* Adds up the lines of a pair of tiles: two sums of each. The block's threads call. */
template <typename T> struct cuda__auto_adder {
    cuda__auto_pair_memory<T> &memory;
    const cuda__auto_held<T> &held;
    const cuda__auto_pair &pair;
    T column[2];

    /* One entry of the lower tile, in its row `i`, adds to two sums of its row and of its column.
     * The warp calls. */
    __device__ __forceinline__ void add(int i, const T *to_row, const T *to_column)
    {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            column[s] += to_column[s];
            T sum = cuda__warp_sum(to_row[s]);
            if (pair.lane > 0)
                continue;
            if (pair.row == pair.column)
                held.own_sums[s * held.ld + pair.top() + i] = sum;
            else
                held.sums(pair.row, pair.column, s)[i] = sum;
        }
    }

    __device__ __forceinline__ void end()
    {
        if (pair.row == pair.column)
            return; /* columns are rows */
        for (int s = 0; s < 2; s++)
            memory.columns[s][pair.group][pair.lane] = column[s];
        __syncthreads();
        if (pair.group > 1)
            return;
        T sum = 0;
        for (int g = 0; g < CUDA__AUTO_ROWS; g++)
            sum += memory.columns[pair.group][g][pair.lane];
        held.sums(pair.row, pair.column, 2 + pair.group)[pair.lane] = sum;
    }
};

/* ---- In ---- */

/* Entry (i, j) of the pair's lower tile, i and j within the tiles, as it goes to W. */
template <typename T>
static __device__ __forceinline__ T cuda__auto_mean(const cuda__auto_held<T> &held, T lower,
                                                    T upper)
{
    lower *= held.factor;
    upper *= held.factor;
    return lower == upper ? lower : lower / 2 + upper / 2;
}

/* The upper tile of a pair becomes zero, but for the lines that take sums: Cholesky's tiles read
 * across the diagonal, though what stands there does not matter. */
template <typename T>
static __device__ __forceinline__ void cuda__auto_clear_above(const cuda__auto_held<T> &held,
                                                              const cuda__auto_pair &pair)
{
    if (pair.row == pair.column)
        return;
    for (int i = pair.group; i < CUDA__AUTO_STRIP; i += CUDA__AUTO_ROWS) {
        if (i >= CUDA__AUTO_PAIR_SUMS)
            held.sums(pair.row, pair.column, i)[pair.lane] = 0;
    }
}

/* A comes to W, and has failed where a pair of entries does not pass. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_hold_kernel(const cuda__auto_call call)
{
    __shared__ cuda__auto_pair_memory<T> memory;
    cuda__auto_held<T> held(call, blockIdx.y);
    if (held.claim->refuted)
        return;
    const T *a = cuda__auto_find_held<T>(call, blockIdx.y).a;
    cuda__auto_pair pair;
    int64_t n = call.n, j = pair.left() + pair.lane, mirrored = pair.top() + pair.lane;
    bool passes = true, differs = false;
    for (int i = pair.group; i < CUDA__AUTO_STRIP; i += CUDA__AUTO_ROWS) {
        int64_t lower = pair.top() + i, upper = pair.left() + i;
        memory.below[i][pair.lane] = lower < n && j < n ? a[lower * n + j] : T(lower == j);
        memory.above[i][pair.lane] =
            upper < n && mirrored < n ? a[upper * n + mirrored] : T(upper == mirrored);
    }
    __syncthreads();
    cuda__auto_adder<T> adder = {memory, held, pair, {0, 0}};
    T own_j = j < n ? a[j * (n + 1)] : T(1);
    for (int r = pair.group; r < CUDA__AUTO_STRIP; r += CUDA__AUTO_ROWS) {
        int64_t i = pair.top() + r;
        bool inside = i < n && j < n;
        T lower = memory.below[r][pair.lane], upper = memory.above[pair.lane][r];
        T own_i = inside ? a[i * (n + 1)] : T(1);
        T x = inside ? cuda__auto_mean(held, lower, upper) : lower;
        if (inside && i != j)
            passes = passes && cuda__auto_pair_passes(call.averages, lower, upper, own_i, own_j);
        differs = differs || lower != upper;
        held.w[i * held.ld + j] = x;
        T counted = inside ? x : T(0);
        T to_row[2] = {cuda__negative((int)j) ? -counted : counted, fabs(counted)};
        T to_column[2] = {cuda__negative((int)i) ? -counted : counted, fabs(counted)};
        adder.add(r, to_row, to_column);
    }
    adder.end();
    cuda__auto_clear_above(held, pair);
    if (!passes)
        *held.failed = 1;
    if (differs)
        held.claim->differs = 1;
}

/* ---- Sums of whole lines ---- */

/* Of a strip of lines, 32 each: sum `which` of all tiles, in the first group's threads. */
template <typename T>
static __device__ __forceinline__ T cuda__auto_whole_sum(const cuda__auto_held<T> &held, int which,
                                                         T (*scratch)[CUDA__AUTO_STRIP])
{
    int lane = (int)threadIdx.x % CUDA__WARP, group = (int)threadIdx.x / CUDA__WARP;
    int64_t strip = blockIdx.x;
    T sum = 0;
    for (int64_t other = group; other < held.strips; other += CUDA__AUTO_ROWS) {
        if (other == strip)
            sum += held.own_sums[which * held.ld + strip * CUDA__AUTO_STRIP + lane];
        else if (other < strip)
            sum += held.sums(strip, other, which)[lane];
        else
            sum += held.sums(other, strip, 2 + which)[lane];
    }
    scratch[group][lane] = sum;
    __syncthreads();
    for (int g = 1; g < CUDA__AUTO_ROWS && group == 0; g++)
        sum += scratch[g][lane];
    __syncthreads();
    return sum;
}

/* Of a strip of A's lines: their products with the signs, and the largest sum of magnitudes. Of
 * X's (Last): how far they are from passing the check at most, and the same. */
template <typename T, bool Last>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_add_kernel(const cuda__auto_call call)
{
    __shared__ T scratch[CUDA__AUTO_ROWS][CUDA__AUTO_STRIP], most[CUDA__AUTO_ROWS];
    cuda__auto_held<T> held(call, blockIdx.y);
    if (held.claim->refuted)
        return;
    int64_t i = (int64_t)blockIdx.x * CUDA__AUTO_STRIP + threadIdx.x;
    bool own = threadIdx.x < CUDA__AUTO_STRIP && i < held.n;
    T product = cuda__auto_whole_sum(held, 0, scratch);
    T size = cuda__auto_whole_sum(held, 1, scratch), error = 0;
    if (own && Last)
        error = fabs(product - (cuda__negative((int)i) ? T(-1) : T(1)));
    else if (own)
        held.product[i] = product;
    size = cuda__block_max<CUDA__AUTO_ROWS>(own ? size : T(0), most);
    error = cuda__block_max<CUDA__AUTO_ROWS>(error, most);
    if (threadIdx.x > 0)
        return;
    held.peaks[2 * blockIdx.x] = size;
    held.peaks[2 * blockIdx.x + 1] = error;
}

/* The largest of all strips; of what has been refuted before there is none. The block's threads
 * call. */
template <typename T>
static __device__ __forceinline__ T cuda__auto_peak(const cuda__auto_held<T> &held, int which,
                                                    T *scratch)
{
    T most = 0;
    if (held.claim->refuted)
        return 0;
    for (int64_t s = threadIdx.x; s < held.strips; s += CUDA__AUTO_THREADS)
        most = cuda__max_or_nan(most, held.peaks[2 * s + which]);
    return cuda__block_max<CUDA__AUTO_ROWS>(most, scratch);
}

/* A held matrix goes to lu. A warp calls. */
template <typename T>
static __device__ __forceinline__ void cuda__auto_give_up(const cuda__auto_call &call, bool wants,
                                                          int64_t k)
{
    int64_t index = call.space.likely[call.likely_first + k];
    cuda__auto_pass_to_lu(call, wants, index, cuda__auto_find<T>(call, index));
}

/* Which of the held matrices Cholesky takes; a block each. A symmetric one of small order is
 * better off with lu. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_admit_kernel(const cuda__auto_call call)
{
    __shared__ T most[CUDA__AUTO_ROWS];
    int64_t k = blockIdx.x;
    cuda__auto_held<T> held(call, k);
    T norm = cuda__auto_peak(held, 0, most);
    cuda__auto_claim &claim = *held.claim;
    bool refuted = claim.refuted || *held.failed || !(norm <= cuda__real<T>::largest) ||
                   (!call.definite && !claim.differs);
    if (threadIdx.x < CUDA__WARP)
        cuda__auto_give_up<T>(call, threadIdx.x == 0 && refuted, k);
    __syncthreads();
    if (threadIdx.x == 0) {
        claim.norm = (double)norm;
        claim.refuted = refuted;
        *held.failed = 0;
        if (!refuted)
            atomicAdd(&call.space.counts->of[CUDA__AUTO_DEFINITE], 1);
    }
    cuda__auto_tell(call, 0);
}

/* ---- Out ---- */

/* X is written, and its lines are added up. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_give_kernel(const cuda__auto_call call)
{
    __shared__ cuda__auto_pair_memory<T> memory;
    cuda__auto_held<T> held(call, blockIdx.y);
    if (held.claim->refuted)
        return;
    cuda__auto_pair pair;
    T *to = cuda__auto_find_held<T>(call, blockIdx.y).x;
    int64_t n = call.n, j = pair.left() + pair.lane, mirrored = pair.top() + pair.lane;
    for (int i = pair.group; i < CUDA__AUTO_STRIP; i += CUDA__AUTO_ROWS)
        memory.below[i][pair.lane] = held.w[(pair.top() + i) * held.ld + j];
    __syncthreads();
    cuda__auto_adder<T> adder = {memory, held, pair, {0, 0}};
    bool diagonal = pair.row == pair.column;
    for (int r = pair.group; r < CUDA__AUTO_STRIP; r += CUDA__AUTO_ROWS) {
        int64_t i = pair.top() + r, other = pair.left() + r;
        T x = diagonal && r < pair.lane ? memory.below[pair.lane][r] : memory.below[r][pair.lane];
        T counted = i < n && j < n ? x : T(0);
        T to_row[2] = {j < n ? counted * held.product[j] : T(0), fabs(counted)};
        T to_column[2] = {i < n ? counted * held.product[i] : T(0), fabs(counted)};
        adder.add(r, to_row, to_column);
        if (to && i < n && j < n)
            to[i * n + j] = x * held.factor;
        if (to && !diagonal && other < n && mirrored < n)
            to[other * n + mirrored] = memory.below[pair.lane][r] * held.factor;
    }
    adder.end();
}

/* INFO, RCOND and METHOD of what has passed; a block each. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_conclude_kernel(const cuda__auto_call call)
{
    typedef cuda__real<T> real;
    __shared__ T most[CUDA__AUTO_ROWS];
    int64_t k = blockIdx.x;
    cuda__auto_held<T> held(call, k);
    T size = cuda__auto_peak(held, 0, most), error = cuda__auto_peak(held, 1, most);
    T norm = (T)held.claim->norm, rcond = 1 / norm / size;
    bool taken = !held.claim->refuted; /* else it is on lu's list already */
    bool good = *held.failed == 0 && size <= real::largest && size * held.factor <= real::largest &&
                error <= (T)sqrt((T)held.n) * real::eps * norm * size &&
                rcond >= CUDA__AUTO_DEFINITE_RCOND_ULPS * real::eps;
    if (threadIdx.x < CUDA__WARP)
        cuda__auto_give_up<T>(call, threadIdx.x == 0 && taken && !good, k);
    cuda__auto_target<T> target = cuda__auto_find_held<T>(call, k);
    if (threadIdx.x == 0 && taken && good) {
        *target.info = 0;
        *target.rcond = rcond;
        *target.algorithm = METHOD_ALGORITHM_CHOLESKY;
    }
    cuda__auto_tell(call, 1 << CUDA__AUTO_DENSE);
}

template <typename T> struct cuda__auto_launch {
    typedef struct cuda__auto_call call;

    static unsigned pieces(int64_t count, int64_t size)
    {
        return (unsigned)((count + size - 1) / size);
    }

    /* A thread each of `count`; `matrices` of them. */
    template <typename... Parameters, typename... Arguments>
    static cudaError_t threads(void (*kernel)(const call, Parameters...), const call *of,
                               int64_t count, int64_t matrices, cudaStream_t stream,
                               const Arguments &...arguments)
    {
        if (count == 0 || matrices == 0)
            return cudaSuccess;
        return cuda__start(kernel, dim3(pieces(count, CUDA__AUTO_THREADS), (unsigned)matrices),
                           CUDA__AUTO_THREADS, 0, stream, *of, arguments...);
    }

    /* `count` matrices of so many rows. */
    static cudaError_t rows(void (*kernel)(const call), const call *of, int64_t rows, int64_t count,
                            cudaStream_t stream)
    {
        if (count == 0)
            return cudaSuccess;
        return cuda__start(kernel, dim3(pieces(rows, CUDA__AUTO_ROWS), (unsigned)count),
                           CUDA__AUTO_THREADS, 0, stream, *of);
    }

    /* `blocks` for each of `count` matrices. */
    static cudaError_t blocks(void (*kernel)(const call), const call *of, dim3 blocks,
                              cudaStream_t stream)
    {
        return cuda__start(kernel, blocks, CUDA__AUTO_THREADS, 0, stream, *of);
    }

    static cudaError_t begin(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_begin_kernel<T>, of, count > 0 ? count : 1, 1, stream, count);
    }

    static cudaError_t look(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_look_kernel<T>, of, count, 1, stream);
    }

    static cudaError_t place(const call *of, int64_t count, cudaStream_t stream)
    {
        return rows(cuda__auto_place_kernel<T>, of, of->n, count, stream);
    }

    static cudaError_t sort(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_sort_kernel<T>, of, count, 1, stream);
    }

    static cudaError_t diagonal(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status =
            blocks(cuda__auto_diagonal_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_deliver_kernel<T, CUDA__AUTO_DIAGONAL>, of, of->n, count, stream);
    }

    static cudaError_t load(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = blocks(cuda__auto_plan_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_load_kernel<T>, of, of->ld, count, stream);
    }

    /* status: of what went before. */
    template <cuda__auto_kind Kind>
    static cudaError_t pass_and_deliver(const call *of, int64_t count, cudaStream_t stream,
                                        cudaError_t status)
    {
        if (status == cudaSuccess)
            status = threads(cuda__auto_pass_kernel<T, Kind>, of, count, 1, stream, count);
        if (status == cudaSuccess)
            status = rows(cuda__auto_deliver_kernel<T, Kind>, of, of->n, count, stream);
        return status;
    }

    static cudaError_t unload(const call *of, int64_t count, cudaStream_t stream)
    {
        dim3 strips((unsigned)(of->ld / CUDA__AUTO_STRIP), (unsigned)count);
        cudaError_t status = blocks(cuda__auto_sums_kernel<T>, of, strips, stream);
        if (status == cudaSuccess)
            status = blocks(cuda__auto_judge_kernel<T>, of, dim3((unsigned)count), stream);
        return pass_and_deliver<CUDA__AUTO_TRIANGULAR>(of, count, stream, status);
    }

    static cudaError_t cut(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_cut_kernel<T>, of, of->n, count, stream);
    }

    static cudaError_t take_or_pass(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = threads(cuda__auto_take_kernel<T>, of, count, 1, stream, count);
        return pass_and_deliver<CUDA__AUTO_TRIDIAGONAL>(of, count, stream, status);
    }

    static cudaError_t note(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_note_kernel<T>, of, count, 1, stream, count);
    }

    static cudaError_t mirror(const call *of, int64_t count, cudaStream_t stream)
    {
        dim3 strips((unsigned)count, pieces(of->n, CUDA__AUTO_STRIP));
        cudaError_t status = blocks(cuda__auto_compare_kernel<T>, of, strips, stream);
        if (status == cudaSuccess)
            status = blocks(cuda__auto_mirror_kernel<T>, of, strips, stream);
        if (status == cudaSuccess)
            status = blocks(cuda__auto_measure_kernel<T>, of, strips, stream);
        if (status == cudaSuccess)
            status = blocks(cuda__auto_check_kernel<T>, of, strips, stream);
        return status == cudaSuccess
                   ? threads(cuda__auto_settle_kernel<T>, of, count, 1, stream, count)
                   : status;
    }

    /* One after the other: `count` matrices by pairs of tiles, then by strips, then each whole. */
    static cudaError_t pairs(void (*by_pair)(const call), void (*by_strip)(const call),
                             void (*whole)(const call), const call *of, int64_t count,
                             cudaStream_t stream)
    {
        int64_t strips = of->ld / CUDA__AUTO_STRIP;
        unsigned all = (unsigned)count;
        cudaError_t status =
            blocks(by_pair, of, dim3((unsigned)(strips * (strips + 1) / 2), all), stream);
        if (status == cudaSuccess)
            status = blocks(by_strip, of, dim3((unsigned)strips, all), stream);
        return status == cudaSuccess ? blocks(whole, of, dim3(all), stream) : status;
    }

    static cudaError_t hold(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = blocks(cuda__auto_claim_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return pairs(cuda__auto_hold_kernel<T>, cuda__auto_add_kernel<T, false>,
                     cuda__auto_admit_kernel<T>, of, count, stream);
    }

    static cudaError_t conclude(const call *of, int64_t count, cudaStream_t stream)
    {
        return pairs(cuda__auto_give_kernel<T>, cuda__auto_add_kernel<T, true>,
                     cuda__auto_conclude_kernel<T>, of, count, stream);
    }

    static constexpr cuda__auto_kernels kernels()
    {
        return {begin, look,         place, sort,   diagonal, load,    unload,
                cut,   take_or_pass, note,  mirror, hold,     conclude};
    }
};

extern "C" const struct cuda__auto_kernels cuda__auto_kernels_f32 =
    cuda__auto_launch<float>::kernels();
extern "C" const struct cuda__auto_kernels cuda__auto_kernels_f64 =
    cuda__auto_launch<double>::kernels();
