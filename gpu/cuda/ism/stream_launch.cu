/* gpu/cuda/ism/stream_launch.cu: updates of larger orders of `ism`, in one precision. */
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/ism/stream.cuh"

cudaError_t R(cuda__ism_stream)(const struct cuda__ism_call *work, cudaStream_t stream)
{
    return cuda__ism_stream_update<REAL>(*work, stream);
}
