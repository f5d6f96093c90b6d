/* gpu/host/ism/direct.c: the last algorithm of `ism`: the matrix itself is formed and factored. See
 * ism.h.
 *
 * Where A is known it is formed, where terms cancel in double-double, and inverted as by lu, with
 * the scaling and the recovery that lu has. With A0_INVERSE alone there is no A: there
 * Z (I + X Y^T A0^-1) = A0^-1 is solved by LU, the matrix being summed up in double-double.
 *
 * Threads: any; a team helps. Cost: lu's 2 n^3 operations, or 8/3 n^3 for a solution, and 2 n^2 m
 * to form the matrix; a determinant takes 2/3 n^3, and as many again where lines are equilibrated.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/ism.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

#define FORM_PIECE 256 /* rows and columns of a tile of A */
#define SOLVE_PIECE 64 /* rows of the inverse that are solved for together */
#define MET_LINES 32   /* of Y^T A0^-1 or A, in double-double: HOST_LINES numbers */

/* ---- Determinants ---- */

/* The determinant by the factors in work->a. NaN where a pivot is below `pivot_min`, and not zero.
 */
static struct scaled determinant(const struct R(host_work) * work, int64_t n, double pivot_min)
{
    struct scaled product = {.fraction = 1};
    for (int64_t i = 0; i < n; i++) {
        double pivot = (double)work->a[i * (work->ld + 1)];
        pivot = pivot != 0 && fabs(pivot) < pivot_min ? NAN : pivot;
        product = scaled_times(product, work->pivots[i] == i + 1 ? pivot : -pivot);
    }
    return product;
}

/* Of a matrix that is factored. Below it a pivot has lost digits to the lower end of the range: its
 * error is the smallest number there is times n, or times the largest numbers that multipliers met.
 */
static double min_pivot(int64_t n, struct host_norm norm)
{
    const double relative = ldexp((double)n * norm.fraction, norm.exponent + REAL_MIN_EXP - 1);
    return fmax(relative, (double)n * (double)REAL_MIN);
}

/* The determinant of a (n x n), 2^scaling times which is factored in scratch. */
static struct scaled determinant_of(const struct R(host_work) * work, const REAL *a, int64_t n,
                                    struct host_norm norm, int scaling)
{
    R(host__copy)(work->team, a, n, work->a, work->ld, n, REAL_LDEXP(1, scaling));
    R(host__large_getrf)(work->team, n, work->a, work->ld, work->pivots);
    norm.exponent += scaling;
    struct scaled product = determinant(work, n, min_pivot(n, norm));
    product.exponent -= n * scaling;
    return product;
}

/* |number| is at least 1/2 and less than 1 times 2 to it. */
static int exponent_of(REAL number)
{
    int exponent;
    REAL_FREXP(number, &exponent);
    return exponent;
}

/* What the exponents of lines begin with. */
#define NO_SCALING REAL_C(-0x1p20)

/* The exponents of what brings the largest number of each row of a, and then of each column, to 1/2
 * or more and less than 1. Those of lines of zeros are NO_SCALING. */
static void find_equilibration(const REAL *a, int64_t n, REAL *rows, REAL *columns)
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = columns[i] = NO_SCALING;
    for (int64_t i = 0; i < n; i++) {
        REAL largest = 0;
        for (int64_t j = 0; j < n; j++)
            largest = REAL_FABS(a[i * n + j]) > largest ? REAL_FABS(a[i * n + j]) : largest;
        if (largest > 0)
            rows[i] = (REAL)exponent_of(largest);
        for (int64_t j = 0; j < n; j++) {
            if (a[i * n + j] == 0)
                continue;
            const REAL level = (REAL)exponent_of(a[i * n + j]) - rows[i];
            columns[j] = level > columns[j] ? level : columns[j];
        }
        host_stop_check();
    }
}

/* work->a = a with equilibrated lines, none of which has zeros alone. *lost: a number cannot be had
 * back. Returns the exponent of the power of two that the determinant then lacks. */
static int64_t equilibrate(const struct R(host_work) * work, const REAL *a, int64_t n,
                           const REAL *rows, const REAL *columns, bool *lost)
{
    int64_t total = 0;
    *lost = false;
    for (int64_t i = 0; i < n; i++) {
        total += (int64_t)rows[i] + (int64_t)columns[i];
        for (int64_t j = 0; j < n; j++) {
            const int exponent = (int)(rows[i] + columns[j]);
            const REAL number = a[i * n + j], level = REAL_LDEXP(number, -exponent);
            *lost = *lost || REAL_LDEXP(level, exponent) != number;
            work->a[i * work->ld + j] = level;
        }
        host_stop_check();
    }
    return total;
}

/* Are its numbers so far apart that a product of a multiplier and one of them may be below the
 * range, and a pivot zero by that? */
static bool is_far(const REAL *a, int64_t ld, int64_t n)
{
    REAL largest = 0, smallest = REAL_MAX;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            const REAL size = REAL_FABS(a[i * ld + j]);
            largest = size > largest ? size : largest;
            smallest = size > 0 && size < smallest ? size : smallest;
        }
        host_stop_check();
    }
    return 2 * exponent_of(smallest) - exponent_of(largest) < REAL_MIN_EXP + REAL_DIG;
}

/* The determinant of a, whose lines are far apart in size: the rows, then the columns of what is
 * factored are equilibrated. NaN where that loses numbers, or a zero pivot may be one that is below
 * the range. */
static struct scaled equilibrated_determinant_of(const struct R(host_work) * work, const REAL *a,
                                                 int64_t n)
{
    REAL *rows = work->lines, *columns = rows + work->ld;
    find_equilibration(a, n, rows, columns);
    for (int64_t i = 0; i < n; i++) {
        if (rows[i] == NO_SCALING || columns[i] == NO_SCALING)
            return (struct scaled){0};
    }
    bool lost;
    const int64_t exponent = equilibrate(work, a, n, rows, columns, &lost);
    const bool far = is_far(work->a, work->ld, n);
    R(host__large_getrf)(work->team, n, work->a, work->ld, work->pivots);
    const struct host_norm bound = {.fraction = (double)n, .exponent = 0};
    struct scaled product = determinant(work, n, min_pivot(n, bound));
    if (lost || (far && product.fraction == 0))
        product.fraction = (double)NAN;
    product.exponent += exponent;
    return product;
}

/* The same, scaled as lu scales: from the lower end of the range always, from the upper one where
 * it overflows on its way, lest small entries are lost. A pivot may still be denormal and have no
 * reciprocal, or so small that digits are lost, or zero by that: then by equilibrated lines. */
static struct scaled safe_determinant_of(const struct R(host_work) * work, const REAL *a, int64_t n)
{
    const struct host_norm norm = R(host__norm)(work->team, a, n, n, work->lines);
    const int scaling = R(host__scaling)(norm);
    struct scaled product = determinant_of(work, a, n, norm, scaling > 0 ? scaling : 0);
    if (!isfinite(product.fraction) && scaling < 0)
        product = determinant_of(work, a, n, norm, scaling);
    const bool unverified =
        !isfinite(product.fraction) || (product.fraction == 0 && is_far(a, n, n));
    return unverified ? equilibrated_determinant_of(work, a, n) : product;
}

/* ---- A formed ---- */

/* z = A0, `rows` by `columns` of it. */
static void set_a0(const struct R(host_ism) * ism, int64_t row, int64_t rows, int64_t column,
                   int64_t columns)
{
    const int64_t n = ism->n;
    for (int64_t i = row; i < row + rows; i++) {
        REAL *to = ism->z + i * n;
        for (int64_t j = column; j < column + columns; j++)
            to[j] = ism->b ? ism->a0[i * n + j] : i == j ? ism->d[i] : 0;
    }
}

/* A tile of z = A0 + X Y^T. */
static void form_tile(void *context, int64_t index)
{
    const struct R(host_ism) *ism = context;
    int64_t n = ism->n, across = (n + FORM_PIECE - 1) / FORM_PIECE;
    int64_t row = index / across * FORM_PIECE, column = index % across * FORM_PIECE;
    int64_t rows = n - row < FORM_PIECE ? n - row : FORM_PIECE;
    int64_t columns = n - column < FORM_PIECE ? n - column : FORM_PIECE;
    set_a0(ism, row, rows, column, columns);
    if (ism->m > 0)
        R(host__product)
    (false, true, rows, columns, ism->m, 1, ism->x + row * ism->m, ism->m, ism->y + column * ism->m,
     ism->m, 1, ism->z + row * n + column, n);
}

/* z = A0 + X Y^T */
static void form(struct R(host_ism) * ism)
{
    int64_t across = (ism->n + FORM_PIECE - 1) / FORM_PIECE;
    host_team_run(ism->team, across * across, form_tile, ism);
}

/* The same in double-double, rounded once. low: HOST_LINES / 2 lines. */
static void form_dd(struct R(host_ism) * ism, REAL *low)
{
    const int64_t n = ism->n, m = ism->m, ld = ism->ld;
    struct R(host_ism_dd) add = {.line_step = m,
                                 .step = 1,
                                 .rows = m,
                                 .columns = n,
                                 .from = ism->yt ? ism->yt : ism->y,
                                 .from_ld = ism->yt ? ld : m,
                                 .transposed = !ism->yt,
                                 .adds = true,
                                 .to_low = low,
                                 .to_ld = n,
                                 .low_ld = ld};
    for (int64_t row = 0; row < n; row += add.count) {
        add.count = min_i64(MET_LINES, n - row);
        add.lines = ism->x + row * m;
        add.to = ism->z + row * n;
        memset(low, 0, (size_t)(add.count * ld) * sizeof *low);
        set_a0(ism, row, add.count, 0, n);
        R(host__ism_dd)(ism->team, &add);
    }
}

/* ---- lu ---- */

/* det(A) / det(A0), A being formed. A dense A0 is factored: A0_INVERSE may be another's inverse. */
static double det_ratio_of(const struct R(host_ism) * ism, const struct R(host_work) * work,
                           const REAL *a)
{
    const struct scaled product = safe_determinant_of(work, a, ism->n);
    const struct scaled divisor = ism->b ? safe_determinant_of(work, ism->a0, ism->n) : ism->det_a0;
    return scaled_value(scaled_over(product, divisor));
}

/* z = A, in double-double where one has lost terms that cancel. */
static void form_well(struct R(host_ism) * ism)
{
    form(ism);
    if (ism->m > 0 && !R(host__ism_formed_well)(ism))
        form_dd(ism, ism->lines);
}

void R(host__ism_by_lu)(struct R(host_ism) * ism)
{
    int64_t n = ism->n;
    int32_t info = 0, algorithm;
    REAL rcond = 0;
    struct host_matrix dense = *ism->matrix;
    struct R(host_work) work = R(host__work)(&dense);
    if (!ism->a)
        form_well(ism);
    memset(dense.outputs, 0, sizeof dense.outputs);
    dense.inputs[0] = ism->a ? ism->a : ism->z;
    dense.outputs[HOST_INVERSE] = ism->a ? ism->z : NULL;
    dense.outputs[HOST_INFO] = &info;
    dense.outputs[HOST_RCOND] = &rcond;
    dense.outputs[HOST_ALGORITHM] = &algorithm;
    double det_ratio = ism->matrix->outputs[METHOD_ISM_DET_RATIO]
                           ? det_ratio_of(ism, &work, dense.inputs[0])
                           : (double)NAN;
    struct host_norm norm = R(host__norm)(work.team, dense.inputs[0], n, n, work.lines);
    if (!norm.finite)
        info = -1;
    else if (ism->a)
        R(host__lu)(&dense, norm);
    else
        R(host__lu_alone)(&dense); /* the inverse stays in work.a */
    if (info >= 1 && info <= n)
        det_ratio = 0;
    else if (info < 0)
        det_ratio = rcond = (REAL)NAN;
    else if (!ism->a)
        R(host__copy)(work.team, work.a, work.ld, ism->z, n, n, 1);
    R(host__ism_report)
    (ism, info, rcond, info < 0 ? METHOD_ALGORITHM_NONE : METHOD_ALGORITHM_LU, det_ratio);
}

/* ---- A0_INVERSE alone: Z M = A0^-1 ---- */

static void clear_numbers(REAL *numbers, int64_t count)
{
    for (int64_t first = 0, end; first < count; first = end) {
        end = host_stop_part(first, count);
        memset(numbers + first, 0, (size_t)(end - first) * sizeof *numbers);
    }
}

struct solution {
    const struct R(host_ism) * ism;
    const struct R(host_work) * work; /* a: M */
};

/* work->a = M, rounded once. K = Y^T A0^-1 is in double-double some lines at a time, what M's
 * entries lack in z. */
static void form_m(const struct R(host_ism) * ism, const struct R(host_work) * work)
{
    const int64_t n = ism->n, m = ism->m, ld = work->ld;
    REAL *k = work->lines, *k_low = work->lines + MET_LINES * ld;
    clear_numbers(work->a, n * ld);
    clear_numbers(ism->z, n * n);
    for (int64_t i = 0; i < n; i++)
        work->a[i * (ld + 1)] = 1;
    for (int64_t first = 0; first < m; first += MET_LINES) {
        const int64_t count = m - first < MET_LINES ? m - first : MET_LINES;
        struct R(host_ism_dd) product = {.lines = ism->y + first,
                                         .line_step = 1,
                                         .step = m,
                                         .count = count,
                                         .rows = n,
                                         .columns = n,
                                         .from = ism->b,
                                         .from_ld = n,
                                         .to = k,
                                         .to_low = k_low,
                                         .to_ld = ld,
                                         .low_ld = ld};
        struct R(host_ism_dd) add = {.lines = ism->x + first,
                                     .line_step = m,
                                     .step = 1,
                                     .count = n,
                                     .rows = count,
                                     .columns = n,
                                     .from = k,
                                     .from_low = k_low,
                                     .from_ld = ld,
                                     .adds = true,
                                     .to = work->a,
                                     .to_low = ism->z,
                                     .to_ld = ld,
                                     .low_ld = n};
        R(host__ism_dd)(ism->team, &product);
        R(host__ism_dd)(ism->team, &add);
    }
}

/* |M - I| */
static double norm_of_change(const struct R(host_work) * work, int64_t n)
{
    REAL *own = work->lines;
    for (int64_t i = 0; i < n; i++) {
        own[i] = work->a[i * (work->ld + 1)];
        work->a[i * (work->ld + 1)] -= 1;
    }
    struct host_norm norm = R(host__norm)(work->team, work->a, n, work->ld, own + work->ld);
    for (int64_t i = 0; i < n; i++)
        work->a[i * (work->ld + 1)] = own[i];
    return ldexp(norm.fraction, norm.exponent);
}

static void solve_piece(void *context, int64_t index)
{
    const struct solution *solution = context;
    const struct R(host_ism) *ism = solution->ism;
    int64_t n = ism->n, row = index * SOLVE_PIECE;
    int64_t rows = n - row < SOLVE_PIECE ? n - row : SOLVE_PIECE;
    memcpy(ism->z + row * n, ism->b + row * n, (size_t)(rows * n) * sizeof *ism->z);
    R(host__getrs)
    (n, rows, solution->work->a, solution->work->ld, solution->work->pivots, ism->z + row * n, n);
}

static bool any_nan(const REAL *numbers, int64_t count)
{
    bool any = false;
    for (int64_t first = 0, end; first < count && !any; first = end) {
        end = host_stop_part(first, count);
        for (int64_t i = first; i < end; i++)
            any = any || isnan(numbers[i]);
    }
    return any;
}

/* As far as is known there is no inverse, and no number is right. */
static void refuse_update(const struct R(host_ism) * ism)
{
    R(host__ism_fill)(ism->z, ism->n * ism->n);
    R(host__ism_report)(ism, ism->n + 1, (REAL)NAN, METHOD_ALGORITHM_LU, (double)NAN);
}

/* Row-major M is M^T to LAPACK, and rows of Z and A0^-1 are columns: M^T z = b. */
void R(host__ism_by_solution)(struct R(host_ism) * ism)
{
    int64_t n = ism->n;
    struct R(host_work) work = R(host__work)(ism->matrix);
    struct solution solution = {.ism = ism, .work = &work};
    ism->xt = ism->yt = NULL; /* their scratch is used up */
    form_m(ism, &work);
    if (!R(host__ism_all_finite)(work.a, n * work.ld)) {
        refuse_update(ism);
        return;
    }
    double change = norm_of_change(&work, n);
    int64_t info = R(host__large_getrf)(work.team, n, work.a, work.ld, work.pivots);
    if (info) {
        R(host__ism_report)(ism, info, 0, METHOD_ALGORITHM_LU, 0);
        return;
    }
    ism->det_ratio = determinant(&work, n, 0);
    host_team_run(ism->team, (n + SOLVE_PIECE - 1) / SOLVE_PIECE, solve_piece, &solution);
    struct host_ism_verdict verdict = R(host__ism_check_solution)(ism, change);
    const bool bounded = verdict.x.finite && verdict.x.exponent <= REAL_MAX_EXP;
    if (bounded ? !verdict.good : any_nan(ism->z, n * n)) {
        refuse_update(ism);
        return;
    }
    verdict.singular = verdict.singular || !bounded;
    R(host__ism_report_good)(ism, &verdict, METHOD_ALGORITHM_LU);
}
