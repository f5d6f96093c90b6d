/* The host's matrices that are badly scaled, through the CUDA engine's kernels, on the SIMT
 * stand-in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/lu/lu.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"

#define VISITS_MAX 20

static struct cuda_products *products(void)
{
    static struct cuda_products *made;
    if (!made)
        assert_int_equal(cuda_products_create(NULL, &made), cudaSuccess);
    return made;
}

/* `lu`, and recovery where the device asks for it. */
static void run_lu(enum precision precision, int64_t n, const struct cuda_tensors *tensors)
{
    const bool small = n <= CUDA_SMALL_N_MAX;
    const size_t bytes = small ? 1 : cuda_inverse_middle_workspace(precision, n, 1);
    uint32_t unverified = 0;
    const struct cuda_item item = {.a = tensors->inputs[0],
                                   .result = tensors->outputs[METHOD_OUTPUT_INVERSE],
                                   .extra = tensors->outputs[METHOD_OUTPUT_RCOND],
                                   .info = tensors->outputs[METHOD_OUTPUT_INFO]};
    const struct cuda_batch batch = {&item, 1, 1, &unverified};
    void *space;
    assert_int_equal(cudaMalloc(&space, bytes), cudaSuccess);
    cudaError_t status =
        small ? cuda_inverse_small(precision, n, &batch, NULL)
              : cuda_inverse_middle(precision, n, &batch, space, bytes, products(), NULL);
    if (status == cudaSuccess && unverified > 0)
        status = small ? cuda_recover_small(precision, n, &batch, NULL)
                       : cuda_recover_middle(precision, n, &batch, space, bytes, products(), NULL);
    if (status != cudaSuccess)
        fail_msg("status %d: %s", (int)status, simt_report());
    cudaFree(space);
}

/* `auto`, which sorts all orders here. */
static void run_auto(enum precision precision, int64_t n, const struct cuda_tensors *tensors)
{
    static const int64_t options[METHOD_OPTIONS_MAX];
    struct cuda_notes notes = {0};
    struct cuda_call call = {.precision = precision,
                             .n = n,
                             .options = options,
                             .item_count = 1,
                             .matrices = 1,
                             .inputs = 1,
                             .wanted = 15,
                             .tensors = tensors,
                             .notes = &notes,
                             .d_notes = &notes,
                             .products = products()};
    call.workspace_bytes = cuda__auto_bytes(&call, true, 1);
    assert_int_equal(cudaMalloc(&call.workspace, call.workspace_bytes), cudaSuccess);
    cudaError_t status = cuda__auto_begin(&call, true, NULL);
    for (int visits = 0; status == cudaSuccess && notes.asked && visits < VISITS_MAX; visits++) {
        notes.asked = 0;
        status = cuda_auto_again(&call, NULL);
    }
    if (status != cudaSuccess || notes.asked)
        fail_msg("status %d: %s", (int)status, simt_report());
    cudaFree(call.workspace);
}

/* In place of gputest_run. */
static struct gputest_answer run_on_device(const char *method, enum precision precision, int64_t n,
                                           const double *a, bool spd)
{
    const bool narrow = precision == PRECISION_FP32;
    struct gputest_answer answer = {.inverse = gputest_numbers(n * n), .n = n};
    double *from = gputest_numbers(n * n), *to = gputest_numbers(n * n), rcond = 0;
    float rcond_narrow = 0;
    assert_false(spd);
    for (int64_t k = 0; k < n * n; k++) {
        if (narrow)
            ((float *)from)[k] = (float)a[k];
        else
            from[k] = a[k];
    }
    struct cuda_tensors tensors = {.inputs = {from}};
    tensors.outputs[METHOD_OUTPUT_INVERSE] = to;
    tensors.outputs[METHOD_OUTPUT_INFO] = &answer.info;
    tensors.outputs[METHOD_OUTPUT_RCOND] = narrow ? (void *)&rcond_narrow : &rcond;
    tensors.outputs[METHOD_OUTPUT_ALGORITHM] = &answer.algorithm;
    (strcmp(method, "auto") == 0 ? run_auto : run_lu)(precision, n, &tensors);
    answer.rcond = narrow ? rcond_narrow : rcond;
    for (int64_t k = 0; k < n * n; k++)
        answer.inverse[k] = narrow ? ((float *)to)[k] : to[k];
    free(from);
    free(to);
    return answer;
}

#define gputest_run run_on_device
#define FAMILY 3000 /* the stand-in takes 25 s for 10000 */
#define ORDER_MAX 40
#include "tests/unit/gpu/host/test_scaling.c"
