/* base/minmax.h: the smaller and the larger of two numbers, and how many pieces cover a length. For
 * C files; headers need none of it.
 */
#ifndef BASE_MINMAX_H
#define BASE_MINMAX_H

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many pieces of `size` cover n. */
static inline int64_t pieces(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

#endif
