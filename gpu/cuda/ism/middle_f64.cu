/* gpu/cuda/ism/middle_f64.cu: updates of middle orders of `ism`, in FP64. */
#include "gpu/cuda/ism/middle_launch.cuh"

cudaError_t cuda__ism_middle_f64(const struct cuda__ism_call *work, cudaStream_t stream)
{
    return cuda__ism_middle<double>(*work, stream);
}
