/* gpu/cuda/base/by_precision.cuh: for a source that is compiled once for each precision: the
 * Makefile makes NAME_f32.o and NAME_f64.o of a NAME.cu that includes this header, and sets
 * REAL_BITS to 32 or 64.
 *
 * REAL is the precision's type; R(name) is the name with the precision's suffix, for what other
 * files call.
 */
#ifndef GPU_CUDA_BASE_BY_PRECISION_CUH
#define GPU_CUDA_BASE_BY_PRECISION_CUH

#if REAL_BITS == 32
#define REAL float
#define R(name) name##_f32
#elif REAL_BITS == 64
#define REAL double
#define R(name) name##_f64
#else
#error "REAL_BITS is 32 or 64"
#endif

#endif
