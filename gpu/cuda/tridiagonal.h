/* gpu/cuda/tridiagonal.h: the launcher of `tridiagonal` (gpu/methods/tridiagonal.h). See call.h for
 * what every launcher keeps to.
 *
 * One launch takes all matrices of a batch to 512 rows; above that there are two for as many as the
 * workspace holds: the O(n) numbers, a block of threads a matrix, and then X in tiles, each of
 * which any block can write alone.
 *
 * Cost: each entry of X written once; O(n) numbers of workspace a matrix.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_H
#define GPU_CUDA_TRIDIAGONAL_H

#include "gpu/cuda/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One block of threads finds a matrix's numbers; beyond this order that takes too long. */
#define CUDA_TRIDIAGONAL_N_MAX (1 << 20)

cudaError_t cuda_tridiagonal(const struct cuda_call *call, cudaStream_t stream);
size_t cuda_tridiagonal_workspace(const struct cuda_call *call, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
