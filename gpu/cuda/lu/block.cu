/* gpu/cuda/lu/block.cu: LU within a block, of one precision: see block.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/lu/block.cuh"

cudaError_t R(cuda__lu_factor)(int64_t n, const cuda_batch &batch, void *, size_t,
                               cudaStream_t stream)
{
    return cuda__lu_block_pick<REAL>(n, batch, stream);
}
