/* gpu/cuda/lu_small/lone_place.cuh: the matrices of a warp whose lanes have one each (lone.cuh),
 * between global memory and registers.
 *
 * A matrix of up to 16 bytes is one access of its lane. One of 32 bytes is two, and two lanes
 * exchange halves, so that an access leaves no gaps. Larger ones go through shared memory, as those
 * of stage.cuh. Device code, warp-wide: every lane calls, converged.
 */
#ifndef GPU_CUDA_LU_SMALL_LONE_PLACE_CUH
#define GPU_CUDA_LU_SMALL_LONE_PLACE_CUH

#include <type_traits>

#include "gpu/cuda/lu_small/inverse_layout.cuh"

/* Of neighbouring matrices, whose first is at `a`: fetch() asks for the lane's, take() has it after
 * arrive() of all that were asked for, give() stores it after meet() of all that were taken. */
template <typename T, int N> struct cuda__lone_direct {
    static constexpr int bytes = N * N * (int)sizeof(T);
    static constexpr bool halves = bytes == 32;
    static constexpr int piece = halves ? bytes / 2 : bytes;
    struct alignas(piece) numbers {
        T of[piece / (int)sizeof(T)];
    };
    struct memory {
    };

    static __device__ __forceinline__ bool fits(const void *item)
    {
        return (uintptr_t)item % piece == 0;
    }

    /* Of two lanes the first has the first halves of both, the second the others; and back. */
    static __device__ __forceinline__ void exchange(numbers (&x)[2], int lane)
    {
        bool second = lane % 2 != 0;
#pragma unroll
        for (int v = 0; v < piece / (int)sizeof(T); v++) {
            T given = second ? x[0].of[v] : x[1].of[v];
            given = __shfl_xor_sync(CUDA__ALL, given, 1);
            x[0].of[v] = second ? given : x[0].of[v];
            x[1].of[v] = second ? x[1].of[v] : given;
        }
    }

    static __device__ __forceinline__ int fetch(memory &, T *x, const T *a, int lane)
    {
        const numbers *from = (const numbers *)a;
        if constexpr (halves) {
            int at = lane / 2 * 4 + lane % 2;
            numbers both[2] = {from[at], from[at + 2]};
            __builtin_memcpy(x, both, bytes);
        } else {
            numbers all = from[lane];
            __builtin_memcpy(x, &all, bytes);
        }
        return 0;
    }

    static __device__ __forceinline__ void arrive()
    {
    }

    static __device__ __forceinline__ void take(const memory &, T *x, int, int lane)
    {
        if constexpr (halves) {
            numbers both[2];
            __builtin_memcpy(both, x, bytes);
            exchange(both, lane);
            __builtin_memcpy(x, both, bytes);
        }
    }

    static __device__ __forceinline__ void meet()
    {
    }

    static __device__ __forceinline__ void give(memory &, T *result, const T *x, int lane)
    {
        numbers *to = (numbers *)result;
        if constexpr (halves) {
            int at = lane / 2 * 4 + lane % 2;
            numbers both[2];
            __builtin_memcpy(both, x, bytes);
            exchange(both, lane);
            to[at] = both[0];
            to[at + 2] = both[1];
        } else {
            numbers all;
            __builtin_memcpy(&all, x, bytes);
            to[lane] = all;
        }
    }
};

template <typename T, int N> struct cuda__lone_staged {
    typedef cuda__inverse_layout<T, N, N, N> layout;
    typedef typename layout::stage stage;
    struct memory {
        alignas(16) T numbers[layout::places];
    };

    static __device__ __forceinline__ bool fits(const void *)
    {
        return true;
    }

    /* How many numbers late the matrices begin. */
    static __device__ __forceinline__ int fetch(memory &shared, T *, const T *a, int lane)
    {
        return stage::load(shared.numbers, a, true, lane);
    }

    static __device__ __forceinline__ void arrive()
    {
        cuda__copy_wait();
    }

    static __device__ __forceinline__ void meet()
    {
        __syncwarp();
    }

    static __device__ __forceinline__ void take(const memory &shared, T *x, int late, int lane)
    {
        constexpr int grain = layout::whole ? layout::width : 1;
        const T *from = shared.numbers + late + lane * layout::io_stride;
#pragma unroll
        for (int e = 0; e < N * N; e += grain)
            cuda__take<grain>(x + e, from + e);
    }

    static __device__ __forceinline__ void give(memory &shared, T *result, const T *x, int lane)
    {
        int late = 0;
        if constexpr (stage::shifts)
            late = stage::shift(result, true);
        T *to = shared.numbers + late + lane * layout::io_stride;
#pragma unroll
        for (int e = 0; e < N * N; e++)
            to[e] = x[e];
        __syncwarp();
        stage::store(shared.numbers, result, true, lane);
    }
};

template <typename T, int N>
using cuda__lone_place =
    typename std::conditional<(N * N * sizeof(T) <= 32 && N <= 2), cuda__lone_direct<T, N>,
                              cuda__lone_staged<T, N>>::type;

/* `Count` numbers of each matrix, of a warp's: in one access of the lane, or by shared memory, so
 * that an access leaves no gaps. */
template <typename U, int Count> struct cuda__lone_extras {
    static constexpr bool direct = Count == 1 || Count == 2 || Count == 4;
    struct alignas(direct ? Count * sizeof(U) : sizeof(U)) numbers {
        U of[Count];
    };
    struct none {
    };
    struct all {
        U numbers[direct ? 1 : Count * CUDA__WARP];
    };
    typedef typename std::conditional<direct, none, all>::type memory;

    static __device__ __forceinline__ bool fits(const void *item)
    {
        return (uintptr_t)item % sizeof(numbers) == 0 || !direct;
    }

    static __device__ __forceinline__ void give(memory &shared, U *to, const U (&x)[Count],
                                                int lane)
    {
        if constexpr (direct) {
            numbers mine;
#pragma unroll
            for (int k = 0; k < Count; k++)
                mine.of[k] = x[k];
            ((numbers *)to)[lane] = mine;
        } else {
#pragma unroll
            for (int k = 0; k < Count; k++)
                shared.numbers[lane * Count + k] = x[k];
            __syncwarp();
#pragma unroll
            for (int k = 0; k < Count; k++)
                to[k * CUDA__WARP + lane] = shared.numbers[k * CUDA__WARP + lane];
        }
    }
};

#endif
