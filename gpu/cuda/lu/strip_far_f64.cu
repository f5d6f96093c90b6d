/* gpu/cuda/lu/strip_far_f64.cu: see strip_launch.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/strip_launch.cuh"

cudaError_t cuda__lu_strip_far_f64(int64_t n, const cuda_batch &batch, void *space,
                                   size_t space_bytes, cudaStream_t stream)
{
    return cuda__lu_strip_pick<double, true>(n, batch, space, space_bytes, stream, nullptr);
}
