/* gpu/cuda/lu/lu.h: launchers of `lu` and `lu_factor` for orders above CUDA_SMALL_N_MAX.
 *
 * The contract is that of lu_small/lu_small.h: a launcher allocates nothing and waits for nothing,
 * every matrix is read once and every result written once where the items say, and the bits of a
 * result depend on the matrix, n and the precision alone. But for cuda_factor_middle results may
 * have to be recovered.
 *
 * Where a block may have 227 KiB of shared memory, it inverts a matrix of n <= 320 in FP32 and 224
 * in FP64, and factorises one of n <= 208 and 144, in its registers and shared memory. That needs
 * no workspace but for a part of an inverse beyond n = 256 in FP32 and 208 in FP64. Beyond these
 * orders matrices are worked on in the workspace, as many at a time as it holds, by a sequence of
 * launches for all of them.
 *
 * A large matrix takes many launches (n = 4096 some 350): a launcher returns when the stream's
 * queue has taken them all. An order whose rows no cluster of the device holds is
 * cudaErrorNotSupported: clusters of 16 blocks, which an H100 has, hold all orders, those of 8 hold
 * 16384 rows.
 *
 * Threads: any, with its own stream and workspace.
 */
#ifndef GPU_CUDA_LU_LU_H
#define GPU_CUDA_LU_LU_H

#include <stddef.h>

#include "gpu/cuda/lu_small/lu_small.h"
#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_MIDDLE_N_MAX 32768
#define CUDA_NEAR_N_MAX 1024 /* beyond, matrices are worked on one by one */

/* CUDA_SMALL_N_MAX < n <= CUDA_MIDDLE_N_MAX, anything else is cudaErrorInvalidValue. Workspace that
 * does not suffice for one matrix is cudaErrorMemoryAllocation. It is aligned to 256 bytes, and the
 * caller's again when the stream has come to the end. */
cudaError_t cuda_inverse_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream);
cudaError_t cuda_factor_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               void *workspace, size_t workspace_bytes,
                               struct cuda_products *products, cudaStream_t stream);
/* What cuda_recover_small is to cuda_inverse_small. Cost: rare; up to n = 1024 some 6 n^3
 * operations of one multiprocessor an unverified matrix, beyond that of another inverse. */
cudaError_t cuda_recover_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream);

/* Bytes of workspace for so many matrices at a time; never 0 for orders that are taken. That of an
 * inverse does for recovery too. */
size_t cuda_inverse_middle_workspace(enum precision precision, int64_t n, int64_t matrices);
size_t cuda_factor_middle_workspace(enum precision precision, int64_t n, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
