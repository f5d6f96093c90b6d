/* gpu/cuda/ism/middle_f32.cu: updates of middle orders of `ism`, in FP32. */
#include "gpu/cuda/ism/middle_launch.cuh"

cudaError_t cuda__ism_middle_f32(const struct cuda__ism_call *work, cudaStream_t stream)
{
    return cuda__ism_middle<float>(*work, stream);
}
