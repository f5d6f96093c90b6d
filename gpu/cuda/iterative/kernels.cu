/* gpu/cuda/iterative/kernels.cu: the passes of `iterative` in one precision, and their launches.
 * See call.h for what each of them does.
 */
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/iterative/decide.cuh"
#include "gpu/cuda/iterative/measure.cuh"
#include "gpu/cuda/iterative/view.cuh"
#include "gpu/cuda/base/compensated.cuh"
#include "gpu/common/iteration.h"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/reduce.cuh"

/* ---- Compensated sums ---- */

/* The residual in double-double, and what rounding hides of it, as
 * gpu/host/iterative/double_double.c has them. For matrices that are judged; up to
 * ITERATION_DD_ORDER_MAX for all. Device code.
 */

/* ---- The whole residual ---- */

/* Entry (i, j) of I - V A. */
template <typename T>
static __device__ T cuda__iter_residual_entry(const cuda__iter_view<T> &view, int j)
{
    const T *left = view.row(CUDA__ITER_MATRIX_V), *right = view.matrix(CUDA__ITER_MATRIX_A) + j;
    cuda__compensated<double> sum = {j == view.i ? 1.0 : 0.0, 0};
#pragma unroll 1
    for (int k = 0; k < (int)view.call.n; k++)
        sum.add_product(-(double)left[k], (double)right[k * view.call.ld]);
    return (T)sum.value();
}

/* A warp a row, and a block some columns. judges: of the matrices that are judged alone. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_residual_kernel(const cuda__iter_call call, const cuda__iter_run run, bool judges)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n || (judges && view.state().action != CUDA__ITER_JUDGE_WHOLE))
        return;
    int first = (int)blockIdx.z * CUDA__ITER_COLUMNS,
        end = min(first + CUDA__ITER_COLUMNS, (int)call.n);
    for (int j = first + view.lane; j < end; j += CUDA__WARP)
        view.row(CUDA__ITER_MATRIX_R)[j] = cuda__iter_residual_entry(view, j);
}

/* ---- What is not seen of it ---- */

/* A thread a column: to the first of the spare matrices the sums of |V|'s columns, and to the
 * second those of |V| |A|'s, or of C |V| |A| C^-1's where that is what counts; and the largest of
 * these to the state, by a block a matrix. action: whose. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_sizes_kernel(const cuda__iter_call call, const cuda__iter_run run, int action)
{
    cuda__iter_view<T> view(call, run);
    int64_t j = (int64_t)blockIdx.x * CUDA__ITER_THREADS + threadIdx.x;
    if (j >= call.n || view.state().action != action)
        return;
    const T *v = view.matrix(CUDA__ITER_MATRIX_V) + j;
    double sum = 0;
    for (int64_t i = 0; i < call.n; i++)
        sum += view.weight((int)i) * fabs((double)v[i * call.ld]);
    ((double *)view.matrix(CUDA__ITER_MATRIX_SPARE))[j] = sum;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_terms_kernel(const cuda__iter_call call, const cuda__iter_run run, int action)
{
    cuda__iter_view<T> view(call, run);
    int64_t j = (int64_t)blockIdx.x * CUDA__ITER_THREADS + threadIdx.x;
    if (j >= call.n || view.state().action != action)
        return;
    const double *sizes = (const double *)view.matrix(CUDA__ITER_MATRIX_SPARE);
    const T *a = view.matrix(CUDA__ITER_MATRIX_A) + j;
    double sum = 0;
    for (int64_t k = 0; k < call.n; k++)
        sum += sizes[k] * fabs((double)a[k * call.ld]);
    ((double *)view.matrix(CUDA__ITER_MATRIX_SPARE + 1))[j] = sum / view.weight((int)j);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_max_terms_kernel(const cuda__iter_call call, const cuda__iter_run run, int action)
{
    __shared__ double largest[CUDA__ITER_THREADS];
    cuda__iter_view<T> view(call, run);
    if (view.state().action != action)
        return;
    const double *terms = (const double *)view.matrix(CUDA__ITER_MATRIX_SPARE + 1);
    double most = 0;
    for (int64_t j = threadIdx.x; j < call.n; j += CUDA__ITER_THREADS)
        most = cuda__max_or_nan(most, terms[j]);
    largest[threadIdx.x] = most;
    __syncthreads();
    for (int t = 1; threadIdx.x == 0 && t < CUDA__ITER_THREADS; t++)
        most = cuda__max_or_nan(most, largest[t]);
    if (threadIdx.x == 0)
        view.state().terms = most;
}

/* ---- What rounding has done to R ---- */

/* The numbers lie in the first two of the spare matrices: of each vector of signs z the line z V,
 * rounded, and what that left; and z (R - (I - V A)). */
template <typename T> struct cuda__iter_lines {
    double *lines, *lower, *errors;

    __device__ explicit cuda__iter_lines(const cuda__iter_view<T> &view)
        : lines((double *)view.matrix(CUDA__ITER_MATRIX_SPARE)),
          lower(lines + ITERATION_SIGNS * view.call.n),
          errors((double *)view.matrix(CUDA__ITER_MATRIX_SPARE + 1))
    {
        /* In FP32 too. */
        static_assert(4 * ITERATION_SIGNS <= ITERATION_WHOLE_FIRST, "they fit");
    }
};

static __device__ __forceinline__ double cuda__iter_sign(int64_t i, unsigned vector)
{
    return ITERATION_NEGATIVE((uint32_t)i, vector) ? -1.0 : 1.0;
}

/* A thread a column, a block a vector of signs. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_lines_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    int64_t j = (int64_t)blockIdx.x * CUDA__ITER_THREADS + threadIdx.x;
    if (j >= call.n || view.state().action != CUDA__ITER_JUDGE)
        return;
    cuda__iter_lines<T> to(view);
    const T *v = view.matrix(CUDA__ITER_MATRIX_V) + j;
    cuda__compensated<double> sum = {0, 0};
    for (int64_t i = 0; i < call.n; i++)
        sum.add_product(cuda__iter_sign(i, blockIdx.z), (double)v[i * call.ld]);
    to.lines[blockIdx.z * call.n + j] = sum.value();
    to.lower[blockIdx.z * call.n + j] = sum.errors - (sum.value() - sum.sum);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_errors_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    int64_t j = (int64_t)blockIdx.x * CUDA__ITER_THREADS + threadIdx.x;
    if (j >= call.n || view.state().action != CUDA__ITER_JUDGE)
        return;
    cuda__iter_lines<T> of(view);
    const T *r = view.matrix(CUDA__ITER_MATRIX_R) + j, *a = view.matrix(CUDA__ITER_MATRIX_A) + j;
    const double *line = of.lines + blockIdx.z * call.n, *lower = of.lower + blockIdx.z * call.n;
    cuda__compensated<double> sum = {-cuda__iter_sign(j, blockIdx.z), 0};
    for (int64_t i = 0; i < call.n; i++) {
        double entry = (double)a[i * call.ld];
        sum.add_product(cuda__iter_sign(i, blockIdx.z), (double)r[i * call.ld]);
        sum.add_product(line[i], entry);
        sum.errors += lower[i] * entry;
    }
    of.errors[blockIdx.z * call.n + j] = sum.value();
}

/* A block a matrix: its factors become what is estimated of |R - (I - V A)|, the 1-norm and the
 * Frobenius norm. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_rounding_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    __shared__ double largest[CUDA__ITER_THREADS], sums[CUDA__ITER_THREADS];
    cuda__iter_view<T> view(call, run);
    if (view.state().action != CUDA__ITER_JUDGE)
        return;
    cuda__iter_lines<T> of(view);
    double most = 0, all = 0;
    for (int64_t j = threadIdx.x; j < call.n; j += CUDA__ITER_THREADS) {
        double square = 0;
        for (int z = 0; z < ITERATION_SIGNS; z++) {
            double error = of.errors[z * call.n + j];
            square += error * error / ITERATION_SIGNS;
        }
        most = cuda__max_or_nan(most, square);
        all += square;
    }
    largest[threadIdx.x] = most;
    sums[threadIdx.x] = all;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int t = 1; t < CUDA__ITER_THREADS; t++) {
        most = cuda__max_or_nan(most, largest[t]);
        all += sums[t];
    }
    double *factors = call.space.factors + 2 * view.index;
    factors[0] = ITERATION_SIGNS_MARGIN * sqrt((double)call.n * most);
    factors[1] = sqrt(all);
}

/* ---- In ---- */

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_load_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n)
        return;
    view.copy_row(view.row(CUDA__ITER_MATRIX_A), view.input_row(METHOD_ITERATIVE_A));
    if (call.wishes.warm)
        view.copy_row(view.row(CUDA__ITER_MATRIX_V), view.input_row(METHOD_ITERATIVE_V0));
}

template <typename T>
static __global__ void cuda__iter_begin_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    cuda__iter_state &state = view.state();
    const cuda_identity *a = call.space.identities + view.index, *v0 = a + call.space.count;
    cuda__iter_mind<T> mind = view.mind();
    if (run.again && state.action != run.again)
        return;
    if (run.again == CUDA__ITER_IDENTIFY)
        mind.begin_huge(a[call.space.count]);
    else if (run.again)
        mind.begin_scaled(*a, call.space.equilibria[view.index]);
    else
        mind.begin(*a, call.wishes.warm ? v0 : nullptr);
    call.space.equilibria[view.index].wanted = state.action == CUDA__ITER_EQUILIBRATE;
    cuda__iter_tell(call, view.index, state);
}

/* In place. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_scale_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n || view.state().action != CUDA__ITER_EQUILIBRATE)
        return;
    T *row = view.row(CUDA__ITER_MATRIX_A);
    view.scale_row(row, row, view.row_exponents()[view.i], view.column_exponents(), 1);
}

static __device__ __forceinline__ bool cuda__iter_starts(int action)
{
    return action >= CUDA__ITER_START_WARM && action < CUDA__ITER_STEP;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_prepare_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    const cuda__iter_state &state = view.state();
    if (view.i >= call.n || !cuda__iter_starts(state.action))
        return;
    if (state.is_current)
        view.copy_row(view.row(CUDA__ITER_MATRIX_BEST), view.row(CUDA__ITER_MATRIX_V));
}

/* ---- Starts ---- */

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_warm_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    const cuda__iter_state &state = view.state();
    if (view.i >= call.n || state.action != CUDA__ITER_START_WARM)
        return;
    view.say_made();
    T *row = view.row(CUDA__ITER_MATRIX_V); /* it has come there with A */
    if (state.scaled)
        view.scale_row(row, row, view.column_exponents()[view.i], view.row_exponents(), -1);
}

/* The identity that is nearest, as a factor: tr A / |A|_F^2, where that brings |I - alpha A|_F
 * below 1, or one over a norm. A block a matrix; the factors become the scale and 1 / norm, both of
 * A scaled, and then alpha. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_alpha_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    __shared__ double sums[CUDA__ITER_ROWS];
    cuda__iter_view<T> view(call, run);
    if (view.state().action != CUDA__ITER_START_IDENTITY)
        return;
    double *factors = call.space.factors + 2 * view.index, scale = factors[0], trace = 0;
    const T *a = view.matrix(CUDA__ITER_MATRIX_A);
    for (int64_t k = threadIdx.x; k < call.n; k += CUDA__ITER_THREADS)
        trace += (double)a[k * (call.ld + 1)] * scale;
    trace = cuda__warp_sum(trace);
    if (view.lane == 0)
        sums[threadIdx.x / CUDA__WARP] = trace;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < CUDA__ITER_ROWS; w++)
        trace += sums[w];
    double frobenius = call.space.identities[call.space.count + view.index].frobenius;
    double square = frobenius * frobenius, alpha = trace < 0 ? -1 / factors[1] : 1 / factors[1];
    if ((double)call.n - trace * trace / square < 1)
        alpha = trace / square;
    factors[1] = alpha * scale;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_diagonal_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    int action = view.state().action;
    bool is_identity = action == CUDA__ITER_START_IDENTITY;
    if (view.i >= call.n || (action != CUDA__ITER_START_DIAGONAL && !is_identity))
        return;
    view.say_made();
    T *to = view.row(CUDA__ITER_MATRIX_V), own = view.row(CUDA__ITER_MATRIX_A)[view.i];
    T value = is_identity ? (T)view.factors()[1] : 1 / own;
    view.each([&](int64_t j) { return j == view.i ? value : T(0); },
              [&](int64_t j, T x) { to[j] = x; });
}

/* The FP32 matrices lie densely where spare ones begin. */
template <typename T>
static __device__ __forceinline__ float *cuda__iter_narrow(const cuda__iter_view<T> &view,
                                                           int spare)
{
    return (float *)view.matrix(CUDA__ITER_MATRIX_SPARE + spare);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_narrow_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n)
        return;
    float *to = cuda__iter_narrow(view, 0) + view.i * call.n;
    const T *from = view.row(CUDA__ITER_MATRIX_A);
    double factor = view.factors()[0];
    view.each([&](int64_t j) { return from[j]; },
              [&](int64_t j, T x) { to[j] = (float)((double)x * factor); });
    if (view.i == 0 && view.lane == 0 && blockIdx.z == 0)
        call.space.items[view.index] = {cuda__iter_narrow(view, 0), cuda__iter_narrow(view, 1),
                                        nullptr, call.space.infos + view.index,
                                        (int64_t)blockIdx.y};
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_widen_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n)
        return;
    view.say_made();
    const float *from = cuda__iter_narrow(view, 1) + view.i * call.n;
    T *to = view.row(CUDA__ITER_MATRIX_V);
    double factor = view.factors()[0];
    view.each([&](int64_t j) { return (T)((double)from[j] * factor); },
              [&](int64_t j, T x) { to[j] = x; });
}

/* ---- Steps ---- */

/* One sum, of the lane's columns. */
template <typename T>
static __device__ __forceinline__ void cuda__iter_sum_row(const cuda__iter_view<T> &view,
                                                          const cuda__iter_sum &sum)
{
    typedef cuda__iter_view<T> of;
    typename of::vector x[of::pieces], term[of::pieces];
    T identity = (T)sum.identity;
    int here = view.pieces_here();
#pragma unroll
    for (int u = 0; u < of::pieces; u++) {
        if (u >= here)
            break;
#pragma unroll
        for (int v = 0; v < of::width; v++)
            ((T *)&x[u])[v] = view.piece(u) + v == view.i ? identity : T(0);
    }
#pragma unroll
    for (int t = 0; t < 3; t++) {
        if (sum.terms[t].matrix < 0)
            continue;
        T factor = (T)sum.terms[t].factor;
        view.read(term, view.row(sum.terms[t].matrix), here);
#pragma unroll
        for (int u = 0; u < of::pieces; u++) {
            if (u >= here)
                break;
#pragma unroll
            for (int v = 0; v < of::width; v++)
                ((T *)&x[u])[v] = fma(factor, ((const T *)&term[u])[v], ((T *)&x[u])[v]);
        }
    }
    view.write(view.row(sum.to), x, here);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_sum_kernel(const cuda__iter_call call, const cuda__iter_run run,
                          const cuda__iter_sums sums)
{
    cuda__iter_view<T> view(call, run);
    if (view.i >= call.n)
        return;
#pragma unroll 1
    for (int s = 0; s < sums.count; s++)
        cuda__iter_sum_row(view, sums.sums[s]);
}

/* A thread an entry of the diagonal. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_shift_kernel(const cuda__iter_call call, const cuda__iter_run run, int matrix,
                            double value)
{
    cuda__iter_view<T> view(call, run);
    int64_t k = (int64_t)blockIdx.x * CUDA__ITER_THREADS + threadIdx.x;
    if (k < call.n)
        view.matrix(matrix)[k * (call.ld + 1)] += (T)value;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_commit_kernel(const cuda__iter_call call, const cuda__iter_run run, int action,
                             int matrix, bool adds)
{
    cuda__iter_view<T> view(call, run);
    const cuda__iter_state &state = view.state();
    bool is_last = action >= CUDA__ITER_STEP && state.action == action + METHOD_ITERATIVE_SCHEMES;
    if (view.i >= call.n || (state.action != action && !is_last))
        return;
    view.say_made();
    /* A start's kernels have kept V already. */
    bool keeps = state.is_current && action >= CUDA__ITER_STEP;
    typedef cuda__iter_view<T> of;
    typename of::vector old[of::pieces], x[of::pieces];
    T *v = view.row(CUDA__ITER_MATRIX_V);
    int here = view.pieces_here();
    view.read(x, view.row(matrix), here);
    if (adds || keeps)
        view.read(old, v, here);
    if (keeps)
        view.write(view.row(CUDA__ITER_MATRIX_BEST), old, here);
#pragma unroll
    for (int u = 0; u < of::pieces; u++) {
        if (!adds || u >= here)
            break;
#pragma unroll
        for (int e = 0; e < of::width; e++)
            ((T *)&x[u])[e] += ((const T *)&old[u])[e];
    }
    view.write(v, x, here);
}

/* ---- Out ---- */

/* The numbers of an answer; the threads of a block. */
template <typename T>
static __device__ void cuda__iter_report(const cuda__iter_view<T> &view, const cuda_tensors *to,
                                         int64_t within)
{
    const cuda__iter_call &call = view.call;
    cuda__iter_mind<T> mind = view.mind();
    const cuda__iter_state &state = view.state();
    int refused = state.refused, count = refused ? 0 : state.best_steps + 1;
    T nan = cuda__real<T>::nan(), *history = (T *)to->outputs[METHOD_ITERATIVE_HISTORY];
    int64_t length = call.wishes.max_iterations;
    const T *reported = mind.history + state.best_slot * length;
    for (int64_t k = threadIdx.x; history && k < length; k += blockDim.x)
        history[within * length + k] = k < count ? reported[k] : nan;
    if (threadIdx.x > 0)
        return;
    T rcond = refused < 0 ? nan : refused ? T(0) : mind.rcond();
    ((int32_t *)to->outputs[METHOD_ITERATIVE_INFO])[within] = mind.info();
    ((T *)to->outputs[METHOD_ITERATIVE_RCOND])[within] = rcond;
    ((int32_t *)to->outputs[METHOD_ITERATIVE_ALGORITHM])[within] =
        refused ? (int32_t)METHOD_ALGORITHM_NONE : state.best_algorithm;
    ((int32_t *)to->outputs[METHOD_ITERATIVE_ITERATIONS])[within] = refused ? 0 : state.best_steps;
    if (T *residual = (T *)to->outputs[METHOD_ITERATIVE_RESIDUAL])
        residual[within] = refused ? nan : mind.reported();
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_store_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    const cuda__iter_state &state = view.state();
    int64_t within;
    const cuda_tensors *to = view.item(&within);
    if (state.action != CUDA__ITER_STORE)
        return;
    if (blockIdx.x == 0 && blockIdx.z == 0)
        cuda__iter_report(view, to, within);
    T *inverse = (T *)to->outputs[METHOD_ITERATIVE_INVERSE];
    if (!inverse || view.i >= call.n)
        return;
    inverse += (within * call.n + view.i) * call.n;
    const T *from = view.row(state.is_current ? CUDA__ITER_MATRIX_V : CUDA__ITER_MATRIX_BEST);
    if (state.refused)
        view.each([&](int64_t) { return cuda__real<T>::nan(); },
                  [&](int64_t j, T x) { inverse[j] = x; });
    else if (state.scaled)
        view.scale_row(inverse, from, view.column_exponents()[view.i], view.row_exponents(), 1);
    else
        view.copy_row(inverse, from);
}

/* Its turn is over; a block a matrix. */
template <typename T>
static __global__ void cuda__iter_rest_kernel(const cuda__iter_call call, const cuda__iter_run run)
{
    cuda__iter_view<T> view(call, run);
    cuda__iter_state &state = view.state();
    if (state.action != CUDA__ITER_STORE)
        return;
    state.action = CUDA__ITER_REST;
    state.share = METHOD_PROGRESS_WHOLE;
    cuda__iter_tell(call, view.index, state);
}

/* ---- Launches ---- */

template <typename T> struct cuda__iter_launch {
    typedef cuda__iter_call call;
    typedef cuda__iter_run run;

    /* A warp a row, and a block some columns. */
    template <typename... Parameters, typename... Arguments>
    static cudaError_t rows(void (*kernel)(Parameters...), const call *of, run which,
                            cudaStream_t stream, const Arguments &...arguments)
    {
        unsigned blocks = (unsigned)((of->n + CUDA__ITER_ROWS - 1) / CUDA__ITER_ROWS);
        unsigned across = (unsigned)((of->n + CUDA__ITER_COLUMNS - 1) / CUDA__ITER_COLUMNS);
        return cuda__start(kernel, dim3(blocks, (unsigned)which.count, across), CUDA__ITER_THREADS,
                           0, stream, *of, which, arguments...);
    }

    /* A block of so many threads a matrix. */
    template <typename... Parameters>
    static cudaError_t one(void (*kernel)(Parameters...), const call *of, run which, int threads,
                           cudaStream_t stream)
    {
        return cuda__start(kernel, dim3(1, (unsigned)which.count), threads, 0, stream, *of, which);
    }

    static cudaError_t load(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_load_kernel<T>, of, which, stream);
    }
    static cudaError_t begin(const call *of, run which, cudaStream_t stream)
    {
        return one(cuda__iter_begin_kernel<T>, of, which, 1, stream);
    }
    static cudaError_t scale(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_scale_kernel<T>, of, which, stream);
    }
    static cudaError_t prepare(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_prepare_kernel<T>, of, which, stream);
    }
    static cudaError_t warm(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_warm_kernel<T>, of, which, stream);
    }
    static cudaError_t alpha(const call *of, run which, cudaStream_t stream)
    {
        return one(cuda__iter_alpha_kernel<T>, of, which, CUDA__ITER_THREADS, stream);
    }
    static cudaError_t diagonal(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_diagonal_kernel<T>, of, which, stream);
    }
    static cudaError_t narrow(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_narrow_kernel<T>, of, which, stream);
    }
    static cudaError_t widen(const call *of, run which, cudaStream_t stream)
    {
        return rows(cuda__iter_widen_kernel<T>, of, which, stream);
    }
    static cudaError_t sum(const call *of, run which, const cuda__iter_sums *sums,
                           cudaStream_t stream)
    {
        return rows(cuda__iter_sum_kernel<T>, of, which, stream, *sums);
    }
    static cudaError_t residual(const call *of, run which, bool judges, cudaStream_t stream)
    {
        return rows(cuda__iter_residual_kernel<T>, of, which, stream, judges);
    }
    static cudaError_t rounding(const call *of, run which, cudaStream_t stream)
    {
        unsigned blocks = (unsigned)((of->n + CUDA__ITER_THREADS - 1) / CUDA__ITER_THREADS);
        dim3 grid(blocks, (unsigned)which.count, ITERATION_SIGNS);
        cudaError_t status = cuda__start(cuda__iter_lines_kernel<T>, grid, CUDA__ITER_THREADS, 0,
                                         stream, *of, which);
        if (status == cudaSuccess)
            status = cuda__start(cuda__iter_errors_kernel<T>, grid, CUDA__ITER_THREADS, 0, stream,
                                 *of, which);
        return status != cudaSuccess
                   ? status
                   : one(cuda__iter_rounding_kernel<T>, of, which, CUDA__ITER_THREADS, stream);
    }
    static cudaError_t terms(const call *of, run which, int action, cudaStream_t stream)
    {
        unsigned blocks = (unsigned)((of->n + CUDA__ITER_THREADS - 1) / CUDA__ITER_THREADS);
        dim3 grid(blocks, (unsigned)which.count), alone(1, (unsigned)which.count);
        cudaError_t status = cuda__start(cuda__iter_sizes_kernel<T>, grid, CUDA__ITER_THREADS, 0,
                                         stream, *of, which, action);
        if (status == cudaSuccess)
            status = cuda__start(cuda__iter_terms_kernel<T>, grid, CUDA__ITER_THREADS, 0, stream,
                                 *of, which, action);
        return status != cudaSuccess
                   ? status
                   : cuda__start(cuda__iter_max_terms_kernel<T>, alone, CUDA__ITER_THREADS, 0,
                                 stream, *of, which, action);
    }
    static cudaError_t shift(const call *of, run which, int matrix, double value,
                             cudaStream_t stream)
    {
        unsigned blocks = (unsigned)((of->n + CUDA__ITER_THREADS - 1) / CUDA__ITER_THREADS);
        return cuda__start(cuda__iter_shift_kernel<T>, dim3(blocks, (unsigned)which.count),
                           CUDA__ITER_THREADS, 0, stream, *of, which, matrix, value);
    }
    static cudaError_t commit(const call *of, run which, int action, int matrix, bool adds,
                              cudaStream_t stream)
    {
        return rows(cuda__iter_commit_kernel<T>, of, which, stream, action, matrix, adds);
    }
    static size_t measure_bytes(int64_t n)
    {
        return (size_t)cuda__iter_pieces_of<T>(n).numbers() * sizeof(double);
    }
    static cudaError_t measure(const call *of, run which, int action, cudaStream_t stream)
    {
        return cuda__iter_start_measure<T>(*of, which, action, stream);
    }
    static cudaError_t store(const call *of, run which, cudaStream_t stream)
    {
        cudaError_t status = rows(cuda__iter_store_kernel<T>, of, which, stream);
        return status != cudaSuccess ? status
                                     : one(cuda__iter_rest_kernel<T>, of, which, 1, stream);
    }

    static constexpr cuda__iter_kernels kernels()
    {
        return {sizeof(cuda__iter_state),
                load,
                begin,
                scale,
                prepare,
                warm,
                alpha,
                diagonal,
                narrow,
                widen,
                sum,
                residual,
                rounding,
                terms,
                shift,
                commit,
                measure_bytes,
                measure,
                store};
    }
};

extern "C" const struct cuda__iter_kernels R(cuda__iter) = cuda__iter_launch<REAL>::kernels();
