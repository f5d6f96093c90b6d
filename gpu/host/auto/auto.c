/* gpu/host/auto/auto.c: `auto`, which looks at each matrix and takes the cheapest algorithm that is
 * as accurate as lu.
 *
 * Algorithms, in the order they are tried: diagonal (reciprocals), triangular (trtri), tridiagonal
 * (of order 3 or more), symmetric with a positive diagonal (Cholesky, cholesky.h), lu. A dense
 * matrix is told from the special ones by its first few rows; what may be zero to its end is looked
 * through by a team.
 *
 * Up to HOST_SMALL_ORDER_MAX a dense matrix joins one of lu's groups (small.h), a symmetric one
 * too: a lane of a group is several times faster than LAPACK's Cholesky. Cholesky is left with
 * those whose halves differ by rounding and are to be averaged, which only the option asks for.
 *
 * Threads: any. Cost: lu's 2 n^3 at most, and what cholesky.h says for a factor that was of no use;
 * a small matrix that joins a group costs a look at three entries more, with the option at half.
 */
#include "gpu/host/base/speed.h"

#include "gpu/methods/auto.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/cholesky.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/simd/small.h"
#include "gpu/host/tridiagonal/tridiagonal.h"
#include "gpu/methods/tridiagonal.h"

#define PIECE_ROWS 64 /* of a matrix, for one thread */

/* What of a matrix is looked at. */
enum part {
    BELOW, /* the diagonal */
    ABOVE,
    BESIDE /* the three diagonals of a tridiagonal matrix */
};

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    (void)n;
    return "host auto";
}

static int group(enum precision precision, int64_t n, int64_t m)
{
    (void)m;
    return host__small_group(precision, n);
}

#define REAL_FILE "gpu/host/auto/auto.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_auto = {
    .name = "auto",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .run_group = {[PRECISION_FP32] = run_group_f32, [PRECISION_FP64] = run_group_f64},
    .group = group,
    .group_matrix_ns = host__small_matrix_ns,
    .scratch_bytes = host__lu_scratch_bytes,
    .kernel = kernel,
};
