/* base/checked.h: the only way sizes and dimensions are added and multiplied.
 *
 * Each returns false on overflow, or when an operand or the result is negative, and then leaves
 * *result alone.
 */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

__attribute__((warn_unused_result)) static inline bool checked_mul(int64_t a, int64_t b,
                                                                   int64_t *result)
{
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

__attribute__((warn_unused_result)) static inline bool checked_add(int64_t a, int64_t b,
                                                                   int64_t *result)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

/* The smallest multiple of unit (a power of two) that is not below a. */
__attribute__((warn_unused_result)) static inline bool checked_round_up(int64_t a, int64_t unit,
                                                                        int64_t *result)
{
    int64_t sum;
    if (!checked_add(a, unit - 1, &sum))
        return false;
    *result = sum & ~(unit - 1);
    return true;
}

#endif
