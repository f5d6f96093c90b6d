/* gpu/host/ism/trial.c: is the inverse that a variant made a good one? And Newton's step, which
 * repairs one that is nearly so. See ism.h.
 *
 * The trial multiplies a few lines T by I - Z A: two of random numbers, or up to n =
 * HOST_ISM_PROBES those of the identity, so that all of it is seen. With errors of the size e in a
 * column, an entry of the product is near sqrt(n) e, and the sum of the column n e; so a product
 * within sqrt(n) eps |A| |Z| leaves a factor of 15 to what is promised, and two lines are not
 * mistaken at once.
 *
 * With A0_INVERSE alone A is not known. With M = I + X Y^T A0^-1 the new inverse is Z = A0^-1 M^-1,
 * and T (A0^-1 - Z M) is measured by |Z| (1 + |M - I|): the error of a backward stable solution.
 * Where terms of Y^T A0^-1 or of X times that cancel, the update has their rounding errors, and so
 * has a trial of one precision, which may be the very same ones. They are n / 2 eps at most of the
 * sum of the terms' magnitudes, |X| |Y^T| |A0^-1|. That sum is taken; where it is so much larger
 * than 1 + |M - I| that the contract could be broken unseen, the trial is made in twice the
 * precision. That of the last algorithm always is. Where even that would not do, nothing is good.
 *
 * Where A is known and terms of X Y^T cancel, it is the same with |X| |Y^T| and |A|, which is then
 * summed in twice the precision too; four lines are tried. What fails goes the last algorithm,
 * where A is formed, and tried likewise: if it is not the sum to within rounding, that is taken in
 * twice the precision and rounded once.
 *
 * |A| is exact for A alone, and for orders up to NORM_ORDER. Beyond, columns are chosen whose
 * norms seem largest, by products with fixed lines, and others whose norms may be so by the norms
 * of the columns of X; the best is improved as LAPACK's estimate of a norm is. What comes out is
 * the norm of a column, so never more than |A|, and as a rule |A| itself: for certain, where it is
 * as long as any of the others may be.
 *
 * Threads: any; a team helps with large matrices. Cost: see types.inc.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/base/stop.h"

#define TRIED_LINES 2    /* and SEEN_LINES of a tile are these and the sums */
#define MORE_LINES 4     /* where terms of a known A cancel */
#define WHOLE_RATIO 8.0  /* of a residual that is known whole; the contract has 15 */
#define TERMS_RATIO 20.0 /* n / 2 times it is what the sums of an update may have lost unseen */
#define WHOLE_TERMS_RATIO 4.0 /* the same of a residual that is known whole */
#define CLOSE_ORDER 16        /* to this order two lines may miss as much of an update */
#define SMALL_ORDER 32        /* to this order two lines may miss too much of it, A being known */
#define SMALL_TERMS_RATIO 8.0
#define TWICE_RATIO 4.0  /* of what those in twice the precision may have lost */
#define CHANGE_ERROR 0.1 /* of |M - I| or |A| that may be lost likewise */
#define FORMED_RATIO 2.0 /* of what A formed lacks, where all of it is known */
#define NORM_ORDER 64
#define CANDIDATES 8    /* columns whose norm is computed, by either score */
#define CLIMBS 4        /* from the best of them */
#define TIMES_PIECE 256 /* columns that a piece of a product takes */
#define ROWS_PIECE 64   /* rows that a piece of a transposed one takes */
#define DOWN_PIECE 1024 /* columns that a piece of a strip takes */
#define DOWN_ROWS 32    /* rows of them that all lines take together */
#define STRIPS_MAX 16
#define STRIP_MIN 128   /* rows */
#define GATHER_PIECE 64 /* columns of the strips' sums */
#define SEEN_LINES HOST_ISM_SEEN
#define TIMES_ROWS 4 /* rows and lines that are taken together */
#define TIMES_LINES 4
#define SEEN_ROWS 8 /* rows of the inverse likewise */
#define REPAIR_ROWS HOST_ISM_REPAIR_ROWS
#define REPAIR_PIECE 256

/* Number i of a line of a trial. */
HOST_INLINE float weight(uint32_t i, uint32_t line)
{
    const uint32_t bits = ISM_PROBE_BITS(i, line);
    return ISM_PROBE_OF(bits);
}

/* What a loop over vectors does. */
enum task {
    ADD_TIMES,
    ADD_TIMES_AND_SUMS,
    ADD_SEEN,
    ADD_MAGNITUDES,
    ADD_WEIGHTS,
    SET_TIMES_TRANSPOSED,
    SET_WEIGHTS
};

static double value_of(struct host_norm norm)
{
    return ldexp(norm.fraction, norm.exponent);
}

static double size_of(struct host_norm a, struct host_norm x)
{
    return ldexp(a.fraction * x.fraction, a.exponent + x.exponent);
}

#define REAL_FILE "gpu/host/ism/trial.inc"
#include "gpu/host/linalg/real.inc"
