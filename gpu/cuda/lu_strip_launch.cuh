/* gpu/cuda/lu_strip_launch.cuh: instances of lu_strip.cuh's kernel, and the way from an order to
 * its instance. Host code, any thread.
 */
#ifndef GPU_CUDA_LU_STRIP_LAUNCH_CUH
#define GPU_CUDA_LU_STRIP_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/lu_strip.cuh"

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_strip_launch(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    typedef cuda__lu_strip_shared<Shape> shared;
    static_assert(sizeof(shared) <= CUDA__LU_SHARED_MAX, "it fits");
    int64_t blocks = batch.matrices < INT32_MAX ? batch.matrices : INT32_MAX;
    return cuda__start(cuda__lu_strip_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(shared), stream, batch, n);
}

/* For orders that cuda__lu_strip_bytes knows. */
template <typename T>
static cudaError_t cuda__lu_strip_pick(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
#define CUDA__LU_STRIP(type, order, tiles, blocks)                                                 \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (n <= order)                                                                            \
            return cuda__lu_strip_launch<cuda__lu_strip_shape<type, order, tiles>, blocks>(        \
                n, batch, stream);                                                                 \
    }
#include "gpu/cuda/lu_strip_tuning_h200.cuh"
#undef CUDA__LU_STRIP
    return cudaErrorInvalidValue;
}

/* Shared memory that a block takes for order n; 0: there is no kernel for it. */
template <typename T> static inline size_t cuda__lu_strip_bytes(int64_t n)
{
#define CUDA__LU_STRIP(type, order, tiles, blocks)                                                 \
    if (std::is_same<type, T>::value && n <= order)                                                \
        return sizeof(cuda__lu_strip_shared<cuda__lu_strip_shape<type, order, tiles>>);
#include "gpu/cuda/lu_strip_tuning_h200.cuh"
#undef CUDA__LU_STRIP
    return 0;
}

typedef cudaError_t cuda__lu_strip_launcher(int64_t n, const cuda_batch &batch,
                                            cudaStream_t stream);
cuda__lu_strip_launcher cuda__lu_strip_f32, cuda__lu_strip_f64;

#endif
