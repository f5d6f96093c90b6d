/* gpu/cuda/lu_small/run.cuh: a warp's matrices between global and shared memory as one run of
 * numbers.
 *
 * For orders whose rows are no multiple of 16 bytes. Where the matrices follow one another in
 * global memory, which they do within an item, they are copied 16 bytes at a time whatever the
 * run's alignment: in shared memory it begins `shift` numbers late, at the same distance from a
 * multiple of 16 bytes. Others are copied number by number. Warp-wide, as stage.cuh.
 */
#ifndef GPU_CUDA_LU_SMALL_RUN_CUH
#define GPU_CUDA_LU_SMALL_RUN_CUH

#include "gpu/cuda/base/stage.cuh"

/* Element (i, j) of matrix k at shift + k * N * N + i * N + j. */
template <typename T, int N, int Held> struct cuda__run {
    static constexpr int width = cuda__real<T>::width;
    static constexpr int total = Held * N * N;
    /* Pairs of numbers may be read at once: runs that allow it begin at 16 bytes. */
    static constexpr bool even = N % 2 == 0;
    static constexpr bool shifts = !even;
    static constexpr int places = (total + width - 1) / width * width + width; /* it needs */

    /* matrix: the lane's; only lane 0's counts. Is it copied 16 bytes at a time? */
    static __device__ __forceinline__ bool fast(const T *matrix, bool together)
    {
        return together && (!even || (uintptr_t)cuda__shuffle_pointer(matrix, 0) % 16 == 0);
    }

    static __device__ __forceinline__ int shift(const T *matrix, bool together)
    {
        if (even || !together)
            return 0;
        return (int)((uintptr_t)cuda__shuffle_pointer(matrix, 0) / sizeof(T) % width);
    }

    /* Calls move.piece(i) for the whole pieces of 16 bytes that are this lane's, and move.one(i)
     * for its numbers before and behind them; i counts from the multiple of 16 bytes. */
    template <typename F, typename G>
    static __device__ __forceinline__ void each(int shift, int lane, F piece, G one)
    {
        constexpr int rounds = (places / width + CUDA__WARP - 1) / CUDA__WARP;
        int end = shift + total;
#pragma unroll
        for (int r = 0; r < rounds; r++) {
            int at = (r * CUDA__WARP + lane) * width;
            if (at >= shift && at + width <= end)
                piece(at);
        }
        if (even && total % width == 0)
            return;
        if (lane >= shift && lane < width && shift > 0)
            one(lane);
        if (lane < end % width)
            one(end / width * width + lane);
    }

    /* Starts copying the matrices in; returns the shift. */
    static __device__ __forceinline__ int load(T *stage, const T *a, bool together, int lane)
    {
        int late = shift(a, together);
        if (fast(a, together)) {
            const T *from = cuda__shuffle_pointer(a, 0) - late;
            each(
                late, lane, [&](int i) { cuda__copy_async<16>(stage + i, from + i); },
                [&](int i) { cuda__copy_async<sizeof(T)>(stage + i, from + i); });
            return late;
        }
#pragma unroll 1
        for (int k = 0; k < Held; k++) {
            const T *from = cuda__shuffle_pointer(a, k);
#pragma unroll 1
            for (int e = lane; e < N * N; e += CUDA__WARP)
                cuda__copy_async<sizeof(T)>(stage + late + k * N * N + e, from + e);
        }
        return late;
    }

    /* Copies the matrices out; a lane's NULL leaves its matrix out. */
    static __device__ __forceinline__ void store(const T *stage, T *result, bool together, int lane)
    {
        typedef typename cuda__real<T>::vector vector;
        int late = shift(result, together);
        if (fast(result, together)) {
            T *to = cuda__shuffle_pointer(result, 0) - late;
            each(
                late, lane, [&](int i) { *(vector *)(to + i) = *(const vector *)(stage + i); },
                [&](int i) { to[i] = stage[i]; });
            return;
        }
#pragma unroll 1
        for (int k = 0; k < Held; k++) {
            T *to = cuda__shuffle_pointer(result, k);
#pragma unroll 1
            for (int e = lane; to && e < N * N; e += CUDA__WARP)
                to[e] = stage[late + k * N * N + e];
        }
    }
};

#endif
