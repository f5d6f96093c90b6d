/* gpu/host/simd/lanes.h: what code.inc takes for granted: constants in both precisions, and
 * how a vector is made of numbers that lie apart. Only the files that compile code.inc
 * include it, after gpu/host/base/speed.h.
 */
#ifndef GPU_HOST_SIMD_LANES_H
#define GPU_HOST_SIMD_LANES_H

#include <stdint.h>

#include "gpu/host/simd/small.h"

/* Integers as wide as the number, and all of its bits but the sign. */
#define INTEGER_f32 int32_t
#define INTEGER_f64 int64_t
#define MAGNITUDE_f32 INT32_MAX
#define MAGNITUDE_f64 INT64_MAX

#define LINE_BYTES 64 /* of the processor's caches */

/* A vector's initialiser: number `at` of every lane's array. */
#define LANES_2(from, at)                                                                          \
    {                                                                                              \
        from[0][at], from[1][at]                                                                   \
    }
#define LANES_4(from, at)                                                                          \
    {                                                                                              \
        from[0][at], from[1][at], from[2][at], from[3][at]                                         \
    }
#define LANES_8(from, at)                                                                          \
    {                                                                                              \
        from[0][at], from[1][at], from[2][at], from[3][at], from[4][at], from[5][at], from[6][at], \
            from[7][at]                                                                            \
    }
#define LANES_16(from, at)                                                                         \
    {                                                                                              \
        from[0][at], from[1][at], from[2][at], from[3][at], from[4][at], from[5][at], from[6][at], \
            from[7][at], from[8][at], from[9][at], from[10][at], from[11][at], from[12][at],       \
            from[13][at], from[14][at], from[15][at]                                               \
    }

/* The vector on which an inverse is tried: signs without a pattern. */
#define SIGNS                                                                                      \
    {                                                                                              \
        1, -1, -1, 1, 1, 1, -1, 1, -1, -1, -1, 1, -1, 1, 1, -1, 1, 1, -1, -1, -1, -1, 1, -1, 1, 1, \
            1, -1, 1, -1, -1, 1                                                                    \
    }
static const float signs_f32[HOST_SMALL_ORDER_MAX] = SIGNS;
static const double signs_f64[HOST_SMALL_ORDER_MAX] = SIGNS;

#endif
