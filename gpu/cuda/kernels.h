/* gpu/cuda/kernels.h: launchers of the fused kernels for n <= CUDA_SMALL_N_MAX.
 *
 * A launcher puts one kernel into the caller's stream and returns. It allocates nothing, waits for
 * nothing, and needs no workspace. Every matrix is read once and every result written once, where
 * the items say: device memory, or pinned host memory the device can reach. Items may overlap
 * nowhere, except that a result may be its own input.
 *
 * The bits of a result depend on the matrix, n and the precision alone: not on its place in the
 * batch, its alignment or its neighbours.
 *
 * Cost: two n x n matrices of memory traffic each; see tuning_h200.cuh for the shapes. Any thread
 * may call, with its own stream.
 */
#ifndef GPU_CUDA_KERNELS_H
#define GPU_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "base/datatype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_SMALL_N_MAX 32

/* Where an item's tensors start, as the device sees them: dense, row-major, matrix after matrix,
 * aligned to their elements at least. NULL: an output nobody wants. */
struct cuda_item {
    const void *a; /* n x n */
    void *result;  /* n x n: the inverse, or LU of A as written */
    void *extra;   /* inverse: RCOND, one number of the precision. LU: pivots, n of int32, from 1 */
    int32_t *info; /* one number a matrix */
    int64_t first; /* matrices of all items before this one */
};

/* items is read by the device; item k holds matrices items[k].first up to items[k + 1].first. */
struct cuda_batch {
    const struct cuda_item *items;
    int64_t item_count;
    int64_t matrices;
};

/* The meaning of INFO, RCOND and the NaN fill is the methods' (gpu/method.h). 1 <= n <=
 * CUDA_SMALL_N_MAX, anything else is cudaErrorInvalidValue; no matrices is no launch. */
cudaError_t cuda_inverse_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream);
cudaError_t cuda_factor_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                              cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
