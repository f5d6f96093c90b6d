/* gpu/cuda/lu/wide.cu: inverses and LU in workspaces, in one precision: see wide.cuh. Both
 * are here, as they share most kernels. */
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/lu/wide.cuh"

cudaError_t R(cuda__lu_invert_wide)(int64_t n, const cuda_batch &batch, void *space,
                                    size_t space_bytes, cuda__lu_manner manner,
                                    struct cuda_products *products, cudaStream_t stream)
{
    return cuda__lu_wide<REAL, false>(n, batch, space, space_bytes, manner, products, stream);
}

cudaError_t R(cuda__lu_factor_wide)(int64_t n, const cuda_batch &batch, void *space,
                                    size_t space_bytes, cuda__lu_manner manner,
                                    struct cuda_products *products, cudaStream_t stream)
{
    return cuda__lu_wide<REAL, true>(n, batch, space, space_bytes, manner, products, stream);
}

int R(cuda__lu_clusters)(int padded, int most)
{
    return cuda__lu_cluster_blocks<REAL>(padded, most);
}

int R(cuda__lu_groups)(int64_t n, int columns, int most, int64_t matrices)
{
    return cuda__lu_groups<REAL>(n, columns, most, matrices);
}
