/* gpu/host/ism_twice.c: lines times a matrix in twice the precision, for what `ism` does where
 * terms may cancel: the trial of an update, and the matrix M of the last road. See ism.h.
 *
 * In FP64 sums of products have their rounding errors beside them: T. Ogita, S. M. Rump and
 * S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3. In FP32 they are sums of doubles.
 * Results are pairs of numbers, the second being what the first one's rounding left.
 *
 * Threads: any; a team takes tiles. Bits depend neither on it nor on the instruction set. Cost: 11
 * to 14 operations a product.
 */
#include "gpu/host/speed.h"

#include "gpu/host/ism.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#define PIECE 128 /* columns that a tile has */
#define LINES 4   /* lines that it has */
#define ROWS 4    /* rows that are taken together */
#define HOST_FMA __attribute__((target("avx2,fma")))
#ifdef __clang__
#define HOST_FMA512 __attribute__((target("avx512f,fma")))
#else
#define HOST_FMA512 __attribute__((target("avx512f,fma,prefer-vector-width=512")))
#endif

/* What a matrix is, for the compiler to know. */
enum shape {
    PLAIN,
    WITH_LOW,
    TRANSPOSED
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

#define REAL_FILE "gpu/host/ism_twice.inc"
#include "gpu/host/both.inc"
