/* gpu/cuda/tridiagonal/tridiagonal.h: the launcher of `tridiagonal` (gpu/methods/tridiagonal.h).
 * See call.h for what every launcher keeps to.
 *
 * One launch takes all matrices of a batch to 512 rows, a block of threads a matrix; to 128 rows
 * another one before it takes those that are dominant, many a block, and leaves the rest. Above
 * that there are some for as many as the workspace holds: two or three for the O(n) numbers, by as
 * many blocks as there are chunks of 256 rows, and one for X in tiles, each of which any block can
 * write alone. They overlap where the device lets a kernel begin before the one ahead of it has
 * ended. (A cluster of blocks a matrix in place of the first two took as long: 2 us less at n =
 * 1024, 2 us more at 4096.)
 *
 * Cost: each entry of X written once; O(n) numbers of workspace a matrix. Above 512 rows those take
 * 18 to 25 us of an H200 for the two sweeps, and some 18 us more for the merging (2026-11-21).
 */
#ifndef GPU_CUDA_TRIDIAGONAL_TRIDIAGONAL_H
#define GPU_CUDA_TRIDIAGONAL_TRIDIAGONAL_H

#include "gpu/cuda/base/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Minors are followed by one block of threads; beyond this order that takes too long. */
#define CUDA_TRIDIAGONAL_N_MAX (1 << 20)

cudaError_t cuda_tridiagonal(const struct cuda_call *call, cudaStream_t stream);
size_t cuda_tridiagonal_workspace(const struct cuda_call *call, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
