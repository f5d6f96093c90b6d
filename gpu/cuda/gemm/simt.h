/* gpu/cuda/gemm/simt.h: the algorithm of gemm.h that needs no library: tiles of C, one a block, by
 * the warps of base/mma_tile.cuh.
 *
 * An entry's products are added in the order of the inner index, from the first to the last, by one
 * warp: the bits do not depend on the tiles, the count, or where the operands lie. Private to the
 * folder. Host code, any thread, with its own stream.
 */
#ifndef GPU_CUDA_GEMM_SIMT_H
#define GPU_CUDA_GEMM_SIMT_H

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a product that cuda_product has found valid, and not empty. One launch. */
cudaError_t cuda__product_own(const struct cuda_product *product, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
