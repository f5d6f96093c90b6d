/* gpu/host/auto.c: `auto`, which looks at each matrix and takes the cheapest road that is as
 * accurate as lu.
 *
 * Roads, in the order they are tried: diagonal (reciprocals), triangular (trtri), symmetric with a
 * positive diagonal (Cholesky), lu. A dense matrix is told from the special ones by its first few
 * entries, and so is a symmetric one whose entries a_ij^2 > a_ii a_jj say that it is not definite.
 * Cholesky gives up for lu when a pivot is not positive, and when A is all but singular, which its
 * pivots and then a column of the inverse as a rule tell before the inverse is made; its residual
 * ratio was at most 0.29 on random spectra of any condition up to 1 / eps, where lu's was 0.2.
 *
 * Threads: any. Cost: lu's 2 n^3 at most, and n^3 / 3 for a factor that was of no use; rarely,
 * n^3 for a Cholesky inverse that was none.
 */
#include "gpu/host/speed.h"

#include "gpu/methods/auto.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/dense.h"
#include "gpu/host/lapack.h"

#define TILE 32                /* of the symmetry test: two tiles fit the first cache */
#define CHOLESKY_RCOND_ULPS 64 /* nearer to singular, what INFO says is left to lu */
/* As a rule the squared ratio of Cholesky's extreme pivots exceeds RCOND by n at most, and what one
 * column of the inverse says exceeds it by 4. */
#define PIVOTS_ULPS (16 * CHOLESKY_RCOND_ULPS)
#define COLUMN_ULPS (4 * CHOLESKY_RCOND_ULPS)
#define SPD_ULPS 4 /* with the hint, halves that differ by so many units still count as equal */

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    (void)n;
    return "host auto";
}

#define REAL_FILE "gpu/host/auto.inc"
#include "gpu/host/both.inc"

const struct host_method host_method_auto = {
    .name = "auto",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = host__dense_scratch_bytes,
    .kernel = kernel,
};
