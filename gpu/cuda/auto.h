/* gpu/cuda/auto.h: the launcher of `auto` (gpu/methods/auto.h). See call.h for what every launcher
 * keeps to.
 *
 * Most matrices are dense, and three of their entries tell so. What the batch holds beside them is
 * found on the device, in lists; the launcher is called again, reads from the notes how long these
 * are, and launches each road for its list:
 *
 *      look:  a thread a matrix. Dense ones go to lu's list, others to that of the odd ones
 *      odd:   copied into places, as many at a time as there is room for, identified (identify.h)
 *             and sorted: diagonal, triangular, tridiagonal, or dense after all
 *      roads: of the places, each kind its own; what comes out is delivered
 *      lu:    of its list, which also has what `tridiagonal` has given back; then it is mended
 *
 * Up to CUDA_SMALL_N_MAX every matrix is presumed dense and lu goes first, for all: it is mostly
 * waiting for memory there, and a batch of dense ones then takes one visit. Odd matrices are
 * overwritten by their roads.
 *
 * Which road a matrix takes follows from its numbers, n and the precision alone, and so do its
 * bits; the lists' order and length leave no mark. There is no Cholesky: a symmetric matrix is
 * dense. The option `spd` is not taken (method.c).
 *
 * Cost of a dense matrix: lu's, and a look at three entries; of a batch of them above
 * CUDA_SMALL_N_MAX a visit more. An odd one is read once, and its inverse written once. Workspace:
 * what lu takes, or three n x n for each place, whichever is more, and some 50 bytes a matrix.
 */
#ifndef GPU_CUDA_AUTO_H
#define GPU_CUDA_AUTO_H

#include "gpu/cuda/call.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_AUTO_N_MAX 32768

/* Begins with a batch. */
cudaError_t cuda_auto(const struct cuda_call *call, cudaStream_t stream);
/* Goes on with it: call->notes are as the last visit has left them, and the device. */
cudaError_t cuda_auto_again(const struct cuda_call *call, cudaStream_t stream);
size_t cuda_auto_workspace(const struct cuda_call *call, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
