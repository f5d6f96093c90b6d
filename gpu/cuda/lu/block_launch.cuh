/* gpu/cuda/lu/block_launch.cuh: instances of block.cuh's kernels, and the way from an order to
 * its instance. Host code, any thread.
 */
#ifndef GPU_CUDA_LU_BLOCK_LAUNCH_CUH
#define GPU_CUDA_LU_BLOCK_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/block.cuh"

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_block_launch(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    static_assert(sizeof(cuda__lu_shared<Shape>) <= CUDA__LU_SHARED_MAX, "the matrix fits");
    int64_t blocks = batch.matrices < INT32_MAX ? batch.matrices : INT32_MAX;
    return cuda__start(cuda__lu_block_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(cuda__lu_shared<Shape>), stream, batch, n);
}

/* For orders that cuda__lu_block_bytes knows. */
template <typename T>
static cudaError_t cuda__lu_block_pick(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
#define CUDA__LU_BLOCK(type, order, block, warps, rows, columns, blocks)                           \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (n <= order)                                                                            \
            return cuda__lu_block_launch<cuda__lu_shape<type, order, block, warps, rows, columns>, \
                                         blocks>(n, batch, stream);                                \
    }
#include "gpu/cuda/tuning/h200/lu.cuh"
#undef CUDA__LU_BLOCK
    return cudaErrorInvalidValue;
}

/* Shared memory that a block takes for order n; 0: there is no kernel for it. */
template <typename T> static inline size_t cuda__lu_block_bytes(int64_t n)
{
#define CUDA__LU_BLOCK(type, order, block, warps, rows, columns, blocks)                           \
    if (std::is_same<type, T>::value && n <= order)                                                \
        return sizeof(cuda__lu_shared<cuda__lu_shape<type, order, block, warps, rows, columns>>);
#include "gpu/cuda/tuning/h200/lu.cuh"
#undef CUDA__LU_BLOCK
    return 0;
}

/* Of the type of strip_launch.cuh's; they need no workspace. */
typedef cudaError_t cuda__lu_block_launcher(int64_t n, const cuda_batch &batch, void *, size_t,
                                            cudaStream_t stream);
cuda__lu_block_launcher cuda__lu_factor_f32, cuda__lu_factor_f64;

#endif
