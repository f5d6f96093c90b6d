/* tests/unit/gpu/cuda/ism/ism_host.c: see ism_host.h. */
#include "tests/unit/gpu/cuda/ism/ism_host.h"

#include <math.h>
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

/* The cases' own way to run a problem, once more, for this method. */
#include "tests/unit/gpu/host/ism.c"

void cudatest_check_solution(struct ismtest_problem *problem, enum method_algorithm algorithm)
{
    struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.info, 0);
    assert_true(isnan(answer.rcond));
    if (algorithm != METHOD_ALGORITHM_NONE)
        assert_int_equal(answer.algorithm, algorithm);
    assert_true(ismtest_solution_ratio(problem, answer.inverse) <= GPUTEST_RATIO_MAX);
    ismtest_forget(&answer);
    ismtest_free(problem);
}
