/* gpu/host/linalg/cholesky.c: see cholesky.h. The precision-dependent part is cholesky.inc.
 *
 * A matrix is tried when it is symmetric with a positive diagonal, and no entry a_ij^2 > a_ii a_jj
 * says that it is not definite; the first pair of entries tells of most dense ones. Cholesky gives
 * up when a pivot is not positive, and when A is all but singular, which its pivots and then a
 * column of the inverse as a rule tell before the inverse is made. Its residual ratio was at most
 * 0.29 on random spectra of any condition up to 1 / eps, where lu's was 0.2.
 *
 * Threads: any; passes over a large matrix and blocked.h's steps run on its team. Cost: see
 * cholesky.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/cholesky.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/blocked.h"

#define TILE 32                /* two tiles fit the first cache */
#define CHOLESKY_RCOND_ULPS 64 /* nearer to singular, what INFO says is left to lu */
/* As a rule the squared ratio of Cholesky's extreme pivots exceeds RCOND by n at most, and what one
 * column of the inverse says exceeds it by 4. */
#define PIVOTS_ULPS (16 * CHOLESKY_RCOND_ULPS)
#define COLUMN_ULPS (4 * CHOLESKY_RCOND_ULPS)
#define AVERAGED_ULPS 4 /* halves that differ by so many units still count as equal */

#define REAL_FILE "gpu/host/linalg/cholesky.inc"
#include "gpu/host/linalg/real.inc"
