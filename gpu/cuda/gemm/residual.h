/* gpu/cuda/gemm/residual.h: how far X A and A X are from I, for a batch of matrices and their
 * inverses.
 *
 * Products are summed in double for both precisions. Nothing is awaited and no workspace is needed.
 * A number's bits depend on its matrix alone. Threads: any, each with its own stream. Cost: 2 n^3
 * operations a side, not on the tensor cores, and three launches.
 */
#ifndef GPU_CUDA_GEMM_RESIDUAL_H
#define GPU_CUDA_GEMM_RESIDUAL_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "base/datatype.h"
#include "gpu/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where an item's tensors start, as in struct cuda_item. */
struct cuda_residual_item {
    const void *a, *x; /* n x n */
    const void *rcond; /* one number a matrix: (1 / |A|) / |X| */
    void *ratios[2];   /* by enum method_side, one number a matrix; NULL: not wanted */
    int64_t first;     /* matrices of all items before this one */
};

struct cuda_residual_batch {
    const struct cuda_residual_item *items; /* read by the device */
    int64_t item_count, matrices, n;
};

/* ratios: become |I - X A| / (n |A| |X| eps) and the same of A X, in the 1-norm; NaN where X holds
 * one. */
cudaError_t cuda_residuals(enum precision precision, const struct cuda_residual_batch *batch,
                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
