/* gpu/host/ism/block.c: the variants of `ism` by blocks (ism.h), made of OpenBLAS's products.
 *
 * A block's step is cut into pieces: lines of earlier blocks, columns of n, tiles of the
 * capacitance matrix, rows of the factors. What pieces there are follows from n, m and the block,
 * so the bits are independent of the team; products are OpenBLAS's gemm, whose bits depend neither
 * on alignment nor on leading dimensions, so inputs are used where they lie. The last product of a
 * single block is panels.h's: (G R)^T and K are packed into places that are done with.
 *
 * Threads: any; the pieces run on a team. Cost: see ism.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/ism/parts.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/panels.h"

#include "gpu/host/base/by_precision.h"

#define LINES_PIECE 128         /* lines of earlier blocks */
#define COLUMNS_PIECE 256       /* of n, at most */
#define CAPACITANCE_PIECE 64    /* lines of a block */
#define CAPACITANCE_COLUMNS 256 /* of a tile of a block's capacitance matrix */
#define CAPACITANCE_PIECES 64   /* of all tiles, about, */
#define CAPACITANCE_DEPTH 128   /* which take so much of n at least */
#define ADD_LINES 16            /* of the sum of their parts */
#define PACK_PIECE (2 * HOST_PANEL_COLUMNS_MAX)
#define ROWS_AT_ONCE 128 /* of a tile: so much of it stays in the second cache */
#define STRIP 8          /* rows of X or Y that are transposed together */

/* Columns of a block of the capacitance matrix's inverse: half of what lu takes, for all else waits
 * for it, and it is a small part of the work. */
static int64_t inverse_block(int64_t order)
{
    return order < 1024 ? 32 : 64;
}

static int64_t capacitance_rows(int64_t count)
{
    return count < 512 ? 64 : 128;
}

/* Columns of n that a piece takes: many pieces, and few of OpenBLAS's packings. */
static int64_t columns_piece(int64_t n)
{
    return n < 2048 ? 64 : n < 8192 ? 128 : COLUMNS_PIECE;
}

/* One block of columns of X and Y, and the arrays of a variant. */
struct step {
    struct R(host_ism) * ism;
    int64_t block; /* columns of every block but the last */
    int64_t first, count;
    bool packed; /* (G R)^T in groups at w and K in panels at gr (panels.h) */
    int64_t ldb; /* of arrays with lines of a block's numbers */
    REAL *gr, *k, *w, *p, *q, *s, *t, *inverse, *inverting;
};

static struct step open_step(struct R(host_ism) * ism, int64_t block,
                             const struct host_ism_layout *layout)
{
    REAL *work = ism->work;
    return (struct step){.ism = ism,
                         .block = block,
                         .ldb = layout->ld_block,
                         .gr = work + layout->gr,
                         .k = work + layout->k,
                         .w = work + layout->w,
                         .p = work + layout->p,
                         .q = work + layout->q,
                         .s = work + layout->s,
                         .t = work + layout->t,
                         .inverse = work + layout->inverse,
                         .inverting = work + layout->inverting};
}

/* ---- Blocks of X and Y ---- */

/* out (rows x count) = left (rows x n) X_k */
static void times_x(const struct step *step, const REAL *left, int64_t ld, int64_t rows, REAL *out)
{
    const struct R(host_ism) *ism = step->ism;
    const REAL *x = (ism->a ? ism->a : ism->x) + step->first;
    R(host__product)
    (false, false, rows, step->count, ism->n, 1, left, ld, x, ism->a ? ism->n : ism->m, 0, out,
     step->ldb);
    for (int64_t i = 0; ism->a && i < rows; i++) {
        for (int64_t c = 0; c < step->count; c++)
            out[i * step->ldb + c] -= left[i * ld + step->first + c] * ism->d[step->first + c];
    }
}

/* out (rows x count) = left (rows x n) Y_k */
static void times_y(const struct step *step, const REAL *left, int64_t ld, int64_t rows, REAL *out)
{
    const struct R(host_ism) *ism = step->ism;
    if (!ism->a) {
        R(host__product)
        (false, false, rows, step->count, ism->n, 1, left, ld, ism->y + step->first, ism->m, 0, out,
         step->ldb);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(out + i * step->ldb, left + i * ld + step->first, (size_t)step->count * sizeof *out);
}

/* Columns first to end - 1 of `to` (count x n): from_k^T, column i times scale[i]. */
static void transpose_block(const struct step *step, const REAL *from, int64_t from_ld,
                            const REAL *scale, REAL *to, int64_t first, int64_t end)
{
    int64_t ld = step->ism->ld;
    for (int64_t i = first; i < end; i += STRIP) {
        int64_t rows = min_i64(STRIP, end - i);
        for (int64_t c = 0; c < step->count; c++) {
            for (int64_t r = 0; r < rows; r++)
                to[c * ld + i + r] = from[(i + r) * from_ld + step->first + c] * scale[i + r];
        }
    }
}

/* Columns first to end - 1 of to (count x n) = (A0^-1 X_k)^T, A0 being diagonal. */
static void scale_x(const struct step *step, REAL *to, int64_t first, int64_t end)
{
    const struct R(host_ism) *ism = step->ism;
    transpose_block(step, ism->a ? ism->a : ism->x, ism->a ? ism->n : ism->m, ism->e, to, first,
                    end);
    for (int64_t c = 0; ism->a && c < step->count; c++) {
        int64_t j = step->first + c;
        if (j >= first && j < end)
            to[c * ism->ld + j] = (ism->a[j * (ism->n + 1)] - ism->d[j]) * ism->e[j];
    }
}

/* The same of (Y_k^T A0^-1). */
static void scale_y(const struct step *step, REAL *to, int64_t first, int64_t end)
{
    const struct R(host_ism) *ism = step->ism;
    if (!ism->a) {
        transpose_block(step, ism->y, ism->m, ism->e, to, first, end);
        return;
    }
    for (int64_t c = 0; c < step->count; c++) {
        int64_t j = step->first + c;
        memset(to + c * ism->ld + first, 0, (size_t)(end - first) * sizeof *to);
        if (j >= first && j < end)
            to[c * ism->ld + j] = ism->e[j];
    }
}

static bool invert(struct R(host_ism) * ism, int64_t order, REAL *t, int64_t ld, REAL *work)
{
    int32_t *pivots = (int32_t *)(work + host__lines(order) * ld);
    struct host_team *team = order >= HOST_TEAM_ORDER_MIN ? ism->team : NULL;
    if (R(host__large_getrf_by)(team, inverse_block(order), order, t, ld, pivots))
        return false;
    for (int64_t i = 0; i < order; i++) {
        double pivot = (double)t[i * (ld + 1)];
        if (!isfinite(pivot))
            return false;
        ism->det_ratio = scaled_times(ism->det_ratio, pivots[i] == i + 1 ? pivot : -pivot);
    }
    R(host__large_getri_by)(team, inverse_block(order), order, t, ld, pivots, work);
    return true;
}

/* ---- Block ---- */

/* Lines of p or q, which the block takes from all earlier ones. */
static void meet_earlier(void *context, int64_t index)
{
    const struct step *step = context;
    int64_t ld = step->ism->ld, line = index / 2 * LINES_PIECE;
    int64_t rows = min_i64(LINES_PIECE, step->first - line);
    if (index % 2 == 0)
        times_x(step, step->k + line * ld, ld, rows, step->p + line * step->ldb);
    else
        times_y(step, step->gr + line * ld, ld, rows, step->q + line * step->ldb);
}

/* Columns of G_k^T (in w) or of K_k. */
static void make_block(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    int64_t n = ism->n, m = ism->m, ld = ism->ld, piece = columns_piece(n),
            first = index / 2 * piece;
    int64_t columns = min_i64(piece, n - first);
    bool left = index % 2 == 0;
    REAL *to = left ? step->w : step->k + step->first * ld;
    if (!ism->b && left)
        scale_x(step, to, first, first + columns);
    else if (!ism->b)
        scale_y(step, to, first, first + columns);
    else if (left)
        R(host__product)
    (true, true, step->count, columns, n, 1, ism->x + step->first, m, ism->b + first * n, n, 0,
     to + first, ld);
    else R(host__product)(true, false, step->count, columns, n, 1, ism->y + step->first, m,
                          ism->b + first, n, 0, to + first, ld);
    if (step->first > 0)
        R(host__product)
    (true, false, step->count, columns, step->first, -1, left ? step->p : step->q, step->ldb,
     (left ? step->gr : step->k) + first, ld, 1, to + first, ld);
}

/* How (I + Y_k^T G_k)^T is cut: into tiles, and the sum over n of each into parts where there are
 * few tiles. The parts lie where (G R)_k^T will. */
struct capacitance {
    const struct step *step;
    int64_t rows, columns; /* of a tile */
    int64_t across, tiles;
    int64_t parts, depth; /* of n; 1: the sum goes to `inverse` itself */
    REAL *to;
};

static struct capacitance capacitance_of(const struct step *step)
{
    const int64_t n = step->ism->n, count = step->count;
    struct capacitance capacitance = {
        .step = step, .rows = capacitance_rows(count), .columns = CAPACITANCE_COLUMNS};
    if (step->ism->a) /* columns of w, which are copied whole */
        capacitance.columns = count;
    capacitance.across = pieces(count, capacitance.columns);
    capacitance.tiles = pieces(count, capacitance.rows) * capacitance.across;
    capacitance.parts = min_i64(CAPACITANCE_PIECES / capacitance.tiles, n / CAPACITANCE_DEPTH);
    capacitance.parts = max_i64(min_i64(capacitance.parts, step->ism->ld / step->ldb), 1);
    if (step->ism->a)
        capacitance.parts = 1;
    capacitance.depth = pieces(n, capacitance.parts);
    capacitance.parts = pieces(n, capacitance.depth);
    capacitance.to = capacitance.parts > 1 ? step->gr + step->first * step->ism->ld : step->inverse;
    return capacitance;
}

/* A part of a tile. */
static void couple(void *context, int64_t index)
{
    const struct capacitance *capacitance = context;
    const struct step *step = capacitance->step;
    const struct R(host_ism) *ism = step->ism;
    const int64_t tile = index % capacitance->tiles, part = index / capacitance->tiles;
    const int64_t line = tile / capacitance->across * capacitance->rows;
    const int64_t column = tile % capacitance->across * capacitance->columns;
    const int64_t rows = min_i64(capacitance->rows, step->count - line),
                  at = part * capacitance->depth;
    REAL *to = capacitance->to + (part * step->count + line) * step->ldb + column;
    if (ism->a)
        times_y(step, step->w + line * ism->ld, ism->ld, rows, to);
    else
        R(host__product)
    (false, false, rows, min_i64(capacitance->columns, step->count - column),
     min_i64(capacitance->depth, ism->n - at), 1, step->w + line * ism->ld + at, ism->ld,
     ism->y + at * ism->m + step->first + column, ism->m, 0, to, step->ldb);
}

/* Lines of the parts' sum, and of I. */
static void add_parts(void *context, int64_t index)
{
    const struct capacitance *capacitance = context;
    const struct step *step = capacitance->step;
    const int64_t ldb = step->ldb, first = index * ADD_LINES;
    const int64_t end = min_i64(first + ADD_LINES, step->count);
    for (int64_t i = first; i < end; i++) {
        REAL *to = step->inverse + i * ldb;
        if (capacitance->parts > 1)
            R(host__ism_add_lines)
        (capacitance->to + i * ldb, capacitance->parts, step->count * ldb, 0, step->count, to);
        to[i] += 1;
    }
}

static void couple_all(const struct step *step)
{
    struct capacitance capacitance = capacitance_of(step);
    struct host_team *team = step->ism->team;
    host_team_run(team, capacitance.tiles * capacitance.parts, couple, &capacitance);
    host_team_run(team, pieces(step->count, ADD_LINES), add_parts, &capacitance);
}

/* Columns of (G R)_k^T; inverse is R_k^T. */
static void weigh(void *context, int64_t index)
{
    const struct step *step = context;
    int64_t n = step->ism->n, ld = step->ism->ld, piece = columns_piece(n), first = index * piece;
    R(host__product)
    (false, false, step->count, min_i64(piece, n - first), step->count, 1, step->inverse, step->ldb,
     step->w + first, ld, 0, step->gr + step->first * ld + first, ld);
}

/* ---- Factors, where they are wanted ---- */

/* to(:, k) = from(:, k) - to(:, <k) coefficients; n x m */
struct factor {
    const struct step *step;
    const REAL *from;
    bool identity; /* in place of from */
    const REAL *coefficients;
    REAL *to;
};

/* Rows of a factor: each takes of its own earlier numbers alone. */
static void write_factor(void *context, int64_t index)
{
    const struct factor *factor = context;
    const struct step *step = factor->step;
    const struct R(host_ism) *ism = step->ism;
    const int64_t m = ism->m, first = index * LINES_PIECE;
    const int64_t rows = min_i64(LINES_PIECE, ism->n - first);
    REAL *to = factor->to + first * m;
    for (int64_t i = first; i < first + rows; i++) {
        REAL *row = factor->to + i * m + step->first;
        if (factor->identity)
            memset(row, 0, (size_t)step->count * sizeof *row);
        else
            memcpy(row, factor->from + i * m + step->first, (size_t)step->count * sizeof *row);
        int64_t c = i - step->first;
        if (ism->a && c >= 0 && c < step->count)
            row[c] = factor->identity ? 1 : row[c] - ism->d[i];
    }
    if (step->first > 0)
        R(host__product)
    (false, false, rows, step->count, step->first, -1, to, m, factor->coefficients, step->ldb, 1,
     to + step->first, m);
}

/* Lines of t = R p, which is made block by block; s holds the R^T of all earlier blocks. */
static void weigh_coefficients(void *context, int64_t index)
{
    const struct step *step = context;
    const int64_t ldb = step->ldb, block = step->block;
    const int64_t end = min_i64((index + 1) * LINES_PIECE, step->first);
    for (int64_t line = index * LINES_PIECE, lines; line < end; line += lines) {
        const int64_t within = line % block, at = (line - within) * ldb;
        lines = min_i64(block - within, end - line);
        R(host__product)
        (true, false, lines, step->count, block, 1, step->s + at + within, ldb, step->p + at, ldb,
         0, step->t + line * ldb, ldb);
    }
}

/* Lines of R^T, for the factors of later blocks, and of the output R. */
static void keep_weights(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    const int64_t m = ism->m, ldb = step->ldb, first = index * LINES_PIECE;
    const int64_t lines = min_i64(LINES_PIECE, step->count - first);
    if (ism->u && step->first + step->count < m)
        memcpy(step->s + (step->first + first) * ldb, step->inverse + first * ldb,
               (size_t)(lines * ldb) * sizeof(REAL));
    for (int64_t i = first; ism->r && i < first + lines; i++) {
        REAL *row = ism->r + (step->first + i) * m;
        memset(row, 0, (size_t)m * sizeof *row);
        for (int64_t j = 0; j < step->count; j++)
            row[step->first + j] = step->inverse[j * ldb + i];
    }
}

static void write_factors(struct step *step)
{
    const struct R(host_ism) *ism = step->ism;
    const int64_t rows = pieces(ism->n, LINES_PIECE);
    struct factor u = {
        .step = step, .from = ism->a ? ism->a : ism->x, .coefficients = step->t, .to = ism->u};
    struct factor v = {.step = step,
                       .from = ism->y,
                       .identity = ism->a != NULL,
                       .coefficients = step->q,
                       .to = ism->v};
    if (ism->u) {
        host_team_run(ism->team, pieces(step->first, LINES_PIECE), weigh_coefficients, step);
        host_team_run(ism->team, rows, write_factor, &u);
    }
    if (ism->v)
        host_team_run(ism->team, rows, write_factor, &v);
    host_team_run(ism->team, pieces(step->count, LINES_PIECE), keep_weights, step);
}

/* ---- The inverse ---- */

/* z = A0^-1 but for the diagonal, `rows` by `columns` of it. */
static void begin_rows(const struct R(host_ism) * ism, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const int64_t n = ism->n;
    for (int64_t i = row; i < row + rows; i++) {
        REAL *to = ism->z + i * n + column;
        if (ism->b)
            memcpy(to, ism->b + i * n + column, (size_t)columns * sizeof *to);
        else if (ism->m == 0)
            memset(to, 0, (size_t)columns * sizeof *to);
    }
}

/* The same of A0^-1 - (G R) K. */
static void assemble_rows(const struct step *step, int64_t row, int64_t rows, int64_t column,
                          int64_t columns)
{
    const struct R(host_ism) *ism = step->ism;
    const int64_t n = ism->n, m = ism->m, ld = ism->ld;
    REAL *to = ism->z + row * n + column;
    begin_rows(ism, row, rows, column, columns);
    if (step->packed)
        R(host__subtract_panels)
    (rows, columns, m, step->w + row * m, step->gr + column * m, !ism->b, to, n);
    else if (m > 0) R(host__product)(true, false, rows, columns, m, -1, step->gr + row, ld,
                                     step->k + column, ld, ism->b ? 1 : 0, to, n);
    for (int64_t i = row; !ism->b && i < row + rows; i++) {
        if (i >= column && i < column + columns)
            ism->z[i * (n + 1)] += ism->e[i];
    }
    if (ism->seen)
        R(host__ism_see_rows)(ism, row, rows, column, columns);
}

/* A tile of the inverse, of which the check takes what it wants while it is in a cache. */
static void assemble(void *context, int64_t index)
{
    const struct step *step = context;
    const struct host_ism_tiles tiles = host__ism_tiles(step->ism->n);
    const int64_t n = step->ism->n, first = index / tiles.across * tiles.rows;
    const int64_t column = index % tiles.across * tiles.columns;
    const int64_t end = min_i64(first + tiles.rows, n),
                  columns = min_i64(tiles.columns, n - column);
    const int64_t rows_max = step->packed ? ROWS_AT_ONCE : tiles.rows;
    for (int64_t row = first; row < end; row += rows_max)
        assemble_rows(step, row, min_i64(rows_max, end - row), column, columns);
}

static void pack_groups(void *context, int64_t index)
{
    const struct step *step = context;
    const int64_t n = step->ism->n, first = index * PACK_PIECE;
    R(host__pack_groups)
    (step->ism->m, n, step->gr, step->ism->ld, first, min_i64(first + PACK_PIECE, n), step->w);
}

static void pack_panels(void *context, int64_t index)
{
    const struct step *step = context;
    const int64_t n = step->ism->n, first = index * PACK_PIECE;
    R(host__pack_panels)
    (step->ism->m, n, step->k, step->ism->ld, first, min_i64(first + PACK_PIECE, n), step->gr);
}

static void assemble_all(struct step *step)
{
    const struct host_ism_tiles tiles = host__ism_tiles(step->ism->n);
    step->ism->seen = step->ism->n > HOST_ISM_PROBES;
    if (step->ism->seen)
        R(host__ism_open_check)(step->ism);
    host_team_run(step->ism->team, tiles.down * tiles.across, assemble, step);
}

bool R(host__ism_block)(struct R(host_ism) * ism, int64_t block)
{
    bool factors = ism->u || ism->v || ism->r;
    struct host_ism_layout layout =
        host__ism_layout_block(REAL_PRECISION, ism->n, ism->m, block, factors);
    struct step step = open_step(ism, block, &layout);
    int64_t n = ism->n;
    ism->det_ratio = (struct scaled){.fraction = 1};
    for (; step.first < ism->m; step.first += block) {
        step.count = min_i64(block, ism->m - step.first);
        host_team_run(ism->team, 2 * pieces(step.first, LINES_PIECE), meet_earlier, &step);
        host_team_run(ism->team, 2 * pieces(n, columns_piece(n)), make_block, &step);
        couple_all(&step);
        if (!invert(ism, step.count, step.inverse, step.ldb, step.inverting))
            return false;
        host_team_run(ism->team, pieces(n, columns_piece(n)), weigh, &step);
        if (factors)
            write_factors(&step);
    }
    if (factors)
        R(host__ism_restore_factors)(ism);
    step.packed = layout.packs && host__panels_work();
    if (step.packed) {
        host_team_run(ism->team, pieces(n, PACK_PIECE), pack_groups, &step);
        host_team_run(ism->team, pieces(n, PACK_PIECE), pack_panels, &step);
    }
    assemble_all(&step);
    return true;
}

/* ---- Reduced memory: the inverse so far is in z; gr (n x block) is G, w the same times R ---- */

/* Rows of G = Z X_k. */
static void advance_rows(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    int64_t n = ism->n, row = index * LINES_PIECE, rows = min_i64(LINES_PIECE, n - row);
    REAL *to = step->gr + row * step->ldb;
    if (step->first > 0 || ism->b) {
        const REAL *z = step->first > 0 ? ism->z : ism->b;
        times_x(step, z + row * n, n, rows, to);
        return;
    }
    for (int64_t i = row; i < row + rows; i++, to += step->ldb) {
        for (int64_t c = 0; c < step->count; c++) {
            REAL x = ism->a ? ism->a[i * n + c] : ism->x[i * ism->m + c];
            to[c] = (ism->a && i == c ? x - ism->d[i] : x) * ism->e[i];
        }
    }
}

/* Columns of K = Y_k^T Z. */
static void advance_columns(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    int64_t n = ism->n, ld = ism->ld, first = index * COLUMNS_PIECE;
    int64_t columns = min_i64(COLUMNS_PIECE, n - first);
    if (step->first == 0 && !ism->b) {
        scale_y(step, step->k, first, first + columns);
        return;
    }
    const REAL *z = (step->first > 0 ? ism->z : ism->b) + first;
    for (int64_t c = 0; ism->a && c < step->count; c++)
        memcpy(step->k + c * ld + first, z + (step->first + c) * n,
               (size_t)columns * sizeof *step->k);
    if (!ism->a)
        R(host__product)
    (true, false, step->count, columns, n, 1, ism->y + step->first, ism->m, z, n, 0,
     step->k + first, ld);
}

/* Lines of I + Y_k^T G. */
static void add_capacitance_rows(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    int64_t line = index * CAPACITANCE_PIECE, rows = min_i64(CAPACITANCE_PIECE, step->count - line);
    int64_t ldb = step->ldb;
    REAL *to = step->inverse + line * ldb;
    if (ism->a)
        memcpy(to, step->gr + (step->first + line) * ldb, (size_t)(rows * ldb) * sizeof *to);
    else
        R(host__product)
    (true, false, rows, step->count, ism->n, 1, ism->y + step->first + line, ism->m, step->gr, ldb,
     0, to, ldb);
    for (int64_t i = line; i < line + rows; i++)
        step->inverse[i * (ldb + 1)] += 1;
}

/* Rows of Z - G R K. */
static void take_step(void *context, int64_t index)
{
    const struct step *step = context;
    const struct R(host_ism) *ism = step->ism;
    int64_t n = ism->n, row = index * LINES_PIECE, rows = min_i64(LINES_PIECE, n - row);
    REAL *z = ism->z + row * n, *weighed = step->w + row * step->ldb;
    bool begins = step->first == 0;
    R(host__product)
    (false, false, rows, step->count, step->count, 1, step->gr + row * step->ldb, step->ldb,
     step->inverse, step->ldb, 0, weighed, step->ldb);
    if (begins && ism->b)
        memcpy(z, ism->b + row * n, (size_t)(rows * n) * sizeof *z);
    R(host__product)
    (false, false, rows, n, step->count, -1, weighed, step->ldb, step->k, ism->ld,
     begins && !ism->b ? 0 : 1, z, n);
    for (int64_t i = row; begins && !ism->b && i < row + rows; i++)
        ism->z[i * (n + 1)] += ism->e[i];
}

bool R(host__ism_reduced)(struct R(host_ism) * ism, int64_t block)
{
    struct host_ism_layout layout = host__ism_layout_reduced(REAL_PRECISION, ism->n, block);
    struct step step = open_step(ism, block, &layout);
    int64_t n = ism->n;
    ism->seen = false;
    ism->det_ratio = (struct scaled){.fraction = 1};
    if (ism->m == 0)
        assemble_all(&step);
    for (; step.first < ism->m; step.first += block) {
        step.count = min_i64(block, ism->m - step.first);
        host_team_run(ism->team, pieces(n, LINES_PIECE), advance_rows, &step);
        host_team_run(ism->team, pieces(n, COLUMNS_PIECE), advance_columns, &step);
        host_team_run(ism->team, pieces(step.count, CAPACITANCE_PIECE), add_capacitance_rows,
                      &step);
        if (!invert(ism, step.count, step.inverse, step.ldb, step.inverting))
            return false;
        host_team_run(ism->team, pieces(n, LINES_PIECE), take_step, &step);
    }
    return true;
}
