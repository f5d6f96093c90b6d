/* gpu/cuda/iterative/twice.cuh: the residual in twice the precision, and what rounding hides of it,
 * as gpu/host/iterative/twice.c has them. For matrices that are judged; up to
 * ITERATION_TWICE_ORDER_MAX for all. Device code.
 */
#ifndef GPU_CUDA_ITERATIVE_TWICE_CUH
#define GPU_CUDA_ITERATIVE_TWICE_CUH

#include "gpu/cuda/iterative/view.cuh"
#include "gpu/cuda/base/twice.cuh"
#include "gpu/common/iteration.h"

/* ---- The whole residual ---- */

/* Entry (i, j) of I - V A. */
template <typename T>
static __device__ T cuda__iter_residual_entry(const cuda__iter_view<T> &view, int j)
{
    const T *left = view.row(CUDA__ITER_MATRIX_V), *right = view.matrix(CUDA__ITER_MATRIX_A) + j;
    cuda__twice<double> sum = {j == view.i ? 1.0 : 0.0, 0};
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
 * second those of |V| |A|'s; and the largest of these to the state, by a block a matrix. action:
 * whose. */
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
        sum += fabs((double)v[i * call.ld]);
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
    ((double *)view.matrix(CUDA__ITER_MATRIX_SPARE + 1))[j] = sum;
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
        most = terms[j] <= most ? most : terms[j]; /* a NaN stays */
    largest[threadIdx.x] = most;
    __syncthreads();
    for (int t = 1; threadIdx.x == 0 && t < CUDA__ITER_THREADS; t++)
        most = largest[t] <= most ? most : largest[t];
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
    cuda__twice<double> sum = {0, 0};
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
    cuda__twice<double> sum = {-cuda__iter_sign(j, blockIdx.z), 0};
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
        most = square <= most ? most : square; /* a NaN stays */
        all += square;
    }
    largest[threadIdx.x] = most;
    sums[threadIdx.x] = all;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int t = 1; t < CUDA__ITER_THREADS; t++) {
        most = largest[t] <= most ? most : largest[t];
        all += sums[t];
    }
    double *factors = call.space.factors + 2 * view.index;
    factors[0] = ITERATION_SIGNS_MARGIN * sqrt((double)call.n * most);
    factors[1] = sqrt(all);
}

#endif
