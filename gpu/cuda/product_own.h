/* gpu/cuda/product_own.h: the road of product.h that needs no library: tiles of C, one a block, by
 * the warps of lu_tile.cuh.
 *
 * An entry's products are added in the order of the inner index, from the first to the last, by one
 * warp: the bits do not depend on the tiles, the count, or where the operands lie. Private to the
 * folder. Host code, any thread, with its own stream.
 */
#ifndef GPU_CUDA_PRODUCT_OWN_H
#define GPU_CUDA_PRODUCT_OWN_H

#include "gpu/cuda/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a product that cuda_product has found valid, and not empty. One launch. */
cudaError_t cuda__product_own(const struct cuda_product *product, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
