/* gpu/host/lu/gauss_jordan.c: `gauss_jordan`, elimination in place with partial pivoting.
 *
 * A panel of BLOCK columns is eliminated in place, all n rows of it, which leaves in it the matrix
 * M (n x BLOCK) of the panel's row operations. Every other column C then becomes C with its pivot
 * rows zeroed, plus M R, R being those old pivot rows: one product. Up to BLOCK, the panel is the
 * whole matrix. From LARGE_MIN on, LARGE_BLOCK columns are eliminated so among themselves, panel
 * by panel, before the others take their product, which is then large enough for OpenBLAS. A
 * product is cut into pieces of PIECE_ROWS rows for a team; the pieces depend on n alone. Pivots
 * are the first largest magnitude, as LAPACK's.
 *
 * The elimination is compiled for three widths of vector and chosen by the CPU. All three do the
 * same operations in the same order, so the bits do not depend on the choice (the products of large
 * n are OpenBLAS's, and do).
 *
 * A zero pivot is not the last word, for it may come of rounding or of scaling: lu then decides.
 *
 * Threads: any. Cost: 2 n^3 operations.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/simd/small.h"

#define BLOCK 32
#define LARGE_MIN 256
#define LARGE_BLOCK 64
#define PIECE_ROWS 128 /* of a product, for one thread */
_Static_assert(BLOCK <= HOST_LINES && LARGE_BLOCK <= HOST_LINES, "old pivot rows take a line each");

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    return n <= BLOCK ? "host gauss-jordan" : "host gauss-jordan blocked";
}

#define REAL_FILE "gpu/host/lu/gauss_jordan.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_gauss_jordan = {
    .name = "gauss_jordan",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = host__lu_scratch_bytes,
    .kernel = kernel,
};
