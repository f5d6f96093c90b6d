/* gpu/cuda/base/launch.cuh: instances of the kernels, and the way from a size to its instance.
 *
 * A file of instances covers a range of sizes in one precision, so that the files compile side by
 * side. Host code; any thread.
 */
#ifndef GPU_CUDA_BASE_LAUNCH_CUH
#define GPU_CUDA_BASE_LAUNCH_CUH

#include <utility>

#include "gpu/cuda/base/device_limits.h"
#include "gpu/cuda/base/batch.h"

/* May a kernel begin before the one ahead of it has ended? Only kernels for compute capability 9.0
 * and later wait for it themselves (cuda__wait_for_previous). */
static inline bool cuda__overlaps(void)
{
    return cuda__current(cudaDevAttrComputeCapabilityMajor) >= 9;
}

/* A launch of any kernel, in place of <<<>>>, behind another one, which it waits for itself if it
 * overlaps it. Arguments are converted to the kernel's parameters. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cuda__follow(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                                       size_t shared_bytes, bool overlaps, cudaStream_t stream,
                                       const Arguments &...arguments)
{
    cudaError_t error = cuda__allow_shared((const void *)kernel, shared_bytes);
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, (Parameters)arguments...);
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

/* Launch<n>::launch for the n among First, First + 1, ...: one of Steps. */
template <template <int> class Launch, int First, int... Steps>
static cudaError_t cuda__pick(int64_t n, const cuda_batch &batch, cudaStream_t stream,
                              std::integer_sequence<int, Steps...>)
{
    cudaError_t error = cudaErrorInvalidValue;
    ((n == First + Steps ? (void)(error = Launch<First + Steps>::launch(batch, stream)) : (void)0),
     ...);
    return error;
}

/* Defines function(n, batch, stream) for n = First .. Last. */
#define CUDA__RANGE(function, Launch, First, Last)                                                 \
    cudaError_t function(int64_t n, const cuda_batch &batch, cudaStream_t stream)                  \
    {                                                                                              \
        return cuda__pick<Launch, First>(n, batch, stream,                                         \
                                         std::make_integer_sequence<int, (Last) - (First) + 1>()); \
    }

typedef cudaError_t cuda__range(int64_t n, const cuda_batch &batch, cudaStream_t stream);
cuda__range cuda__inverse_f32_low, cuda__inverse_f32_middle, cuda__inverse_f32_high;
cuda__range cuda__inverse_f64_low, cuda__inverse_f64_middle, cuda__inverse_f64_high;
cuda__range cuda__factor_f32_low, cuda__factor_f32_middle, cuda__factor_f32_high;
cuda__range cuda__factor_f64_low, cuda__factor_f64_middle, cuda__factor_f64_high;

/* The ranges: 1 .. LOW, .. MIDDLE, .. HIGH. */
#define CUDA__LOW 16
#define CUDA__MIDDLE 24
#define CUDA__HIGH CUDA_SMALL_N_MAX

#endif
