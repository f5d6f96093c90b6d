/* gpu/cuda/auto/auto.h: the launcher of `auto` (gpu/methods/auto.h). See call.h for what every
 * launcher keeps to.
 *
 * Below CUDA_AUTO_SORTED_N_MIN every matrix is lu's: no other algorithm is faster there. From it
 * on, most matrices are dense still, and three of their entries show that. What the batch holds
 * besides them is found on the device, in lists; the launcher is called again, reads from the notes
 * how long these are, and launches each algorithm for its list:
 *
 *      look:  a thread a matrix. Dense ones go to lu's list, others to that of the odd ones
 *      odd:   copied into places, as many at a time as there is room for, identified (identify.h)
 *             and sorted: diagonal, triangular, tridiagonal, or dense after all
 *      algorithms: of the places, each kind its own; what comes out is delivered
 *      hold:  dense ones that may be symmetric and positive definite, by their corners, as many at
 *             a time as there is room for: are they (kernels.cu)?
 *      then:  Cholesky (cholesky.h) of all that are held; what is not definite is lu's after all
 *      lu:    of its list, which also has what other algorithms have given back; then it is
 * recovered
 *
 * With the option `spd` matrices that differ from their transposes by rounding alone count as
 * symmetric, at every order: below CUDA_AUTO_DEFINITE_N_MIN these alone are looked for.
 *
 * The inverse of a matrix that is symmetric to the bit is so too: Cholesky's and a diagonal's as
 * they are, a tridiagonal's by one of its triangles, lu's by the mean of it and its transpose. Up
 * to CUDA_SMALL_N_MAX lu's own kernels take the mean. Beyond, passes of their own do where a batch
 * has matrices that look symmetric: INFO and RCOND become those of the mean, and one that fails its
 * check, for one side of lu's inverse was bad, is recovered. Where INVERSE is not asked for, INFO
 * and RCOND stay those of lu's inverse there.
 *
 * Which algorithm a matrix takes follows from its numbers, n, the precision and the option alone,
 * and so do its bits; the lists' order and length do not matter.
 *
 * Cost of a dense matrix: lu's; of a batch two launches more, and from CUDA_AUTO_SORTED_N_MIN on
 * a visit and a look at a few entries of each. An odd one is read once, and its inverse written
 * once; one that may be definite is read once more than its algorithm does. Where some of those
 * that are held are definite, all of them cost what Cholesky does. Workspace: what lu takes, or
 * three n x n for each place, or n x n and some lines for each that is held, whichever is more, and
 * some 80 bytes and a line of doubles a matrix.
 */
#ifndef GPU_CUDA_AUTO_AUTO_H
#define GPU_CUDA_AUTO_AUTO_H

#include "gpu/cuda/base/call.h"
#include "gpu/cuda/tuning/h200/auto.h"

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
