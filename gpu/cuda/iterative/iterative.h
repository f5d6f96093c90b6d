/* gpu/cuda/iterative/iterative.h: the launcher of `iterative` (gpu/methods/iterative.h). See call.h
 * for what every launcher keeps to.
 *
 * How many steps a matrix takes shows on the way, so the launcher is called again and again, each
 * time for one start or step of every matrix of a chunk of the batch, and up to three more steps of
 * small matrices that are sure to follow, by what the device has found out (decide.cuh) and
 * put into the call's notes. Products are those of gemm/gemm.h: large
 * matrices go through cuBLAS, small ones all together through a kernel of our own; either way the
 * bits of a matrix are its own.
 *
 * Cost: a step is its products, and some ten passes over n^2 numbers; a visit, one to four steps.
 * Nine n x n of workspace a matrix.
 */
#ifndef GPU_CUDA_ITERATIVE_ITERATIVE_H
#define GPU_CUDA_ITERATIVE_ITERATIVE_H

#include "gpu/cuda/base/call.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_ITERATIVE_N_MAX 32768

/* Begins with a batch. */
cudaError_t cuda_iterative(const struct cuda_call *call, cudaStream_t stream);
/* Goes on with it: call->notes are as the last visit has left them, and the device. */
cudaError_t cuda_iterative_again(const struct cuda_call *call, cudaStream_t stream);
size_t cuda_iterative_workspace(const struct cuda_call *call, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
