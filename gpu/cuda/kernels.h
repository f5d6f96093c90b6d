/* gpu/cuda/kernels.h: launchers of the fused kernels for n <= CUDA_SMALL_N_MAX.
 *
 * A launcher puts one kernel into the caller's stream and returns. It allocates nothing, waits for
 * nothing, and needs no workspace. Every matrix is read once and every result written once, where
 * the items say: device memory, or pinned host memory the device can reach. Items may overlap
 * nowhere, inputs and results neither: a doubtful matrix is read again by cuda_mend_small.
 *
 * The bits of a result depend on the matrix, n and the precision alone: not on its place in the
 * batch, its alignment or its neighbours.
 *
 * Cost: two n x n matrices of memory traffic each; see the tuning tables for the shapes. Any thread
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

/* From this order on an inverse is tried on a vector, because partial pivoting may have spoilt it.
 * One that fails is doubtful. Of any order so is one that is not finite, for a denormal pivot may
 * have had no reciprocal, and a zero pivot of a matrix that was scaled down, where a small one may
 * have vanished, or of one whose numbers are far apart, where denormal ones may have been taken for
 * zeros. A doubtful inverse has an INFO of CUDA_INFO_DOUBTFUL or up to n more, and cuda_mend_small
 * must follow before the results are used. Items of inverses must have INFO. */
#define CUDA_TRIED_N_LEAST 9
#define CUDA_INFO_DOUBTFUL INT32_MIN

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
    uint32_t *doubtful; /* the device adds the number of doubtful inverses; NULL: not counted */
};

/* The meaning of INFO, RCOND and the NaN fill is the methods' (gpu/method.h). 1 <= n <=
 * CUDA_SMALL_N_MAX, anything else is cudaErrorInvalidValue; no matrices is no launch. */
cudaError_t cuda_inverse_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream);
cudaError_t cuda_factor_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                              cudaStream_t stream);

/* Inverts the batch's doubtful matrices anew, by complete pivoting and Newton's steps; all others
 * are left alone. For a batch that cuda_inverse_small was given, later in the same stream or after
 * it. Worth a launch when *doubtful has grown; right in any case. Cost: a pass over INFO, and for a
 * doubtful matrix some 4 n^3 operations at the pace of shared memory. */
cudaError_t cuda_mend_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
