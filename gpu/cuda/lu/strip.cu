/* gpu/cuda/lu/strip.cu: inverses by shapes without far panels, in one precision: see
 * strip_launch.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/lu/strip_launch.cuh"

cudaError_t R(cuda__lu_strip)(int64_t n, const cuda_batch &batch, void *space, size_t space_bytes,
                              cudaStream_t stream)
{
    return cuda__lu_strip_pick<REAL, false>(n, batch, space, space_bytes, stream,
                                            R(cuda__lu_strip_far));
}
