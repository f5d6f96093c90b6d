/* gpu/cuda/lu_small/shapes.cuh: the shapes of the kernels for each size, from the table that the
 * build names (CUDA__TUNING: the Makefile's TUNING). A table has a row for each kernel, precision
 * and order:
 *
 *   CUDA__INVERSE(type, n, rows a lane, columns a panel, do the panels run one code, warps a block,
 *                 blocks a multiprocessor that registers must allow)
 *   CUDA__FACTOR(the same but for the one code)
 *
 * or, of up to CUDA__PER_THREAD_N_MAX, of a whole matrix a lane:
 *
 *   CUDA__INVERSE_PER_THREAD(type, n, matrices a lane, warps a block, blocks a multiprocessor)
 *   CUDA__FACTOR_PER_THREAD(the same)
 *
 * Panels that run one code divide n.
 */
#ifndef GPU_CUDA_LU_SMALL_SHAPES_CUH
#define GPU_CUDA_LU_SMALL_SHAPES_CUH

#include "gpu/cuda/lu_small/shape.cuh"

template <typename T, int N> struct cuda__inverse_tuning;
template <typename T, int N> struct cuda__factor_tuning;

#define CUDA__INVERSE(T, N, ...)                                                                   \
    template <> struct cuda__inverse_tuning<T, N> {                                                \
        typedef cuda__inverse_shape<T, N, __VA_ARGS__> shape;                                      \
    };
#define CUDA__FACTOR(T, N, ...)                                                                    \
    template <> struct cuda__factor_tuning<T, N> {                                                 \
        typedef cuda__factor_shape<T, N, __VA_ARGS__> shape;                                       \
    };
#define CUDA__INVERSE_PER_THREAD(T, N, ...)                                                        \
    template <> struct cuda__inverse_tuning<T, N> {                                                \
        typedef cuda__inverse_per_thread_shape<T, N, __VA_ARGS__> shape;                           \
    };
#define CUDA__FACTOR_PER_THREAD(T, N, ...)                                                         \
    template <> struct cuda__factor_tuning<T, N> {                                                 \
        typedef cuda__factor_per_thread_shape<T, N, __VA_ARGS__> shape;                            \
    };

#include CUDA__TUNING

#undef CUDA__INVERSE
#undef CUDA__FACTOR
#undef CUDA__INVERSE_PER_THREAD
#undef CUDA__FACTOR_PER_THREAD

#endif
