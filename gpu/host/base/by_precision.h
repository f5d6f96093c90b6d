/* gpu/host/base/by_precision.h: for a source that is compiled once for each precision.
 *
 * The Makefile makes two objects of a source that includes this header: NAME_f32.o with
 * REAL_BITS=32, NAME_f64.o with REAL_BITS=64. There REAL is the type, R(name) appends the
 * precision's suffix to a name, REAL_C(x) writes a constant, and the other names stand for the
 * precision's limits and functions. Include it last: headers that declare both precisions
 * (both_precisions.h) define REAL and R in their own way.
 */
#ifndef GPU_HOST_BASE_BY_PRECISION_H
#define GPU_HOST_BASE_BY_PRECISION_H

#include <float.h>

#include "base/datatype.h"

#ifndef REAL_BITS
#error "this source is compiled once for each precision: with -DREAL_BITS=32 and -DREAL_BITS=64"
#elif REAL_BITS == 32
#define REAL float
#define R(name) name##_f32
#define REAL_C(x) x##f
#define REAL_MAX FLT_MAX
#define REAL_MIN FLT_MIN
#define REAL_EPS FLT_EPSILON
#define REAL_MAX_EXP FLT_MAX_EXP
#define REAL_MIN_EXP FLT_MIN_EXP
#define REAL_DIG FLT_MANT_DIG
#define REAL_FABS fabsf
#define REAL_FMA fmaf
#define REAL_LDEXP ldexpf
#define REAL_FREXP frexpf
#define REAL_LAPACK(name) LAPACK_s##name
#define REAL_BLAS(name) cblas_s##name
#define REAL_AVX512(name) _mm512_##name##_ps
#define REAL_TEXT "f32"
#define REAL_PRECISION PRECISION_FP32
#elif REAL_BITS == 64
#define REAL double
#define R(name) name##_f64
#define REAL_C(x) x
#define REAL_MAX DBL_MAX
#define REAL_MIN DBL_MIN
#define REAL_EPS DBL_EPSILON
#define REAL_MAX_EXP DBL_MAX_EXP
#define REAL_MIN_EXP DBL_MIN_EXP
#define REAL_DIG DBL_MANT_DIG
#define REAL_FABS fabs
#define REAL_FMA fma
#define REAL_LDEXP ldexp
#define REAL_FREXP frexp
#define REAL_LAPACK(name) LAPACK_d##name
#define REAL_BLAS(name) cblas_d##name
#define REAL_AVX512(name) _mm512_##name##_pd
#define REAL_TEXT "f64"
#define REAL_PRECISION PRECISION_FP64
#else
#error "REAL_BITS is 32 or 64"
#endif

#endif
