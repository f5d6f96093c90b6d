/* gpu/cuda/ism/stream_f32.cu: updates of larger orders of `ism`, in FP32. */
#include "gpu/cuda/ism/stream.cuh"

cudaError_t cuda__ism_stream_f32(const struct cuda__ism_call *work, cudaStream_t stream)
{
    return cuda__ism_stream_update<float>(*work, stream);
}
