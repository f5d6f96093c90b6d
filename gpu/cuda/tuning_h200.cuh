/* gpu/cuda/tuning_h200.cuh: the shape of the fused kernels for each size.
 *
 * Measured on one NVIDIA H200, 2026-11-21, 1,000,000 matrices on the device: of the shapes tried
 * the fastest. Any row gives right answers on any device; another one may be faster there. A
 * different row may give other bits.
 */
#ifndef GPU_CUDA_TUNING_H200_CUH
#define GPU_CUDA_TUNING_H200_CUH

/* rows a lane; columns a panel, whether the panels run one code (they then divide n); warps a
 * block; blocks a multiprocessor that registers must allow. */
template <typename T, int N> struct cuda__inverse_tuning;
template <typename T, int N> struct cuda__factor_tuning;

#define CUDA__INVERSE(T, N, Rows, Block, Rolled, Warps, Blocks)                                    \
    template <> struct cuda__inverse_tuning<T, N> {                                                \
        static constexpr int rows = Rows, block = Block, warps = Warps, blocks = Blocks;           \
        static constexpr bool rolled = Rolled;                                                     \
    };
#define CUDA__FACTOR(T, N, Rows, Warps, Blocks)                                                    \
    template <> struct cuda__factor_tuning<T, N> {                                                 \
        static constexpr int rows = Rows, warps = Warps, blocks = Blocks;                          \
    };

/* clang-format off */
CUDA__INVERSE(float, 1, 1, 1, false, 4, 8)
CUDA__INVERSE(float, 2, 2, 2, false, 4, 8)
CUDA__INVERSE(float, 3, 3, 3, false, 4, 8)
CUDA__INVERSE(float, 4, 4, 4, false, 4, 8)
CUDA__INVERSE(float, 5, 3, 4, false, 4, 8)
CUDA__INVERSE(float, 6, 6, 4, false, 4, 6)
CUDA__INVERSE(float, 7, 4, 4, false, 4, 8)
CUDA__INVERSE(float, 8, 4, 4, false, 4, 6)
CUDA__INVERSE(float, 9, 5, 4, false, 1, 20)
CUDA__INVERSE(float, 10, 5, 8, false, 1, 20)
CUDA__INVERSE(float, 11, 6, 4, false, 1, 16)
CUDA__INVERSE(float, 12, 3, 4, false, 4, 6)
CUDA__INVERSE(float, 13, 7, 4, false, 1, 16)
CUDA__INVERSE(float, 14, 4, 8, false, 1, 20)
CUDA__INVERSE(float, 15, 4, 8, false, 1, 20)
CUDA__INVERSE(float, 16, 4, 4, true, 1, 20)
CUDA__INVERSE(float, 17, 3, 8, false, 1, 20)
CUDA__INVERSE(float, 18, 3, 8, false, 1, 20)
CUDA__INVERSE(float, 19, 5, 8, false, 1, 12)
CUDA__INVERSE(float, 20, 5, 8, false, 1, 12)
CUDA__INVERSE(float, 21, 6, 8, false, 1, 12)
CUDA__INVERSE(float, 22, 6, 8, false, 1, 12)
CUDA__INVERSE(float, 23, 3, 8, false, 1, 16)
CUDA__INVERSE(float, 24, 3, 8, true, 1, 16)
CUDA__INVERSE(float, 25, 5, 8, false, 1, 12)
CUDA__INVERSE(float, 26, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 27, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 28, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 29, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 30, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 31, 4, 8, false, 1, 12)
CUDA__INVERSE(float, 32, 2, 8, true, 1, 20)

CUDA__INVERSE(double, 1, 1, 1, false, 4, 8)
CUDA__INVERSE(double, 2, 2, 2, false, 4, 8)
CUDA__INVERSE(double, 3, 3, 3, false, 4, 8)
CUDA__INVERSE(double, 4, 4, 4, false, 4, 6)
CUDA__INVERSE(double, 5, 3, 2, false, 4, 6)
CUDA__INVERSE(double, 6, 3, 2, false, 4, 6)
CUDA__INVERSE(double, 7, 4, 4, false, 1, 20)
CUDA__INVERSE(double, 8, 4, 2, true, 1, 16)
CUDA__INVERSE(double, 9, 5, 4, false, 1, 12)
CUDA__INVERSE(double, 10, 5, 4, false, 1, 12)
CUDA__INVERSE(double, 11, 3, 4, false, 1, 16)
CUDA__INVERSE(double, 12, 3, 4, false, 1, 16)
CUDA__INVERSE(double, 13, 4, 4, false, 1, 12)
CUDA__INVERSE(double, 14, 4, 4, false, 1, 12)
CUDA__INVERSE(double, 15, 4, 4, false, 1, 12)
CUDA__INVERSE(double, 16, 2, 4, true, 1, 20)
CUDA__INVERSE(double, 17, 3, 4, false, 1, 12)
CUDA__INVERSE(double, 18, 3, 4, false, 1, 12)
CUDA__INVERSE(double, 19, 4, 4, false, 1, 8)
CUDA__INVERSE(double, 20, 5, 4, true, 1, 8)
CUDA__INVERSE(double, 21, 3, 4, false, 1, 12)
CUDA__INVERSE(double, 22, 3, 4, false, 1, 12)
CUDA__INVERSE(double, 23, 3, 4, false, 1, 8)
CUDA__INVERSE(double, 24, 3, 8, false, 1, 8)
CUDA__INVERSE(double, 25, 3, 8, false, 1, 8)
CUDA__INVERSE(double, 26, 3, 8, false, 1, 8)
CUDA__INVERSE(double, 27, 2, 8, false, 1, 12)
CUDA__INVERSE(double, 28, 2, 8, false, 1, 12)
CUDA__INVERSE(double, 29, 2, 8, false, 1, 12)
CUDA__INVERSE(double, 30, 2, 8, false, 1, 12)
CUDA__INVERSE(double, 31, 2, 8, false, 1, 12)
CUDA__INVERSE(double, 32, 2, 4, true, 1, 12)

CUDA__FACTOR(float, 1, 1, 4, 8)
CUDA__FACTOR(float, 2, 2, 4, 8)
CUDA__FACTOR(float, 3, 3, 4, 8)
CUDA__FACTOR(float, 4, 4, 4, 8)
CUDA__FACTOR(float, 5, 2, 4, 8)
CUDA__FACTOR(float, 6, 2, 4, 8)
CUDA__FACTOR(float, 7, 4, 4, 6)
CUDA__FACTOR(float, 8, 4, 4, 6)
CUDA__FACTOR(float, 9, 3, 4, 8)
CUDA__FACTOR(float, 10, 3, 4, 6)
CUDA__FACTOR(float, 11, 3, 4, 6)
CUDA__FACTOR(float, 12, 3, 4, 6)
CUDA__FACTOR(float, 13, 2, 4, 8)
CUDA__FACTOR(float, 14, 2, 4, 6)
CUDA__FACTOR(float, 15, 2, 4, 6)
CUDA__FACTOR(float, 16, 2, 4, 6)
CUDA__FACTOR(float, 17, 2, 4, 6)
CUDA__FACTOR(float, 18, 2, 4, 6)
CUDA__FACTOR(float, 19, 2, 4, 6)
CUDA__FACTOR(float, 20, 2, 4, 6)
CUDA__FACTOR(float, 21, 3, 1, 16)
CUDA__FACTOR(float, 22, 3, 1, 16)
CUDA__FACTOR(float, 23, 3, 1, 16)
CUDA__FACTOR(float, 24, 2, 1, 20)
CUDA__FACTOR(float, 25, 2, 1, 20)
CUDA__FACTOR(float, 26, 2, 1, 20)
CUDA__FACTOR(float, 27, 2, 1, 20)
CUDA__FACTOR(float, 28, 2, 1, 16)
CUDA__FACTOR(float, 29, 3, 1, 12)
CUDA__FACTOR(float, 30, 3, 1, 12)
CUDA__FACTOR(float, 31, 2, 1, 16)
CUDA__FACTOR(float, 32, 2, 1, 16)

CUDA__FACTOR(double, 1, 1, 4, 8)
CUDA__FACTOR(double, 2, 2, 4, 8)
CUDA__FACTOR(double, 3, 3, 4, 8)
CUDA__FACTOR(double, 4, 4, 4, 6)
CUDA__FACTOR(double, 5, 2, 4, 8)
CUDA__FACTOR(double, 6, 2, 4, 6)
CUDA__FACTOR(double, 7, 2, 4, 6)
CUDA__FACTOR(double, 8, 2, 4, 6)
CUDA__FACTOR(double, 9, 3, 1, 16)
CUDA__FACTOR(double, 10, 2, 1, 20)
CUDA__FACTOR(double, 11, 2, 1, 20)
CUDA__FACTOR(double, 12, 2, 1, 20)
CUDA__FACTOR(double, 13, 2, 1, 16)
CUDA__FACTOR(double, 14, 2, 1, 16)
CUDA__FACTOR(double, 15, 2, 1, 16)
CUDA__FACTOR(double, 16, 2, 1, 16)
CUDA__FACTOR(double, 17, 2, 1, 16)
CUDA__FACTOR(double, 18, 2, 1, 12)
CUDA__FACTOR(double, 19, 2, 1, 12)
CUDA__FACTOR(double, 20, 2, 1, 12)
CUDA__FACTOR(double, 21, 2, 1, 12)
CUDA__FACTOR(double, 22, 2, 1, 12)
CUDA__FACTOR(double, 23, 2, 1, 12)
CUDA__FACTOR(double, 24, 2, 1, 12)
CUDA__FACTOR(double, 25, 1, 1, 16)
CUDA__FACTOR(double, 26, 1, 1, 16)
CUDA__FACTOR(double, 27, 1, 1, 16)
CUDA__FACTOR(double, 28, 1, 1, 16)
CUDA__FACTOR(double, 29, 1, 1, 16)
CUDA__FACTOR(double, 30, 1, 1, 16)
CUDA__FACTOR(double, 31, 1, 1, 16)
CUDA__FACTOR(double, 32, 1, 1, 16)
/* clang-format on */

#undef CUDA__INVERSE
#undef CUDA__FACTOR

#endif
