/* gpu/common/scaled.h: a number that neither over- nor underflows: fraction * 2^exponent. For
 * products of many numbers, as determinants are.
 *
 * Threads: pure functions. Cost: two frexp a factor.
 */
#ifndef GPU_COMMON_SCALED_H
#define GPU_COMMON_SCALED_H

#include <math.h>
#include <stdint.h>

struct scaled {
    double fraction;
    int64_t exponent;
};

static inline struct scaled scaled_times(struct scaled number, double factor)
{
    int exponent, own;
    const double fraction = frexp(factor, &own); /* lest a denormal one loses digits */
    const double product = frexp(number.fraction * fraction, &exponent);
    return (struct scaled){product, number.exponent + exponent + own};
}

/* The fraction of the result need not be below 1. */
static inline struct scaled scaled_over(struct scaled number, struct scaled divisor)
{
    return (struct scaled){number.fraction / divisor.fraction, number.exponent - divisor.exponent};
}

/* 0 or infinite outside the range of a double. */
static inline double scaled_value(struct scaled number)
{
    const int64_t exponent = number.exponent;
    return ldexp(number.fraction, (int)(exponent > 4000    ? 4000
                                        : exponent < -4000 ? -4000
                                                           : exponent));
}

#endif
