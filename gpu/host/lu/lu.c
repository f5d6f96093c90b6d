/* gpu/host/lu/lu.c: `lu`, by LAPACK's getrf and getri (linalg/blocked.h for all but the smallest
 * orders), or up to HOST_SMALL_ORDER_MAX by small.h, which leaves to LAPACK what is out of the
 * ordinary.
 *
 * getri bounds |I - X A| for the matrix it is given, so the row-major input is transposed on the
 * way in and out: LAPACK then sees A as written. (Run on the transpose, it would bound |I - A X|.)
 * The bound holds while elements do not grow in the elimination; dense.h and linalg/refine.h see to
 * the rest.
 *
 * Scaling is not singularity: a matrix that is refused, or whose RCOND is below eps, is inverted
 * once more as S = R A C, R and C being the powers of two that equilibrate it. Then A^-1 is
 * C S^-1 R, and INFO that of S, unless A^-1 overflows; RCOND is that of A. S lies where INVERSE
 * will, so that no more memory is taken; where S is no good, the first answer is computed again.
 *
 * Threads: any. Cost: 2 n^3 operations and two transpositions; a breakdown costs more, and a matrix
 * that is uneven and singular three times as much.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/equilibrate.h"
#include "gpu/host/linalg/symmetry.h"
#include "gpu/host/linalg/refine.h"
#include "gpu/host/simd/small.h"

#include "gpu/host/base/by_precision.h"

#define GROWTH_COLUMNS 64 /* of a piece of the measure */

static const char *kernel(int64_t n)
{
    if (n <= HOST_SMALL_ORDER_MAX)
        return R(host__small_kernel)(n);
    if (n < HOST_LARGE_INVERT_MIN)
        return "host lapack getrf+getri";
    return n < HOST_LARGE_FACTOR_MIN ? "host getrf+blocked getri" : "host blocked getrf+getri";
}

static int group(int64_t n, int64_t m)
{
    (void)m;
    return R(host__small_group)(n);
}

struct growth {
    const struct R(host_work) * work;
    int64_t n;
};

/* The largest magnitude in GROWTH_COLUMNS columns of U, NaN when one is not finite, goes to
 * lines[index]. */
static void measure_columns(void *context, int64_t index)
{
    const struct growth *growth = context;
    const struct R(host_work) *work = growth->work;
    int64_t first = index * GROWTH_COLUMNS, end = first + GROWTH_COLUMNS;
    REAL largest = 0, excess = 0; /* excess: 0 while all is finite, NaN afterwards */
    for (int64_t j = first; j < end && j < growth->n; j++) {
        const REAL *column = work->a + j * work->ld;
        for (int64_t i = 0; i <= j; i++) {
            REAL magnitude = REAL_FABS(column[i]);
            largest = magnitude > largest ? magnitude : largest;
            excess += magnitude * 0;
        }
    }
    work->lines[index] = largest + excess;
}

/* Has an entry of U (column-major, after getrf) grown far beyond |A|? */
static bool has_grown(const struct R(host_work) * work, int64_t n, int scaling,
                      struct host_norm norm)
{
    struct growth growth = {.work = work, .n = n};
    int64_t count = (n + GROWTH_COLUMNS - 1) / GROWTH_COLUMNS;
    double bound = ldexp(HOST_GROWTH_MAX * norm.fraction, norm.exponent + scaling);
    bool grown = false;
    host_team_run(work->team, count, measure_columns, &growth);
    for (int64_t k = 0; k < count; k++)
        grown = grown || !((double)work->lines[k] <= bound);
    return grown;
}

/* What getrf and getri made of a matrix. */
struct outcome {
    int64_t info; /* as getrf has it; 0: the inverse is in work->a, column-major */
    bool grown;   /* has_grown, before getri */
};

static struct outcome invert(const struct host_matrix *matrix, const struct R(host_work) * work,
                             int scaling, struct host_norm norm)
{
    int64_t n = matrix->n;
    R(host__transpose)
    (work->team, matrix->inputs[0], n, work->a, work->ld, n, REAL_LDEXP(1, scaling));
    struct outcome outcome = {.info = R(host__reporting_getrf)(work->team, n, work->a, work->ld,
                                                               work->pivots, matrix->progress)};
    outcome.grown = has_grown(work, n, scaling, norm);
    if (outcome.info == 0)
        R(host__reporting_getri)
    (work->team, n, work->a, work->ld, work->pivots, work->lines, matrix->progress);
    return outcome;
}

/* Is there an inverse, and nothing in it that overflowed? */
static bool is_whole(const struct R(host_work) * work, int64_t n, struct outcome outcome)
{
    return outcome.info == 0 && R(host__norm)(work->team, work->a, n, work->ld, work->lines).finite;
}

/* The inverse of 2^scaling A, which work->a now holds. */
struct made {
    int64_t info; /* not 0: there is none */
    enum host_order order;
    int scaling;
    enum host_trust trust;
};

static struct made make(const struct host_matrix *matrix, const struct R(host_work) * work,
                        struct host_norm norm)
{
    int scaling = R(host__scaling)(norm);
    struct outcome outcome = invert(matrix, work, scaling, norm);
    if (scaling < 0 && !is_whole(work, matrix->n, outcome)) {
        /* Scaled down, a small pivot may have vanished, or have no reciprocal any more. */
        scaling = 0;
        outcome = invert(matrix, work, scaling, norm);
    }
    if (outcome.info && outcome.grown && R(host__invert_anew)(matrix, work, scaling, norm))
        return (struct made){.order = HOST_ROW_MAJOR, .scaling = scaling, .trust = HOST_CHECK};
    return (struct made){.info = outcome.info,
                         .order = HOST_COLUMN_MAJOR,
                         .scaling = scaling,
                         .trust = outcome.grown ? HOST_UNVERIFIED : HOST_CHECK};
}

/* Returns whether INFO is 0. */
static bool by_lapack(const struct host_matrix *matrix, struct host_norm norm)
{
    struct R(host_work) work = R(host__work)(matrix);
    struct made made = make(matrix, &work, norm);
    if (made.info) {
        R(host__refuse)(matrix, made.info, METHOD_ALGORITHM_LU);
        return false;
    }
    struct host_answered answered = R(host__answer)(matrix, &work, made.order, made.scaling, norm,
                                                    METHOD_ALGORITHM_LU, made.trust);
    if (answered.lost) {
        made = make(matrix, &work, norm);
        R(host__answer)
        (matrix, &work, made.order, made.scaling, norm, METHOD_ALGORITHM_LU, HOST_TRUST);
    }
    return answered.rcond >= (double)REAL_EPS;
}

/* ---- Equilibrated ---- */

static bool all_equal(const int32_t *exponents, int64_t n)
{
    bool equal = true;
    for (int64_t i = 1; i < n; i++)
        equal = equal && exponents[i] == exponents[0];
    return equal;
}

bool R(host__lu_equilibrated)(const struct host_matrix *matrix, struct host_norm norm, bool *spoilt)
{
    const int64_t n = matrix->n;
    const struct R(host_work) work = R(host__work)(matrix);
    const struct host_equilibrium by = {.rows = work.exponents, .columns = work.exponents + n};
    REAL *x = matrix->outputs[HOST_INVERSE];
    struct host_matrix scaled = *matrix;
    R(host__equilibrate)(work.team, matrix->inputs[0], n, n, &by, (int32_t *)(void *)work.a);
    *spoilt = !all_equal(by.rows, n) || !all_equal(by.columns, n);
    if (!*spoilt)
        return false;
    R(host__scale)
    (work.team, matrix->inputs[0], n, x, n, n,
     &(struct host_scaling){
         .rows = by.rows, .columns = by.columns, .row_sign = 1, .column_sign = 1});
    memset(scaled.outputs, 0, sizeof scaled.outputs);
    scaled.inputs[0] = x;
    if (!by_lapack(&scaled, R(host__norm)(work.team, x, n, n, work.lines)))
        return false;
    R(host__scale)
    (work.team, work.a, work.ld, x, n, n,
     &(struct host_scaling){
         .rows = by.columns, .columns = by.rows, .row_sign = 1, .column_sign = 1});
    if (R(host__is_symmetric)(work.team, matrix->inputs[0], n))
        (void)R(host__make_symmetric)(work.team, x, n); /* S is so, and better conditioned */
    const struct host_norm norm_x = R(host__norm)(work.team, x, n, n, work.lines);
    R(host__report_info)
    (matrix, norm_x.finite ? 0 : n + 1, R(host__rcond)(norm, norm_x), METHOD_ALGORITHM_LU);
    return true;
}

/* ---- The whole ---- */

/* Where INVERSE is not there, S has no place. */
static void by_lapack_whole(const struct host_matrix *matrix, struct host_norm norm)
{
    bool spoilt;
    if (!by_lapack(matrix, norm) && matrix->outputs[HOST_INVERSE] &&
        !R(host__lu_equilibrated)(matrix, norm, &spoilt) && spoilt)
        (void)by_lapack(matrix, norm);
}

void R(host__lu_alone)(const struct host_matrix *matrix)
{
    struct R(host_work) work = R(host__work)(matrix);
    struct host_norm norm =
        R(host__norm)(work.team, matrix->inputs[0], matrix->n, matrix->n, work.lines);
    if (norm.finite)
        by_lapack_whole(matrix, norm);
    else
        R(host__refuse)(matrix, -1, METHOD_ALGORITHM_LU);
}

void R(host__lu)(const struct host_matrix *matrix, struct host_norm norm)
{
    if (matrix->n <= HOST_SMALL_ORDER_MAX)
        R(host__small_lu)(matrix, 1, NULL, 0);
    else
        by_lapack_whole(matrix, norm);
}

static void run(const struct host_matrix *matrix)
{
    const struct host_matrix whole = R(host__lu_whole)(matrix);
    if (matrix->n <= HOST_SMALL_ORDER_MAX)
        R(host__small_lu)(matrix, 1, NULL, 0);
    else
        R(host__lu_alone)(&whole);
}

const struct host_method R(host_method_lu) = {
    .name = "lu",
    .run = run,
    .run_group = R(host__small_lu),
    .group = group,
    .group_matrix_ns = R(host__small_matrix_ns),
    .scratch_bytes = R(host__lu_whole_bytes),
    .task_scratch_bytes = R(host__lu_task_bytes),
    .kernel = kernel,
};
