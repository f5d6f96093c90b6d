/* gpu/cuda/tridiagonal/f32.cu: `tridiagonal` in FP32. */
#include "gpu/cuda/tridiagonal/kernels.cuh"

cudaError_t cuda__tri_launch_f32(const struct cuda__tri_call *call, cudaStream_t stream)
{
    return cuda__tri_launch<float>(*call, stream);
}
