/* gpu/host/transpose.c: see transpose.h. The precision-dependent part is transpose.inc.
 *
 * A square block as wide as a line of the cache is held in registers, a row in each, and transposed
 * in log2 (width) rounds: in the round of `half`, rows i and i + half exchange the parts of their
 * `2 half` columns that lie off the diagonal. Blocks at the edges, and CPUs without AVX-512, take
 * STRIP rows at a time number by number.
 *
 * Threads: any. Cost: see transpose.h.
 */
#include "gpu/host/speed.h"

#include "gpu/host/transpose.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define STRIP 8 /* rows moved together */

typedef __m512 vector_f32;
typedef __m512d vector_f64;

HOST_AVX512 static inline __m512 load_f32(const float *from, float factor)
{
    return _mm512_mul_ps(_mm512_loadu_ps(from), _mm512_set1_ps(factor));
}

HOST_AVX512 static inline __m512d load_f64(const double *from, double factor)
{
    return _mm512_mul_pd(_mm512_loadu_pd(from), _mm512_set1_pd(factor));
}

HOST_AVX512 static inline void store_f32(float *to, __m512 row)
{
    _mm512_storeu_ps(to, row);
}

HOST_AVX512 static inline void store_f64(double *to, __m512d row)
{
    _mm512_storeu_pd(to, row);
}

/* Past the caches. */
HOST_AVX512 static inline void stream_f32(float *to, __m512 row)
{
    _mm512_stream_ps(to, row);
}

HOST_AVX512 static inline void stream_f64(double *to, __m512d row)
{
    _mm512_stream_pd(to, row);
}

/* Number k of the result is number index[k] of a and b, one behind the other. */
HOST_AVX512 static inline __m512 pick_f32(__m512 a, __m512 b, __m512i index)
{
    return _mm512_permutex2var_ps(a, index, b);
}

HOST_AVX512 static inline __m512d pick_f64(__m512d a, __m512d b, __m512i index)
{
    return _mm512_permutex2var_pd(a, index, b);
}

/* Indexes of 32 or 64 bits. */
HOST_AVX512 static inline __m512i indexes_f32(const int *from)
{
    return _mm512_loadu_si512(from);
}

HOST_AVX512 static inline __m512i indexes_f64(const int *from)
{
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)from));
}

#define REAL_FILE "gpu/host/transpose.inc"
#include "gpu/host/both.inc"
