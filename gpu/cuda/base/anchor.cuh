/* gpu/cuda/base/anchor.cuh: by including it a file's kernels are loaded when the engine starts, and
 * not when the first batch asks for them (load.h). For files of kernels that the self-test does not
 * run through at every start. Host code.
 */
#ifndef GPU_CUDA_BASE_ANCHOR_CUH
#define GPU_CUDA_BASE_ANCHOR_CUH

#include "gpu/cuda/base/load.h"

/* Stands for its file, and is never run. */
static __global__ void cuda__anchor_kernel()
{
}

static struct cuda__anchor cuda__anchor_here((const void *)cuda__anchor_kernel);

#endif
