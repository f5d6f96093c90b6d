/* gpu/cuda/tuning.cuh: the shapes of the kernels for each size, from the table that the build names
 * (CUDA__TUNING: the Makefile's TUNING). A table has a row for each kernel, precision and order:
 *
 *   CUDA__INVERSE(type, n, rows a lane, columns a panel, do the panels run one code, warps a block,
 *                 blocks a multiprocessor that registers must allow)
 *   CUDA__FACTOR(the same but for the one code)
 *
 * Panels that run one code divide n.
 */
#ifndef GPU_CUDA_TUNING_CUH
#define GPU_CUDA_TUNING_CUH

template <typename T, int N> struct cuda__inverse_tuning;
template <typename T, int N> struct cuda__factor_tuning;

#define CUDA__INVERSE(T, N, Rows, Block, Rolled, Warps, Blocks)                                    \
    template <> struct cuda__inverse_tuning<T, N> {                                                \
        static constexpr int rows = Rows, block = Block, warps = Warps, blocks = Blocks;           \
        static constexpr bool rolled = Rolled;                                                     \
    };
#define CUDA__FACTOR(T, N, Rows, Block, Warps, Blocks)                                             \
    template <> struct cuda__factor_tuning<T, N> {                                                 \
        static constexpr int rows = Rows, block = Block, warps = Warps, blocks = Blocks;           \
    };

#include CUDA__TUNING

#undef CUDA__INVERSE
#undef CUDA__FACTOR

#endif
