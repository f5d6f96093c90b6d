/* gpu/cuda/lu_wide_factor_f64.cu: see lu_wide_launch.cuh. */
#include "gpu/cuda/lu_wide_launch.cuh"

cudaError_t cuda__lu_factor_wide_f64(int64_t n, const cuda_batch &batch, void *space,
                                     size_t space_bytes, cuda__lu_manner manner,
                                     cudaStream_t stream)
{
    return cuda__lu_wide<double, true>(n, batch, space, space_bytes, manner, stream);
}
