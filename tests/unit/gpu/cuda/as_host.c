/* tests/unit/gpu/cuda/as_host.c: see as_host.h. */
#include "tests/unit/gpu/cuda/as_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/tridiagonal/tridiagonal.h"
#include "tests/simt/simt.h"

static void run(const struct host_matrix *matrix, enum precision precision)
{
    struct cuda_tensors tensors = {0};
    struct cuda_call call = {.precision = precision,
                             .n = matrix->n,
                             .options = matrix->options,
                             .item_count = 1,
                             .matrices = 1,
                             .tensors = &tensors};
    memcpy(tensors.inputs, matrix->inputs, sizeof tensors.inputs);
    memcpy(tensors.outputs, matrix->outputs, sizeof tensors.outputs);
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        call.wanted |= matrix->outputs[i] ? UINT32_C(1) << i : 0;
    call.workspace_bytes = cuda_tridiagonal_workspace(&call, 1);
    assert_int_equal(cudaMalloc(&call.workspace, call.workspace_bytes), cudaSuccess);
    if (cuda_tridiagonal(&call, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    cudaFree(call.workspace);
}

static void run_f32(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP32);
}

static void run_f64(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP64);
}

/* What any variant needs where X is not wanted; the kernels get a workspace of their own. */
static int64_t scratch_bytes(int64_t n, int64_t m)
{
    int64_t options[METHOD_OPTIONS_MAX] = {1};
    (void)m;
    struct cuda_call call = {.precision = PRECISION_FP64, .n = n, .options = options};
    int64_t bytes = (int64_t)cuda_tridiagonal_workspace(&call, 1);
    return (bytes + HOST_ALIGN_BYTES - 1) / HOST_ALIGN_BYTES * HOST_ALIGN_BYTES;
}

const struct host_method *cudatest_method_at(uint32_t index, enum precision precision)
{
    static const struct host_method methods[] = {
        [PRECISION_FP32] = {.name = "tridiagonal", .run = run_f32, .scratch_bytes = scratch_bytes},
        [PRECISION_FP64] = {.name = "tridiagonal", .run = run_f64, .scratch_bytes = scratch_bytes}};
    (void)index;
    return &methods[precision];
}

/* The cases' own way to run a method, once more, for this one. */
#define host_method_at cudatest_method_at
#include "tests/unit/gpu/host/band_run.c"
