/* gpu/host/mend.c: see mend.h. The precision-dependent part is mend.inc.
 *
 * Everything is done in the scratch of one inverse: X is repaired in place, STRIP_ROWS rows at a
 * time. Later rows meet the repaired earlier ones, which can only help: the new rows' residual is
 * the old rows' residual times that of the X they met.
 *
 * Threads: any. Cost: see mend.h.
 */
#include "gpu/host/speed.h"

#include "gpu/host/mend.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/lapack.h"

#define STRIP_ROWS 16
/* Where each part of the scratch lines starts. */
#define LINE_RESIDUAL 0
#define LINE_STEP STRIP_ROWS
#define LINE_A (2 * STRIP_ROWS)
#define LINE_SUMS (3 * STRIP_ROWS)

/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
#define RATIO_GOOD 4.0          /* not worth a step */
#define RATIO_ACCEPTED 14.0     /* worth a step, but within the contract */
#define RESIDUAL_REPAIRABLE 0.9 /* below 1 Newton's steps converge */
#define STEPS_MAX 8

#define REAL_FILE "gpu/host/mend.inc"
#include "gpu/host/both.inc"
