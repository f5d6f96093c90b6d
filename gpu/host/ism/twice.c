/* gpu/host/ism/twice.c: lines times a matrix in twice the precision, for what `ism` does where
 * terms may cancel: the trial of an update, and the matrix M of the last algorithm. See ism.h.
 *
 * In FP64 sums of products have their rounding errors beside them: T. Ogita, S. M. Rump and
 * S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3. In FP32 they are sums of doubles.
 * Results are pairs of numbers, the second being what the first one's rounding left.
 *
 * Threads: any; a team takes tiles. Bits depend neither on it nor on the instruction set. Cost: 11
 * to 14 operations a product.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "base/minmax.h"
#include "gpu/host/ism/ism.h"

#define PIECE 128 /* columns that a tile has */
#define LINES 4   /* lines that it has */
#define ROWS 4    /* rows that are taken together */

/* What a matrix is, for the compiler to know. */
enum shape {
    PLAIN,
    WITH_LOW,
    TRANSPOSED
};

#define REAL_FILE "gpu/host/ism/twice.inc"
#include "gpu/host/linalg/real.inc"
