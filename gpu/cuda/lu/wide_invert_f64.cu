/* gpu/cuda/lu/wide_invert_f64.cu: see wide_launch.cuh. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/wide_launch.cuh"

cudaError_t cuda__lu_invert_wide_f64(int64_t n, const cuda_batch &batch, void *space,
                                     size_t space_bytes, cuda__lu_manner manner,
                                     struct cuda_products *products, cudaStream_t stream)
{
    return cuda__lu_wide<double, false>(n, batch, space, space_bytes, manner, products, stream);
}

int cuda__lu_invert_clusters_f64(int padded, int most)
{
    return cuda__lu_cluster_blocks<double>(padded, most);
}

int cuda__lu_groups_f64(int64_t n, int columns, int most, int64_t matrices)
{
    return cuda__lu_groups<double>(n, columns, most, matrices);
}
