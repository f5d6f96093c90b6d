/* gpu/host/linalg/cholesky.c: see cholesky.h.
 *
 * A matrix is tried when it is symmetric with a positive diagonal, and no entry a_ij^2 > a_ii a_jj
 * says that it is not definite; the first pair of entries excludes most dense ones. Cholesky gives
 * up when a pivot is not positive, and when A is all but singular, which its pivots and then a
 * column of the inverse as a rule tell before the inverse is made. Its residual ratio was at most
 * 0.29 on random spectra of any condition up to 1 / eps, where lu's was 0.2.
 *
 * Threads: any; passes over a large matrix and blocked.h's steps run on its team. Cost: see
 * cholesky.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/cholesky.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/blocked.h"

#include "gpu/host/base/by_precision.h"

#define TILE 32                /* two tiles fit the first cache */
#define CHOLESKY_RCOND_ULPS 64 /* nearer to singular, what INFO says is left to lu */
/* As a rule the squared ratio of Cholesky's extreme pivots exceeds RCOND by n at most, and what one
 * column of the inverse says exceeds it by 4. */
#define PIVOTS_ULPS (16 * CHOLESKY_RCOND_ULPS)
#define COLUMN_ULPS (4 * CHOLESKY_RCOND_ULPS)
#define AVERAGED_ULPS 4 /* halves that differ by so many units still count as equal */

/* A matrix that is examined, and its way into and out of scratch; a piece is a row of tiles. */
struct candidate {
    const REAL *a;
    int64_t n, ld;
    REAL slack;           /* how far the halves may differ, relative to the lesser entry */
    REAL factor;          /* brings products of two entries into range */
    const REAL *diagonal; /* factor times A's */
    _Atomic bool fails;
    REAL *scratch; /* n x ld */
    REAL scale;    /* scratch takes this times A */
};

static int64_t tile_rows(int64_t n)
{
    return (n + TILE - 1) / TILE;
}

/* ---- Is it a case for Cholesky? ---- */

/* image[i][j] = A's entry (column + j, row + i): a tile's mirror image, read row by row, for rows
 * whose distance is a power of two would meet in one set of the cache. */
static void reflect(const struct candidate *candidate, int64_t row, int64_t column,
                    REAL image[TILE][TILE + 1])
{
    int64_t n = candidate->n, rows = min_i64(TILE, n - row), columns = min_i64(TILE, n - column);
    for (int64_t j = 0; j < columns; j++) {
        const REAL *a = candidate->a + (column + j) * n + row;
        for (int64_t i = 0; i < rows; i++)
            image[i][j] = a[i];
    }
}

/* Do entries i, j and j, i agree, and may a definite matrix have them? bound: the product of the
 * diagonal's entries i and j. */
HOST_INLINE bool pair_passes(const struct candidate *candidate, REAL lower, REAL upper, REAL bound)
{
    REAL scaled = lower * candidate->factor;
    REAL lesser = REAL_FABS(lower) < REAL_FABS(upper) ? REAL_FABS(lower) : REAL_FABS(upper);
    bool agree = lower == upper || REAL_FABS(lower - upper) <= candidate->slack * lesser;
    return agree && !(scaled * scaled > bound);
}

/* The same of rows and columns of one pair of tiles. */
static bool tile_passes(const struct candidate *candidate, int64_t row, int64_t column)
{
    const REAL *diagonal = candidate->diagonal;
    int64_t n = candidate->n, row_end = min_i64(row + TILE, n);
    REAL image[TILE][TILE + 1];
    reflect(candidate, row, column, image);
    for (int64_t i = row; i < row_end; i++) {
        const REAL *a = candidate->a + i * n, *mirrored = image[i - row];
        int64_t column_end = min_i64(column + TILE, i);
        for (int64_t j = column; j < column_end; j++) {
            if (!pair_passes(candidate, a[j], mirrored[j - column], diagonal[i] * diagonal[j]))
                return false;
        }
    }
    return true;
}

static void try_row(void *context, int64_t index)
{
    struct candidate *candidate = context;
    for (int64_t column = 0; column <= index * TILE && !candidate->fails; column += TILE) {
        if (!tile_passes(candidate, index * TILE, column))
            candidate->fails = true;
    }
}

/* Is the matrix symmetric, with a positive diagonal and no entry that rules Cholesky out? */
static bool passes(const struct host_matrix *matrix, struct host_norm norm, REAL slack)
{
    int64_t n = matrix->n;
    const REAL *a = matrix->inputs[0];
    struct R(host_work) work = R(host__work)(matrix);
    REAL *diagonal = work.lines;
    /* Near the range's ends a factor may be out of it; entries then are where they need none. */
    int exponent = norm.exponent < REAL_MIN_EXP ? REAL_MIN_EXP : norm.exponent;
    struct candidate candidate = {
        .a = a, .n = n, .slack = slack, .factor = REAL_LDEXP(1, -exponent), .diagonal = diagonal};
    for (int64_t i = 0; i < n; i++) {
        if (!(a[i * n + i] > 0))
            return false;
        diagonal[i] = a[i * n + i] * candidate.factor;
    }
    /* Most dense matrices fail here. */
    if (n > 1 && !pair_passes(&candidate, a[n], a[1], diagonal[0] * diagonal[1]))
        return false;
    host_team_run(work.team, tile_rows(n), try_row, &candidate);
    return !candidate.fails;
}

/* ---- Inverse ---- */

/* The upper triangle of scratch = scale * (A + A^T) / 2 where they may differ, else scale * A. */
static void load_tile(const struct candidate *candidate, int64_t row, int64_t column)
{
    int64_t n = candidate->n, row_end = min_i64(row + TILE, n),
            column_end = min_i64(column + TILE, n);
    REAL image[TILE][TILE + 1] = {{0}}, scale = candidate->scale;
    if (candidate->slack > 0)
        reflect(candidate, row, column, image);
    for (int64_t i = row; i < row_end; i++) {
        const REAL *a = candidate->a + i * n;
        REAL *to = candidate->scratch + i * candidate->ld;
        for (int64_t j = i > column ? i : column; j < column_end; j++) {
            REAL upper = a[j] * scale;
            REAL lower = candidate->slack > 0 ? image[i - row][j - column] * scale : upper;
            to[j] = upper == lower ? upper : upper / 2 + lower / 2;
        }
    }
}

static void load_row(void *context, int64_t index)
{
    const struct candidate *candidate = context;
    for (int64_t column = index * TILE; column < candidate->n; column += TILE)
        load_tile(candidate, index * TILE, column);
}

/* The lower triangle of scratch becomes the upper one's image. */
static void mirror_row(void *context, int64_t index)
{
    const struct candidate *candidate = context;
    REAL *x = candidate->scratch;
    int64_t ld = candidate->ld, row = index * TILE, end = min_i64(row + TILE, candidate->n);
    for (int64_t column = 0; column < end; column += TILE) {
        for (int64_t i = row; i < end; i++) {
            int64_t column_end = min_i64(column + TILE, i);
            for (int64_t j = column; j < column_end; j++)
                x[i * ld + j] = x[j * ld + i];
        }
    }
}

/* x = column j of the inverse, from Cholesky's factor L in work->a (column-major). Returns the sum
 * of its magnitudes. */
static REAL inverse_column(const struct R(host_work) * work, int64_t n, int64_t j, REAL *x)
{
    REAL sum = 0;
    memset(x, 0, (size_t)n * sizeof *x);
    x[j] = 1;
    for (int64_t k = j; k < n; k++) {
        const REAL *column = work->a + k * work->ld;
        x[k] /= column[k];
        for (int64_t i = k + 1; i < n; i++)
            x[i] -= column[i] * x[k];
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        const REAL *column = work->a + k * work->ld;
        for (int64_t i = k + 1; i < n; i++)
            x[k] -= column[i] * x[i];
        x[k] /= column[k];
        sum += REAL_FABS(x[k]);
    }
    return sum;
}

/* Does Cholesky's factor in work->a say that A is all but singular? The squared ratio of the
 * pivots' extremes is never below RCOND. Where it decides nothing, the column of the inverse that
 * belongs to the smallest pivot, as a rule among the largest, decides. */
static bool all_but_singular(const struct R(host_work) * work, int64_t n, int scaling,
                             struct host_norm norm)
{
    int64_t smallest = 0;
    REAL largest = 0;
    for (int64_t i = 0; i < n; i++) {
        REAL root = work->a[i * (work->ld + 1)];
        smallest = root < work->a[smallest * (work->ld + 1)] ? i : smallest;
        largest = root > largest ? root : largest;
    }
    REAL ratio = work->a[smallest * (work->ld + 1)] / largest;
    if (ratio * ratio >= PIVOTS_ULPS * REAL_EPS * (REAL)n)
        return false;
    if (ratio * ratio < CHOLESKY_RCOND_ULPS * REAL_EPS)
        return true;
    REAL size = REAL_LDEXP((REAL)norm.fraction, norm.exponent + scaling);
    REAL sum = inverse_column(work, n, smallest, work->lines);
    return !(1 / size / sum >= COLUMN_ULPS * REAL_EPS);
}

/* Only the row-major upper triangle, LAPACK's lower one, is used until the end. */
static bool invert(const struct host_matrix *matrix, struct host_norm norm, REAL slack)
{
    int64_t n = matrix->n;
    int scaling = R(host__scaling)(norm);
    /* An even exponent, so that the square roots of A and 2 A differ by a power of two too. */
    scaling += (norm.exponent + scaling) & 1;
    struct R(host_work) work = R(host__work)(matrix);
    struct candidate candidate = {.a = matrix->inputs[0],
                                  .n = n,
                                  .ld = work.ld,
                                  .slack = slack,
                                  .scratch = work.a,
                                  .scale = REAL_LDEXP(1, scaling)};
    host_team_run(work.team, tile_rows(n), load_row, &candidate);
    if (R(host__large_potrf)(work.team, n, work.a, work.ld) ||
        all_but_singular(&work, n, scaling, norm))
        return false;
    R(host__large_potri)(work.team, n, work.a, work.ld, work.lines);
    host_team_run(work.team, tile_rows(n), mirror_row, &candidate);
    struct host_answered answered = R(host__answer)(matrix, &work, HOST_ROW_MAJOR, scaling, norm,
                                                    METHOD_ALGORITHM_CHOLESKY, HOST_CHECK);
    return answered.rcond >= CHOLESKY_RCOND_ULPS * (double)REAL_EPS;
}

bool R(host__cholesky)(const struct host_matrix *matrix, struct host_norm norm, bool averaged)
{
    REAL slack = averaged ? AVERAGED_ULPS * REAL_EPS : 0;
    return passes(matrix, norm, slack) && invert(matrix, norm, slack);
}
