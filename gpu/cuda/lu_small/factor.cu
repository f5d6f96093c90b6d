/* gpu/cuda/lu_small/factor.cu: the tuned LU kernels of a range of orders in one precision. */
#include "gpu/cuda/lu_small/range.cuh"
#include "gpu/cuda/lu_small/shapes.cuh"

cudaError_t RANGE(cuda__factor)(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    return cuda__launch_range<cuda__factor_tuning>(n, batch, stream);
}
