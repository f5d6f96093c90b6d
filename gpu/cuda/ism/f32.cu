/* gpu/cuda/ism/f32.cu: `ism` in FP32. */
#include "gpu/cuda/ism/recover.cuh"

cudaError_t cuda__ism_launch_f32(const struct cuda__ism_call *work, struct cuda_products *products,
                                 cudaStream_t stream)
{
    return cuda__ism_launch<float>(*work, products, stream);
}

cudaError_t cuda__ism_recover_f32(const struct cuda__ism_call *work, struct cuda_products *products,
                                  cudaStream_t stream)
{
    return cuda__ism_recover<float>(*work, products, stream);
}
