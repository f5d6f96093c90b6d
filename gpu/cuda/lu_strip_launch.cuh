/* gpu/cuda/lu_strip_launch.cuh: instances of lu_strip.cuh's kernel, and the way from an order to
 * its instance. Host code, any thread.
 */
#ifndef GPU_CUDA_LU_STRIP_LAUNCH_CUH
#define GPU_CUDA_LU_STRIP_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/lu_strip_block.cuh"

/* Bytes of a block's cellar. */
template <typename Shape> static constexpr size_t cuda__lu_strip_cellar()
{
    return (size_t)Shape::cellared * Shape::area * sizeof(typename Shape::real_type);
}

/* Of the current device. More blocks would have more cellars than there is cache for. */
static inline int64_t cuda__lu_multiprocessors()
{
    int device, count = 0;
    bool known =
        cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess;
    return known && count > 0 ? count : 1;
}

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_strip_launch(int64_t n, const cuda_batch &batch, void *space,
                                         size_t space_bytes, cudaStream_t stream)
{
    typedef cuda__lu_strip_shared<Shape> shared;
    static_assert(sizeof(shared) <= CUDA__LU_SHARED_MAX, "it fits");
    const size_t cellar = cuda__lu_strip_cellar<Shape>();
    int64_t most = cellar > 0 ? (int64_t)(space_bytes / cellar) : INT32_MAX;
    if (most < 1)
        return cudaErrorMemoryAllocation;
    most = cellar > 0 && most > cuda__lu_multiprocessors() ? cuda__lu_multiprocessors() : most;
    int64_t blocks = batch.matrices < most ? batch.matrices : most;
    return cuda__start(cuda__lu_strip_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(shared), stream, batch, n, space);
}

/* What a block takes for order n: shared memory, 0 where there is no kernel for it; and a cellar in
 * the workspace. */
struct cuda__lu_strip_needs {
    size_t shared_bytes, cellar_bytes;
};

template <typename T> static inline cuda__lu_strip_needs cuda__lu_strip_needs_of(int64_t n)
{
#define CUDA__LU_STRIP(type, order, tiles, strips, blocks)                                         \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        typedef cuda__lu_strip_shape<type, order, tiles, strips> shape;                            \
        if (n <= order)                                                                            \
            return {sizeof(cuda__lu_strip_shared<shape>), cuda__lu_strip_cellar<shape>()};         \
    }
#include "gpu/cuda/lu_strip_tuning_h200.cuh"
#undef CUDA__LU_STRIP
    return {0, 0};
}

typedef cudaError_t cuda__lu_strip_launcher(int64_t n, const cuda_batch &batch, void *space,
                                            size_t space_bytes, cudaStream_t stream);
cuda__lu_strip_launcher cuda__lu_strip_f32, cuda__lu_strip_f64;
/* Shapes with far panels, in files of their own: they take long to compile. */
cuda__lu_strip_launcher cuda__lu_strip_far_f32, cuda__lu_strip_far_f64;

/* The first row that holds the order, of the shapes with or without far panels; where none does,
 * other(), if it is not NULL. */
template <typename T, bool Far>
static cudaError_t cuda__lu_strip_pick(int64_t n, const cuda_batch &batch, void *space,
                                       size_t space_bytes, cudaStream_t stream,
                                       cuda__lu_strip_launcher *other)
{
#define CUDA__LU_STRIP(type, order, tiles, strips, blocks)                                         \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        typedef cuda__lu_strip_shape<type, order, tiles, strips> shape;                            \
        if constexpr ((shape::far > 0) == Far) {                                                   \
            if (n <= order)                                                                        \
                return cuda__lu_strip_launch<shape, blocks>(n, batch, space, space_bytes, stream); \
        }                                                                                          \
    }
#include "gpu/cuda/lu_strip_tuning_h200.cuh"
#undef CUDA__LU_STRIP
    return other ? other(n, batch, space, space_bytes, stream) : cudaErrorInvalidValue;
}

#endif
