/* gpu/host/base/both_precisions.h: declares twice, once for each precision, what a header writes
 * once.
 *
 * Such a header has two parts. The first belongs to no precision. It ends by naming the header
 * itself and including this file, which includes the header's second part twice: with REAL as
 * float and R(name) as name_f32, then with REAL as double and R(name) as name_f64.
 *
 *     #ifndef GPU_HOST_X_H
 *     #define GPU_HOST_X_H
 *     int64_t host__x_lines(int64_t n);
 *     #define REAL_HEADER "gpu/host/X.h"
 *     #include "gpu/host/base/both_precisions.h"
 *     #elif defined(REAL_HEADER)
 *     void R(host__x)(int64_t n, REAL *a);
 *     #endif
 */
#ifdef REAL_HEADER

#ifdef REAL
#error "include by_precision.h after the headers that declare both precisions"
#endif

#define REAL float
#define R(name) name##_f32
#include REAL_HEADER
#undef REAL
#undef R

#define REAL double
#define R(name) name##_f64
#include REAL_HEADER
#undef REAL
#undef R

#undef REAL_HEADER
#endif
