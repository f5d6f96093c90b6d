/* gpu/cuda/lu_small/range.cuh: for a source that is compiled once for each precision and each range
 * of orders: the Makefile makes NAME_f32_n16.o, NAME_f32_n24.o and so on of a NAME.cu that includes
 * this header, and sets ORDER_MIN and ORDER_MAX, so that the ranges compile side by side.
 *
 * RANGE(name) is the name with the suffixes of the range and of the precision. Host code; any
 * thread.
 */
#ifndef GPU_CUDA_LU_SMALL_RANGE_CUH
#define GPU_CUDA_LU_SMALL_RANGE_CUH

#include <utility>

#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/base/launch.cuh"

#if ORDER_MAX == 16
#define RANGE(name) R(name##_n16)
#elif ORDER_MAX == 24
#define RANGE(name) R(name##_n24)
#elif ORDER_MAX == 32
#define RANGE(name) R(name##_n32)
#else
#error "ORDER_MAX is 16, 24 or 32"
#endif

template <typename Shape>
static cudaError_t cuda__launch_shape(const cuda_batch &batch, cudaStream_t stream)
{
    return cuda__launch(Shape::kernel, batch, Shape::held, Shape::threads, Shape::shared_bytes,
                        stream);
}

/* Tuning<REAL, n>'s shape for the n among ORDER_MIN, ORDER_MIN + 1, ...: one of Steps. */
template <template <typename, int> class Tuning, int... Steps>
static cudaError_t cuda__launch_order(int64_t n, const cuda_batch &batch, cudaStream_t stream,
                                      std::integer_sequence<int, Steps...>)
{
    cudaError_t error = cudaErrorInvalidValue;
    ((n == ORDER_MIN + Steps
          ? (void)(error = cuda__launch_shape<typename Tuning<REAL, ORDER_MIN + Steps>::shape>(
                       batch, stream))
          : (void)0),
     ...);
    return error;
}

/* For n = ORDER_MIN .. ORDER_MAX. */
template <template <typename, int> class Tuning>
static cudaError_t cuda__launch_range(int64_t n, const cuda_batch &batch, cudaStream_t stream)
{
    return cuda__launch_order<Tuning>(n, batch, stream,
                                      std::make_integer_sequence<int, ORDER_MAX - ORDER_MIN + 1>());
}

#endif
