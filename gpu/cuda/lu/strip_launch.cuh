/* gpu/cuda/lu/strip_launch.cuh: instances of strip.cuh's kernel, and the way from an order to
 * its instance. Host code, any thread.
 */
#ifndef GPU_CUDA_LU_STRIP_LAUNCH_CUH
#define GPU_CUDA_LU_STRIP_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/strip_block.cuh"

/* Bytes that a block spills. */
template <typename Shape> static constexpr size_t cuda__lu_strip_spill()
{
    return (size_t)Shape::spilled * Shape::area * sizeof(typename Shape::real_type);
}

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_strip_launch(int64_t n, const cuda_batch &batch, void *space,
                                         size_t space_bytes, cudaStream_t stream)
{
    typedef cuda__lu_strip_shared<Shape> shared;
    static_assert(sizeof(shared) <= CUDA__LU_SHARED_MAX, "it fits");
    const size_t spill = cuda__lu_strip_spill<Shape>();
    int64_t most = spill > 0 ? (int64_t)(space_bytes / spill) : INT32_MAX;
    if (most < 1)
        return cudaErrorMemoryAllocation;
    /* More blocks would spill more than the cache holds. */
    most = spill > 0 && most > cuda__multiprocessors() ? cuda__multiprocessors() : most;
    int64_t blocks = batch.matrices < most ? batch.matrices : most;
    return cuda__start(cuda__lu_strip_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(shared), stream, batch, n, space);
}

/* A row of the table; order 0: none. */
struct cuda__lu_strip_choice {
    int order, tiles, strips, blocks;
};

/* The shape for order n. Many matrices, more than blocks of the order's own shape find room for at
 * once, may have another one. */
template <typename T>
static cuda__lu_strip_choice cuda__lu_strip_choose(int64_t n, int64_t matrices)
{
    cuda__lu_strip_choice few = {}, many = {};
#define CUDA__LU_STRIP_IS(choice, type, most, tiles, strips, blocks)                               \
    if (std::is_same<type, T>::value && n <= most && choice.order == 0)                            \
        choice = {most, tiles, strips, blocks};
#define CUDA__LU_STRIP(...) CUDA__LU_STRIP_IS(few, __VA_ARGS__)
#define CUDA__LU_STRIP_OF_MANY(...) CUDA__LU_STRIP_IS(many, __VA_ARGS__)
#include "gpu/cuda/tuning/h200/lu_strip.cuh"
#undef CUDA__LU_STRIP
#undef CUDA__LU_STRIP_OF_MANY
#undef CUDA__LU_STRIP_IS
    bool other = many.order == few.order && matrices > few.blocks * cuda__multiprocessors();
    return other ? many : few;
}

template <typename Shape, int Blocks> struct cuda__lu_strip_row {
    typedef Shape shape;
    static constexpr int blocks = Blocks;
};

/* f(cuda__lu_strip_row) of the choice. */
template <typename T, typename F> static void cuda__lu_strip_with(cuda__lu_strip_choice choice, F f)
{
#define CUDA__LU_STRIP(type, most, by_warp, warps, together)                                       \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (choice.order == most && choice.tiles == by_warp && choice.strips == warps)             \
            return f(                                                                              \
                cuda__lu_strip_row<cuda__lu_strip_shape<type, most, by_warp, warps>, together>()); \
    }
#define CUDA__LU_STRIP_OF_MANY CUDA__LU_STRIP
#include "gpu/cuda/tuning/h200/lu_strip.cuh"
#undef CUDA__LU_STRIP
#undef CUDA__LU_STRIP_OF_MANY
}

/* What a block takes for order n, of either shape: shared memory, 0 where there is no kernel for
 * it; and what it spills to the workspace. */
struct cuda__lu_strip_needs {
    size_t shared_bytes, spill_bytes;
};

template <typename T> static inline cuda__lu_strip_needs cuda__lu_strip_needs_of(int64_t n)
{
    cuda__lu_strip_needs needs = {0, 0};
    for (int64_t matrices : {int64_t(1), INT64_MAX})
        cuda__lu_strip_with<T>(cuda__lu_strip_choose<T>(n, matrices), [&](auto row) {
            typedef typename decltype(row)::shape shape;
            size_t shared = sizeof(cuda__lu_strip_shared<shape>);
            size_t spill = cuda__lu_strip_spill<shape>();
            needs.shared_bytes = shared > needs.shared_bytes ? shared : needs.shared_bytes;
            needs.spill_bytes = spill > needs.spill_bytes ? spill : needs.spill_bytes;
        });
    return needs;
}

typedef cudaError_t cuda__lu_strip_launcher(int64_t n, const cuda_batch &batch, void *space,
                                            size_t space_bytes, cudaStream_t stream);
cuda__lu_strip_launcher cuda__lu_strip_f32, cuda__lu_strip_f64;
/* Shapes with far panels, in files of their own: they take long to compile. */
cuda__lu_strip_launcher cuda__lu_strip_far_f32, cuda__lu_strip_far_f64;

/* The order's shape, of those with or without far panels; for a shape of the other kind other(). */
template <typename T, bool Far>
static cudaError_t cuda__lu_strip_pick(int64_t n, const cuda_batch &batch, void *space,
                                       size_t space_bytes, cudaStream_t stream,
                                       cuda__lu_strip_launcher *other)
{
    cudaError_t status = cudaErrorInvalidValue;
    cuda__lu_strip_with<T>(cuda__lu_strip_choose<T>(n, batch.matrices), [&](auto row) {
        typedef decltype(row) of;
        if constexpr ((of::shape::far > 0) == Far)
            status = cuda__lu_strip_launch<typename of::shape, of::blocks>(n, batch, space,
                                                                           space_bytes, stream);
        else if (other)
            status = other(n, batch, space, space_bytes, stream);
    });
    return status;
}

#endif
