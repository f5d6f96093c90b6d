/* tests/unit/gpu/cuda/ism_host.c: see ism_host.h. */
#include "tests/unit/gpu/cuda/ism_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/ism/ism.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/stream.h"
#include "tests/unit/gpu/host/matrices.h"

static void run(const struct host_matrix *matrix, enum precision precision)
{
    static struct cuda_products *products; /* of all runs */
    struct cuda_tensors tensors = {0};
    uint32_t unverified = 0;
    struct cuda_call call = {.precision = precision,
                             .n = matrix->n,
                             .m = matrix->m,
                             .options = matrix->options,
                             .item_count = 1,
                             .matrices = 1,
                             .tensors = &tensors,
                             .batch = {.unverified = &unverified}};
    memcpy(tensors.inputs, matrix->inputs, sizeof tensors.inputs);
    memcpy(tensors.outputs, matrix->outputs, sizeof tensors.outputs);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        call.inputs |= matrix->inputs[i] ? UINT32_C(1) << i : 0;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        call.wanted |= matrix->outputs[i] ? UINT32_C(1) << i : 0;
    call.workspace_bytes = cuda_ism_workspace(&call, 1);
    assert_int_equal(cudaMalloc(&call.workspace, call.workspace_bytes), cudaSuccess);
    memset(call.workspace, 0xff, call.workspace_bytes);
    if (!products)
        assert_int_equal(cuda_products_create(NULL, &products), cudaSuccess);
    call.products = products;
    if (cudatest_await(cuda_ism(&call, cudatest_stream())) != cudaSuccess)
        fail_msg("%s", simt_report());
    assert_in_range(unverified, 0, 1);
    cudaFree(call.workspace);
    call.to_recover = unverified;
    cudatest_recover_ism(&call);
}

void cudatest_recover_ism(struct cuda_call *call)
{
    if (call->to_recover == 0)
        return;
    call->workspace_bytes = cuda_ism_recover_workspace(call, call->to_recover);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), cudaSuccess);
    memset(call->workspace, 0xff, call->workspace_bytes);
    if (cudatest_await(cuda_ism_recover(call, cudatest_stream())) != cudaSuccess)
        fail_msg("%s", simt_report());
    cudaFree(call->workspace);
}

static void run_f32(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP32);
}

static void run_f64(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP64);
}

/* The kernels get a workspace of their own. */
static int64_t scratch_bytes(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return HOST_ALIGN_BYTES;
}

static int64_t task_scratch_bytes(const struct host_task *task)
{
    (void)task;
    return HOST_ALIGN_BYTES;
}

const struct host_method cudatest_method_ism_f32 = {.name = "ism",
                                                    .run = run_f32,
                                                    .scratch_bytes = scratch_bytes,
                                                    .task_scratch_bytes = task_scratch_bytes};
const struct host_method cudatest_method_ism_f64 = {.name = "ism",
                                                    .run = run_f64,
                                                    .scratch_bytes = scratch_bytes,
                                                    .task_scratch_bytes = task_scratch_bytes};

/* ---- What an update is worth ---- */

typedef __float128 wide;

/* The largest column's sum of magnitudes. */
static wide norm_of(int64_t n, const wide *a)
{
    wide largest = 0;
    for (int64_t j = 0; j < n; j++) {
        wide sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += a[i * n + j] < 0 ? -a[i * n + j] : a[i * n + j];
        largest = sum <= largest ? largest : sum;
    }
    return largest;
}

static wide *wides(int64_t count)
{
    wide *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    return numbers;
}

/* to (rows x columns) += a (rows x inner) b, by steps from number to number. */
static void add_product(int64_t rows, int64_t columns, int64_t inner, const double *a,
                        int64_t row_step, int64_t inner_step, const wide *b, wide *to)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < inner; k++) {
            for (int64_t j = 0; j < columns; j++)
                to[i * columns + j] += (wide)a[i * row_step + k * inner_step] * b[k * columns + j];
        }
    }
}

double cudatest_solution_ratio(const struct ismtest_problem *problem, const double *inverse)
{
    int64_t n = problem->n, m = problem->m;
    wide *b = wides(n * n), *k = wides(m * n), *change = wides(n * n), *z = wides(n * n);
    wide *error = wides(n * n);
    for (int64_t e = 0; e < n * n; e++) {
        b[e] = problem->b[e];
        z[e] = inverse[e];
    }
    add_product(m, n, n, problem->y, 1, m, b, k);
    add_product(n, n, m, problem->x, m, 1, k, change);
    add_product(n, n, n, inverse, n, 1, change, error);
    for (int64_t e = 0; e < n * n; e++)
        error[e] += z[e] - b[e];
    wide size = norm_of(n, z) * (1 + norm_of(n, change));
    double ratio = (double)(norm_of(n, error) / size);
    free(b);
    free(k);
    free(change);
    free(z);
    free(error);
    return ratio / ((double)n * gputest_eps(problem->precision));
}

/* The cases' own way to run a problem, once more, for this method. */
#include "tests/unit/gpu/host/ism.c"
