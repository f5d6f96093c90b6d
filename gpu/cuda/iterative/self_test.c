/* gpu/cuda/iterative/self_test.c: the self-test of `iterative`: see self_test.h. Random matrices
 * and dominant ones, by every scheme and from every start once, judged by |I - X A| / (n |A| |X|
 * eps).
 */
#include "gpu/cuda/base/pool.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/methods/iterative.h"
#include "gpu/process/self_test.h"

#define MATRICES 3
#define N_MAX 40
#define NUMBERS (N_MAX * N_MAX)
#define STARTS (METHOD_ITERATIVE_SCALED_IDENTITY + 1)

/* Pinned: what one call reads and writes. The numbers are of either precision. */
struct bench {
    double a[MATRICES * NUMBERS], x[MATRICES * NUMBERS];
    double rcond[MATRICES], residual[MATRICES];
    int32_t info[MATRICES], algorithm[MATRICES], iterations[MATRICES];
    struct cuda_tensors item;
    struct cuda_notes notes;
};

/* Matrix k's ratio; infinite when INFO says that there is no answer. */
static double ratio_of(const struct bench *h_bench, enum precision precision, int64_t n, int64_t k)
{
    if (h_bench->info[k] != 0)
        return HUGE_VAL;
    return process_trial_ratio(precision, n, h_bench->a, h_bench->x, k);
}

/* All visits of one call. */
static cudaError_t run(struct cuda_pool *pool, struct cuda_call *call, cudaStream_t stream)
{
    struct cuda_block block = {0};
    size_t bytes = cuda_iterative_workspace(call, 1);
    cudaError_t status = cuda_pool_take(pool, false, bytes, bytes, &block);
    call->workspace = block.d_data;
    call->workspace_bytes = block.bytes;
    call->notes->asked = 0;
    if (status == cudaSuccess)
        status = cuda_iterative(call, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    while (status == cudaSuccess && call->notes->asked) {
        call->notes->asked = 0;
        status = cuda_iterative_again(call, stream);
        if (status == cudaSuccess)
            status = cudaStreamSynchronize(stream);
    }
    cuda_pool_give(pool, &block);
    return status;
}

/* Random matrices, made dominant for the starts that want it. */
static void fill(struct bench *h_bench, enum precision precision, int64_t n, bool dominant)
{
    process_trial_fill(precision, h_bench->a, MATRICES * n * n);
    for (int64_t k = 0; dominant && k < MATRICES * n; k++) {
        int64_t at = k / n * n * n + k % n * (n + 1);
        if (precision == PRECISION_FP32)
            ((float *)h_bench->a)[at] = (float)(2 * n);
        else
            h_bench->a[at] = (double)(2 * n);
    }
    memset(h_bench->x, 0xa5, sizeof h_bench->x);
}

static cudaError_t try(struct bench *h_bench, struct bench *seen, struct cuda_call *call,
                       struct cuda_pool *pool, cudaStream_t stream, double *worst)
{
    static const int64_t orders[] = {1, 20, N_MAX};
    int64_t options[METHOD_OPTIONS_MAX] = {[METHOD_ITERATIVE_MAX_ITERATIONS] = 100};
    cudaError_t status = cudaSuccess;
    h_bench->item =
        (struct cuda_tensors){.inputs = {seen->a},
                              .outputs = {[METHOD_ITERATIVE_INVERSE] = seen->x,
                                          [METHOD_ITERATIVE_INFO] = seen->info,
                                          [METHOD_ITERATIVE_RCOND] = seen->rcond,
                                          [METHOD_ITERATIVE_ALGORITHM] = seen->algorithm,
                                          [METHOD_ITERATIVE_ITERATIONS] = seen->iterations,
                                          [METHOD_ITERATIVE_RESIDUAL] = seen->residual}};
    call->options = options;
    call->notes = &h_bench->notes;
    call->d_notes = &seen->notes;
    call->tensors = &seen->item;
    for (int k = 0; k < METHOD_ITERATIVE_SCHEMES && status == cudaSuccess; k++) {
        int64_t initial = k % STARTS;
        call->n = orders[k % 3];
        options[METHOD_ITERATIVE_SCHEME] = k;
        options[METHOD_ITERATIVE_INITIAL] = initial;
        /* What the pool can never hold is never run. */
        if (cuda_iterative_workspace(call, 1) > cuda_pool_bytes_max(pool))
            continue;
        fill(h_bench, call->precision, call->n, initial != METHOD_ITERATIVE_TRANSPOSE);
        status = run(pool, call, stream);
        for (int64_t m = 0; m < MATRICES && status == cudaSuccess; m++) {
            double ratio = ratio_of(h_bench, call->precision, call->n, m);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    return status;
}

cudaError_t cuda__try_iterative(struct cuda_pool *pool, struct cuda_products *products,
                                enum precision precision, cudaStream_t stream, double *worst)
{
    void *memory = NULL, *seen = NULL;
    struct cuda_call call = {.precision = precision,
                             .item_count = 1,
                             .matrices = MATRICES,
                             .inputs = UINT32_C(1) << METHOD_ITERATIVE_A,
                             .wanted = UINT32_C(1) << METHOD_ITERATIVE_INVERSE,
                             .products = products};
    *worst = 0;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = try(memory, seen, &call, pool, stream, worst);
    cudaFreeHost(memory);
    return status;
}
