/* gpu/cuda/lu_block_invert_f64.cu: see lu_block_launch.cuh. */
#include "gpu/cuda/lu_block_launch.cuh"

cudaError_t cuda__lu_invert_f64(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    return cuda__lu_block_pick<double, false>(n, batch, stream);
}
