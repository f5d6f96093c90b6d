/* gpu/cuda/tridiagonal/block.cuh: what the threads of a block do together: scans and reductions in
 * an order that is fixed by the number of threads.
 *
 * Every thread of the block calls, converged. Values of a scan are structs of doubles and of 64-bit
 * integers alone.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_BLOCK_CUH
#define GPU_CUDA_TRIDIAGONAL_BLOCK_CUH

#include "gpu/cuda/base/stage.cuh"

#define CUDA__SCAN_BYTES 64 /* of a value at most */

template <int Threads> struct cuda__block {
    static constexpr int warps = (Threads + CUDA__WARP - 1) / CUDA__WARP;

    /* Double-buffered, so that a barrier a call is enough. */
    struct shared {
        __align__(16) unsigned char values[2][warps * CUDA__SCAN_BYTES];
    };

    /* Of a block whose threads are together. */
    static __device__ __forceinline__ cuda__block begin(shared *memory)
    {
        __syncthreads();
        return {memory, 0};
    }

    shared *memory;
    int turn;

    template <typename V> static __device__ __forceinline__ V shuffle(const V &value, int lane)
    {
        union {
            V whole;
            unsigned long long parts[sizeof(V) / 8];
        } u;
        u.whole = value;
#pragma unroll
        for (int i = 0; i < (int)(sizeof(V) / 8); i++)
            u.parts[i] = __shfl_sync(CUDA__ALL, u.parts[i], lane);
        return u.whole;
    }

    /* Lane k gets combine(...combine(value of lane 0, lane 1)..., lane k) of Lanes lanes. */
    template <int Lanes, typename V, typename F>
    static __device__ __forceinline__ V warp_scan(V value, int lane, F combine)
    {
#pragma unroll
        for (int step = 1; step < Lanes; step *= 2) {
            V before = shuffle(value, lane >= step ? lane - step : lane);
            if (lane >= step)
                value = combine(before, value);
        }
        return value;
    }

    /* Thread k gets what combine makes of carry and the values of threads 0 to k - 1, in this
     * order; carry becomes what it makes of all. combine(earlier, later). */
    template <typename V, typename F>
    __device__ __forceinline__ V scan(const V &value, V *carry, F combine)
    {
        static_assert(sizeof(V) % 8 == 0 && sizeof(V) <= CUDA__SCAN_BYTES, "see above");
        int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
        V all = warp_scan<CUDA__WARP>(value, lane, combine), before = *carry;
        V left = shuffle(all, lane > 0 ? lane - 1 : 0);
        if (warps == 1) {
            *carry = combine(before, shuffle(all, CUDA__WARP - 1));
        } else {
            V *totals = (V *)memory->values[turn];
            turn ^= 1;
            if (lane == CUDA__WARP - 1)
                totals[warp] = all;
            __syncthreads();
            V total = warp_scan<warps>(totals[lane < warps ? lane : warps - 1], lane, combine);
            V earlier = shuffle(total, warp > 0 ? warp - 1 : 0);
            *carry = combine(before, shuffle(total, warps - 1));
            if (warp > 0)
                before = combine(before, earlier);
        }
        return lane > 0 ? combine(before, left) : before;
    }

    /* What combine, whose order must not matter, makes of all threads' values. */
    template <typename V, typename F> __device__ __forceinline__ V reduce(V value, F combine)
    {
        int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
#pragma unroll
        for (int step = CUDA__WARP / 2; step > 0; step /= 2)
            value = combine(value, shuffle(value, lane ^ step));
        if (warps == 1)
            return value;
        V *totals = (V *)memory->values[turn];
        turn ^= 1;
        if (lane == 0)
            totals[warp] = value;
        __syncthreads();
        value = totals[0];
        for (int i = 1; i < warps; i++)
            value = combine(value, totals[i]);
        return value;
    }

    __device__ __forceinline__ double largest(double value)
    {
        return reduce(value, [](double a, double b) { return a > b ? a : b; });
    }

    __device__ __forceinline__ bool all(bool value) const
    {
        return __syncthreads_and(value);
    }

    /* What each thread left in global or shared memory is seen by the others. */
    __device__ __forceinline__ void sync() const
    {
        __syncthreads();
    }
};

#endif
