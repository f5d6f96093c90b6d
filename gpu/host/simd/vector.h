/* gpu/host/simd/vector.h: vectors for a source that is compiled for three widths, in each
 * precision.
 *
 * The Makefile makes six objects of a source that includes this header: NAME_f32_v16.o and so on,
 * with REAL_BITS=32 or 64 and VECTOR_BYTES=16 (SSE2), 32 (AVX2) or 64 (AVX-512). A vector holds
 * number (i, j) of as many matrices as it has lanes. AT_WIDTH(name) appends width and precision to
 * a name. Include it last: from here on the compiler uses the instructions of the width.
 */
#ifndef GPU_HOST_SIMD_VECTOR_H
#define GPU_HOST_SIMD_VECTOR_H

#include "gpu/host/base/speed.h"

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include "gpu/host/simd/small.h"

#include "gpu/host/base/by_precision.h"

#ifndef VECTOR_BYTES
#error "this source is compiled once for each width: with -DVECTOR_BYTES=16, 32 and 64"
#elif VECTOR_BYTES == 16
#define AT_WIDTH(name) R(name##_v16)
#define INTRINSIC(name) _mm_##name
#elif VECTOR_BYTES == 32
#define AT_WIDTH(name) R(name##_v32)
#define INTRINSIC(name) _mm256_##name
#pragma GCC target("avx2")
#elif VECTOR_BYTES == 64
#define AT_WIDTH(name) R(name##_v64)
#define INTRINSIC(name) _mm512_##name
#pragma GCC target("avx512f,avx512dq,prefer-vector-width=512")
#endif

/* An integer as wide as the number, and all of its bits but the sign. */
#if REAL_BITS == 32
#define INTEGER int32_t
#define MAGNITUDE INT32_MAX
#define LARGER INTRINSIC(max_ps)
#else
#define INTEGER int64_t
#define MAGNITUDE INT64_MAX
#define LARGER INTRINSIC(max_pd)
#endif

#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))

/* A vector's initialiser: number `at` of every lane's array. */
#define LANES_2(from, at) from[0][at], from[1][at]
#define LANES_4(from, at) LANES_2(from, at), from[2][at], from[3][at]
#define LANES_8(from, at) LANES_4(from, at), LANES_4((from + 4), at)
#define LANES_16(from, at) LANES_8(from, at), LANES_8((from + 8), at)
#if VECTOR_BYTES * 8 / REAL_BITS == 2
#define ALL_LANES LANES_2
#elif VECTOR_BYTES * 8 / REAL_BITS == 4
#define ALL_LANES LANES_4
#elif VECTOR_BYTES * 8 / REAL_BITS == 8
#define ALL_LANES LANES_8
#else
#define ALL_LANES LANES_16
#endif

typedef REAL V __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef INTEGER BITS __attribute__((vector_size(VECTOR_BYTES), may_alias));

HOST_INLINE V all(REAL x)
{
    return x - (V){0};
}

HOST_INLINE V magnitude(V x)
{
    return (V)((BITS)x & MAGNITUDE);
}

/* x where the mask is set, else 0. */
HOST_INLINE V keep(V x, BITS mask)
{
    return (V)((BITS)x & mask);
}

HOST_INLINE V choose(BITS mask, V yes, V no)
{
    return (V)((mask & (BITS)yes) | (~mask & (BITS)no));
}

/* to = `count` numbers of every lane's array, from number `first` on. */
HOST_INLINE void gather(const REAL *const *arrays, int64_t first, int64_t count, V *restrict to)
{
    const REAL *from[LANES];
    for (int lane = 0; lane < LANES; lane++)
        from[lane] = arrays[lane] + first;
    for (int64_t at = 0; at < count; at++)
        to[at] = (V){ALL_LANES(from, at)};
}

#endif
