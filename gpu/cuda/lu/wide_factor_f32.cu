/* gpu/cuda/lu/wide_factor_f32.cu: see wide_launch.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/wide_launch.cuh"

cudaError_t cuda__lu_factor_wide_f32(int64_t n, const cuda_batch &batch, void *space,
                                     size_t space_bytes, cuda__lu_manner manner,
                                     struct cuda_products *products, cudaStream_t stream)
{
    return cuda__lu_wide<float, true>(n, batch, space, space_bytes, manner, products, stream);
}

int cuda__lu_factor_clusters_f32(int padded, int most)
{
    return cuda__lu_cluster_blocks<float>(padded, most);
}
