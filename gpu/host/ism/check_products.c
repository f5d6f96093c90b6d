/* gpu/host/ism/check_products.c: what a check of `ism` multiplies and adds up, cut into pieces of a
 * team; see check.h.
 *
 * A product of lines and a matrix of many rows is cut into strips of rows, whose sums are added up
 * in their order: where rows are long, a piece so reads memory in its order. How many strips there
 * are follows from n, m and the lines alone.
 *
 * Threads: any. Cost: an operation or two a number and line.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/check.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define ROWS_PIECE 64   /* rows that a piece of a transposed one takes */
#define DOWN_PIECE 1024 /* columns that a piece of a strip takes */
#define DOWN_ROWS 32    /* rows of them that all lines take together */
#define STRIPS_MAX 16
#define STRIP_MIN 128 /* rows */

struct R(host_check) R(host__check_open)(struct R(host_ism) * ism)
{
    int64_t ld = host__ld(REAL_PRECISION, ism->n > ism->m ? ism->n : ism->m);
    int64_t step = HOST_ISM_PROBES * ld;
    return (struct R(host_check)){.ism = ism,
                                  .count = ism->n <= HOST_ISM_PROBES ? ism->n : PROBE_VECTORS,
                                  .ld = ld,
                                  .t = ism->lines,
                                  .tz = ism->lines + step,
                                  .thin = ism->lines + 2 * step,
                                  .error = ism->lines + 4 * step,
                                  .spare = ism->lines + 6 * step};
}

void R(host__check_times)(const struct R(host_check) * check, const REAL *lines, const REAL *from,
                          int64_t columns, REAL *to)
{
    struct R(host_check_product) product = {.lines = lines,
                                            .count = check->count,
                                            .ld = check->ld,
                                            .from = from,
                                            .rows = check->ism->n,
                                            .columns = columns,
                                            .from_ld = columns,
                                            .to = to,
                                            .to_ld = check->ld};
    host_team_run(check->ism->team, pieces(columns, TIMES_PIECE), R(host__check_times_piece),
                  &product);
}

void R(host__check_set_zero)(const struct R(host_check) * check, int64_t count, REAL *lines)
{
    memset(lines, 0, (size_t)(count * check->ld) * sizeof *lines);
}

void R(host__check_clear)(const struct R(host_check) * check, REAL *lines)
{
    R(host__check_set_zero)(check, check->count, lines);
}

void R(host__check_times_piece)(void *context, int64_t index)
{
    struct R(host_check_product) product = *(const struct R(host_check_product) *)context;
    int64_t first = index * TIMES_PIECE;
    product.columns = min_i64(TIMES_PIECE, product.columns - first);
    product.from += first;
    product.to += first;
    R(host__check_do)(&product, product.magnitudes ? ADD_MAGNITUDES : ADD_TIMES);
}

void R(host__ism_add_lines)(const REAL *lines, int64_t count, int64_t step, int64_t first,
                            int64_t end, REAL *restrict to)
{
    for (int64_t l = 0; l < count; l++) {
        const REAL *restrict line = lines + l * step;
        for (int64_t j = first; j < end; j++)
            to[j] = l > 0 ? to[j] + line[j] : line[j];
    }
}

/* ---- Lines times all rows of a matrix ---- */

static void down_piece(void *context, int64_t index)
{
    const struct R(host_check_down) *down = context;
    const int64_t lines = down->count + down->sums, column = index / down->strips * DOWN_PIECE;
    const int64_t strip = index % down->strips, first = strip * down->strip;
    const int64_t end = min_i64(first + down->strip, down->rows);
    struct R(host_check_product)
        product = {.count = down->count,
                   .ld = down->ld,
                   .columns = min_i64(DOWN_PIECE, down->columns - column),
                   .from_ld = down->columns,
                   .to = down->parts + strip * lines * down->part_ld + column,
                   .to_ld = down->part_ld};
    for (int64_t l = 0; l < lines; l++)
        memset(product.to + l * down->part_ld, 0, (size_t)product.columns * sizeof(REAL));
    for (int64_t i = first; i < end; i += DOWN_ROWS) {
        product.rows = min_i64(DOWN_ROWS, end - i);
        product.lines = down->lines + i;
        product.from = down->from + i * down->columns + column;
        R(host__check_do)(&product, down->sums ? ADD_TIMES_AND_SUMS : ADD_TIMES);
    }
}

/* Columns of the strips' sums. */
static void gather_piece(void *context, int64_t index)
{
    const struct R(host_check_down) *down = context;
    const int64_t lines = down->count + down->sums, step = lines * down->part_ld;
    const int64_t first = index * GATHER_PIECE, end = min_i64(first + GATHER_PIECE, down->columns);
    for (int64_t l = 0; l < lines; l++)
        R(host__ism_add_lines)
    (down->parts + l * down->part_ld, down->strips, step, first, end, down->to + l * down->ld);
}

void R(host__check_go_down)(const struct R(host_check) * check, struct R(host_check_down) * down,
                            int64_t room)
{
    struct host_team *team = check->ism->team;
    const int64_t lines = down->count + down->sums;
    down->ld = check->ld;
    down->part_ld = host__ld(REAL_PRECISION, down->columns);
    down->strips = min_i64(STRIPS_MAX, room * check->ld / (lines * down->part_ld));
    down->strips = max_i64(min_i64(down->strips, down->rows / STRIP_MIN), 1);
    down->strip = pieces(pieces(down->rows, down->strips), TIMES_ROWS) * TIMES_ROWS;
    down->strips = pieces(down->rows, down->strip);
    if (down->strips == 1) {
        down->parts = down->to;
        down->part_ld = down->ld;
    }
    host_team_run(team, down->strips * pieces(down->columns, DOWN_PIECE), down_piece, down);
    if (down->strips > 1)
        host_team_run(team, pieces(down->columns, GATHER_PIECE), gather_piece, down);
}

/* ---- Lines times the transpose of a matrix ---- */

static void across_piece(void *context, int64_t index)
{
    struct R(host_check_product) product = *(const struct R(host_check_product) *)context;
    const int64_t first = index * ROWS_PIECE;
    product.rows = min_i64(ROWS_PIECE, product.rows - first);
    product.from += first * product.from_ld;
    product.to += first;
    product.weighed = product.weighed ? product.weighed + first : NULL;
    R(host__check_do)(&product, SET_TIMES_TRANSPOSED);
}

/* to = count lines of thin times from^T, from being X or Y (n x m). weighed: NULL, or becomes
 * |from| times the line behind those. */
static void go_across(const struct R(host_check) * check, const REAL *from, int64_t count, REAL *to,
                      REAL *weighed)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_check_product) product = {.lines = check->thin,
                                            .count = count,
                                            .ld = check->ld,
                                            .from = from,
                                            .rows = ism->n,
                                            .columns = ism->m,
                                            .from_ld = ism->m,
                                            .to = to,
                                            .to_ld = check->ld,
                                            .weighed = weighed};
    host_team_run(ism->team, pieces(ism->n, ROWS_PIECE), across_piece, &product);
}

/* ---- X Y^T ---- */

/* As meet, where X^T and Y^T are there. */
static void meet_thin(const struct R(host_check) * check, const REAL *lines, int64_t count,
                      REAL *to, REAL *weights)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_check_product) product = {.lines = lines,
                                            .count = count,
                                            .ld = check->ld,
                                            .from = ism->xt,
                                            .rows = ism->m,
                                            .columns = ism->n,
                                            .from_ld = ism->ld,
                                            .to = check->thin,
                                            .to_ld = check->ld};
    if (count > 0) {
        R(host__check_do)(&product, SET_TIMES_TRANSPOSED);
        R(host__check_set_zero)(check, count, to);
        product.lines = check->thin;
        product.from = ism->yt;
        product.to = to;
        R(host__check_do)(&product, ADD_TIMES);
    }
    if (weights) {
        R(host__check_set_zero)(check, 1, weights);
        product.lines = ism->xt;
        product.ld = ism->ld;
        product.from = ism->yt;
        product.to = weights;
        R(host__check_do)(&product, ADD_WEIGHTS);
    }
}

void R(host__check_meet)(const struct R(host_check) * check, const REAL *lines, int64_t count,
                         REAL *to, REAL *weights, REAL *parts, int64_t room)
{
    const struct R(host_ism) *ism = check->ism;
    if (ism->m == 0) {
        R(host__check_set_zero)(check, count, to);
        if (weights)
            R(host__check_set_zero)(check, 1, weights);
        return;
    }
    if (ism->xt) {
        meet_thin(check, lines, count, to, weights);
        return;
    }
    struct R(host_check_down) down = {.lines = lines,
                                      .from = ism->x,
                                      .count = count,
                                      .rows = ism->n,
                                      .columns = ism->m,
                                      .sums = weights != NULL,
                                      .to = check->thin,
                                      .parts = parts};
    R(host__check_go_down)(check, &down, room);
    go_across(check, ism->y, count, to, weights);
    if (weights)
        memset(weights + ism->n, 0, (size_t)(check->ld - ism->n) * sizeof *weights);
}

void R(host__check_form_columns)(const struct R(host_check) * check, int64_t count, REAL *to)
{
    const struct R(host_ism) *ism = check->ism;
    if (ism->m > 0 && !ism->xt) {
        go_across(check, ism->x, count, to, NULL);
        return;
    }
    const struct R(host_check_product) product = {.lines = check->thin,
                                                  .count = count,
                                                  .ld = check->ld,
                                                  .from = ism->xt,
                                                  .rows = ism->m,
                                                  .columns = ism->n,
                                                  .from_ld = ism->ld,
                                                  .to = to,
                                                  .to_ld = check->ld};
    R(host__check_set_zero)(check, count, to);
    if (ism->m > 0)
        R(host__check_do)(&product, ADD_TIMES);
}

/* ---- The inverse ---- */

/* Two lines and the sums of magnitudes, of each strip of tiles: all that is behind t and tz. */
static REAL *seen_of(const struct R(host_check) * check, int64_t strip)
{
    return check->thin + strip * SEEN_LINES * check->ld;
}

void R(host__ism_see_rows)(const struct R(host_ism) * ism, int64_t row, int64_t rows,
                           int64_t column, int64_t columns)
{
    const struct R(host_check) check = R(host__check_open)((struct R(host_ism) *)ism);
    const int64_t tile = host__ism_tiles(ism->n).rows;
    const struct R(host_check_product) product = {.lines = check.t + row,
                                                  .ld = check.ld,
                                                  .from = ism->z + row * ism->n + column,
                                                  .rows = rows,
                                                  .columns = columns,
                                                  .from_ld = ism->n,
                                                  .to = seen_of(&check, row / tile) + column,
                                                  .to_ld = check.ld};
    for (int64_t l = 0; l < SEEN_LINES && row % tile == 0; l++)
        memset(product.to + l * check.ld, 0, (size_t)columns * sizeof(REAL));
    R(host__check_do)(&product, ADD_SEEN);
}

void R(host__check_see_piece)(void *context, int64_t index)
{
    const struct R(host_ism) *ism = context;
    const struct host_ism_tiles tiles = host__ism_tiles(ism->n);
    const int64_t row = index / tiles.across * tiles.rows;
    const int64_t column = index % tiles.across * tiles.columns;
    R(host__ism_see_rows)
    (ism, row, min_i64(tiles.rows, ism->n - row), column, min_i64(tiles.columns, ism->n - column));
}

void R(host__check_seen_piece)(void *context, int64_t index)
{
    const struct R(host_check) *check = context;
    const int64_t down = host__ism_tiles(check->ism->n).down, first = index * GATHER_PIECE;
    const int64_t end = min_i64(first + GATHER_PIECE, check->ism->n);
    const int64_t step = SEEN_LINES * check->ld;
    for (int64_t l = 0; l < SEEN_LINES; l++)
        R(host__ism_add_lines)
    (seen_of(check, 0) + l * check->ld, down, step, first, end, check->tz + l * check->ld);
}

/* ---- A and X Y^T ---- */

void R(host__check_times_thin)(const struct R(host_check) * check, const REAL *lines, REAL *to)
{
    R(host__check_meet)
    (check, lines, check->count, to, NULL, R(host__check_low)(check, check->thin), HOST_ISM_PROBES);
}

void R(host__check_times_thin_dd)(const struct R(host_check) * check, int64_t count,
                                  const REAL *lines, REAL *to)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_ism_dd) dd = {.lines = lines,
                                .line_step = check->ld,
                                .step = 1,
                                .count = count,
                                .rows = ism->n,
                                .columns = ism->m,
                                .from = ism->x,
                                .from_ld = ism->m,
                                .to = check->thin,
                                .to_low = R(host__check_low)(check, check->thin),
                                .to_ld = check->ld,
                                .low_ld = check->ld};
    R(host__ism_dd)(ism->team, &dd);
    dd.lines = dd.to;
    dd.lines_low = dd.to_low;
    dd.rows = ism->m;
    dd.columns = ism->n;
    dd.from = ism->y;
    dd.transposed = true;
    dd.to = to;
    dd.to_low = R(host__check_low)(check, to);
    R(host__ism_dd)(ism->team, &dd);
}

void R(host__check_times_a_dd)(const struct R(host_check) * check, const REAL *lines)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_ism_dd) dd = {.lines = lines,
                                .line_step = check->ld,
                                .step = 1,
                                .count = check->count,
                                .rows = ism->n,
                                .columns = ism->n,
                                .from = ism->b ? ism->a0 : ism->d,
                                .from_ld = ism->n,
                                .adds = true,
                                .to = check->error,
                                .to_low = R(host__check_low)(check, check->error),
                                .to_ld = check->ld,
                                .low_ld = check->ld};
    R(host__check_times_thin_dd)(check, check->count, lines, check->error);
    if (ism->b)
        R(host__ism_dd)(ism->team, &dd);
    else
        R(host__ism_dd_diagonal)(&dd);
}

void R(host__check_column_dd)(const struct R(host_check) * check, int64_t j)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_ism_dd) dd = {.lines = ism->y + j * ism->m,
                                .step = 1,
                                .count = 1,
                                .rows = ism->m,
                                .columns = ism->n,
                                .from = ism->x,
                                .from_ld = ism->m,
                                .transposed = true,
                                .adds = true,
                                .to = check->spare,
                                .to_low = R(host__check_low)(check, check->spare)};
    for (int64_t i = 0; i < ism->n; i++) {
        dd.to[i] = ism->b ? ism->a0[i * ism->n + j] : i == j ? ism->d[i] : 0;
        dd.to_low[i] = 0;
    }
    R(host__ism_dd)(ism->team, &dd);
}

void R(host__check_add_times_a0)(const struct R(host_check) * check, const REAL *lines, REAL *to)
{
    const struct R(host_ism) *ism = check->ism;
    if (ism->a || ism->b) {
        R(host__check_times)(check, lines, ism->a ? ism->a : ism->a0, ism->n, to);
        return;
    }
    for (int64_t l = 0; l < check->count; l++) {
        for (int64_t j = 0; j < ism->n; j++)
            to[l * check->ld + j] += lines[l * check->ld + j] * ism->d[j];
    }
}

void R(host__check_times_a)(const struct R(host_check) * check, const REAL *lines)
{
    const struct R(host_ism) *ism = check->ism;
    REAL *to = check->error;
    if (check->dd) {
        R(host__check_times_a_dd)(check, lines);
        return;
    }
    if (ism->a)
        R(host__check_clear)(check, to);
    else
        R(host__check_times_thin)(check, lines, to);
    R(host__check_add_times_a0)(check, lines, to);
}

void R(host__check_set_lines)(const struct R(host_check) * check, REAL *lines)
{
    int64_t n = check->ism->n;
    R(host__check_clear)(check, lines);
    if (check->count != n) {
        struct R(host_check_product)
            product = {.count = check->count, .columns = n, .to = lines, .to_ld = check->ld};
        R(host__check_do)(&product, SET_WEIGHTS);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        lines[i * (check->ld + 1)] = 1;
}

/* ---- Lines ---- */

double R(host__check_measure)(const struct R(host_check) * check, const REAL *lines)
{
    bool whole = check->count == check->ism->n;
    double largest = 0;
    for (int64_t j = 0; j < check->ism->n; j++) {
        double sum = 0;
        for (int64_t l = 0; l < check->count; l++) {
            double magnitude = (double)REAL_FABS(lines[l * check->ld + j]);
            if (whole)
                sum += magnitude;
            else
                sum = magnitude > sum || isnan(magnitude) ? magnitude : sum;
        }
        largest = sum > largest || isnan(sum) ? sum : largest;
    }
    return largest;
}

void R(host__check_subtract)(const struct R(host_check) * check, const REAL *one, const REAL *other,
                             REAL *to)
{
    for (int64_t l = 0; l < check->count; l++) {
        for (int64_t j = 0; j < check->ism->n; j++)
            to[l * check->ld + j] = one[l * check->ld + j] - other[l * check->ld + j];
    }
}
