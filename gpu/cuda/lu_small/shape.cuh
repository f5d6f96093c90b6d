/* gpu/cuda/lu_small/shape.cuh: the kernels by the numbers of a tuning table's row, and what a
 * launch must know of them. Host code; any thread.
 */
#ifndef GPU_CUDA_LU_SMALL_SHAPE_CUH
#define GPU_CUDA_LU_SMALL_SHAPE_CUH

#include "gpu/cuda/lu_small/factor_rows.cuh"
#include "gpu/cuda/lu_small/inverse_rows.cuh"
#include "gpu/cuda/lu_small/per_thread.cuh"

typedef void cuda__kernel(const cuda_batch);

template <typename T, int N, int Rows, int Block, bool Rolled, int Warps, int Blocks>
struct cuda__inverse_shape {
    static constexpr cuda__kernel *kernel =
        cuda__inverse_rows_kernel<T, N, Rows, Block, Rolled, Warps, Blocks>;
    static constexpr int threads = Warps * CUDA__WARP;
    static constexpr int held = cuda__rows<T, N, Rows>::held * Warps; /* matrices a block */
    static constexpr size_t shared_bytes = sizeof(cuda__inverse_shared<T, N, Rows, Block>) * Warps;
};

template <typename T, int N, int Rows, int Block, int Warps, int Blocks> struct cuda__factor_shape {
    static constexpr cuda__kernel *kernel =
        cuda__factor_rows_kernel<T, N, Rows, Block, Warps, Blocks>;
    static constexpr int threads = Warps * CUDA__WARP;
    static constexpr int held = cuda__rows<T, N, Rows>::held * Warps;
    static constexpr size_t shared_bytes = sizeof(cuda__factor_shared<T, N, Rows, Block>) * Warps;
};

template <typename Work, int Each, int Warps, int Blocks> struct cuda__per_thread_shape {
    typedef cuda__per_thread_run<Work, Each> run;
    static_assert(Work::n <= CUDA__PER_THREAD_N_MAX, "a matrix fits a lane");
    static constexpr cuda__kernel *kernel = cuda__per_thread_kernel<Work, Each, Warps, Blocks>;
    static constexpr int threads = Warps * CUDA__WARP;
    static constexpr int held = run::matrices * Warps;
    static constexpr size_t shared_bytes = run::shared_bytes * Warps;
};

template <typename T, int N, int Each, int Warps, int Blocks>
using cuda__inverse_per_thread_shape =
    cuda__per_thread_shape<cuda__per_thread_inverse<T, N>, Each, Warps, Blocks>;
template <typename T, int N, int Each, int Warps, int Blocks>
using cuda__factor_per_thread_shape =
    cuda__per_thread_shape<cuda__per_thread_factor<T, N>, Each, Warps, Blocks>;

#endif
