/* gpu/cuda/auto/kernels.cuh: the passes of `auto` that know its matrices: where they lie, what kind
 * they are, and how they come and go. See call.h; kernels.cu has the launches.
 *
 * A pass over numbers takes CUDA__AUTO_ROWS rows a block, a row a warp; blockIdx.y numbers the
 * matrices. One over matrices takes a thread each.
 */
#ifndef GPU_CUDA_AUTO_KERNELS_CUH
#define GPU_CUDA_AUTO_KERNELS_CUH

#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/base/check.cuh"
#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/base/norm.cuh"

#define CUDA__AUTO_ROWS 8
#define CUDA__AUTO_THREADS (CUDA__AUTO_ROWS * CUDA__WARP)
#define CUDA__AUTO_AVERAGED_ULPS 4 /* halves that differ by so many count as equal */

/* ---- Where things lie ---- */

/* One matrix of the call, and its results. */
template <typename T> struct cuda__auto_target {
    const T *a;
    T *x; /* NULL: unwanted */
    T *rcond;
    int32_t *info, *algorithm;
};

/* index: in the chunk. */
template <typename T>
static __device__ __forceinline__ cuda__auto_target<T> cuda__auto_find(const cuda__auto_call &call,
                                                                       int64_t index)
{
    int64_t of = call.first + index;
    const cuda_tensors &item =
        call.tensors[cuda__item_of(call.tensors, call.item_count, call.matrices, of)];
    int64_t within = of - item.first, before = within * call.n * call.n;
    T *x = (T *)item.outputs[METHOD_OUTPUT_INVERSE];
    return {(const T *)item.inputs[0] + before, x ? x + before : nullptr,
            (T *)item.outputs[METHOD_OUTPUT_RCOND] + within,
            (int32_t *)item.outputs[METHOD_OUTPUT_INFO] + within,
            (int32_t *)item.outputs[METHOD_OUTPUT_ALGORITHM] + within};
}

/* The matrix in a place. */
template <typename T>
static __device__ __forceinline__ cuda__auto_target<T>
cuda__auto_find_placed(const cuda__auto_call &call, int64_t place)
{
    return cuda__auto_find<T>(call, call.space.odd[call.odd_first + place]);
}

/* Matrix `index` of the places' A, B or X. */
template <typename T>
static __device__ __forceinline__ T *cuda__auto_matrix(const cuda__auto_call &call, void *of,
                                                       int64_t index)
{
    return (T *)of + index * call.ld * call.ld;
}

/* The A of the block's entry in a list. */
template <typename T>
static __device__ __forceinline__ const T *cuda__auto_listed(const cuda__auto_call &call,
                                                             cuda__auto_kind kind, int64_t entry)
{
    return cuda__auto_matrix<T>(call, call.space.a, call.space.lists[kind][entry]);
}

/* The thread's number in a pass over matrices. */
static __device__ __forceinline__ int64_t cuda__auto_thread()
{
    return (int64_t)blockIdx.x * CUDA__AUTO_THREADS + threadIdx.x;
}

/* The warp's row. */
static __device__ __forceinline__ int64_t cuda__auto_row(int *lane)
{
    *lane = (int)(threadIdx.x % CUDA__WARP);
    return (int64_t)blockIdx.x * CUDA__AUTO_ROWS + threadIdx.x / CUDA__WARP;
}

/* ---- Lists ---- */

/* A place in a list that is *length long, for every lane that wants one. The whole warp calls. */
static __device__ __forceinline__ uint32_t cuda__auto_append(bool wants, uint32_t *length)
{
    int lane = (int)(threadIdx.x % CUDA__WARP);
    unsigned all = __ballot_sync(CUDA__ALL, wants);
    uint32_t start = 0;
    if (all && lane == __ffs((int)all) - 1)
        start = atomicAdd(length, (uint32_t)__popc(all));
    start = all ? __shfl_sync(CUDA__ALL, start, __ffs((int)all) - 1) : 0;
    return start + (uint32_t)__popc(all & ((1u << lane) - 1));
}

/* The end of a pass that counts: all blocks' threads call. The last block reports to the CPU, and
 * asks for another visit if any of `reasons`, 1 << what is counted, is there. */
static __device__ __forceinline__ void cuda__auto_tell(const cuda__auto_call &call,
                                                       uint32_t reasons)
{
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    __threadfence();
    cuda__auto_counts &counts = *call.space.counts;
    if (atomicAdd(&counts.blocks, 1) + 1 < gridDim.x)
        return;
    bool asks = false;
    for (int k = 0; k < CUDA__AUTO_COUNTS; k++) {
        uint32_t count = atomicAdd(&counts.of[k], 0);
        call.reported[k] = count;
        asks = asks || (count > 0 && (reasons >> k & 1));
    }
    counts.blocks = 0;
    if (asks)
        *call.asked = 1;
}

/* METHOD of a matrix that lu has inverted; counts it where it has to be recovered. */
template <typename T>
static __device__ __forceinline__ void cuda__auto_note(const cuda__auto_call &call,
                                                       const cuda__auto_target<T> &target)
{
    int32_t info = *target.info;
    *target.algorithm = info == -1 ? METHOD_ALGORITHM_NONE : METHOD_ALGORITHM_LU;
    if (info < -1)
        atomicAdd(&call.space.counts->of[CUDA__AUTO_UNVERIFIED], 1);
}

/* Matrix `index` of the chunk goes to lu. */
template <typename T>
static __device__ __forceinline__ void cuda__auto_pass_to_lu(const cuda__auto_call &call,
                                                             bool wants, int64_t index,
                                                             const cuda__auto_target<T> &target)
{
    uint32_t at = cuda__auto_append(wants, &call.space.counts->of[CUDA__AUTO_DENSE]);
    if (!wants)
        return;
    call.space.dense[at] = {target.a, target.x, target.rcond, target.info, at};
    call.space.dense_matrices[at] = (int32_t)index;
}

/* Matrix `index` of the chunk may be definite. */
static __device__ __forceinline__ void cuda__auto_pass_to_cholesky(const cuda__auto_call &call,
                                                                   bool wants, int64_t index)
{
    uint32_t at = cuda__auto_append(wants, &call.space.counts->of[CUDA__AUTO_LIKELY]);
    if (wants)
        call.space.likely[at] = (int32_t)index;
}

/* Nothing is counted yet; and the items, as lu takes them. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_begin_kernel(const cuda__auto_call call, int64_t items)
{
    int64_t i = cuda__auto_thread();
    if (i == 0)
        *call.space.counts = {};
    if (i >= items)
        return;
    const cuda_tensors &from = call.tensors[i];
    call.space.items[i] = {from.inputs[0], from.outputs[METHOD_OUTPUT_INVERSE],
                           from.outputs[METHOD_OUTPUT_RCOND],
                           (int32_t *)from.outputs[METHOD_OUTPUT_INFO], from.first};
}

/* A diagonal, triangular or tridiagonal matrix has a zero among these entries. (Of order 2 the last
 * one is the second of them, and of order 1 there are none.) */
template <typename T>
static __device__ __forceinline__ bool cuda__auto_is_odd(const T *a, int64_t n)
{
    return n > 1 && (a[1] == 0 || a[2] == 0 || a[n] == 0);
}

/* Entries a_ij and a_ji of a matrix that may be: they agree, and a_ij^2 <= a_ii a_jj. */
template <typename T>
static __device__ __forceinline__ bool cuda__auto_pair_passes(bool averages, T lower, T upper,
                                                              T own_i, T own_j)
{
    T slack = averages ? CUDA__AUTO_AVERAGED_ULPS * cuda__real<T>::eps : T(0);
    T lesser = fabs(lower) < fabs(upper) ? fabs(lower) : fabs(upper);
    bool agree = lower == upper || fabs(lower - upper) <= slack * lesser;
    return agree && !(lower / own_i * lower > own_j);
}

/* By its corners; most dense matrices fail here. */
template <typename T>
static __device__ __forceinline__ bool cuda__auto_is_likely(const cuda__auto_call &call, const T *a)
{
    int64_t n = call.n, last = n * n - 1;
    if (n < 2 || !(call.definite || call.averages) || !(a[0] > 0) || !(a[n + 1] > 0) ||
        !(a[last] > 0))
        return false;
    return cuda__auto_pair_passes(call.averages, a[n], a[1], a[0], a[n + 1]) &&
           cuda__auto_pair_passes(call.averages, a[last - n + 1], a[n - 1], a[0], a[last]);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_look_kernel(const cuda__auto_call call)
{
    int64_t index = cuda__auto_thread();
    bool inside = index < call.count;
    cuda__auto_target<T> target = cuda__auto_find<T>(call, inside ? index : 0);
    bool odd = inside && call.sorts && cuda__auto_is_odd(target.a, call.n);
    bool likely = inside && !odd && cuda__auto_is_likely(call, target.a);
    uint32_t at = cuda__auto_append(odd, &call.space.counts->of[CUDA__AUTO_ODD]);
    if (odd)
        call.space.odd[at] = (int32_t)index;
    cuda__auto_pass_to_cholesky(call, likely, index);
    cuda__auto_pass_to_lu(call, inside && !odd && !likely, index, target);
    cuda__auto_tell(call, 1 << CUDA__AUTO_ODD | 1 << CUDA__AUTO_LIKELY | 1 << CUDA__AUTO_DENSE);
}

/* ---- Places ---- */

/* And no kind has been counted yet. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_place_kernel(const cuda__auto_call call)
{
    int lane;
    int64_t i = cuda__auto_row(&lane);
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x < CUDA__AUTO_KINDS)
        call.space.counts->of[CUDA__AUTO_OF_KIND + threadIdx.x] = 0;
    if (i >= call.n)
        return;
    const T *from = cuda__auto_find_placed<T>(call, blockIdx.y).a + i * call.n;
    T *to = cuda__auto_matrix<T>(call, call.space.a, blockIdx.y) + i * call.ld;
    for (int64_t j = lane; j < call.n; j += CUDA__WARP)
        to[j] = from[j];
}

/* From a matrix's parts, and whether its norm is in range. CUDA__AUTO_KINDS: dense. */
static __device__ __forceinline__ cuda__auto_kind cuda__auto_kind_of(uint32_t parts, bool finite,
                                                                     int64_t n)
{
    uint32_t both = CUDA_PART_BELOW | CUDA_PART_ABOVE;
    if ((parts & CUDA_PART_NOT_FINITE) || !finite)
        return CUDA__AUTO_KINDS;
    if ((parts & both) == 0)
        return CUDA__AUTO_DIAGONAL;
    if ((parts & both) != both)
        return CUDA__AUTO_TRIANGULAR;
    return n > 2 && !(parts & CUDA_PART_OFF_BAND) ? CUDA__AUTO_TRIDIAGONAL : CUDA__AUTO_KINDS;
}

/* A dense matrix, by what it has. */
template <typename T>
static __device__ __forceinline__ bool cuda__auto_may_be_definite(const cuda__auto_call &call,
                                                                  const cuda_identity &identity)
{
    uint32_t parts = CUDA_PART_NOT_FINITE | CUDA_PART_NOT_POSITIVE;
    parts |= call.averages ? 0 : CUDA_PART_ASYMMETRIC;
    return (call.definite || call.averages) && cuda__norm_is_finite<T>(identity.norm_1) &&
           (identity.parts & parts) == 0;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_sort_kernel(const cuda__auto_call call)
{
    int64_t place = cuda__auto_thread();
    bool inside = place < call.placed;
    int64_t index = call.space.odd[call.odd_first + (inside ? place : 0)];
    const cuda_identity &identity = call.space.identities[inside ? place : 0];
    const bool finite = cuda__norm_is_finite<T>(identity.norm_1);
    int found = inside ? cuda__auto_kind_of(identity.parts, finite, call.n) : -1;
    for (int kind = 0; kind < CUDA__AUTO_KINDS; kind++) {
        uint32_t *length = &call.space.counts->of[CUDA__AUTO_OF_KIND + kind];
        uint32_t at = cuda__auto_append(found == kind, length);
        if (found == kind)
            call.space.lists[kind][at] = (int32_t)place;
    }
    bool dense = found == CUDA__AUTO_KINDS;
    bool likely = dense && cuda__auto_may_be_definite<T>(call, identity);
    cuda__auto_pass_to_cholesky(call, likely, index);
    cuda__auto_pass_to_lu(call, dense && !likely, index, cuda__auto_find<T>(call, index));
    cuda__auto_tell(call, 0);
}

/* ---- Verdicts ---- */

/* INFO and RCOND of an inverse that is not equilibrated; norm, size: of A and X, the one multiplied
 * by a power of two, the other divided by it. size is not finite where an entry of X is beyond the
 * range. */
template <typename T>
static __device__ __forceinline__ cuda__auto_verdict cuda__auto_judge(double norm, double size,
                                                                      int64_t n)
{
    T rcond = 0;
    if (size > 0 && size < HUGE_VAL)
        rcond = (T)(1 / norm / size);
    return {(double)rcond, rcond >= cuda__real<T>::eps ? 0 : (int32_t)n + 1};
}

/* The magnitude of an entry of X, x times the factor; infinite where that is beyond the range. */
template <typename T> static __device__ __forceinline__ double cuda__auto_size(T x, T factor)
{
    return fabs(x * factor) <= cuda__real<T>::largest ? (double)fabs(x) : HUGE_VAL;
}

/* The power of two by which a triangular matrix of that norm is multiplied. */
template <typename T> static __device__ __forceinline__ T cuda__auto_factor(double norm)
{
    typedef cuda__real<T> real;
    return norm >= (double)real::huge  ? real::lower
           : norm < (double)real::tiny ? real::raise
                                       : T(1);
}

/* The largest magnitude of the inverse's diagonal; a block an entry. Equilibrated, a diagonal
 * matrix is well conditioned: INFO n + 1 is that of an overflow. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_diagonal_kernel(const cuda__auto_call call)
{
    __shared__ double most[CUDA__AUTO_ROWS];
    int64_t entry = blockIdx.x;
    const T *a = cuda__auto_listed<T>(call, CUDA__AUTO_DIAGONAL, entry);
    const cuda_identity &identity =
        call.space.identities[call.space.lists[CUDA__AUTO_DIAGONAL][entry]];
    double size = 0;
    for (int64_t i = threadIdx.x; i < call.n; i += CUDA__AUTO_THREADS)
        size = cuda__max_or_nan(size, cuda__auto_size(1 / a[i * (call.ld + 1)], T(1)));
    size = cuda__block_max<CUDA__AUTO_ROWS>(size, most);
    if (threadIdx.x > 0)
        return;
    cuda__auto_verdict verdict = {0, identity.zero_column};
    if (identity.zero_column == CUDA_NO_LINE)
        verdict = {cuda__auto_judge<T>(identity.norm_1, size, call.n).rcond,
                   size < HUGE_VAL ? 0 : (int32_t)call.n + 1};
    call.space.verdicts[entry] = verdict;
}

/* The first zero on the diagonal of a triangular matrix, and how it is loaded; a block an entry.
 * Where scaled down an entry vanishes or has no reciprocal, RCOND is 0 anyway, and A is taken as it
 * is. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_plan_kernel(const cuda__auto_call call)
{
    __shared__ int zeros[CUDA__AUTO_ROWS];
    int64_t entry = blockIdx.x;
    const T *a = cuda__auto_listed<T>(call, CUDA__AUTO_TRIANGULAR, entry);
    const cuda_identity &identity =
        call.space.identities[call.space.lists[CUDA__AUTO_TRIANGULAR][entry]];
    double norm = identity.norm_1;
    T factor = cuda__auto_factor<T>(norm);
    int zero = INT32_MAX;
    bool vanished = false;
    for (int i = (int)threadIdx.x; i < call.n; i += CUDA__AUTO_THREADS) {
        T pivot = a[i * (call.ld + 1)];
        zero = pivot == 0 ? min(zero, i + 1) : zero;
        vanished = vanished || (pivot != 0 && fabs(pivot * factor) < cuda__real<T>::min_safe);
    }
    zero = cuda__block_min<CUDA__AUTO_ROWS>(zero, zeros);
    vanished = __syncthreads_or(vanished);
    if (threadIdx.x > 0)
        return;
    factor = vanished ? T(1) : factor;
    call.space.plans[entry] = {norm * (double)factor, (double)factor,
                               (identity.parts & CUDA_PART_BELOW) != 0};
    call.space.verdicts[entry] = {0, zero == INT32_MAX ? 0 : zero};
}

/* ---- Triangular ---- */

/* B = factor A, as an upper one, and X = I. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_load_kernel(const cuda__auto_call call)
{
    int lane;
    int64_t i = cuda__auto_row(&lane), n = call.n, entry = blockIdx.y;
    if (i >= call.ld)
        return;
    const cuda__auto_plan plan = call.space.plans[entry];
    const T *from = cuda__auto_listed<T>(call, CUDA__AUTO_TRIANGULAR, entry);
    T *b = cuda__auto_matrix<T>(call, call.space.b, entry) + i * call.ld;
    T *x = cuda__auto_matrix<T>(call, call.space.x, entry) + i * call.ld;
    for (int64_t j = lane; j < call.ld; j += CUDA__WARP) {
        T value = i == j;
        x[j] = value;
        if (i < n && j < n)
            value = from[plan.reversed ? (n - 1 - i) * call.ld + n - 1 - j : i * call.ld + j] *
                    (T)plan.factor;
        b[j] = value;
    }
}

/* Of each strip of X's columns the largest sum of magnitudes; 32 columns x 8 rows of threads. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_sums_kernel(const cuda__auto_call call)
{
    __shared__ double sums[CUDA__AUTO_ROWS][CUDA__AUTO_STRIP], most[CUDA__AUTO_ROWS];
    int64_t entry = blockIdx.y;
    int lane = (int)(threadIdx.x % CUDA__WARP), group = (int)(threadIdx.x / CUDA__WARP);
    int64_t j = (int64_t)blockIdx.x * CUDA__AUTO_STRIP + lane;
    const T *x = cuda__auto_matrix<T>(call, call.space.x, entry);
    T factor = (T)call.space.plans[entry].factor;
    double sum = 0;
    for (int64_t i = group; j < call.n && i <= j; i += CUDA__AUTO_ROWS)
        sum += cuda__auto_size(x[i * call.ld + j], factor);
    sums[group][lane] = sum;
    __syncthreads();
    for (int g = 1; g < CUDA__AUTO_ROWS && group == 0; g++)
        sum += sums[g][lane];
    sum = cuda__block_max<CUDA__AUTO_ROWS>(group == 0 ? sum : 0.0, most);
    if (threadIdx.x == 0)
        call.space.sums[entry * (call.ld / CUDA__AUTO_STRIP) + blockIdx.x] = sum;
}

/* A block an entry. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_judge_kernel(const cuda__auto_call call)
{
    __shared__ double most[CUDA__AUTO_ROWS];
    int64_t entry = blockIdx.x, strips = call.ld / CUDA__AUTO_STRIP;
    const cuda__auto_plan &plan = call.space.plans[entry];
    double size = 0;
    for (int64_t s = threadIdx.x; s < strips; s += CUDA__AUTO_THREADS)
        size = cuda__max_or_nan(size, call.space.sums[entry * strips + s]);
    size = cuda__block_max<CUDA__AUTO_ROWS>(size, most);
    cuda__auto_verdict &verdict = call.space.verdicts[entry];
    if (threadIdx.x == 0 && verdict.info == 0)
        verdict = cuda__auto_judge<T>(plan.norm, size, call.n);
}

/* ---- Tridiagonal ---- */

/* The bands of an entry, a thread a row, and what `tridiagonal` is to do with them. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_cut_kernel(const cuda__auto_call call)
{
    int64_t entry = blockIdx.y, i = cuda__auto_thread(), n = call.n, ld = call.ld;
    const T *a = cuda__auto_listed<T>(call, CUDA__AUTO_TRIDIAGONAL, entry);
    T *dl = (T *)call.space.bands + 3 * entry * ld, *d = dl + ld, *du = d + ld;
    if (i < n)
        d[i] = a[i * (ld + 1)];
    if (i + 1 < n) {
        dl[i] = a[(i + 1) * ld + i];
        du[i] = a[i * ld + i + 1];
    }
    if (i > 0)
        return;
    cuda_tensors tensors = {};
    tensors.inputs[METHOD_TRIDIAGONAL_DL] = dl;
    tensors.inputs[METHOD_TRIDIAGONAL_D] = d;
    tensors.inputs[METHOD_TRIDIAGONAL_DU] = du;
    tensors.outputs[METHOD_TRIDIAGONAL_INVERSE] = cuda__auto_matrix<T>(call, call.space.x, entry);
    tensors.outputs[METHOD_TRIDIAGONAL_INFO] = call.space.infos + entry;
    tensors.outputs[METHOD_TRIDIAGONAL_RCOND] = (T *)call.space.rconds + entry;
    tensors.first = entry;
    call.space.tensors[entry] = tensors;
}

/* The verdicts of `tridiagonal`. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_take_kernel(const cuda__auto_call call, int64_t count)
{
    int64_t entry = cuda__auto_thread();
    if (entry < count)
        call.space.verdicts[entry] = {(double)((const T *)call.space.rconds)[entry],
                                      call.space.infos[entry]};
}

/* Is it lu's? What is all but singular may be so for its scaling alone, which lu finds out; and
 * what `tridiagonal` has found singular is inverted again. */
template <cuda__auto_kind Kind>
static __device__ __forceinline__ bool cuda__auto_is_passed(const cuda__auto_verdict &verdict,
                                                            int64_t n)
{
    return Kind == CUDA__AUTO_TRIDIAGONAL  ? verdict.info != 0
           : Kind == CUDA__AUTO_TRIANGULAR ? verdict.info > n
                                           : false;
}

template <typename T, cuda__auto_kind Kind>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_pass_kernel(const cuda__auto_call call, int64_t count)
{
    int64_t entry = cuda__auto_thread();
    bool inside = entry < count;
    int64_t place = inside ? call.space.lists[Kind][entry] : 0;
    int64_t index = call.space.odd[call.odd_first + place];
    bool passed =
        inside && cuda__auto_is_passed<Kind>(call.space.verdicts[inside ? entry : 0], call.n);
    cuda__auto_pass_to_lu(call, passed, index, cuda__auto_find<T>(call, index));
    cuda__auto_tell(call, 1 << CUDA__AUTO_DENSE);
}

/* ---- Out ---- */

/* Entry (i, j) of an inverse. */
template <typename T, cuda__auto_kind Kind> struct cuda__auto_source;

template <typename T> struct cuda__auto_source<T, CUDA__AUTO_DIAGONAL> {
    static constexpr int algorithm = METHOD_ALGORITHM_DIAGONAL;
    const T *a;
    int64_t ld;

    __device__ cuda__auto_source(const cuda__auto_call &call, int64_t entry)
        : a(cuda__auto_listed<T>(call, CUDA__AUTO_DIAGONAL, entry)), ld(call.ld)
    {
    }
    __device__ __forceinline__ T at(int64_t i, int64_t j) const
    {
        return i == j ? 1 / a[i * (ld + 1)] : T(0);
    }
};

template <typename T> struct cuda__auto_source<T, CUDA__AUTO_TRIANGULAR> {
    static constexpr int algorithm = METHOD_ALGORITHM_TRIANGULAR;
    const T *x;
    int64_t last, ld;
    T factor;
    bool reversed;

    __device__ cuda__auto_source(const cuda__auto_call &call, int64_t entry)
        : x(cuda__auto_matrix<T>(call, call.space.x, entry)), last(call.n - 1), ld(call.ld),
          factor((T)call.space.plans[entry].factor), reversed(call.space.plans[entry].reversed)
    {
    }
    __device__ __forceinline__ T at(int64_t i, int64_t j) const
    {
        if (reversed ? j > i : i > j)
            return 0;
        return x[reversed ? (last - i) * ld + last - j : i * ld + j] * factor;
    }
};

template <typename T> struct cuda__auto_source<T, CUDA__AUTO_TRIDIAGONAL> {
    static constexpr int algorithm = METHOD_ALGORITHM_TRIDIAGONAL;
    const T *x;
    int64_t n;
    bool symmetric; /* the two triangles come from recurrences of their own: one is mirrored */

    __device__ cuda__auto_source(const cuda__auto_call &call, int64_t entry)
        : x(cuda__auto_matrix<T>(call, call.space.x, entry)), n(call.n)
    {
        const int32_t place = call.space.lists[CUDA__AUTO_TRIDIAGONAL][entry];
        symmetric = !(call.space.identities[place].parts & CUDA_PART_ASYMMETRIC);
    }
    __device__ __forceinline__ T at(int64_t i, int64_t j) const
    {
        return x[symmetric && j > i ? j * n + i : i * n + j];
    }
};

/* Writes what an entry's verdict allows: its inverse, or NaN for one that cannot be had. What has
 * been passed to lu is left alone. */
template <typename T, cuda__auto_kind Kind>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_deliver_kernel(const cuda__auto_call call)
{
    typedef cuda__auto_source<T, Kind> source;
    int lane;
    int64_t i = cuda__auto_row(&lane), n = call.n, entry = blockIdx.y;
    const cuda__auto_verdict verdict = call.space.verdicts[entry];
    if (i >= n || cuda__auto_is_passed<Kind>(verdict, n))
        return;
    cuda__auto_target<T> target = cuda__auto_find_placed<T>(call, call.space.lists[Kind][entry]);
    bool none = verdict.info > 0 && verdict.info <= n;
    source from(call, entry);
    for (int64_t j = lane; target.x && j < n; j += CUDA__WARP)
        target.x[i * n + j] = none ? cuda__real<T>::nan() : from.at(i, j);
    if (i > 0 || lane > 0)
        return;
    *target.info = verdict.info;
    *target.rcond = (T)verdict.rcond;
    *target.algorithm = source::algorithm;
}

/* ---- Symmetric matrices ---- */

/* Matrix `at` of those that lu inverts. */
template <typename T>
static __device__ __forceinline__ cuda__auto_target<T>
cuda__auto_find_inverted(const cuda__auto_call &call, int64_t at)
{
    return cuda__auto_find<T>(call, call.lists ? call.space.dense_matrices[at] : at);
}

/* By its corners; most dense matrices fail here. */
template <typename T>
static __device__ __forceinline__ bool cuda__auto_looks_symmetric(const T *a, int64_t n)
{
    return a[1] == a[n] && a[n - 1] == a[(n - 1) * n] && a[2 * n - 1] == a[(n - 1) * n + 1];
}

/* Of what lu has inverted: counts what is to be recovered, and what looks symmetric. Up to
 * CUDA_SMALL_N_MAX lu's own kernels keep symmetry. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_note_kernel(const cuda__auto_call call, int64_t count)
{
    int64_t at = cuda__auto_thread();
    if (at < count) {
        cuda__auto_target<T> target = cuda__auto_find_inverted<T>(call, at);
        cuda__auto_note(call, target);
        if (call.n > CUDA_SMALL_N_MAX) {
            bool symmetric = target.x && cuda__auto_looks_symmetric(target.a, call.n);
            call.space.images[at].differs = !symmetric;
            if (symmetric)
                atomicAdd(&call.space.counts->of[CUDA__AUTO_SYMMETRIC], 1);
        }
    }
    cuda__auto_tell(call, 1 << CUDA__AUTO_UNVERIFIED | 1 << CUDA__AUTO_SYMMETRIC);
}

/* Calls f(i, j) for the entries below the diagonal of lu's matrix blockIdx.x: tiles of 32 x 32, a
 * row of tiles for each blockIdx.y. */
template <typename F> static __device__ __forceinline__ void cuda__auto_each_below(int64_t n, F f)
{
    constexpr int64_t strip = CUDA__AUTO_STRIP;
    int lane = (int)(threadIdx.x % CUDA__WARP), group = (int)(threadIdx.x / CUDA__WARP);
    int64_t top = (int64_t)blockIdx.y * strip;
    for (int64_t left = 0; left <= top; left += strip) {
        for (int64_t i = top + group; i < top + strip && i < n; i += CUDA__AUTO_ROWS) {
            if (left + lane < i)
                f(i, left + lane);
        }
    }
}

/* Which of those that look symmetric are not. Of the others nothing is measured yet. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_compare_kernel(const cuda__auto_call call)
{
    int64_t at = blockIdx.x, n = call.n;
    cuda__auto_image &image = call.space.images[at];
    if (image.differs)
        return;
    if (blockIdx.y == 0 && threadIdx.x == 0)
        image.norm = image.size = image.error = 0;
    const T *a = cuda__auto_find_inverted<T>(call, at).a;
    bool differs = false;
    cuda__auto_each_below(
        n, [&](int64_t i, int64_t j) { differs = differs || !(a[i * n + j] == a[j * n + i]); });
    if (differs)
        image.differs = 1;
}

/* X = (X + X^T) / 2 where A = A^T: symmetric to the bit. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_mirror_kernel(const cuda__auto_call call)
{
    int64_t at = blockIdx.x, n = call.n;
    if (call.space.images[at].differs)
        return;
    T *x = cuda__auto_find_inverted<T>(call, at).x;
    cuda__auto_each_below(n, [&](int64_t i, int64_t j) {
        x[i * n + j] = x[j * n + i] = cuda__mean(x[i * n + j], x[j * n + i]);
    });
}

static __device__ __forceinline__ void cuda__auto_raise(unsigned long long *most, double value)
{
    atomicMax(most, (unsigned long long)__double_as_longlong(value));
}

/* Calls f(i, lane) for the rows of lu's matrix blockIdx.x, a warp each, a strip for each
 * blockIdx.y. */
template <typename F> static __device__ __forceinline__ void cuda__auto_each_row(int64_t n, F f)
{
    int lane = (int)(threadIdx.x % CUDA__WARP), group = (int)(threadIdx.x / CUDA__WARP);
    int64_t top = (int64_t)blockIdx.y * CUDA__AUTO_STRIP;
    for (int64_t i = top + group; i < top + CUDA__AUTO_STRIP && i < n; i += CUDA__AUTO_ROWS)
        f(i, lane);
}

/* Norms of A and X, row by row, for they are symmetric, and A times the probe vector. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_measure_kernel(const cuda__auto_call call)
{
    int64_t at = blockIdx.x, n = call.n;
    cuda__auto_image &image = call.space.images[at];
    if (image.differs)
        return;
    cuda__auto_target<T> target = cuda__auto_find_inverted<T>(call, at);
    cuda__auto_each_row(n, [&](int64_t i, int lane) {
        double norm = 0, size = 0, product = 0;
        for (int64_t j = lane; j < n; j += CUDA__WARP) {
            double a = target.a[i * n + j];
            norm += fabs(a);
            product += cuda__negative((int)j) ? -a : a;
            size += fabs((double)target.x[i * n + j]);
        }
        norm = cuda__warp_sum(norm);
        product = cuda__warp_sum(product);
        size = cuda__warp_sum(size);
        if (lane > 0)
            return;
        call.space.products[at * n + i] = product;
        cuda__auto_raise(&image.norm, norm);
        cuda__auto_raise(&image.size, size);
    });
}

/* X times that is to be the probe vector. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_check_kernel(const cuda__auto_call call)
{
    int64_t at = blockIdx.x, n = call.n;
    cuda__auto_image &image = call.space.images[at];
    if (image.differs)
        return;
    const T *x = cuda__auto_find_inverted<T>(call, at).x;
    const double *product = call.space.products + at * n;
    cuda__auto_each_row(n, [&](int64_t i, int lane) {
        double sum = 0;
        for (int64_t j = lane; j < n; j += CUDA__WARP)
            sum = fma((double)x[i * n + j], product[j], sum);
        sum = cuda__warp_sum(sum) - (cuda__negative((int)i) ? -1 : 1);
        if (lane == 0)
            cuda__auto_raise(&image.error, fabs(sum));
    });
}

/* INFO and RCOND of the mean. A bad side of X has spoilt it where it fails the check: it is to be
 * recovered. Where sums overflow both stay. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__AUTO_THREADS)
    cuda__auto_settle_kernel(const cuda__auto_call call, int64_t count)
{
    int64_t at = cuda__auto_thread(), n = call.n;
    const cuda__auto_image none = {0, 0, 0, 1}, image = at < count ? call.space.images[at] : none;
    double most =
        __longlong_as_double((long long)image.norm) * __longlong_as_double((long long)image.size);
    if (!image.differs && most > 0 && most < HUGE_VAL) {
        cuda__auto_target<T> target = cuda__auto_find_inverted<T>(call, at);
        const double error = __longlong_as_double((long long)image.error);
        const double allowed =
            cuda__mean_allowed(n, sqrt((double)n), most) * (double)cuda__real<T>::eps;
        const bool good = error <= allowed;
        const T rcond = (T)(1 / most);
        /* Where only the scaling is extreme, INFO is 0 though RCOND is small, and stays so. */
        const bool scaled = *target.info == 0 && !(*target.rcond >= cuda__real<T>::eps);
        const bool singular = !(rcond >= cuda__real<T>::eps) && !scaled;
        const bool spoilt = !good && !singular;
        *target.rcond = rcond;
        *target.info = spoilt && !call.last ? CUDA_INFO_UNVERIFIED : singular ? (int32_t)n + 1 : 0;
        if (spoilt && !call.last)
            atomicAdd(&call.space.counts->of[CUDA__AUTO_SPOILT], 1);
    }
    cuda__auto_tell(call, call.last ? 0 : 1 << CUDA__AUTO_SPOILT);
}

#endif
