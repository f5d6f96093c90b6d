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

struct recovery {
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

static struct recovery open_recovery(const struct host_matrix *matrix,
                                     const struct R(host_work) * work, int scaling,
                                     struct host_norm norm)
{
    int64_t strip = strip_of(matrix->n), ld = work->ld;
    norm.exponent += scaling;
    return (struct recovery){.a = matrix->inputs[0],
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

/* Columns of I - X (factor A), in the strip at recovery->at, and their share of the sums. A goes
 * through aligned scratch a few rows at a time. */
static void residual_columns(void *context, int64_t index)
{
    const struct recovery *recovery = context;
    int64_t n = recovery->n, ld = recovery->ld, at = recovery->at,
            rows = min_i64(recovery->strip, n - at);
    int64_t first = index * PIECE, columns = min_i64(PIECE, n - first);
    REAL *residual = recovery->residual + first, *part = recovery->part + first;
    for (int64_t i = 0; i < rows; i++)
        memset(residual + i * ld, 0, (size_t)columns * sizeof *residual);
    for (int64_t k = 0; k < n; k += recovery->strip) {
        int64_t inner = min_i64(recovery->strip, n - k);
        for (int64_t i = 0; i < inner; i++)
            memcpy(part + i * ld, recovery->a + (k + i) * n + first,
                   (size_t)columns * sizeof *part);
        R(host__gemm)(rows, columns, inner, recovery->x + at * ld + k, ld, part, ld, residual, ld);
    }
    for (int64_t i = 0; i < rows; i++, residual += ld) {
        for (int64_t j = 0; j < columns; j++)
            residual[j] = (at + i == first + j ? 1 : 0) - recovery->factor * residual[j];
        for (int64_t j = 0; j < columns; j++)
            recovery->sums[first + j] += REAL_FABS(residual[j]);
    }
}

/* The same columns of X take Newton's step. */
static void step_columns(void *context, int64_t index)
{
    const struct recovery *recovery = context;
    int64_t n = recovery->n, ld = recovery->ld, at = recovery->at,
            rows = min_i64(recovery->strip, n - at);
    int64_t first = index * PIECE, columns = min_i64(PIECE, n - first);
    REAL *change = recovery->change + first, *x = recovery->x + first;
    for (int64_t i = 0; i < rows; i++)
        memset(change + i * ld, 0, (size_t)columns * sizeof *change);
    R(host__gemm)(rows, columns, n, recovery->residual, ld, x, ld, change, ld);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            x[(at + i) * ld + j] += change[i * ld + j];
    }
}

/* Returns |I - X (factor A)| as it was; `step`: X then takes Newton's step. */
static double sweep(struct recovery *recovery, bool step)
{
    int64_t n = recovery->n, pieces = (n + PIECE - 1) / PIECE;
    memset(recovery->sums, 0, (size_t)n * sizeof *recovery->sums);
    for (recovery->at = 0; recovery->at < n; recovery->at += recovery->strip) {
        host_team_run(recovery->team, pieces, residual_columns, recovery);
        if (step)
            host_team_run(recovery->team, pieces, step_columns, recovery);
    }
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = (double)recovery->sums[j];
        largest = sum > largest || isnan(sum) ? sum : largest;
    }
    return largest;
}

/* The contract's ratio that goes with a residual. */
static double ratio_of(const struct recovery *recovery, double residual)
{
    int64_t n = recovery->n;
    struct host_norm x =
        R(host__norm)(recovery->team, recovery->x, n, recovery->ld, recovery->sums);
    double size = ldexp(recovery->norm.fraction * x.fraction, recovery->norm.exponent + x.exponent);
    return x.finite ? residual / ((double)n * (double)REAL_EPS * size) : HUGE_VAL;
}

/* Repairs X as far as steps do it. Is it good in the end? */
static bool refine(struct recovery *recovery)
{
    double residual = sweep(recovery, false), ratio = ratio_of(recovery, residual);
    for (int i = 0; i < STEPS_MAX && ratio > RATIO_GOOD && residual < RESIDUAL_REPAIRABLE; i++) {
        sweep(recovery, true);
        residual = sweep(recovery, false);
        ratio = ratio_of(recovery, residual);
    }
    return ratio <= RATIO_ACCEPTED;
}

/* ---- Inverse by complete pivoting, or by QR ---- */

/* The first largest magnitude of the rows and columns from `from`; 0 when all are zero. */
static REAL largest_entry(const struct recovery *recovery, int64_t from, int64_t *row,
                          int64_t *column)
{
    REAL largest = 0;
    for (int64_t i = from; i < recovery->n; i++) {
        const REAL *entries = recovery->x + i * recovery->ld;
        for (int64_t j = from; j < recovery->n; j++) {
            if (REAL_FABS(entries[j]) > largest) {
                largest = REAL_FABS(entries[j]);
                *row = i;
                *column = j;
            }
        }
    }
    return largest;
}

static void exchange_rows(const struct recovery *recovery, int64_t one, int64_t other)
{
    REAL *a = recovery->x + one * recovery->ld, *b = recovery->x + other * recovery->ld;
    for (int64_t j = 0; j < recovery->n && one != other; j++) {
        REAL old = a[j];
        a[j] = b[j];
        b[j] = old;
    }
}

static void exchange_columns(const struct recovery *recovery, int64_t one, int64_t other)
{
    REAL *row = recovery->x;
    for (int64_t i = 0; i < recovery->n && one != other; i++, row += recovery->ld) {
        REAL old = row[one];
        row[one] = row[other];
        row[other] = old;
    }
}

/* One step of Gauss-Jordan elimination in place, with the pivot at (k, k). */
static void eliminate(const struct recovery *recovery, int64_t k)
{
    int64_t n = recovery->n, ld = recovery->ld;
    REAL *restrict pivot_row = recovery->x + k * ld, pivot = pivot_row[k];
    for (int64_t j = 0; j < n; j++)
        pivot_row[j] /= pivot;
    pivot_row[k] = 1 / pivot;
    for (int64_t i = 0; i < n; i++) {
        REAL *restrict row = recovery->x + i * ld, multiplier = row[k];
        if (i == k || multiplier == 0)
            continue;
        for (int64_t j = 0; j < n; j++)
            row[j] -= multiplier * pivot_row[j];
        row[k] = -multiplier / pivot;
    }
}

/* x = (factor A)^-1 by elimination with complete pivoting; false when a pivot is zero. */
static bool invert_complete(const struct recovery *recovery)
{
    int64_t n = recovery->n;
    int32_t *rows = recovery->pivots, *columns = recovery->pivots + n;
    R(host__copy)(recovery->team, recovery->a, n, recovery->x, recovery->ld, n, recovery->factor);
    for (int64_t k = 0; k < n; k++) {
        int64_t row = k, column = k;
        if (!(largest_entry(recovery, k, &row, &column) > 0))
            return false;
        exchange_rows(recovery, k, row);
        exchange_columns(recovery, k, column);
        rows[k] = (int32_t)row;
        columns[k] = (int32_t)column;
        eliminate(recovery, k);
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        exchange_rows(recovery, k, columns[k]);
        exchange_columns(recovery, k, rows[k]);
    }
    return true;
}

/* The same by QR, for a large matrix. */
static bool invert_orthogonally(const struct recovery *recovery)
{
    int64_t n = recovery->n, ld = recovery->ld;
    R(host__transpose)(recovery->team, recovery->a, n, recovery->x, ld, n, recovery->factor);
    REAL *taus = (REAL *)(void *)recovery->pivots; /* 2 n int32_t, aligned as lines are */
    if (!R(host__qr_invert)(recovery->team, n, recovery->x, ld, taus, recovery->residual))
        return false;
    R(host__transpose_in_place)(recovery->team, recovery->x, n, ld);
    return true;
}

bool R(host__invert_anew)(const struct host_matrix *matrix, const struct R(host_work) * work,
                          int scaling, struct host_norm norm)
{
    struct recovery recovery = open_recovery(matrix, work, scaling, norm);
    bool inverted = recovery.n < HOST_QR_ORDER_MIN ? invert_complete(&recovery)
                                                   : invert_orthogonally(&recovery);
    return inverted && refine(&recovery);
}

bool R(host__refine)(const struct host_matrix *matrix, const struct R(host_work) * work,
                     int scaling, struct host_norm norm)
{
    struct recovery recovery = open_recovery(matrix, work, scaling, norm);
    return refine(&recovery) || R(host__invert_anew)(matrix, work, scaling, norm);
}
