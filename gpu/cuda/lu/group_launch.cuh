/* gpu/cuda/lu/group_launch.cuh: the order in which columns are eliminated by halves, and launches
 * of group.cuh. Host code, any thread; nothing is awaited.
 */
#ifndef GPU_CUDA_LU_GROUP_LAUNCH_CUH
#define GPU_CUDA_LU_GROUP_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/group.cuh"

/* Eliminates the columns at .. at + columns - 1 of order n: the left half, which is applied to the
 * right half, then the right half, which is applied to the left half. of.whole(at, columns)
 * eliminates columns without halving them and returns true, as it must up to `block` columns;
 * of.apply(from, inner, at, columns) applies columns to others. */
template <typename Of> static void cuda__lu_by_halves(int n, int block, int at, int columns, Of &of)
{
    if (at >= n || of.whole(at, columns))
        return; /* from n on there is padding */
    int left = ((columns + block - 1) / block + 1) / 2 * block;
    cuda__lu_by_halves(n, block, at, left, of);
    of.apply(at, left, at + left, columns - left);
    cuda__lu_by_halves(n, block, at + left, columns - left, of);
    of.apply(at + left, columns - left, at, left);
}

/* Writes down what there is to do. */
struct cuda__lu_planner {
    int n, block;
    cuda__lu_plan plan;

    void add(int from, int inner, int to, int columns)
    {
        plan.steps[plan.count++] = {(short)(from - plan.at), (short)inner, (short)(to - plan.at),
                                    (short)columns};
    }

    bool whole(int at, int columns)
    {
        if (columns <= block)
            add(at, block, at, 0);
        return columns <= block;
    }

    void apply(int from, int inner, int at, int columns)
    {
        if (from < n && at < n)
            add(from, inner, at, columns);
    }
};

/* Rows of each of so many blocks. */
static inline int cuda__lu_group_rows(int padded, int blocks)
{
    const int unit = CUDA__LU_GROUP_ROWS;
    return ((padded + blocks - 1) / blocks + unit - 1) / unit * unit;
}

template <typename T>
static cuda__lu_plan cuda__lu_plan_group(int n, int block, int rows, int at, int columns)
{
    cuda__lu_planner planner = {n, block, {}};
    cuda__lu_plan &plan = planner.plan;
    plan.at = at;
    plan.columns = columns;
    plan.rows = rows;
    plan.half = (columns / block + 1) / 2 * block;
    plan.w_line = cuda__mma_line<T>::of_factor(columns);
    plan.r_line = cuda__mma_line<T>::of_factor(plan.half);
    cuda__lu_by_halves(n, block, at, columns, planner);
    return plan;
}

/* A launch for clusters of so many blocks, and what it takes. */
struct cuda__lu_group_launch {
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t config;

    cuda__lu_group_launch(int blocks, unsigned matrices, cudaStream_t stream) : cluster{}, config{}
    {
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = (unsigned)blocks;
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
        config.gridDim = dim3((unsigned)blocks, matrices);
        config.stream = stream;
        config.attrs = &cluster;
        config.numAttrs = 1;
    }

    template <typename T, int Block, int Rows> cudaError_t prepare(const cuda__lu_plan &plan)
    {
        const void *kernel = (const void *)cuda__lu_group_kernel<T, Block, Rows>;
        config.blockDim = dim3((unsigned)cuda__lu_group<T, Block, Rows>::threads);
        config.dynamicSmemBytes = cuda__lu_group_bytes<T, Block>(plan);
        cudaError_t status = cuda__allow_shared(kernel, config.dynamicSmemBytes);
        if (status != cudaSuccess)
            return status;
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
};

/* f(rows of a lane) for so many of a block. */
template <typename F> static cudaError_t cuda__lu_with_lanes(int rows, F f)
{
    static_assert(CUDA__LU_GROUP_ROWS_MAX == 2 * CUDA__WARP, "one or two");
    if (rows <= CUDA__WARP)
        return f(std::integral_constant<int, 1>());
    return f(std::integral_constant<int, 2>());
}

/* A group of columns of all matrices of a chunk. */
template <typename T, int Block>
static cudaError_t cuda__lu_start_group(const cuda__lu_chunk &chunk, int at, int columns,
                                        unsigned matrices, cudaStream_t stream)
{
    static_assert(Block % 16 == 0 && CUDA__LU_GROUP_MAX / Block * 3 - 2 <= CUDA__LU_STEPS_MAX,
                  "there is room for all steps");
    int blocks = chunk.manner.blocks;
    int rows = blocks > 0 ? cuda__lu_group_rows(chunk.padded, blocks) : INT32_MAX;
    if (rows > CUDA__LU_GROUP_ROWS_MAX)
        return cudaErrorInvalidValue;
    cuda__lu_plan plan = cuda__lu_plan_group<T>(chunk.n, Block, rows, at, columns);
    cuda__lu_group_launch launch(blocks, matrices, stream);
    return cuda__lu_with_lanes(rows, [&](auto of_lane) {
        cudaError_t status = launch.prepare<T, Block, of_lane>(plan);
        if (status != cudaSuccess)
            return status;
        return cudaLaunchKernelEx(&launch.config, cuda__lu_group_kernel<T, Block, of_lane>, chunk,
                                  plan);
    });
}

/* The blocks of a cluster for groups of so many columns, as many, up to `most`, as let the current
 * device take the clusters of all matrices at once; 0: it cannot. Asks the driver: some 10 us. */
template <typename T, int Block>
static int cuda__lu_group_blocks(int n, int columns, int most, int64_t matrices)
{
    int padded = cuda__lu_padded(n), blocks = most;
    while (blocks > 1 && blocks / 2 * CUDA__LU_GROUP_ROWS >= padded)
        blocks /= 2; /* or half of them would have no rows */
    for (; blocks >= 1; blocks /= 2) {
        int rows = cuda__lu_group_rows(padded, blocks), clusters = 0;
        if (rows > CUDA__LU_GROUP_ROWS_MAX)
            return 0;
        cuda__lu_plan plan = cuda__lu_plan_group<T>(n, Block, rows, 0, columns);
        cuda__lu_group_launch launch(blocks, 1, nullptr);
        cudaError_t status = cuda__lu_with_lanes(rows, [&](auto of_lane) {
            cudaError_t prepared = launch.prepare<T, Block, of_lane>(plan);
            if (prepared != cudaSuccess)
                return prepared;
            return cudaOccupancyMaxActiveClusters(
                &clusters, (const void *)cuda__lu_group_kernel<T, Block, of_lane>, &launch.config);
        });
        if (status != cudaSuccess)
            (void)cudaGetLastError(); /* the device has no such cluster, and says so */
        else if (clusters >= matrices)
            return blocks;
    }
    return 0;
}

#endif
