/* gpu/host/tridiagonal/number.h: numbers that neither over- nor underflow: mantissa * 2^(64
 * exponent).
 *
 * The mantissa is 0, or its magnitude is at least 2^-32 and less than 2^32. Few products leave that
 * range, so that most cost no more than a comparison; leaving it changes no bits of a mantissa but
 * its exponent. Threads: any.
 */
#ifndef GPU_HOST_TRIDIAGONAL_NUMBER_H
#define GPU_HOST_TRIDIAGONAL_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gpu/host/base/speed.h"
#include "gpu/host/tridiagonal/tridiagonal.h"

struct tri_number {
    double mantissa;
    int64_t exponent;
};

HOST_INLINE uint64_t tri_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

HOST_INLINE double tri_with_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^exponent, -1022 <= exponent <= 1023. */
HOST_INLINE double tri_power(int64_t exponent)
{
    return tri_with_bits((uint64_t)(exponent + 1023) << 52);
}

HOST_INLINE bool tri_is_normal(double mantissa)
{
    return fabs(mantissa) >= 0x1p-32 && fabs(mantissa) < 0x1p32;
}

/* The number mantissa * 2^(64 exponent), whatever the finite mantissa is. */
HOST_INLINE struct tri_number tri_number(double mantissa, int64_t exponent)
{
    if (tri_is_normal(mantissa))
        return (struct tri_number){mantissa, exponent};
    if (mantissa == 0)
        return (struct tri_number){0, 0};
    int shift;
    double fraction = frexp(mantissa, &shift);
    int64_t units = (shift + 31 + 64 * 64) / 64 - 64; /* rounded down: shift >= -1073 */
    return (struct tri_number){ldexp(fraction, shift - (int)units * 64), exponent + units};
}

HOST_INLINE struct tri_number tri_times(struct tri_number a, struct tri_number b)
{
    return tri_number(a.mantissa * b.mantissa, a.exponent + b.exponent);
}

HOST_INLINE struct tri_number tri_over(struct tri_number a, struct tri_number b)
{
    return tri_number(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

HOST_INLINE struct tri_number tri_scaled(struct tri_number a, double factor)
{
    return tri_times(a, tri_number(factor, 0));
}

HOST_INLINE struct tri_number tri_plus(struct tri_number a, struct tri_number b)
{
    if (a.exponent == b.exponent || a.mantissa == 0 || b.mantissa == 0)
        return a.mantissa == 0   ? b
               : b.mantissa == 0 ? a
                                 : tri_number(a.mantissa + b.mantissa, a.exponent);
    struct tri_number large = a.exponent > b.exponent ? a : b;
    struct tri_number small = a.exponent > b.exponent ? b : a;
    int64_t down = large.exponent - small.exponent;
    /* Three units down it is less than 2^-128 of the other. */
    double rest = down > 2 ? 0 : small.mantissa * tri_power(-64 * down);
    return tri_number(large.mantissa + rest, large.exponent);
}

/* The product as a plain number; 0 or infinite where that is out of range. It is rounded once. */
HOST_INLINE double tri_product(struct tri_number a, struct tri_number b)
{
    int64_t exponent = a.exponent + b.exponent;
    exponent = exponent > 30 ? 30 : exponent < -30 ? -30 : exponent;
    int64_t half = exponent / 2;
    return a.mantissa * tri_power(64 * half) * (b.mantissa * tri_power(64 * (exponent - half)));
}

HOST_INLINE double tri_plain(struct tri_number a)
{
    return tri_product(a, (struct tri_number){1, 0});
}

HOST_INLINE struct tri_number tri_get(const struct host_tri_line *line, int64_t i)
{
    return (struct tri_number){line->mantissa[i], line->exponent[i]};
}

HOST_INLINE void tri_set(const struct host_tri_line *line, int64_t i, struct tri_number number)
{
    line->mantissa[i] = number.mantissa;
    line->exponent[i] = (int32_t)number.exponent;
}

#endif
