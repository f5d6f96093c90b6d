/* gpu/cuda/base/launch.cuh: kernel launches that return the first error. Host code; any thread. */
#ifndef GPU_CUDA_BASE_LAUNCH_CUH
#define GPU_CUDA_BASE_LAUNCH_CUH

#include "gpu/cuda/base/device_limits.h"
#include "gpu/cuda/base/batch.h"

/* May a kernel begin before the one ahead of it has ended? Only kernels for compute capability 9.0
 * and later wait for it themselves (cuda__wait_for_previous). */
static inline bool cuda__overlaps(void)
{
    return cuda__current(cudaDevAttrComputeCapabilityMajor) >= 9;
}

/* A launch of any kernel, in place of <<<>>>, behind another one, which it waits for itself if it
 * overlaps it. cluster: blocks of one, or 0. Arguments are converted to the kernel's parameters. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cuda__follow_in_clusters(void (*kernel)(Parameters...), unsigned cluster,
                                                   dim3 blocks, dim3 threads, size_t shared_bytes,
                                                   bool overlaps, cudaStream_t stream,
                                                   const Arguments &...arguments)
{
    cudaError_t error = cuda__allow_shared((const void *)kernel, shared_bytes);
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (overlaps) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 0) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = cluster;
        attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
        count++;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    return cudaLaunchKernelEx(&config, kernel, (Parameters)arguments...);
}

/* The same of blocks by themselves. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cuda__follow(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                                       size_t shared_bytes, bool overlaps, cudaStream_t stream,
                                       const Arguments &...arguments)
{
    return cuda__follow_in_clusters(kernel, 0, blocks, threads, shared_bytes, overlaps, stream,
                                    arguments...);
}

/* The same, when all before it has ended. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cuda__start(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                                      size_t shared_bytes, cudaStream_t stream,
                                      const Arguments &...arguments)
{
    return cuda__follow(kernel, blocks, threads, shared_bytes, false, stream, arguments...);
}

/* One launch: `held` matrices a block. The kernels go round the batch in strides, so a grid that is
 * cut at the most blocks there can be still covers it. */
static inline cudaError_t cuda__launch(void (*kernel)(const cuda_batch), const cuda_batch &batch,
                                       int held, int threads, size_t shared_bytes,
                                       cudaStream_t stream)
{
    const int64_t most = INT32_MAX;
    int64_t blocks = (batch.matrices + held - 1) / held;
    if (blocks == 0)
        return cudaSuccess;
    return cuda__start(kernel, (unsigned)(blocks < most ? blocks : most), threads, shared_bytes,
                       stream, batch);
}

#endif
