/* gpu/cuda/lu/block_factor_f32.cu: see block_launch.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/block_launch.cuh"

cudaError_t cuda__lu_factor_f32(int64_t n, const cuda_batch &batch, void *, size_t,
                                cudaStream_t stream)
{
    return cuda__lu_block_pick<float>(n, batch, stream);
}
