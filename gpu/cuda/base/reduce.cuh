/* gpu/cuda/base/reduce.cuh: what the threads of a warp or a block find out together. Device code;
 * all threads of the warp or block call. Sums are taken in a fixed order.
 */
#ifndef GPU_CUDA_BASE_REDUCE_CUH
#define GPU_CUDA_BASE_REDUCE_CUH

#include "gpu/cuda/base/stage.cuh"

/* The larger one; a NaN is larger than all. */
template <typename T> static __device__ __forceinline__ T cuda__max_or_nan(T one, T other)
{
    return other > one || other != other ? other : one;
}

template <typename T> static __device__ __forceinline__ T cuda__warp_sum(T value)
{
#pragma unroll
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        value += __shfl_xor_sync(CUDA__ALL, value, reach);
    return value;
}

/* The least value of the block. scratch: shared, one for each warp. */
template <int Warps> static __device__ __forceinline__ int cuda__block_min(int value, int *scratch)
{
    value = __reduce_min_sync(CUDA__ALL, value);
    if (threadIdx.x % CUDA__WARP == 0)
        scratch[threadIdx.x / CUDA__WARP] = value;
    __syncthreads();
    for (int w = 0; w < Warps; w++)
        value = min(value, scratch[w]);
    return value;
}

/* The largest value of the block. scratch: shared, one for each warp; it is free again on return.
 */
template <int Warps, typename T>
static __device__ __forceinline__ T cuda__block_max(T value, T *scratch)
{
#pragma unroll
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        value = cuda__max_or_nan(value, __shfl_xor_sync(CUDA__ALL, value, reach));
    if (threadIdx.x % CUDA__WARP == 0)
        scratch[threadIdx.x / CUDA__WARP] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int w = 1; w < Warps; w++)
        value = cuda__max_or_nan(value, scratch[w]);
    __syncthreads();
    return value;
}

#endif
