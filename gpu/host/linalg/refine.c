/* gpu/host/linalg/refine.c: see refine.h.
 *
 * Everything is done in the scratch of one inverse: X is repaired in place, a strip of rows at a
 * time. Later rows meet the repaired earlier ones, which can only help: the new rows' residual is
 * the old rows' residual times that of the X they met. A strip's columns are pieces of work.
 *
 * Threads: any; the pieces run on a team. Cost: see refine.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/refine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/qr.h"

#include "gpu/host/base/by_precision.h"

#define PIECE 128 /* columns of a piece of work */

/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
#define RATIO_GOOD 4.0          /* not worth a step */
#define RATIO_ACCEPTED 14.0     /* worth a step, but within the contract */
#define RESIDUAL_REPAIRABLE 0.9 /* below 1 Newton's steps converge */
#define STEPS_MAX 8

/* Rows of X taken at a time. Three strips and a line for the sums fit host__lines(n). */
static int64_t strip_of(int64_t n)
{
    return n < 1024 ? 16 : 40;
}

struct R(patient) {
    const REAL *a; /* n x n */
    int64_t n, ld;
    REAL factor;           /* A times this is what x inverts */
    struct host_norm norm; /* of factor * A */
    REAL *x;
    int32_t *pivots;
    struct host_team *team;
    /* Lines: `strip` each but for the last. */
    REAL *residual, *change, *part, *sums;
    int64_t strip;
    int64_t at; /* the strip of X under way */
};

static struct R(patient)
    R(patient)(const struct host_matrix *matrix, const struct R(host_work) * work, int scaling,
               struct host_norm norm)
{
    int64_t strip = strip_of(matrix->n), ld = work->ld;
    norm.exponent += scaling;
    return (struct R(patient)){.a = matrix->inputs[0],
                               .n = matrix->n,
                               .ld = ld,
                               .factor = REAL_LDEXP(1, scaling),
                               .norm = norm,
                               .x = work->a,
                               .pivots = work->pivots,
                               .team = work->team,
                               .residual = work->lines,
                               .change = work->lines + strip * ld,
                               .part = work->lines + 2 * strip * ld,
                               .sums = work->lines + 3 * strip * ld,
                               .strip = strip};
}

/* ---- Residual and Newton's step ---- */

/* Columns of I - X (factor A), in the strip at patient->at, and their share of the sums. A goes
 * through aligned scratch a few rows at a time. */
static void R(residual_columns)(void *context, int64_t index)
{
    const struct R(patient) *patient = context;
    int64_t n = patient->n, ld = patient->ld, at = patient->at,
            rows = min_i64(patient->strip, n - at);
    int64_t first = index * PIECE, columns = min_i64(PIECE, n - first);
    REAL *residual = patient->residual + first, *part = patient->part + first;
    for (int64_t i = 0; i < rows; i++)
        memset(residual + i * ld, 0, (size_t)columns * sizeof *residual);
    for (int64_t k = 0; k < n; k += patient->strip) {
        int64_t inner = min_i64(patient->strip, n - k);
        for (int64_t i = 0; i < inner; i++)
            memcpy(part + i * ld, patient->a + (k + i) * n + first, (size_t)columns * sizeof *part);
        R(host__gemm)(rows, columns, inner, patient->x + at * ld + k, ld, part, ld, residual, ld);
    }
    for (int64_t i = 0; i < rows; i++, residual += ld) {
        for (int64_t j = 0; j < columns; j++)
            residual[j] = (at + i == first + j ? 1 : 0) - patient->factor * residual[j];
        for (int64_t j = 0; j < columns; j++)
            patient->sums[first + j] += REAL_FABS(residual[j]);
    }
}

/* The same columns of X take Newton's step. */
static void R(step_columns)(void *context, int64_t index)
{
    const struct R(patient) *patient = context;
    int64_t n = patient->n, ld = patient->ld, at = patient->at,
            rows = min_i64(patient->strip, n - at);
    int64_t first = index * PIECE, columns = min_i64(PIECE, n - first);
    REAL *change = patient->change + first, *x = patient->x + first;
    for (int64_t i = 0; i < rows; i++)
        memset(change + i * ld, 0, (size_t)columns * sizeof *change);
    R(host__gemm)(rows, columns, n, patient->residual, ld, x, ld, change, ld);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            x[(at + i) * ld + j] += change[i * ld + j];
    }
}

/* Returns |I - X (factor A)| as it was; `step`: X then takes Newton's step. */
static double R(sweep)(struct R(patient) * patient, bool step)
{
    int64_t n = patient->n, pieces = (n + PIECE - 1) / PIECE;
    memset(patient->sums, 0, (size_t)n * sizeof *patient->sums);
    for (patient->at = 0; patient->at < n; patient->at += patient->strip) {
        host_team_run(patient->team, pieces, R(residual_columns), patient);
        if (step)
            host_team_run(patient->team, pieces, R(step_columns), patient);
    }
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = (double)patient->sums[j];
        largest = sum > largest || isnan(sum) ? sum : largest;
    }
    return largest;
}

/* The contract's ratio that goes with a residual. */
static double R(ratio)(const struct R(patient) * patient, double residual)
{
    int64_t n = patient->n;
    struct host_norm x = R(host__norm)(patient->team, patient->x, n, patient->ld, patient->sums);
    double size = ldexp(patient->norm.fraction * x.fraction, patient->norm.exponent + x.exponent);
    return x.finite ? residual / ((double)n * (double)REAL_EPS * size) : HUGE_VAL;
}

/* Repairs X as far as steps do it. Is it good in the end? */
static bool R(refine)(struct R(patient) * patient)
{
    double residual = R(sweep)(patient, false), ratio = R(ratio)(patient, residual);
    for (int i = 0; i < STEPS_MAX && ratio > RATIO_GOOD && residual < RESIDUAL_REPAIRABLE; i++) {
        R(sweep)(patient, true);
        residual = R(sweep)(patient, false);
        ratio = R(ratio)(patient, residual);
    }
    return ratio <= RATIO_ACCEPTED;
}

/* ---- Inverse by complete pivoting, or by QR ---- */

/* The first largest magnitude of the rows and columns from `from`; 0 when all are zero. */
static REAL R(largest_entry)(const struct R(patient) * patient, int64_t from, int64_t *row,
                             int64_t *column)
{
    REAL largest = 0;
    for (int64_t i = from; i < patient->n; i++) {
        const REAL *entries = patient->x + i * patient->ld;
        for (int64_t j = from; j < patient->n; j++) {
            if (REAL_FABS(entries[j]) > largest) {
                largest = REAL_FABS(entries[j]);
                *row = i;
                *column = j;
            }
        }
    }
    return largest;
}

static void R(exchange_rows)(const struct R(patient) * patient, int64_t one, int64_t other)
{
    REAL *a = patient->x + one * patient->ld, *b = patient->x + other * patient->ld;
    for (int64_t j = 0; j < patient->n && one != other; j++) {
        REAL old = a[j];
        a[j] = b[j];
        b[j] = old;
    }
}

static void R(exchange_columns)(const struct R(patient) * patient, int64_t one, int64_t other)
{
    REAL *row = patient->x;
    for (int64_t i = 0; i < patient->n && one != other; i++, row += patient->ld) {
        REAL old = row[one];
        row[one] = row[other];
        row[other] = old;
    }
}

/* One step of Gauss-Jordan elimination in place, with the pivot at (k, k). */
static void R(eliminate)(const struct R(patient) * patient, int64_t k)
{
    int64_t n = patient->n, ld = patient->ld;
    REAL *restrict pivot_row = patient->x + k * ld, pivot = pivot_row[k];
    for (int64_t j = 0; j < n; j++)
        pivot_row[j] /= pivot;
    pivot_row[k] = 1 / pivot;
    for (int64_t i = 0; i < n; i++) {
        REAL *restrict row = patient->x + i * ld, multiplier = row[k];
        if (i == k || multiplier == 0)
            continue;
        for (int64_t j = 0; j < n; j++)
            row[j] -= multiplier * pivot_row[j];
        row[k] = -multiplier / pivot;
    }
}

/* x = (factor A)^-1 by elimination with complete pivoting; false when a pivot is zero. */
static bool R(invert_complete)(const struct R(patient) * patient)
{
    int64_t n = patient->n;
    int32_t *rows = patient->pivots, *columns = patient->pivots + n;
    R(host__copy)(patient->team, patient->a, n, patient->x, patient->ld, n, patient->factor);
    for (int64_t k = 0; k < n; k++) {
        int64_t row = k, column = k;
        if (!(R(largest_entry)(patient, k, &row, &column) > 0))
            return false;
        R(exchange_rows)(patient, k, row);
        R(exchange_columns)(patient, k, column);
        rows[k] = (int32_t)row;
        columns[k] = (int32_t)column;
        R(eliminate)(patient, k);
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        R(exchange_rows)(patient, k, columns[k]);
        R(exchange_columns)(patient, k, rows[k]);
    }
    return true;
}

/* The same by QR, for a large matrix. */
static bool R(invert_orthogonally)(const struct R(patient) * patient)
{
    int64_t n = patient->n, ld = patient->ld;
    R(host__transpose)(patient->team, patient->a, n, patient->x, ld, n, patient->factor);
    REAL *taus = (REAL *)(void *)patient->pivots; /* 2 n int32_t, aligned as lines are */
    if (!R(host__qr_invert)(patient->team, n, patient->x, ld, taus, patient->residual))
        return false;
    R(host__transpose_in_place)(patient->team, patient->x, n, ld);
    return true;
}

bool R(host__invert_anew)(const struct host_matrix *matrix, const struct R(host_work) * work,
                          int scaling, struct host_norm norm)
{
    struct R(patient) patient = R(patient)(matrix, work, scaling, norm);
    bool inverted = patient.n < HOST_QR_ORDER_MIN ? R(invert_complete)(&patient)
                                                  : R(invert_orthogonally)(&patient);
    return inverted && R(refine)(&patient);
}

bool R(host__refine)(const struct host_matrix *matrix, const struct R(host_work) * work,
                     int scaling, struct host_norm norm)
{
    struct R(patient) patient = R(patient)(matrix, work, scaling, norm);
    return R(refine)(&patient) || R(host__invert_anew)(matrix, work, scaling, norm);
}
