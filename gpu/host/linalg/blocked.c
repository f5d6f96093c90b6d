/* gpu/host/linalg/blocked.c: see blocked.h.
 *
 * Flow. getrf goes from left to right by panels of a block's columns. Step k applies panel k to
 * every block of columns right of it: exchange rows, solve with the panel's triangle, subtract a
 * product. A block of columns is a piece of work of its own. Piece 0 is the next panel, which is
 * factored in the same piece, so that the others hide it. The blocks left of a panel get its row
 * exchanges at the end. getri is LAPACK's: U^-1 by block columns from the left, then X = U^-1 L^-1
 * by block columns from the right, then the columns change places. A block column of U or L moves
 * to `lines` before it is overwritten; then every tile of rows of X is a piece of its own. potrf
 * goes as getrf does, less the exchanges; potri inverts L by block columns from the right, as getri
 * does U from the left, and makes L^-T L^-1 by block rows from the top, whose tiles are pieces.
 *
 * Two designs for the inverse were thought of. Tiles of rows of X may go through U^-1 and L^-1
 * alone from end to end, without a barrier, but then factors and inverse need an n x n each next to
 * the output. LAPACK's order needs a barrier for each block column, but works in place. This is the
 * second. Either solves for rows of X, so |I - X A| is as small as getri's.
 *
 * Pieces have fixed sizes and addresses aligned alike, and OpenBLAS runs each on one thread; what
 * is measured about the sizes is in bench/results/host-large.md.
 *
 * Threads: any; the pieces run on a team. Cost: see blocked.h; the panels, n^2 operations times
 * half a block's columns at a lower rate, run on one thread each.
 */
#include "gpu/host/linalg/blocked.h"

#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

struct large {
    int64_t n, ld;
    REAL *a;
    int32_t *pivots; /* of the whole matrix, once a panel is done */
    REAL *lines;
    int64_t block; /* columns of a block, rows of a piece of the inverse */
    int64_t at;    /* first column of the block under way */
    int64_t info;  /* written by the piece that factors a panel */
    struct host_progress *progress;
};

/* Of 2 n^3 operations, counted in thirds: `thirds` n^3 and so many more are done. */
static void report(const struct large *large, int64_t thirds, int64_t more)
{
    int64_t cube = large->n * large->n * large->n;
    host_progress_report(large->progress, thirds * cube + more, 6 * cube);
}

/* ---- Factorisation ---- */

/* Factors the columns from `at` on, whose part above the diagonal is done. */
static void factor_panel(struct large *large, int64_t at)
{
    int64_t n = large->n, columns = min_i64(large->block, n - at);
    int32_t *pivots = large->pivots + at;
    int64_t info =
        R(host__getrf_panel)(n - at, columns, large->a + at * (large->ld + 1), large->ld, pivots);
    for (int64_t i = 0; i < columns; i++)
        pivots[i] += (int32_t)at;
    if (info > 0 && large->info == 0)
        large->info = at + info;
}

/* The block of columns number `index` right of the panel at large->at takes the panel's part. */
static void update_block(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, at = large->at, block_columns = large->block;
    int64_t next = at + block_columns, first = next + index * block_columns,
            columns = min_i64(large->block, n - first);
    const REAL *panel = large->a + at * ld;
    REAL *block = large->a + first * ld;
    R(host__laswp)(columns, block, ld, at, next, large->pivots);
    R(host__solve_lower)(block_columns, columns, panel + at, ld, block + at, ld);
    R(host__subtract_product)
    (n - next, columns, block_columns, panel + next, ld, block + at, ld, block + next, ld);
    if (index == 0)
        factor_panel(large, next);
}

/* The panel number `index` takes the row exchanges of those right of it. */
static void exchange_block(void *context, int64_t index)
{
    struct large *large = context;
    int64_t block = large->block, first = index * block;
    R(host__laswp)
    (block, large->a + first * large->ld, large->ld, first + block, large->n, large->pivots);
}

static int64_t factor(struct host_team *team, struct large *large)
{
    int64_t n = large->n, block = large->block;
    factor_panel(large, 0);
    for (; large->at + block < n; large->at += block) {
        int64_t left = n - large->at - block;
        host_team_run(team, pieces(left, block), update_block, large);
        report(large, 2, -2 * left * left * left);
    }
    host_team_run(team, pieces(n, block) - 1, exchange_block, large);
    return large->info;
}

int64_t R(host__large_getrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                             int32_t *pivots)
{
    return R(host__large_getrf_by)(team, host__large_block(n), n, a, ld, pivots);
}

int64_t R(host__large_getrf_by)(struct host_team *team, int64_t block, int64_t n, REAL *a,
                                int64_t ld, int32_t *pivots)
{
    if (n < HOST_LARGE_FACTOR_MIN)
        return R(host__getrf)(n, a, ld, pivots);
    struct large large = {.n = n, .ld = ld, .a = a, .pivots = pivots, .block = block};
    return factor(team, &large);
}

int64_t R(host__reporting_getrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                                 int32_t *pivots, struct host_progress *progress)
{
    if (n < HOST_LARGE_FACTOR_MIN)
        return R(host__getrf)(n, a, ld, pivots);
    struct large large = {.n = n,
                          .ld = ld,
                          .a = a,
                          .pivots = pivots,
                          .block = host__large_block(n),
                          .progress = progress};
    return factor(team, &large);
}

/* ---- Inverse ---- */

/* Rows first to end - 1 of the block column at large->at go to lines. */
static void move(const struct large *large, int64_t first, int64_t end)
{
    int64_t ld = large->ld, at = large->at, columns = min_i64(large->block, large->n - at);
    for (int64_t j = 0; j < columns && first < end; j++)
        memcpy(large->lines + j * ld + first, large->a + (at + j) * ld + first,
               (size_t)(end - first) * sizeof(REAL));
}

/* A piece of the block column at large->at goes to lines: of U, from the first row on. */
static void move_upper(void *context, int64_t index)
{
    const struct large *large = context;
    int64_t first = index * large->block, end = min_i64(large->at + large->block, large->n);
    move(large, first, min_i64(first + large->block, end));
}

/* The same of a lower triangle, from the diagonal on. */
static void move_lower(void *context, int64_t index)
{
    const struct large *large = context;
    int64_t first = large->at + index * large->block;
    move(large, first, min_i64(first + large->block, large->n));
}

/* The same of L, whose place zeros take. */
static void move_unit_lower(void *context, int64_t index)
{
    struct large *large = context;
    int64_t ld = large->ld, at = large->at, columns = min_i64(large->block, large->n - at);
    int64_t first = at + index * large->block, end = min_i64(first + large->block, large->n);
    move(large, first, end);
    for (int64_t j = 0; j < columns; j++) {
        int64_t from = first > at + j ? first : at + j + 1;
        if (from < end)
            memset(large->a + (at + j) * ld + from, 0, (size_t)(end - from) * sizeof(REAL));
    }
}

/* Rows of U^-1 in the block column at large->at, whose part of U is in lines. */
static void invert_upper_rows(void *context, int64_t index)
{
    struct large *large = context;
    int64_t ld = large->ld, at = large->at, columns = min_i64(large->block, large->n - at);
    int64_t first = index * large->block, rows = min_i64(large->block, at - first);
    REAL *block = large->a + at * ld + first;
    if (first >= at) {
        R(host__trtri)('U', columns, large->a + at * (ld + 1), ld);
        return;
    }
    int64_t next = first + rows;
    R(host__multiply_upper)(rows, columns, large->a + first * (ld + 1), ld, block, ld);
    if (next < at)
        R(host__subtract_product)
    (rows, columns, at - next, large->a + next * ld + first, ld, large->lines + next, ld, block,
     ld);
    R(host__solve_right)('U', rows, columns, large->lines + at, ld, block, ld);
}

static void invert_upper(struct host_team *team, struct large *large)
{
    int64_t n = large->n, block = large->block;
    for (large->at = 0; large->at < n; large->at += block) {
        int64_t end = min_i64(large->at + block, n);
        host_team_run(team, pieces(end, block), move_upper, large);
        host_team_run(team, pieces(large->at, block) + 1, invert_upper_rows, large);
        report(large, 2, end * end * end);
    }
}

/* Rows of L^-1 in the block column at large->at, whose part of L is in lines. The lowest rows have
 * most to do and come first, the diagonal block comes last. */
static void invert_lower_rows(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, at = large->at, columns = min_i64(large->block, n - at);
    int64_t next = at + columns, count = pieces(n - next, large->block);
    int64_t first = next + (count - 1 - index) * large->block,
            rows = min_i64(large->block, n - first);
    REAL *block = large->a + at * ld + first;
    if (index == count) {
        R(host__trtri)('L', columns, large->a + at * (ld + 1), ld);
        return;
    }
    R(host__multiply_lower)(rows, columns, large->a + first * (ld + 1), ld, block, ld);
    if (first > next)
        R(host__subtract_product)
    (rows, columns, first - next, large->a + next * ld + first, ld, large->lines + next, ld, block,
     ld);
    R(host__solve_right_lower)(false, rows, columns, large->lines + at, ld, block, ld);
}

static void invert_lower(struct host_team *team, struct large *large)
{
    int64_t n = large->n, block = large->block;
    for (large->at = (pieces(n, block) - 1) * block; large->at >= 0; large->at -= block) {
        int64_t count = pieces(n - large->at, block);
        host_team_run(team, count, move_lower, large);
        host_team_run(team, count, invert_lower_rows, large);
    }
}

int64_t R(host__large_trtri)(struct host_team *team, char uplo, int64_t n, REAL *a, int64_t ld,
                             REAL *lines)
{
    if (n < HOST_LARGE_FACTOR_MIN)
        return R(host__trtri)(uplo, n, a, ld);
    for (int64_t i = 0; i < n; i++) {
        if (a[i * (ld + 1)] == 0)
            return i + 1;
    }
    struct large large = {.n = n, .ld = ld, .a = a, .lines = lines, .block = host__large_block(n)};
    if (uplo == 'U')
        invert_upper(team, &large);
    else
        invert_lower(team, &large);
    return 0;
}

/* Rows of X in the block column at large->at, whose part of L is in lines. */
static void solve_rows(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, at = large->at, columns = min_i64(large->block, n - at);
    int64_t next = at + columns, first = index * large->block;
    int64_t rows = min_i64(large->block, n - first);
    REAL *block = large->a + at * ld + first;
    if (next < n)
        R(host__subtract_product)
    (rows, columns, n - next, large->a + next * ld + first, ld, large->lines + next, ld, block, ld);
    R(host__solve_right)('L', rows, columns, large->lines + at, ld, block, ld);
}

/* The columns change places, the last exchange first. */
static void exchange_columns(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, first = index * large->block;
    int64_t rows = min_i64(large->block, n - first);
    for (int64_t j = n - 1; j >= 0; j--) {
        REAL *one = large->a + j * ld + first;
        REAL *other = large->a + (large->pivots[j] - 1) * ld + first;
        for (int64_t i = 0; i < rows && one != other; i++) {
            REAL old = one[i];
            one[i] = other[i];
            other[i] = old;
        }
    }
}

/* L takes 3 n (n - at)^2 operations, times 1/3, for the columns from `at` on. */
static void invert(struct host_team *team, struct large *large)
{
    int64_t n = large->n, block = large->block;
    invert_upper(team, large);
    for (large->at = (pieces(n, block) - 1) * block; large->at >= 0; large->at -= block) {
        int64_t columns = n - large->at;
        host_team_run(team, pieces(columns, block), move_unit_lower, large);
        host_team_run(team, pieces(n, block), solve_rows, large);
        report(large, 3, 3 * n * columns * columns);
    }
    host_team_run(team, pieces(n, block), exchange_columns, large);
}

void R(host__large_getri)(struct host_team *team, int64_t n, REAL *a, int64_t ld, int32_t *pivots,
                          REAL *lines)
{
    R(host__large_getri_by)(team, host__large_block(n), n, a, ld, pivots, lines);
}

void R(host__large_getri_by)(struct host_team *team, int64_t block, int64_t n, REAL *a, int64_t ld,
                             int32_t *pivots, REAL *lines)
{
    if (n < HOST_LARGE_INVERT_MIN) {
        (void)R(host__getri)(n, a, ld, pivots, lines);
        return;
    }
    struct large large = {
        .n = n, .ld = ld, .a = a, .pivots = pivots, .lines = lines, .block = block};
    invert(team, &large);
}

void R(host__reporting_getri)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                              int32_t *pivots, REAL *lines, struct host_progress *progress)
{
    if (n < HOST_LARGE_INVERT_MIN) {
        (void)R(host__getri)(n, a, ld, pivots, lines);
        return;
    }
    struct large large = {.n = n,
                          .ld = ld,
                          .a = a,
                          .pivots = pivots,
                          .lines = lines,
                          .block = host__large_block(n),
                          .progress = progress};
    invert(team, &large);
}

/* ---- Cholesky ---- */

/* Factors the columns from `at` on, which have taken the part of all columns left of them. */
static void factor_definite(struct large *large, int64_t at)
{
    int64_t n = large->n, ld = large->ld, columns = min_i64(large->block, n - at);
    int64_t next = at + columns, info;
    REAL *diagonal = large->a + at * (ld + 1);
    info = R(host__potrf)('L', columns, diagonal, ld);
    if (info > 0)
        large->info = at + info;
    else if (next < n)
        R(host__solve_right_lower)
    (true, n - next, columns, diagonal, ld, diagonal + columns, ld);
}

/* As update_block. */
static void update_definite(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, inner = large->block, next = large->at + inner;
    int64_t first = next + index * large->block, columns = min_i64(large->block, n - first);
    int64_t below = first + columns;
    const REAL *panel = large->a + large->at * ld;
    REAL *block = large->a + first * ld;
    R(host__subtract_square)(columns, inner, panel + first, ld, block + first, ld);
    if (below < n)
        R(host__subtract_outer)
    (n - below, columns, inner, panel + below, ld, panel + first, ld, block + below, ld);
    if (index == 0)
        factor_definite(large, next);
}

int64_t R(host__large_potrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld)
{
    if (n < HOST_LARGE_FACTOR_MIN)
        return R(host__potrf)('L', n, a, ld);
    int64_t block = host__large_block(n);
    struct large large = {.n = n, .ld = ld, .a = a, .block = block};
    factor_definite(&large, 0);
    for (; large.at + block < n && large.info == 0; large.at += block)
        host_team_run(team, pieces(n - large.at - block, block), update_definite, &large);
    return large.info;
}

/* Columns of W^T W in the block row at large->at; W's diagonal block there is in lines. The last
 * piece is the diagonal block. */
static void square_columns(void *context, int64_t index)
{
    struct large *large = context;
    int64_t n = large->n, ld = large->ld, at = large->at, rows = min_i64(large->block, n - at);
    int64_t next = at + rows, first = index * large->block;
    const REAL *below = large->a + at * ld + next;
    REAL *block = large->a + first * ld + at;
    if (first == at) {
        R(host__lauum)(rows, block, ld);
        if (next < n)
            R(host__add_square)(rows, n - next, below, ld, block, ld);
        return;
    }
    R(host__multiply_transposed)(rows, large->block, large->lines, ld, block, ld);
    if (next < n)
        R(host__add_inner)
    (rows, large->block, n - next, below, ld, large->a + first * ld + next, ld, block, ld);
}

void R(host__large_potri)(struct host_team *team, int64_t n, REAL *a, int64_t ld, REAL *lines)
{
    if (n < HOST_LARGE_FACTOR_MIN) {
        (void)R(host__potri)('L', n, a, ld);
        return;
    }
    int64_t block = host__large_block(n);
    struct large large = {.n = n, .ld = ld, .a = a, .lines = lines, .block = block};
    invert_lower(team, &large);
    for (large.at = 0; large.at < n; large.at += block) {
        int64_t rows = min_i64(block, n - large.at);
        for (int64_t j = 0; j < rows; j++)
            memcpy(lines + j * ld, a + (large.at + j) * ld + large.at, (size_t)rows * sizeof *a);
        host_team_run(team, large.at / block + 1, square_columns, &large);
    }
}
