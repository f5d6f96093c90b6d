/* gpu/cuda/ism/launch.cu: batches of `ism`, the recovery of what fails, and what is measured, in
 * one precision. */
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/ism/recover.cuh"

cudaError_t R(cuda__ism_launch)(const struct cuda__ism_call *work, struct cuda_products *products,
                                cudaStream_t stream)
{
    return cuda__ism_launch<REAL>(*work, products, stream);
}

cudaError_t R(cuda__ism_measure)(const struct cuda__ism_call *work, struct cuda_products *products,
                                 cudaStream_t stream)
{
    return cuda__ism_measure<REAL>(*work, products, stream);
}

cudaError_t R(cuda__ism_recover)(const struct cuda__ism_call *work, struct cuda_products *products,
                                 cudaStream_t stream)
{
    return cuda__ism_recover<REAL>(*work, products, stream);
}
