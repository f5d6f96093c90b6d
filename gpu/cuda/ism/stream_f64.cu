/* gpu/cuda/ism/stream_f64.cu: updates of larger orders of `ism`, in FP64. */
#include "gpu/cuda/ism/stream.cuh"

cudaError_t cuda__ism_stream_f64(const struct cuda__ism_call *work, cudaStream_t stream)
{
    return cuda__ism_stream_update<double>(*work, stream);
}
