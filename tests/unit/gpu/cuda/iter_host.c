/* tests/unit/gpu/cuda/iter_host.c: see iter_host.h. */
#include "tests/unit/gpu/cuda/iter_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/methods/iterative.h"
#include "tests/simt/simt.h"

#define VISITS_MAX 5000
#define NOISE 0xff /* a NaN, of whatever is read before it is written */

static struct cuda_products *products(void)
{
    static struct cuda_products *made;
    if (!made)
        assert_int_equal(cuda_products_create(NULL, &made), cudaSuccess);
    return made;
}

static enum cudatest_steps steps_to_follow;

void cudatest_iterative_steps(enum cudatest_steps steps)
{
    steps_to_follow = steps;
}

static void change(struct cuda_notes *notes, int64_t count)
{
    for (int64_t i = 0; steps_to_follow != CUDATEST_STEPS_REPORTED && i < count; i++) {
        int action = cuda__iter_action_of(notes->next[i]);
        bool more = action >= CUDA__ITER_STEP && action < CUDA__ITER_LAST &&
                    steps_to_follow == CUDATEST_STEPS_MAX;
        notes->next[i] =
            (uint8_t)(action | (more ? CUDA__ITER_MORE_MAX : 0) << CUDA__ITER_NOTE_BITS);
    }
}

int cudatest_iterative_run(struct cuda_call *call, int64_t at_once)
{
    struct cuda_notes notes;
    memset(&notes, NOISE, sizeof notes);
    call->notes = call->d_notes = &notes;
    call->products = products();
    call->workspace_bytes = cuda_iterative_workspace(call, at_once);
    assert_true(call->workspace_bytes < SIZE_MAX);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), cudaSuccess);
    cudaMemset(call->workspace, NOISE, call->workspace_bytes);
    notes.asked = 0;
    notes.progress = 0;
    int launches = 1;
    cudaError_t status = cuda_iterative(call, NULL);
    for (; status == cudaSuccess && notes.asked && launches < VISITS_MAX; launches++) {
        uint64_t before = notes.progress;
        notes.asked = 0;
        change(&notes, CUDA_NOTES_MAX);
        status = cuda_iterative_again(call, NULL);
        assert_true(notes.progress >= before);
        assert_true(notes.progress < (uint64_t)call->matrices * METHOD_PROGRESS_WHOLE);
    }
    if (status != cudaSuccess)
        fail_msg("status %d: %s", (int)status, simt_report());
    assert_int_equal(notes.asked, 0);
    cudaFree(call->workspace);
    return launches;
}

static void run(const struct host_matrix *matrix, enum precision precision)
{
    struct cuda_tensors tensors = {0};
    struct cuda_call call = {.precision = precision,
                             .n = matrix->n,
                             .options = matrix->options,
                             .item_count = 1,
                             .matrices = 1,
                             .inputs = 1,
                             .tensors = &tensors};
    memcpy(tensors.inputs, matrix->inputs, sizeof tensors.inputs);
    memcpy(tensors.outputs, matrix->outputs, sizeof tensors.outputs);
    call.inputs |= matrix->inputs[METHOD_ITERATIVE_V0] ? 1U << METHOD_ITERATIVE_V0 : 0;
    for (int t = 0; t < METHOD_OUTPUTS_MAX; t++)
        call.wanted |= tensors.outputs[t] ? UINT32_C(1) << t : 0;
    (void)cudatest_iterative_run(&call, 1);
}

static void run_f32(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP32);
}

static void run_f64(const struct host_matrix *matrix)
{
    run(matrix, PRECISION_FP64);
}

static int64_t scratch_bytes(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return HOST_ALIGN_BYTES;
}

static bool of_host;

void cudatest_iterative_of_host(bool is_host)
{
    of_host = is_host;
}

const struct host_method *cudatest_iterative_at(uint32_t index, enum precision precision)
{
    static const struct host_method methods[] = {
        [PRECISION_FP32] = {.name = "iterative", .run = run_f32, .scratch_bytes = scratch_bytes},
        [PRECISION_FP64] = {.name = "iterative", .run = run_f64, .scratch_bytes = scratch_bytes}};
    return of_host ? host_method_at(index, precision) : &methods[precision];
}
