/* gpu/cuda/ism/f64.cu: `ism` in FP64. */
#include "gpu/cuda/ism/recover.cuh"

cudaError_t cuda__ism_launch_f64(const struct cuda__ism_call *work, struct cuda_products *products,
                                 cudaStream_t stream)
{
    return cuda__ism_launch<double>(*work, products, stream);
}

cudaError_t cuda__ism_recover_f64(const struct cuda__ism_call *work, struct cuda_products *products,
                                  cudaStream_t stream)
{
    return cuda__ism_recover<double>(*work, products, stream);
}
