/* gpu/cuda/lu_small/range.cuh: for a source that is compiled once for each precision and each range
 * of orders: the Makefile makes NAME_f32_n16.o, NAME_f32_n24.o and so on of a NAME.cu that includes
 * this header, and sets ORDER_MIN and ORDER_MAX, so that the ranges compile side by side.
 *
 * RANGE(name) is the name with the suffixes of the precision and of the range.
 */
#ifndef GPU_CUDA_LU_SMALL_RANGE_CUH
#define GPU_CUDA_LU_SMALL_RANGE_CUH

#include "gpu/cuda/base/by_precision.cuh"

#if ORDER_MIN == 1 && ORDER_MAX == 16
#define RANGE(name) R(name##_n16)
#elif ORDER_MIN == 17 && ORDER_MAX == 24
#define RANGE(name) R(name##_n24)
#elif ORDER_MIN == 25 && ORDER_MAX == 32
#define RANGE(name) R(name##_n32)
#else
#error "no range of lu_small.h's launchers"
#endif

#endif
