/* gpu/cuda/ism/last_row.cuh: a row of the answer from the registers of neighbouring lanes to where
 * it belongs, 16 bytes at a time whatever the multiple of a number's size it begins at: rows of an
 * odd n, in FP32 of any that is no multiple of 4, do not begin at multiples of 16 bytes.
 *
 * A group of lanes has a piece of a row: 16 bytes of each lane side by side, and as many behind
 * them. Where the piece begins `Lead` numbers before a multiple of 16 bytes, each lane gives its
 * first `Lead` numbers to the lane before it, and takes those of the next one behind its own. What
 * is left over, 16 bytes at the two ends together, goes number by number. Of n that is odd, in
 * FP64, 16 rows of 16 columns touch 76 sectors of 32 bytes; number by number without the exchange
 * they touch 160, half filled; rows that begin at multiples of 32 bytes have 64.
 *
 * Device code.
 */
#ifndef GPU_CUDA_ISM_LAST_ROW_CUH
#define GPU_CUDA_ISM_LAST_ROW_CUH

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/base/stage.cuh"

/* Lanes: of a group, of which a warp has several. */
template <typename T, int Lanes> struct cuda__ism_last_row {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;
    static constexpr int across = Lanes * width; /* numbers of a half of the piece */

    /* How many numbers at `place` and on are before a multiple of 16 bytes. */
    static __device__ __forceinline__ int lead(const T *place)
    {
        return (int)((0 - (uintptr_t)place) / sizeof(T) % width);
    }

    /* Numbers `Lead` on of the lane's own, and the first ones of the next lane. In the last lane
     * these are `wrapped`, or where that is NULL the first lane's of the same half. */
    template <int Lead>
    static __device__ __forceinline__ void shift(T (&to)[width], const T *own, const T *wrapped,
                                                 int lane)
    {
#pragma unroll
        for (int e = Lead; e < width; e++)
            to[e - Lead] = own[e];
#pragma unroll
        for (int e = 0; e < Lead; e++) {
            T given = __shfl_sync(CUDA__ALL, own[e], lane + 1, Lanes);
            to[width - Lead + e] = wrapped && lane == Lanes - 1 ? wrapped[width - Lead + e] : given;
        }
    }

    /* The numbers that no 16 bytes hold: the first lane's first ones, the last lane's last ones. */
    template <int Lead>
    static __device__ __forceinline__ void store_ends(const T *near, const T *far, T *to, int lane)
    {
        constexpr int ends_max = Lead > width - Lead ? Lead : width - Lead;
#pragma unroll
        for (int e = 0; e < ends_max; e++) {
            const bool begins = lane == 0 && e < Lead;
            const bool ends = lane == Lanes - 1 && e < width - Lead;
            if (begins || ends)
                cuda__store_stream(to + (ends ? across + Lead + e : e),
                                   ends ? far[(Lead + e) % width] : near[e]);
        }
    }

    /* A half of 64 bytes may touch three sectors: the first lane goes the other way about where
     * that lets one begin with a sector. Of 128 bytes it would not be worth the instructions.
     * Halves of 64 bytes with a `Lead` go by store_filled. */
    template <int Lead>
    static __device__ __forceinline__ void store_led(const T *near, const T *far, T *to, int lane)
    {
        alignas(16) T first[width], second[width];
        shift<Lead>(second, far, nullptr, lane);
        shift<Lead>(first, near, second, lane);
        const bool turned = across * sizeof(T) == 64 && lane == 0 && (uintptr_t)to % 32;
#pragma unroll
        for (int e = 0; e < width; e++) {
            const T kept = first[e];
            first[e] = turned ? second[e] : kept;
            second[e] = turned ? kept : second[e];
        }
        cuda__store_stream((vector *)(to + Lead + (turned ? across : 0)), first);
        if (Lead == 0 || lane < Lanes - 1)
            cuda__store_stream((vector *)(to + Lead + (turned ? 0 : across)), second);
        if constexpr (Lead > 0)
            store_ends<Lead>(near, far, to, lane);
    }

    /* The same of a half of 64 bytes that begins 8 bytes before 16. The numbers in sectors that the
     * piece does not fill, four at its two ends together, go one by one, one a lane, and all else
     * fills sectors. low: three of the four are the piece's first ones; else one is. */
    static __device__ __forceinline__ void store_filled(const T *near, const T *far, T *to,
                                                        int lane)
    {
        static_assert(width == 2 && Lanes == 4, "lanes have their places");
        const bool low = (uintptr_t)(to - lane * width + 1) % 32 != 0;
        const T given = __shfl_sync(CUDA__ALL, low ? near[1] : far[1], low ? 0 : 2, Lanes);
        alignas(16) T first[width], second[width];
        shift<1>(second, far, nullptr, lane);
        shift<1>(first, near, second, lane);
        const bool turned = low && lane == 0;
        first[0] = turned ? second[0] : first[0];
        first[1] = turned ? second[1] : first[1];
        cuda__store_stream((vector *)(to + 1 + (turned ? across : 0)), first);
        if (lane - low == 0 || lane - low == 1)
            cuda__store_stream((vector *)(to + 1 + across), second);
        const int at = lane == 0   ? 0
                       : lane == 1 ? low ? 0 : across + 3
                       : lane == 2 ? low ? -3 : across + 2
                                   : across + 1;
        const T one = lane == 0   ? near[0]
                      : lane == 1 ? low ? near[0] : given
                      : lane == 2 ? low ? given : second[1]
                                  : far[1];
        cuda__store_stream(to + at, one);
    }

    /* By a whole warp, whose groups have the same `lead`: of their first numbers' places. near,
     * far: the lane's numbers of both halves; `to`: where its first one belongs; `lane`: its number
     * in the group. */
    template <int Lead = 0>
    static __device__ __forceinline__ void store(const T *near, const T *far, T *to, int lane,
                                                 int lead)
    {
        if (lead != Lead) {
            if constexpr (Lead + 1 < width)
                store<Lead + 1>(near, far, to, lane, lead);
        } else if constexpr (Lead > 0 && across * sizeof(T) == 64) {
            store_filled(near, far, to, lane);
        } else {
            store_led<Lead>(near, far, to, lane);
        }
    }
};

#endif
