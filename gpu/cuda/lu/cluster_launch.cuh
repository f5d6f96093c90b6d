/* gpu/cuda/lu/cluster_launch.cuh: launches of cluster.cuh. Host code, any thread; nothing is
 * awaited.
 */
#ifndef GPU_CUDA_LU_CLUSTER_LAUNCH_CUH
#define GPU_CUDA_LU_CLUSTER_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/cluster.cuh"

#define CUDA__LU_CLUSTER_THREADS_MIN 256 /* the products want them */

/* Where a cluster goes, and the event that records its start; NULL: none. */
struct cuda__lu_cluster_place {
    unsigned matrices;
    cudaStream_t stream;
    cudaEvent_t begun;
};

/* One launch: what of it does not depend on the kernel. */
struct cuda__lu_cluster_launch {
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config;
    int rows; /* of a block */

    /* height: rows of all blocks. */
    cuda__lu_cluster_launch(int height, int blocks, const cuda__lu_cluster_place &place)
        : attributes{}, config{}
    {
        const int unit = CUDA__LU_CLUSTER_UNIT;
        rows = ((height + blocks - 1) / blocks + unit - 1) / unit * unit;
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim.x = (unsigned)blocks;
        attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
        attributes[1].id = cudaLaunchAttributeLaunchCompletionEvent;
        attributes[1].val.launchCompletionEvent.event = place.begun;
        attributes[1].val.launchCompletionEvent.flags = 0;
        config.gridDim = dim3((unsigned)blocks, place.matrices);
        config.stream = place.stream;
        config.attrs = attributes;
        config.numAttrs = place.begun ? 2 : 1;
    }
};

/* Kernel: cuda__lu_cluster_kernel<T, Block, Rows>. Static as that is: one of each file. */
template <typename T, int Block, int Rows>
static cudaError_t cuda__lu_prepare_cluster(cuda__lu_cluster_launch &launch)
{
    const void *kernel = (const void *)cuda__lu_cluster_kernel<T, Block, Rows>;
    cudaLaunchConfig_t &config = launch.config;
    int threads = (launch.rows + Rows - 1) / Rows;
    threads = threads > CUDA__LU_CLUSTER_THREADS_MIN ? threads : CUDA__LU_CLUSTER_THREADS_MIN;
    config.blockDim = dim3((unsigned)((threads + CUDA__WARP - 1) / CUDA__WARP * CUDA__WARP));
    config.dynamicSmemBytes = cuda__lu_cluster_bytes<T, Block>(launch.rows);
    cudaError_t status = cuda__allow_shared(kernel, config.dynamicSmemBytes);
    if (status != cudaSuccess)
        return status;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

/* f(columns of a panel, rows of a thread) for so many rows of a block; false: they are too many. */
template <typename F> static bool cuda__lu_with_cluster(int rows, F f)
{
    typedef std::integral_constant<int, 16> sixteen;
    typedef std::integral_constant<int, 8> eight;
    if (rows <= CUDA__LU_CLUSTER_THREADS)
        f(sixteen(), std::integral_constant<int, 1>());
    else if (rows <= 2 * CUDA__LU_CLUSTER_THREADS)
        f(sixteen(), std::integral_constant<int, 2>());
    else if (rows <= 4 * CUDA__LU_CLUSTER_THREADS)
        f(eight(), std::integral_constant<int, 4>());
    else
        return false;
    return true;
}

/* The blocks of a cluster for an order on the current device, no more than `most` unless that is 0;
 * 0: no cluster of the device holds the rows. Asks the driver: some 10 us. */
template <typename T> static int cuda__lu_cluster_blocks(int padded, int most)
{
    most = most > 0 && most < CUDA__LU_CLUSTER_MAX ? most : CUDA__LU_CLUSTER_MAX;
    for (int blocks = most; blocks >= 1; blocks /= 2) {
        cuda__lu_cluster_launch launch(padded, blocks, cuda__lu_cluster_place{1, nullptr, nullptr});
        int clusters = 0;
        bool taken = cuda__lu_with_cluster(launch.rows, [&](auto columns, auto rows) {
            if (cuda__lu_prepare_cluster<T, columns, rows>(launch) != cudaSuccess ||
                cudaOccupancyMaxActiveClusters(
                    &clusters, (const void *)cuda__lu_cluster_kernel<T, columns, rows>,
                    &launch.config) != cudaSuccess) {
                clusters = 0;
                (void)cudaGetLastError(); /* the device has no such cluster, and says so */
            }
        });
        if (!taken)
            return 0;
        if (clusters > 0)
            return blocks;
    }
    return 0;
}

/* Columns that are eliminated together, and blocks. */
struct cuda__lu_cluster_shape {
    int width, blocks;
};

/* Of an order, as its row of the table has them. */
template <typename T>
static inline cuda__lu_cluster_shape cuda__lu_cluster_shape_of(bool factors, int64_t n)
{
#define CUDA__LU_CLUSTER(type, factor, order, width, blocks)                                       \
    if (std::is_same<type, T>::value && factors == factor && n <= order)                           \
        return cuda__lu_cluster_shape{width, blocks};
#include "gpu/cuda/tuning/h200/lu_cluster.cuh"
#undef CUDA__LU_CLUSTER
    return cuda__lu_cluster_shape{0, 0};
}

/* The columns at .. at + columns - 1 by a cluster of so many blocks a matrix, or as many as get
 * rows. */
template <typename T>
static cudaError_t cuda__lu_start_cluster(const cuda__lu_chunk &chunk, int at, int columns,
                                          int blocks, const cuda__lu_cluster_place &place)
{
    int height = chunk.padded - at;
    while (blocks > 1 && blocks / 2 * CUDA__LU_CLUSTER_UNIT >= height)
        blocks /= 2;
    cuda__lu_cluster_launch launch(height, blocks, place);
    cudaError_t status = cudaErrorInvalidValue;
    cuda__lu_with_cluster(launch.rows, [&](auto block, auto rows) {
        status = cuda__lu_prepare_cluster<T, block, rows>(launch);
        if (status == cudaSuccess)
            status = cudaLaunchKernelEx(&launch.config, cuda__lu_cluster_kernel<T, block, rows>,
                                        chunk, at, columns, launch.rows);
    });
    return status;
}

#endif
