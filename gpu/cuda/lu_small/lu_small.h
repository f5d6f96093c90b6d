/* gpu/cuda/lu_small/lu_small.h: launchers of the fused kernels for n <= CUDA_SMALL_N_MAX.
 *
 * A launcher puts one kernel into the caller's stream and returns. It allocates nothing, waits for
 * nothing, and needs no workspace. Every matrix is read once and every result written once, where
 * the items say: device memory, or pinned host memory the device can reach. Items may overlap
 * nowhere, inputs and results neither: an unverified matrix is read again by cuda_recover_small.
 *
 * The bits of a result depend on the matrix, n and the precision alone: not on its place in the
 * batch, its alignment or its neighbours.
 *
 * Cost: two n x n matrices of memory traffic each; see the tuning tables for the shapes. Any thread
 * may call, with its own stream.
 */
#ifndef GPU_CUDA_LU_SMALL_LU_SMALL_H
#define GPU_CUDA_LU_SMALL_LU_SMALL_H

#include "gpu/cuda/base/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The meaning of INFO, RCOND and the NaN fill is the methods' (gpu/method.h). 1 <= n <=
 * CUDA_SMALL_N_MAX, anything else is cudaErrorInvalidValue; no matrices is no launch. The inverse
 * of a matrix that is symmetric to the bit is the mean of both sides, and so symmetric; INFO and
 * RCOND are those of the mean. `auto` needs it, and `lu` and `gauss_jordan` share the kernels. */
cudaError_t cuda_inverse_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream);
cudaError_t cuda_factor_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                              cudaStream_t stream);

/* Inverts the batch's unverified matrices anew, by complete pivoting, and those that await it
 * (base/batch.h) equilibrated; all others are left alone.
 * For a batch that cuda_inverse_small was given, later in the same stream or after it. Worth a
 * launch when *unverified has grown; right in any case. Cost: a pass over INFO, and for an
 * unverified matrix some 6 n^3 operations at the pace of shared memory. */
cudaError_t cuda_recover_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
