/* gpu/host/ism/measure.c: what `ism` measures on request, when all else is done: |I - Z A| of an A
 * that is known, and the condition of the capacitance matrix. See ism.h.
 *
 * Threads: any; a team helps. Cost: 4 n^2 m operations for the residual, or with a dense A0 2 n^3
 * more. For the capacitance matrix 2 n m^2, with A0_INVERSE 2 n^2 m more, and lu's 2 m^3.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/ism.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/simd/small.h"

#include "gpu/host/base/by_precision.h"

#define ROWS_AT_ONCE 64 /* of I - Z A */
#define PIECE 256       /* columns of them, or of K; rows of the capacitance matrix are half that */

/* ---- |I - Z A| ---- */

struct residual {
    const struct R(host_ism) * ism;
    int64_t row, rows, thin_ld;
    REAL *error, *thin, *sums; /* rows of I - Z A and of Z X; the sums of columns */
};

int64_t R(host__ism_residual_numbers)(int64_t n, int64_t m)
{
    const int64_t line = host__ld(REAL_PRECISION, n) + host__ld(REAL_PRECISION, m);
    int64_t numbers;
    return checked_mul(line, ROWS_AT_ONCE + 1, &numbers) ? numbers : -1;
}

/* Columns of the rows times X. */
static void residual_thin(void *context, int64_t index)
{
    const struct residual *of = context;
    const struct R(host_ism) *ism = of->ism;
    const int64_t first = index * PIECE;
    R(host__product)
    (false, false, of->rows, min_i64(PIECE, ism->m - first), ism->n, 1, ism->z + of->row * ism->n,
     ism->n, ism->x + first, ism->m, 0, of->thin + first, of->thin_ld);
}

/* Columns of the rows of I - Z A, and their magnitudes added to the sums. */
static void residual_piece(void *context, int64_t index)
{
    const struct residual *of = context;
    const struct R(host_ism) *ism = of->ism;
    const int64_t n = ism->n, first = index * PIECE, columns = min_i64(PIECE, n - first);
    const REAL *z = ism->z + of->row * n, *dense = ism->a ? ism->a : ism->a0;
    for (int64_t i = 0; i < of->rows; i++) {
        REAL *to = of->error + i * ism->ld;
        for (int64_t j = first; j < first + columns; j++)
            to[j] = (REAL)(j == of->row + i) - (dense ? 0 : z[i * n + j] * ism->d[j]);
    }
    if (dense)
        R(host__product)
    (false, false, of->rows, columns, n, -1, z, n, dense + first, n, 1, of->error + first, ism->ld);
    if (!ism->a && ism->m > 0)
        R(host__product)
    (false, true, of->rows, columns, ism->m, -1, of->thin, of->thin_ld, ism->y + first * ism->m,
     ism->m, 1, of->error + first, ism->ld);
    for (int64_t i = 0; i < of->rows; i++) {
        for (int64_t j = first; j < first + columns; j++)
            of->sums[j] += REAL_FABS(of->error[i * ism->ld + j]);
    }
}

REAL R(host__ism_residual)(const struct R(host_ism) * ism)
{
    const int64_t n = ism->n;
    struct residual of = {.ism = ism, .thin_ld = host__ld(REAL_PRECISION, ism->m)};
    REAL largest = 0;
    of.sums = ism->work;
    of.error = of.sums + ism->ld;
    of.thin = of.error + ROWS_AT_ONCE * ism->ld;
    for (int64_t j = 0; j < n; j++)
        of.sums[j] = 0;
    for (; of.row < n; of.row += ROWS_AT_ONCE) {
        of.rows = min_i64(ROWS_AT_ONCE, n - of.row);
        if (!ism->a)
            host_team_run(ism->team, pieces(ism->m, PIECE), residual_thin, &of);
        host_team_run(ism->team, pieces(n, PIECE), residual_piece, &of);
    }
    for (int64_t j = 0; j < n; j++)
        largest = of.sums[j] > largest || isnan(of.sums[j]) ? of.sums[j] : largest;
    return largest;
}

/* ---- The capacitance matrix ---- */

struct capacitance {
    const struct host_matrix *matrix;
    int64_t n, m, ld;
    REAL *k, *c; /* Y^T A0^-1, m lines of ld; I + K X, m x m */
};

/* Where the arrays begin behind what lu takes, and where they end, in bytes; -1 on overflow. */
static int64_t capacitance_begin(int64_t m)
{
    int64_t bytes = R(host__lu_scratch_bytes)(m, 0);
    return bytes >= 0 && checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes) ? bytes : -1;
}

int64_t R(host__ism_capacitance_bytes)(int64_t n, int64_t m)
{
    const int64_t begin = capacitance_begin(m);
    int64_t bytes;
    if (m > n)
        return 0;
    if (begin < 0 || !checked_mul(m, host__ld(REAL_PRECISION, n) + m, &bytes) ||
        !checked_mul(bytes, (int64_t)sizeof(REAL), &bytes) || !checked_add(bytes, begin, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

/* Columns of K. */
static void make_k(void *context, int64_t index)
{
    const struct capacitance *of = context;
    const struct host_matrix *matrix = of->matrix;
    const REAL *y = matrix->inputs[METHOD_ISM_Y], *b = matrix->inputs[METHOD_ISM_A0_INVERSE];
    const REAL *scale = matrix->inputs[METHOD_ISM_A0_SCALE];
    const REAL *diagonal = matrix->inputs[METHOD_ISM_A0_DIAGONAL];
    const int64_t n = of->n, m = of->m, first = index * PIECE, columns = min_i64(PIECE, n - first);
    if (b) {
        R(host__product)
        (true, false, m, columns, n, 1, y, m, b + first, n, 0, of->k + first, of->ld);
        return;
    }
    for (int64_t c = 0; c < m; c++) {
        for (int64_t i = first; i < first + columns; i++)
            of->k[c * of->ld + i] = y[i * m + c] / (diagonal ? diagonal[i] : scale ? *scale : 1);
    }
}

/* Rows of I + K X. */
static void make_c(void *context, int64_t index)
{
    const struct capacitance *of = context;
    const REAL *x = of->matrix->inputs[METHOD_ISM_X];
    const int64_t m = of->m, first = index * (PIECE / 2), rows = min_i64(PIECE / 2, m - first);
    R(host__product)
    (false, false, rows, m, of->n, 1, of->k + first * of->ld, of->ld, x, m, 0, of->c + first * m,
     m);
    for (int64_t i = first; i < first + rows; i++)
        of->c[i * (m + 1)] += 1;
}

/* I + A0^-1 (A - A0), A0 being in K's place. */
static void set_c(const struct capacitance *of, const REAL *a)
{
    for (int64_t i = 0; i < of->n; i++) {
        for (int64_t j = 0; j < of->n; j++)
            of->c[i * of->n + j] = a[i * of->n + j] / of->k[i];
        host_stop_check();
    }
}

REAL R(host__ism_rcond_capacitance)(const struct R(host_ism) * ism)
{
    static const int64_t no_options[METHOD_OPTIONS_MAX];
    const int64_t n = ism->n, m = ism->m;
    unsigned char *scratch = ism->matrix->scratch;
    struct capacitance of = {.matrix = ism->matrix, .n = n, .m = m, .ld = ism->ld};
    int32_t info = 0, algorithm = 0;
    REAL rcond = 1;
    if (m == 0)
        return 1;
    if (m > n)
        return (REAL)NAN;
    of.c = (REAL *)(scratch + capacitance_begin(m));
    of.k = of.c + m * m;
    if (ism->a) {
        memmove(of.k, ism->d, (size_t)n * sizeof *of.k);
        set_c(&of, ism->a);
    } else {
        host_team_run(ism->team, pieces(n, PIECE), make_k, &of);
        host_team_run(ism->team, pieces(m, PIECE / 2), make_c, &of);
    }
    const struct host_matrix dense = {
        .inputs = {of.c},
        .outputs = {[HOST_INFO] = &info, [HOST_RCOND] = &rcond, [HOST_ALGORITHM] = &algorithm},
        .n = m,
        .options = no_options,
        .team = ism->matrix->team,
        .scratch = scratch};
    R(host__lu_alone)(&dense);
    return rcond;
}
