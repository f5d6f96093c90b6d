/* gpu/host/lu/lu.c: `lu`, by LAPACK's getrf and getri (linalg/blocked.h for all but the smallest
 * orders), or up to HOST_SMALL_ORDER_MAX by small.h, which leaves to LAPACK what is out of the
 * ordinary.
 *
 * getri bounds |I - X A| for the matrix it is given, so the row-major input is transposed on the
 * way in and out: LAPACK then sees A as written. (Run on the transpose, it would bound |I - A X|.)
 * The bound holds while elements do not grow in the elimination; dense.h and linalg/refine.h see to
 * the rest.
 *
 * Threads: any. Cost: 2 n^3 operations and two transpositions; a breakdown costs more.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/refine.h"
#include "gpu/host/simd/small.h"

#define GROWTH_COLUMNS 64 /* of a piece of the measure */

static const char *kernel(enum precision precision, int64_t n)
{
    if (n <= HOST_SMALL_ORDER_MAX)
        return host__small_kernel(precision, n);
    if (n < HOST_LARGE_INVERT_MIN)
        return "host lapack getrf+getri";
    return n < HOST_LARGE_FACTOR_MIN ? "host getrf+blocked getri" : "host blocked getrf+getri";
}

static int group(enum precision precision, int64_t n, int64_t m)
{
    (void)m;
    return host__small_group(precision, n);
}

#define REAL_FILE "gpu/host/lu/lu.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_lu = {
    .name = "lu",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .run_group = {[PRECISION_FP32] = host__small_lu_f32, [PRECISION_FP64] = host__small_lu_f64},
    .group = group,
    .group_matrix_ns = host__small_matrix_ns,
    .scratch_bytes = host__lu_scratch_bytes,
    .kernel = kernel,
};
