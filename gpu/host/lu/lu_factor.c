/* gpu/host/lu/lu_factor.c: `lu_factor`, LAPACK's getrf of A as written: P A = L U, row-major.
 *
 * OpenBLAS multiplies a column by its pivot's reciprocal, which overflows where the pivot is below
 * the smallest normal number, and loses digits where the reciprocal itself is below it. Such a
 * matrix is factored again, its columns times powers of two; and where one column has numbers of
 * both ends of the range, by a plain elimination that divides.
 *
 * Threads: any. Cost: 2/3 n^3 operations and two transpositions, twice where there are such pivots;
 * the plain elimination is one thread's, number by number: some 10 s at n = 3000.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/methods/lu_factor.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/base/stop.h"

#define SHIFT_DOWN 8 /* of columns near the end of the range: leaves room for growth */

enum lu_factor_output {
    FACTOR_LU = METHOD_LU_FACTOR_LU,
    FACTOR_PIVOTS = METHOD_LU_FACTOR_PIVOTS,
    FACTOR_INFO = METHOD_LU_FACTOR_INFO,
};

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    return n < HOST_LARGE_FACTOR_MIN ? "host lapack getrf" : "host blocked getrf";
}

#define REAL_FILE "gpu/host/lu/lu_factor.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_lu_factor = {
    .name = "lu_factor",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = host__dense_scratch_bytes,
    .kernel = kernel,
};
