/* gpu/host/linalg/refine.c: see refine.h. The precision-dependent part is refine.inc.
 *
 * Everything is done in the scratch of one inverse: X is repaired in place, a strip of rows at a
 * time. Later rows meet the repaired earlier ones, which can only help: the new rows' residual is
 * the old rows' residual times that of the X they met. A strip's columns are pieces of work.
 *
 * Threads: any; the pieces run on a team. Cost: see refine.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/refine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/qr.h"

#define PIECE 128 /* columns of a piece of work */

/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
#define RATIO_GOOD 4.0          /* not worth a step */
#define RATIO_ACCEPTED 14.0     /* worth a step, but within the contract */
#define RESIDUAL_REPAIRABLE 0.9 /* below 1 Newton's steps converge */
#define STEPS_MAX 8

/* Rows of X taken at a time. Three strips and a line for the sums fit host__lines(n). */
static int64_t strip_of(int64_t n)
{
    return n < 1024 ? 16 : 40;
}

#define REAL_FILE "gpu/host/linalg/refine.inc"
#include "gpu/host/linalg/real.inc"
