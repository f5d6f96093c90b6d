/* gpu/cuda/ism/team.cuh: threads that have a small matrix of `ism` together, and what they find out
 * as one. Device code; all threads of a team call, converged.
 */
#ifndef GPU_CUDA_ISM_TEAM_CUH
#define GPU_CUDA_ISM_TEAM_CUH

#include "gpu/cuda/ism/device.cuh"

#define CUDA__ISM_TEAM_BLOCK 128 /* threads of a block of small teams */

/* The largest of the warp's, of which none is negative; a NaN where there is one. Numbers that are
 * not negative are in the order of their bits. */
template <typename T> static __device__ __forceinline__ T cuda__ism_warp_largest(T value)
{
    const unsigned high = cuda__real<T>::lead(value);
    const unsigned top = __reduce_max_sync(CUDA__ALL, high);
    if constexpr (sizeof(T) == sizeof(float))
        return __uint_as_float(top);
    const unsigned low = high == top ? cuda__real<T>::rest(value) : 0u;
    return (T)__hiloint2double((int)top, (int)__reduce_max_sync(CUDA__ALL, low));
}

/* Two numbers side by side. */
template <typename S> struct cuda__ism_pair;
template <> struct cuda__ism_pair<float> {
    typedef float2 type;
};
template <> struct cuda__ism_pair<double> {
    typedef double2 type;
};

/* Sums over the lanes whose numbers differ in the bits from `Reach` down to 4: halves of the values
 * are exchanged, step by step, and the last one is added up. */
template <int Half, int Reach, int Count>
static __device__ __forceinline__ void cuda__ism_halve(double (&values)[Count], int lane)
{
    const bool up = lane & Reach;
#pragma unroll
    for (int q = 0; q < Half; q++) {
        double given = up ? values[q] : values[q + Half];
        double kept = up ? values[q + Half] : values[q];
        values[q] = kept + __shfl_xor_sync(CUDA__ALL, given, Reach);
    }
    if constexpr (Half > 1)
        cuda__ism_halve<Half / 2, Reach / 2>(values, lane);
}

/* Threads that have a matrix. */
template <int Threads> struct cuda__ism_team {
    static constexpr int block = Threads > CUDA__WARP ? Threads : CUDA__ISM_TEAM_BLOCK;
    static constexpr int teams = block / Threads;
    static constexpr int warps = Threads > CUDA__WARP ? Threads / CUDA__WARP : 1;
    static constexpr int probes =
        Threads == CUDA__ISM_PROBES ? CUDA__ISM_PROBES : CUDA__ISM_CHECK_PROBES;

    static __device__ __forceinline__ void sync()
    {
        if (Threads > CUDA__WARP)
            __syncthreads();
        else
            __syncwarp();
    }

    /* Every thread gets the sums over the team; scratch: Count numbers a warp. */
    template <int Count, typename T>
    static __device__ __forceinline__ void sum(T (&values)[Count], T *scratch)
    {
        constexpr int reach_max = (Threads < CUDA__WARP ? Threads : CUDA__WARP) / 2;
#pragma unroll
        for (int c = 0; c < Count; c++) {
#pragma unroll
            for (int reach = reach_max; reach > 0; reach /= 2)
                values[c] += __shfl_xor_sync(CUDA__ALL, values[c], reach);
        }
        if (warps == 1)
            return;
        int warp = threadIdx.x / CUDA__WARP;
        if (threadIdx.x % CUDA__WARP == 0)
            for (int c = 0; c < Count; c++)
                scratch[warp * Count + c] = values[c];
        __syncthreads();
#pragma unroll
        for (int c = 0; c < Count; c++) {
            values[c] = scratch[c];
            for (int w = 1; w < warps; w++)
                values[c] += scratch[w * Count + c];
        }
        __syncthreads();
    }

    /* The largest of the team's, of which none is negative; a NaN where there is one. */
    template <typename T> static __device__ __forceinline__ T largest(T value, T *scratch)
    {
        if constexpr (Threads < CUDA__WARP) {
#pragma unroll
            for (int reach = Threads / 2; reach > 0; reach /= 2)
                value = cuda__max_or_nan(value, __shfl_xor_sync(CUDA__ALL, value, reach));
            return value;
        }
        value = cuda__ism_warp_largest(value);
        if (warps == 1)
            return value;
        if (threadIdx.x % CUDA__WARP == 0)
            scratch[threadIdx.x / CUDA__WARP] = value;
        __syncthreads();
        value = scratch[0];
        for (int w = 1; w < warps; w++)
            value = cuda__max_or_nan(value, scratch[w]);
        __syncthreads();
        return value;
    }

    /* The same of eight numbers at once, by teams of a warp at most; scratch: eight numbers,
     * aligned to 16 bytes. Small teams exchange halves of them, until a thread has one of the
     * eight. */
    template <typename T>
    static __device__ __forceinline__ void largest_of_eight(T (&values)[8], T *scratch)
    {
        static_assert(Threads >= 8 && Threads <= CUDA__WARP,
                      "a team of a warp, or of a part of one");
        if constexpr (Threads == CUDA__WARP) {
#pragma unroll
            for (int q = 0; q < 8; q++)
                values[q] = cuda__ism_warp_largest(values[q]);
            return;
        }
        int reach = Threads / 2;
#pragma unroll
        for (int half = 4; half > 0; half /= 2, reach /= 2) {
            const bool up = threadIdx.x & (unsigned)reach;
#pragma unroll
            for (int q = 0; q < half; q++) {
                const T given = up ? values[q] : values[q + half];
                const T kept = up ? values[q + half] : values[q];
                values[q] = cuda__max_or_nan(kept, __shfl_xor_sync(CUDA__ALL, given, reach));
            }
        }
#pragma unroll
        for (; reach > 0; reach /= 2)
            values[0] = cuda__max_or_nan(values[0], __shfl_xor_sync(CUDA__ALL, values[0], reach));
        sync();
        scratch[threadIdx.x % Threads / (Threads / 8)] = values[0];
        sync();
#pragma unroll
        for (int q = 0; q < 8; q++)
            values[q] = scratch[q];
        sync();
    }
};

#endif
