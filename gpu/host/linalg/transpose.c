/* gpu/host/linalg/transpose.c: see transpose.h. The precision-dependent part is transpose.inc.
 *
 * A square block as wide as a line of the cache is held in registers, a row in each, and transposed
 * in log2 (width) rounds: in the round of `half`, rows i and i + half exchange the parts of their
 * `2 half` columns that lie off the diagonal.
 *
 * A store across two lines costs twice. Where the rows of the result do not begin with a line, a
 * block takes, column by column, the numbers of one line: some of its rows, and before them some of
 * the block above. They come out of the rounds in the right row, turned by as many places as the
 * line begins before the block.
 *
 * What a block reads in a row, and writes, are whole lines; so their order is free. It is chosen
 * for what the processor fetches by itself: rows of `from` in the main. Memory that is only written
 * is waited for as well, and has to be fetched in time (HOST_WRITES_FETCHED).
 *
 * In a core's own caches nothing of that pays. Edges there, and CPUs without AVX-512, take STRIP
 * rows at a time number by number.
 *
 * Threads: any. Cost: see transpose.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/transpose.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define STRIP 8          /* rows moved together, number by number */
#define STRIP_COLUMNS 64 /* and columns, for as many rows as there are */
#define AHEAD 32         /* columns of a strip of blocks */

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

/* Numbers of `here` where mask has a bit, else of `above`. */
HOST_AVX512 static inline __m512 load_either_f32(const float *above, const float *here,
                                                 uint16_t mask, float factor)
{
    __m512 row = _mm512_mask_loadu_ps(_mm512_loadu_ps(above), mask, here);
    return _mm512_mul_ps(row, _mm512_set1_ps(factor));
}

HOST_AVX512 static inline __m512d load_either_f64(const double *above, const double *here,
                                                  uint16_t mask, double factor)
{
    __m512d row = _mm512_mask_loadu_pd(_mm512_loadu_pd(above), (__mmask8)mask, here);
    return _mm512_mul_pd(row, _mm512_set1_pd(factor));
}

/* Numbers of both where their masks have bits, else 0; no others are read. */
HOST_AVX512 static inline __m512 load_some_f32(const float *above, uint16_t other,
                                               const float *here, uint16_t mask, float factor)
{
    __m512 row = _mm512_mask_loadu_ps(_mm512_maskz_loadu_ps(other, above), mask, here);
    return _mm512_mul_ps(row, _mm512_set1_ps(factor));
}

HOST_AVX512 static inline __m512d load_some_f64(const double *above, uint16_t other,
                                                const double *here, uint16_t mask, double factor)
{
    __m512d row = _mm512_maskz_loadu_pd((__mmask8)other, above);
    row = _mm512_mask_loadu_pd(row, (__mmask8)mask, here);
    return _mm512_mul_pd(row, _mm512_set1_pd(factor));
}

HOST_AVX512 static inline void store_f32(float *to, __m512 row)
{
    _mm512_storeu_ps(to, row);
}

HOST_AVX512 static inline void store_f64(double *to, __m512d row)
{
    _mm512_storeu_pd(to, row);
}

HOST_AVX512 static inline void store_some_f32(float *to, uint16_t mask, __m512 row)
{
    _mm512_mask_storeu_ps(to, mask, row);
}

HOST_AVX512 static inline void store_some_f64(double *to, uint16_t mask, __m512d row)
{
    _mm512_mask_storeu_pd(to, (__mmask8)mask, row);
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

/* Number k of the result is number index[k] of a. */
HOST_AVX512 static inline __m512 turn_f32(__m512 a, __m512i index)
{
    return _mm512_permutexvar_ps(index, a);
}

HOST_AVX512 static inline __m512d turn_f64(__m512d a, __m512i index)
{
    return _mm512_permutexvar_pd(index, a);
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

#define REAL_FILE "gpu/host/linalg/transpose.inc"
#include "gpu/host/linalg/real.inc"
