/* gpu/cuda/base/self_test.c: see self_test.h. */
#include "gpu/cuda/base/self_test.h"

#include <math.h>

/* All visits of one call, with a workspace from the pool. */
static cudaError_t run(const struct cuda__self_rows *rows, struct cuda_call *call,
                       struct cuda_pool *pool, cudaStream_t stream)
{
    struct cuda_block block = {0};
    size_t bytes = rows->workspace(call, 1);
    cudaError_t status = cuda_pool_take(pool, false, bytes, bytes, &block);
    call->workspace = block.d_data;
    call->workspace_bytes = block.bytes;
    if (rows->again)
        call->notes->asked = 0;
    if (status == cudaSuccess)
        status = rows->launch(call, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    while (status == cudaSuccess && rows->again && call->notes->asked) {
        call->notes->asked = 0;
        status = rows->again(call, stream);
        if (status == cudaSuccess)
            status = cudaStreamSynchronize(stream);
    }
    cuda_pool_give(pool, &block);
    return status;
}

cudaError_t cuda__self_test(const struct cuda__self_rows *rows, struct cuda_pool *pool,
                            struct cuda_products *products, enum precision precision,
                            cudaStream_t stream, double *worst)
{
    void *memory = NULL, *seen = NULL;
    *worst = 0;
    cudaError_t status = cudaHostAlloc(&memory, rows->bench_bytes, cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    for (int k = 0; k < rows->cases && status == cudaSuccess; k++) {
        struct cuda__self_case of = {.h_bench = memory, .d_bench = seen};
        of.call = (struct cuda_call){.precision = precision,
                                     .options = of.options,
                                     .item_count = 1,
                                     .matrices = rows->matrices,
                                     .products = products};
        rows->fill(&of, k);
        if (rows->workspace(&of.call, 1) > cuda_pool_bytes_max(pool))
            continue;
        status = run(rows, &of.call, pool, stream);
        for (int64_t m = 0; m < rows->matrices && status == cudaSuccess; m++) {
            double ratio = rows->ratio(&of, m);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    cudaFreeHost(memory);
    return status;
}
