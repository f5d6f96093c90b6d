/* gpu/host/iterative/twice.c: the residual in twice the precision, and what rounding hides of it;
 * see shared.h.
 *
 * A row of sums takes one row of products after another: each product is split into its rounded
 * value and the error of that (fma), the errors of the additions are summed beside them (T. Ogita,
 * S. M. Rump and S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3). For FP32 that is
 * more than twice the precision: its products have no error in double.
 *
 * Threads: any; columns are shared out to a team. Cost: 11 operations a product; the whole
 * residual is n^3 products, its rounding 3 ITERATION_SIGNS n^2.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/iterative/shared.h"
#include "gpu/common/iteration.h"

/* Columns of a piece of work. Its sums stay in the first cache. */
#define PIECE 32

/* Entry i of vector number `vector`: 1 or -1. */
static double sign(int64_t i, int64_t vector)
{
    return ITERATION_NEGATIVE((uint32_t)i, vector) ? -1 : 1;
}

#define REAL_FILE "gpu/host/iterative/twice.inc"
#include "gpu/host/linalg/real.inc"
