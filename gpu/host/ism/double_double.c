/* gpu/host/ism/double_double.c: lines times a matrix in double-double, for what `ism` does where
 * terms may cancel: the residual check of an update, and the matrix M of the last algorithm. See
 * ism.h.
 *
 * Sums are those of double_double.h. Results are pairs of numbers, the second being what the first
 * one's rounding left.
 *
 * Threads: any; a team takes tiles. Bits depend neither on it nor on the instruction set. Cost: 11
 * to 14 operations a product.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "base/minmax.h"
#include "gpu/host/ism/ism.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/double_double.h"

#define PIECE 128 /* columns that a tile has */
#define LINES 4   /* lines that it has */
#define ROWS 4    /* rows that are taken together */

/* What a matrix is, for the compiler to know. */
enum shape {
    PLAIN,
    WITH_LOW,
    TRANSPOSED
};

/* One line of a tile. */
struct sums {
    double sums[PIECE], errors[PIECE];
};

/* Rows i to i + rows - 1 of columns first to first + columns - 1, for line `line`; how many rows,
 * and the shape, are known to the compiler. */
HOST_INLINE void add_rows(const struct R(host_ism_dd) * dd, int64_t line, int64_t i, int rows,
                          int64_t first, int64_t columns, enum shape shape, struct sums *to)
{
    const int64_t across = shape == TRANSPOSED ? dd->from_ld : 1;
    const int64_t down = shape == TRANSPOSED ? 1 : dd->from_ld;
    const REAL *from = dd->from + i * down + first * across;
    const REAL *rest = shape == WITH_LOW ? dd->from_low + i * down + first : NULL;
    double high[ROWS], low[ROWS];
    for (int r = 0; r < rows; r++) {
        const int64_t at = line * dd->line_step + (i + r) * dd->step;
        high[r] = (double)dd->lines[at];
        low[r] = dd->lines_low ? (double)dd->lines_low[at] : 0;
    }
    for (int64_t j = 0; j < columns; j++) {
        double sum = to->sums[j], error = to->errors[j];
        for (int r = 0; r < rows; r++)
            add_product(high[r], low[r], (double)from[r * down + j * across],
                        shape == WITH_LOW ? (double)rest[r * down + j] : 0, shape == WITH_LOW, &sum,
                        &error);
        to->sums[j] = sum;
        to->errors[j] = error;
    }
}

/* Lines line to line + lines - 1 of columns first to first + columns - 1. */
HOST_INLINE void tile(const struct R(host_ism_dd) * dd, int64_t line, int64_t lines, int64_t first,
                      int64_t columns, enum shape shape)
{
    struct sums sums[LINES];
    for (int64_t l = 0; l < lines; l++) {
        const REAL *to = dd->to + (line + l) * dd->to_ld + first;
        const REAL *low = dd->to_low + (line + l) * dd->low_ld + first;
        for (int64_t j = 0; j < columns; j++) {
            sums[l].sums[j] = dd->adds ? (double)to[j] : 0;
            sums[l].errors[j] = dd->adds ? (double)low[j] : 0;
        }
    }
    int64_t i = 0;
    for (; i + ROWS <= dd->rows; i += ROWS) {
        for (int64_t l = 0; l < lines; l++)
            add_rows(dd, line + l, i, ROWS, first, columns, shape, &sums[l]);
    }
    for (; i < dd->rows; i++) {
        for (int64_t l = 0; l < lines; l++)
            add_rows(dd, line + l, i, 1, first, columns, shape, &sums[l]);
    }
    for (int64_t l = 0; l < lines; l++) {
        REAL *to = dd->to + (line + l) * dd->to_ld + first;
        REAL *low = dd->to_low + (line + l) * dd->low_ld + first;
        for (int64_t j = 0; j < columns; j++)
            split(sums[l].sums[j], sums[l].errors[j], to + j, low + j);
    }
}

HOST_INLINE void tile_any(const struct R(host_ism_dd) * dd, int64_t index)
{
    const int64_t across = pieces(dd->columns, PIECE);
    const int64_t line = index / across * LINES, first = index % across * PIECE;
    const int64_t lines = min_i64(LINES, dd->count - line);
    const int64_t columns = min_i64(PIECE, dd->columns - first);
    if (dd->transposed)
        tile(dd, line, lines, first, columns, TRANSPOSED);
    else if (dd->from_low)
        tile(dd, line, lines, first, columns, WITH_LOW);
    else
        tile(dd, line, lines, first, columns, PLAIN);
}

HOST_FMA512 static void tile_fma512(const struct R(host_ism_dd) * dd, int64_t index)
{
    tile_any(dd, index);
}

HOST_FMA static void tile_fma(const struct R(host_ism_dd) * dd, int64_t index)
{
    tile_any(dd, index);
}

static void tile_best(void *context, int64_t index)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        tile_fma512(context, index);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tile_fma(context, index);
    else
        tile_any(context, index);
}

void R(host__ism_dd)(struct host_team *team, struct R(host_ism_dd) * dd)
{
    host_team_run(team, pieces(dd->count, LINES) * pieces(dd->columns, PIECE), tile_best, dd);
}

void R(host__ism_dd_diagonal)(const struct R(host_ism_dd) * dd)
{
    for (int64_t l = 0; l < dd->count; l++) {
        const REAL *line = dd->lines + l * dd->line_step;
        REAL *to = dd->to + l * dd->to_ld, *low = dd->to_low + l * dd->low_ld;
        for (int64_t j = 0; j < dd->columns; j++) {
            double sum = (double)to[j], error = (double)low[j];
            add_product((double)line[j], 0, (double)dd->from[j], 0, false, &sum, &error);
            split(sum, error, to + j, low + j);
        }
    }
}

double R(host__ism_dd_error)(int64_t terms)
{
    const double plain = (double)terms * DBL_EPSILON / 2;
    return REAL_BITS == 32 ? 32 * DBL_EPSILON + plain : plain * plain;
}
