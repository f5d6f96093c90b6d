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

/* The largest of the warp's magnitudes: of numbers without a sign, which are in the order of their
 * bits, and a NaN is larger than all. */
template <typename T> static __device__ __forceinline__ T cuda__warp_max_magnitude(T value)
{
    typedef cuda__real<T> real;
    const unsigned lead = __reduce_max_sync(CUDA__ALL, real::lead(value));
    const unsigned rest =
        sizeof(T) == sizeof(unsigned)
            ? 0
            : __reduce_max_sync(CUDA__ALL, real::lead(value) == lead ? real::rest(value) : 0u);
    return real::of(lead, rest);
}

/* The largest value of the block, of the warps'. scratch: shared, one for each warp; it is free
 * again on return. */
template <int Warps, typename T>
static __device__ __forceinline__ T cuda__block_max_of_warps(T value, T *scratch)
{
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

/* The largest value of the block. scratch: as above. */
template <int Warps, typename T>
static __device__ __forceinline__ T cuda__block_max(T value, T *scratch)
{
#pragma unroll
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        value = cuda__max_or_nan(value, __shfl_xor_sync(CUDA__ALL, value, reach));
    return cuda__block_max_of_warps<Warps>(value, scratch);
}

/* The largest magnitude of the block. scratch: as above. */
template <int Warps, typename T>
static __device__ __forceinline__ T cuda__block_max_magnitude(T value, T *scratch)
{
    return cuda__block_max_of_warps<Warps>(cuda__warp_max_magnitude(value), scratch);
}

/* Of Count sums, a power of two of them, of which each lane has a part: lanes that differ in the
 * bits First to Last of their numbers have them together. Each level halves the numbers that a lane
 * adds up, while it has more than one: of sums[k] and sums[k + 1] the lane whose bit is set keeps
 * the second. Returns the sum whose number is in those bits of the lane's, the lowest first. */
template <int First, int Last, int Count, typename T>
static __device__ __forceinline__ T cuda__share_sums(const T (&sums)[Count])
{
    static_assert(Count <= 2 * Last / First, "a lane ends with one");
    constexpr int kept = Count > 1 ? Count / 2 : 1;
    const bool second = (threadIdx.x & First) != 0;
    T own[kept];
#pragma unroll
    for (int k = 0; k < kept; k++) {
        const T one = sums[Count > 1 ? 2 * k : 0], other = sums[Count > 1 ? 2 * k + 1 : 0];
        own[k] = second ? other : one;
        own[k] += __shfl_xor_sync(CUDA__ALL, second ? one : other, First);
    }
    if constexpr (First < Last)
        return cuda__share_sums<2 * First, Last>(own);
    else
        return own[0];
}

#endif
