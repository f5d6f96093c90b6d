/* gpu/host/ism/fused.c: the fused update of `ism` (ism.h): up to HOST_ISM_RANK columns of X and Y
 * at once, in two passes over the inverse, for orders at which a call to OpenBLAS takes longer than
 * the work.
 *
 * A pass reads a row once and does everything with it: the first pass A0^-1 X and Y^T A0^-1, the
 * second A0^-1 - (G R) K. Numbers are taken in vectors of 64 bytes, whatever the machine's are, so
 * the order of every sum is the same on all of them.
 *
 * Threads: any, each on its own matrix. Cost: 6 n^2 operations a column, at most 2 n^2 for the
 * first HOST_ISM_RANK of them where A0 is diagonal.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/base/stop.h"

#define RANK HOST_ISM_RANK
#define ROWS 2 /* of the inverse, taken together */

/* How many of the columns that are left are taken together: as many as there is code for. */
static int step_of(int64_t left)
{
    return left >= RANK ? RANK : left >= 2 ? 2 : 1;
}

#define REAL_FILE "gpu/host/ism/fused.inc"
#include "gpu/host/linalg/real.inc"
