/* gpu/cuda/base/device_limits.h: what the current device has, and what a kernel may have of it.
 * Host code; any thread. Cost: some 100 ns a question.
 */
#ifndef GPU_CUDA_BASE_DEVICE_LIMITS_H
#define GPU_CUDA_BASE_DEVICE_LIMITS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define CUDA__SHARED_USUAL (48 * 1024) /* bytes that every kernel may have */

/* 0 where the device does not say. */
static inline int cuda__current(enum cudaDeviceAttr attribute)
{
    int device, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
        return 0;
    return value;
}

/* At least 1. */
static inline int64_t cuda__multiprocessors(void)
{
    int count = cuda__current(cudaDevAttrMultiProcessorCount);
    return count > 0 ? count : 1;
}

/* Bytes of shared memory that a block may have at most, if it asks for more than is usual. */
static inline int cuda__shared_max(void)
{
    return cuda__current(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

/* Lets blocks of a kernel without static shared memory have so many bytes. A kernel has one such
 * limit, for all threads that launch it: so it is always set to the same, what the device has. */
static inline cudaError_t cuda__allow_shared(const void *kernel, size_t bytes)
{
    if (bytes <= CUDA__SHARED_USUAL)
        return cudaSuccess;
    int most = cuda__shared_max();
    if (bytes > (size_t)most)
        return cudaErrorInvalidValue;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

#endif
