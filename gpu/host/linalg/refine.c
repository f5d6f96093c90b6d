/* gpu/host/linalg/refine.c: see refine.h.
 *
 * Why no step of Newton's: X + (I - X A) X squares the residual that it is made of, but on the
 * other side it leaves the rounding of I - X A times the condition of A, unless that is summed up
 * in double-double, which takes as long as a new inverse.
 *
 * By complete pivoting both residuals are small: at most 1 in the gallery and over dlatms' modes,
 * Gaussian kernels included, of which LAPACK leaves 1e6 on the right. QR may leave as much there,
 * for matrices that are graded without having elements that grow; growth shows on both sides.
 *
 * Threads: any; a large matrix has its team. Cost: see refine.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/refine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/qr.h"
#include "gpu/host/linalg/residual.h"

#include "gpu/host/base/by_precision.h"

/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
#define RATIO_GOOD 4.0      /* good enough not to be made anew */
#define RATIO_ACCEPTED 14.0 /* of one that was */

struct recovery {
    const REAL *a; /* n x n */
    int64_t n, ld;
    REAL factor;           /* A times this is what x inverts */
    struct host_norm norm; /* of factor * A */
    REAL *x;
    int32_t *pivots;
    struct host_team *team;
    REAL *lines;
};

static struct recovery open_recovery(const struct host_matrix *matrix,
                                     const struct R(host_work) * work, int scaling,
                                     struct host_norm norm)
{
    norm.exponent += scaling;
    return (struct recovery){.a = matrix->inputs[0],
                             .n = matrix->n,
                             .ld = work->ld,
                             .factor = REAL_LDEXP(1, scaling),
                             .norm = norm,
                             .x = work->a,
                             .pivots = work->pivots,
                             .team = work->team,
                             .lines = work->lines};
}

/* The contract's ratio of I - X (factor A). */
static double ratio_left(const struct recovery *recovery)
{
    const int64_t n = recovery->n, ld = recovery->ld;
    const double residual = R(host__residual)(recovery->team, n, recovery->factor, recovery->x, ld,
                                              recovery->a, n, recovery->lines);
    return R(host__residual_ratio)(
        residual, n, recovery->norm,
        R(host__norm)(recovery->team, recovery->x, n, ld, recovery->lines));
}

/* The same of I - (factor A) X. */
static double ratio_right(const struct recovery *recovery)
{
    const int64_t n = recovery->n, ld = recovery->ld;
    const double residual = R(host__residual)(recovery->team, n, recovery->factor, recovery->a, n,
                                              recovery->x, ld, recovery->lines);
    return R(host__residual_ratio)(
        residual, n, recovery->norm,
        R(host__norm)(recovery->team, recovery->x, n, ld, recovery->lines));
}

/* ---- Inverse by complete pivoting, or by QR ---- */

#define LANES 16 /* numbers that are compared at once */

/* The largest magnitude of `count` numbers; those that are none do not count. */
HOST_INLINE REAL largest_of(const REAL *numbers, int64_t count)
{
    REAL largest[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        for (int64_t l = 0; l < LANES; l++) {
            REAL magnitude = REAL_FABS(numbers[j + l]);
            largest[l] = magnitude > largest[l] ? magnitude : largest[l];
        }
    }
    for (int64_t l = 0; j < count; j++, l++) {
        REAL magnitude = REAL_FABS(numbers[j]);
        largest[l] = magnitude > largest[l] ? magnitude : largest[l];
    }
    for (int64_t l = 1; l < LANES; l++)
        largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
    return largest[0];
}

/* The first largest magnitude of the rows and columns from `from`; 0 when all are zero. */
HOST_INLINE REAL largest_entry(const struct recovery *recovery, int64_t from, int64_t *row,
                               int64_t *column)
{
    REAL largest = 0;
    for (int64_t i = from; i < recovery->n; i++) {
        REAL found = largest_of(recovery->x + i * recovery->ld + from, recovery->n - from);
        *row = found > largest ? i : *row;
        largest = found > largest ? found : largest;
    }
    const REAL *entries = recovery->x + *row * recovery->ld;
    for (*column = from; largest > 0 && REAL_FABS(entries[*column]) != largest;)
        ++*column;
    return largest;
}

HOST_INLINE void exchange_rows(const struct recovery *recovery, int64_t one, int64_t other)
{
    REAL *a = recovery->x + one * recovery->ld, *b = recovery->x + other * recovery->ld;
    for (int64_t j = 0; j < recovery->n && one != other; j++) {
        REAL old = a[j];
        a[j] = b[j];
        b[j] = old;
    }
}

HOST_INLINE void exchange_columns(const struct recovery *recovery, int64_t one, int64_t other)
{
    REAL *row = recovery->x;
    for (int64_t i = 0; i < recovery->n && one != other; i++, row += recovery->ld) {
        REAL old = row[one];
        row[one] = row[other];
        row[other] = old;
    }
}

/* One step of Gauss-Jordan elimination in place, with the pivot at (k, k). */
HOST_INLINE void eliminate(const struct recovery *recovery, int64_t k)
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

/* x becomes its inverse by elimination with complete pivoting; false when a pivot is zero. */
HOST_INLINE bool eliminate_all(const struct recovery *recovery)
{
    int64_t n = recovery->n;
    int32_t *rows = recovery->pivots, *columns = recovery->pivots + n;
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

HOST_AVX512 static bool eliminate_avx512(const struct recovery *recovery)
{
    return eliminate_all(recovery);
}

HOST_AVX2 static bool eliminate_avx2(const struct recovery *recovery)
{
    return eliminate_all(recovery);
}

/* x = (factor A)^-1; the bits do not depend on the width of the vectors. */
static bool invert_complete(const struct recovery *recovery)
{
    R(host__copy)
    (recovery->team, recovery->a, recovery->n, recovery->x, recovery->ld, recovery->n,
     recovery->factor);
    if (__builtin_cpu_supports("avx512f"))
        return eliminate_avx512(recovery);
    return __builtin_cpu_supports("avx2") ? eliminate_avx2(recovery) : eliminate_all(recovery);
}

/* The same by QR, for a large matrix. */
static bool invert_orthogonally(const struct recovery *recovery)
{
    int64_t n = recovery->n, ld = recovery->ld;
    R(host__transpose)(recovery->team, recovery->a, n, recovery->x, ld, n, recovery->factor);
    REAL *taus = (REAL *)(void *)recovery->pivots; /* 2 n int32_t, aligned as lines are */
    if (!R(host__qr_invert)(recovery->team, n, recovery->x, ld, taus, recovery->lines))
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
    return inverted && ratio_left(&recovery) <= RATIO_ACCEPTED;
}

bool R(host__invert_complete)(const struct host_matrix *matrix, const struct R(host_work) * work,
                              int scaling, struct host_norm norm)
{
    struct recovery recovery = open_recovery(matrix, work, scaling, norm);
    return invert_complete(&recovery) && ratio_left(&recovery) <= RATIO_ACCEPTED;
}

bool R(host__refine)(const struct host_matrix *matrix, const struct R(host_work) * work,
                     int scaling, struct host_norm norm)
{
    struct recovery recovery = open_recovery(matrix, work, scaling, norm);
    if (ratio_left(&recovery) <= RATIO_GOOD &&
        (recovery.n >= HOST_QR_ORDER_MIN || ratio_right(&recovery) <= RATIO_GOOD))
        return true;
    return R(host__invert_anew)(matrix, work, scaling, norm);
}
