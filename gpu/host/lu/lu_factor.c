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

#include "gpu/host/base/by_precision.h"

#define SHIFT_DOWN 8 /* of columns near the end of the range: leaves room for growth */

enum lu_factor_output {
    FACTOR_LU = METHOD_LU_FACTOR_LU,
    FACTOR_PIVOTS = METHOD_LU_FACTOR_PIVOTS,
    FACTOR_INFO = METHOD_LU_FACTOR_INFO,
};

static const char *kernel(int64_t n)
{
    return n < HOST_LARGE_FACTOR_MIN ? "host lapack getrf" : "host blocked getrf";
}

/* Is the reciprocal of a pivot other than zero not a normal number, or a pivot lost by such? */
static bool has_extreme_pivot(const struct R(host_work) * work, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        REAL pivot = REAL_FABS(work->a[i * (work->ld + 1)]);
        if (pivot != 0 && !(pivot >= REAL_MIN && pivot <= 1 / REAL_MIN))
            return true;
    }
    return false;
}

/* Columns times powers of two, which are noted, so that most pivots become normal numbers. Which
 * rows are chosen, and L, do not depend on them. Column-major. */
static void shift_columns(const struct R(host_work) * work, int64_t n, int32_t *shifts)
{
    for (int64_t j = 0; j < n; j++) {
        REAL *column = work->a + j * work->ld, largest = 0;
        int exponent = 0;
        for (int64_t i = 0; i < n; i++)
            largest = REAL_FABS(column[i]) > largest ? REAL_FABS(column[i]) : largest;
        (void)REAL_FREXP(largest, &exponent);
        shifts[j] = exponent > REAL_MAX_EXP - SHIFT_DOWN ? -SHIFT_DOWN
                    : exponent <= 0                      ? 2 * REAL_DIG
                                                         : 0;
        REAL factor = REAL_LDEXP(1, shifts[j]);
        for (int64_t i = 0; i < n; i++)
            column[i] *= factor;
    }
}

/* U as it is without them. false: a pivot has vanished. */
static bool shift_back(const struct R(host_work) * work, int64_t n, const int32_t *shifts)
{
    bool whole = true;
    for (int64_t j = 0; j < n; j++) {
        REAL *column = work->a + j * work->ld, factor = REAL_LDEXP(1, -shifts[j]);
        bool has_pivot = column[j] != 0;
        for (int64_t i = 0; i <= j; i++)
            column[i] *= factor;
        whole = whole && has_pivot == (column[j] != 0);
    }
    return whole;
}

static void exchange_rows(const struct R(host_work) * work, int64_t n, int64_t one, int64_t other)
{
    for (int64_t j = 0; j < n && one != other; j++) {
        REAL old = work->a[j * work->ld + one];
        work->a[j * work->ld + one] = work->a[j * work->ld + other];
        work->a[j * work->ld + other] = old;
    }
}

/* The rest of the matrix loses column k of L times row k of U. */
static void eliminate(const struct R(host_work) * work, int64_t n, int64_t k)
{
    REAL *restrict lower = work->a + k * work->ld, pivot = lower[k];
    for (int64_t i = k + 1; i < n; i++)
        lower[i] /= pivot;
    for (int64_t j = k + 1; j < n; j++) {
        REAL *restrict column = work->a + j * work->ld, factor = column[k];
        for (int64_t i = k + 1; i < n; i++)
            column[i] -= lower[i] * factor;
    }
}

/* getrf with divisions, on a column-major matrix. Returns INFO. */
static int64_t factor_plainly(const struct R(host_work) * work, int64_t n)
{
    int64_t info = 0;
    for (int64_t k = 0; k < n; k++) {
        const REAL *column = work->a + k * work->ld;
        int64_t best = k;
        host_stop_check();
        for (int64_t i = k + 1; i < n; i++)
            best = REAL_FABS(column[i]) > REAL_FABS(column[best]) ? i : best;
        work->pivots[k] = (int32_t)(best + 1);
        if (column[best] == 0) {
            info = info ? info : k + 1;
            continue;
        }
        exchange_rows(work, n, k, best);
        eliminate(work, n, k);
    }
    return info;
}

/* What has extreme pivots. Returns INFO. */
static int64_t factor_again(const struct R(host_work) * work, const REAL *a, int64_t n)
{
    int32_t *shifts = work->pivots + n;
    R(host__transpose)(work->team, a, n, work->a, work->ld, n, 1);
    shift_columns(work, n, shifts);
    int64_t info = R(host__large_getrf)(work->team, n, work->a, work->ld, work->pivots);
    if (!has_extreme_pivot(work, n) && shift_back(work, n, shifts))
        return info;
    R(host__transpose)(work->team, a, n, work->a, work->ld, n, 1);
    return factor_plainly(work, n);
}

static void run(const struct host_matrix *matrix)
{
    int64_t n = matrix->n, info = -1;
    REAL *lu = matrix->outputs[FACTOR_LU];
    int32_t *pivots = matrix->outputs[FACTOR_PIVOTS], *info_output = matrix->outputs[FACTOR_INFO];
    struct R(host_work) work = R(host__work)(matrix);
    if (R(host__norm)(work.team, matrix->inputs[0], n, n, work.lines).finite) {
        R(host__transpose)(work.team, matrix->inputs[0], n, work.a, work.ld, n, 1);
        info = R(host__large_getrf)(work.team, n, work.a, work.ld, work.pivots);
        if (has_extreme_pivot(&work, n))
            info = factor_again(&work, matrix->inputs[0], n);
        if (lu)
            R(host__transpose)(work.team, work.a, work.ld, lu, n, n, 1);
    } else {
        memset(work.pivots, 0, (size_t)n * sizeof work.pivots[0]);
        if (lu)
            R(host__fill_nan)(lu, n * n);
    }
    if (pivots)
        memcpy(pivots, work.pivots, (size_t)n * sizeof pivots[0]);
    if (info_output)
        *info_output = (int32_t)info;
}

const struct host_method R(host_method_lu_factor) = {
    .name = "lu_factor",
    .run = run,
    .scratch_bytes = R(host__dense_scratch_bytes),
    .kernel = kernel,
};
