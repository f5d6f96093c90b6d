/* proto/crc32.c: the checksum of zip members, by products of polynomials.
 *
 * zlib's own takes a quarter of what reading an .npz costs. This one folds four lanes of 16 bytes
 * at a time with the processor's carry-less multiplication, after Gopal and others, "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), where the
 * constants and the last reduction are explained.
 *
 * Any thread; no memory is taken. Cost: about five times as fast as zlib's.
 */
#include "proto/flate_private.h"

#include <assert.h>
#include <immintrin.h>

#define LANES 4
#define LANE_BYTES 16
#define TARGET __attribute__((target("pclmul,sse4.1")))

bool proto__crc32_folds(int64_t bytes)
{
    return bytes >= LANES * LANE_BYTES && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("sse4.1");
}

/* x moved on by as many bits as the constants say, and what stands there added. */
TARGET static inline __m128i fold(__m128i x, __m128i constants, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(x, constants, 0x00);
    __m128i high = _mm_clmulepi64_si128(x, constants, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* 128 bits to 32. */
TARGET static uint32_t reduce(__m128i x, __m128i by_128)
{
    const __m128i by_64 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i words = _mm_setr_epi32(~0, 0, ~0, 0);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_128, 0x10));
    __m128i upper = _mm_srli_si128(x, 4);
    x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, words), by_64, 0x00), upper);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x, words), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, words), polynomial, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, quotient), 1);
}

TARGET uint32_t proto__crc32_fold(uint32_t crc, const unsigned char *data, int64_t bytes)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i *at = (const __m128i *)(const void *)data;
    __m128i lanes[LANES];
    assert(bytes >= LANES * LANE_BYTES && bytes % LANE_BYTES == 0);
    int64_t left = bytes / LANE_BYTES - LANES;
    for (int k = 0; k < LANES; k++)
        lanes[k] = _mm_loadu_si128(at++);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)~crc));
    for (; left >= LANES; left -= LANES) {
        for (int k = 0; k < LANES; k++)
            lanes[k] = fold(lanes[k], by_512, _mm_loadu_si128(at++));
    }
    __m128i x = lanes[0];
    for (int k = 1; k < LANES; k++)
        x = fold(x, by_128, lanes[k]);
    for (; left > 0; left--)
        x = fold(x, by_128, _mm_loadu_si128(at++));
    return ~reduce(x, by_128);
}
