/* gpu/cuda/base/load.h: the engine's own kernels are loaded when it starts; those of libraries,
 * when they are first used.
 *
 * CUDA loads either every kernel of a process and its libraries with the context, or each one when
 * it is first launched. cuBLAS has gigabytes of them, and our own must not make a batch wait: so
 * loading is lazy, and the engine says which files the driver loads. A file takes part by including
 * anchor.cuh, which puts one of its kernels into a list before main runs; the list is constant from
 * then on. Private to the folder.
 */
#ifndef GPU_CUDA_BASE_LOAD_H
#define GPU_CUDA_BASE_LOAD_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
struct cuda__anchor {
    const void *kernel;
    const struct cuda__anchor *next;
    explicit cuda__anchor(const void *of);
};

extern "C" {
#endif

/* The kernels in the list, from 0; NULL behind the last. */
const void *cuda__anchor_at(int index);

/* Loads every kernel of the files in the list. The context must be the thread's. A driver that
 * cannot be asked loads them at their first launch. Blocks, for some milliseconds a file. */
cudaError_t cuda__load_kernels(void);

#ifdef __cplusplus
}
#endif

#endif
