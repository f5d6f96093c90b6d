/* gpu/host/lu.c: `lu`, by LAPACK's getrf and getri.
 *
 * getri bounds |I - X A| for the matrix it is given, so the row-major input is transposed on the
 * way in and out: LAPACK then sees A as written. (Run on the transpose, it would bound |I - A X|.)
 * The bound holds while elements do not grow in the elimination; dense.h and mend.h see to the
 * rest.
 *
 * Threads: any. Cost: 2 n^3 operations and two transpositions; a breakdown costs more.
 */
#include <float.h>
#include <math.h>

#include "gpu/host/dense.h"
#include "gpu/host/lapack.h"
#include "gpu/host/mend.h"

/* While no entry of U has grown beyond this multiple of |A|, LAPACK's bound holds and a zero pivot
 * is believed. */
#define GROWTH_MAX 8

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    (void)n;
    return "host lapack getrf+getri";
}

#define REAL_FILE "gpu/host/lu.inc"
#include "gpu/host/both.inc"

const struct host_method host_method_lu = {
    .name = "lu",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = host__dense_scratch_bytes,
    .kernel = kernel,
};
