/* gpu/host/linalg/identify.c: see identify.h.
 *
 * The loops over a tile are compiled for three widths of vector and chosen by the CPU. All three do
 * the same operations in the same order: LANES sums run side by side in a row, whatever the width.
 *
 * Threads: any; all state is the caller's. Cost: n^2 numbers are read once, from memory as a rule;
 * then the n sums of each row of tiles are added up on the caller's thread.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/identify.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"

#include "gpu/host/base/by_precision.h"

#define TILE HOST_IDENTIFY_TILE
#define ROWS 4   /* of a tile added up together */
#define LANES 16 /* sums of a row that run side by side */

/* Rows of tiles. */
static int64_t tiles(int64_t n)
{
    return (n + TILE - 1) / TILE;
}

/* Of `count` rows (known to the compiler) next to one another; squares: of them all, or NULL. */
HOST_INLINE void add_rows(const REAL *restrict tile, int64_t ld, int64_t count, int64_t columns,
                          REAL factor, REAL *restrict column_sums, REAL *restrict row_sums,
                          REAL *restrict squares)
{
    REAL lanes[ROWS][LANES] = {{0}};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        for (int64_t k = 0; k < LANES; k++) {
            REAL sum = column_sums[j + k];
            for (int64_t r = 0; r < count; r++) {
                REAL magnitude = REAL_FABS(tile[r * ld + j + k] * factor);
                sum += magnitude;
                lanes[r][k] += squares ? magnitude * magnitude : magnitude;
            }
            column_sums[j + k] = sum;
        }
    }
    for (int64_t k = 0; j + k < columns; k++) {
        for (int64_t r = 0; r < count; r++) {
            REAL magnitude = REAL_FABS(tile[r * ld + j + k] * factor);
            column_sums[j + k] += magnitude;
            lanes[r][k] += squares ? magnitude * magnitude : magnitude;
        }
    }
    for (int64_t r = 0; r < count; r++) {
        for (int64_t half = LANES / 2; half > 0; half /= 2) {
            for (int64_t k = 0; k < half; k++)
                lanes[r][k] += lanes[r][k + half];
        }
        if (squares)
            *squares += lanes[r][0];
        else
            row_sums[r] += lanes[r][0];
    }
}

/* One tile's sums. */
struct tile {
    const REAL *numbers;
    int64_t ld, rows, columns;
    REAL factor;
    REAL *column_sums;
    REAL *row_sums; /* NULL: squares instead */
    REAL *squares;
};

HOST_INLINE void add_tile(const struct tile *tile, bool with_rows)
{
    int64_t i = 0, ld = tile->ld;
    for (; i + ROWS <= tile->rows; i += ROWS)
        add_rows(tile->numbers + i * ld, ld, ROWS, tile->columns, tile->factor, tile->column_sums,
                 with_rows ? tile->row_sums + i : NULL, with_rows ? NULL : tile->squares);
    for (; i < tile->rows; i++)
        add_rows(tile->numbers + i * ld, ld, 1, tile->columns, tile->factor, tile->column_sums,
                 with_rows ? tile->row_sums + i : NULL, with_rows ? NULL : tile->squares);
}

HOST_INLINE void add_any(const struct tile *tile)
{
    if (tile->row_sums)
        add_tile(tile, true);
    else
        add_tile(tile, false);
}

HOST_AVX512 static void add_avx512(const struct tile *tile)
{
    add_any(tile);
}

HOST_AVX2 static void add_avx2(const struct tile *tile)
{
    add_any(tile);
}

static void add(const struct tile *tile)
{
    if (__builtin_cpu_supports("avx512f"))
        add_avx512(tile);
    else if (__builtin_cpu_supports("avx2"))
        add_avx2(tile);
    else
        add_any(tile);
}

void R(host__identify_tile)(const REAL *tile, int64_t ld, int64_t rows, int64_t columns,
                            REAL factor, REAL *column_sums, REAL *row_sums)
{
    add(&(struct tile){.numbers = tile,
                       .ld = ld,
                       .rows = rows,
                       .columns = columns,
                       .factor = factor,
                       .column_sums = column_sums,
                       .row_sums = row_sums});
}

REAL R(host__measure_tile)(const REAL *tile, int64_t ld, int64_t rows, int64_t columns, REAL factor,
                           REAL *column_sums)
{
    REAL squares = 0;
    add(&(struct tile){.numbers = tile,
                       .ld = ld,
                       .rows = rows,
                       .columns = columns,
                       .factor = factor,
                       .column_sums = column_sums,
                       .squares = &squares});
    return squares;
}

/* ---- A whole matrix ---- */

struct pass {
    const REAL *a;
    int64_t n, ld;
    REAL factor;
    REAL *lines; /* sums of columns, a line for each row of tiles */
    int64_t line_ld;
    REAL *rows;    /* n sums of rows; NULL: squares instead */
    REAL *squares; /* of each row of tiles */
};

/* A row of tiles: a few rows at a time, from end to end, as memory likes to be read. */
static void pass_tiles(void *context, int64_t index)
{
    const struct pass *pass = context;
    int64_t n = pass->n, first = index * TILE, rows = min_i64(TILE, n - first);
    REAL *sums = pass->lines + index * pass->line_ld;
    memset(sums, 0, (size_t)n * sizeof *sums);
    if (pass->rows)
        memset(pass->rows + first, 0, (size_t)rows * sizeof(REAL));
    else
        pass->squares[index] = 0;
    for (int64_t i = 0; i < rows; i += ROWS) {
        for (int64_t j = 0; j < n; j += TILE) {
            const REAL *part = pass->a + (first + i) * pass->ld + j;
            int64_t few = min_i64(ROWS, rows - i), columns = min_i64(TILE, n - j);
            if (pass->rows)
                R(host__identify_tile)
            (part, pass->ld, few, columns, pass->factor, sums + j, pass->rows + first + i);
            else pass->squares[index] +=
                R(host__measure_tile)(part, pass->ld, few, columns, pass->factor, sums + j);
        }
    }
}

/* The largest number; not finite when one of them is not. */
static REAL largest_of(const REAL *numbers, int64_t n)
{
    REAL largest = 0, excess = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = numbers[i] > largest ? numbers[i] : largest;
        excess += numbers[i] * 0;
    }
    return largest + excess;
}

/* Adds the lines of sums up into the first. */
static void gather(const struct pass *pass)
{
    REAL *restrict sums = pass->lines;
    for (int64_t t = 1; t < tiles(pass->n); t++) {
        const REAL *restrict line = pass->lines + t * pass->line_ld;
        for (int64_t j = 0; j < pass->n; j++)
            sums[j] += line[j];
    }
}

static struct host_norm norm_of(REAL sum, int shift)
{
    struct host_norm norm = {.finite = isfinite(sum)};
    norm.fraction = norm.finite ? REAL_FREXP(sum, &norm.exponent) : 0;
    norm.exponent += shift;
    return norm;
}

/* Of sums, one of which may have overflowed. */
static REAL smallest_of(const REAL *sums, int64_t n)
{
    REAL smallest = sums[0];
    for (int64_t i = 1; i < n; i++)
        smallest = sums[i] < smallest ? sums[i] : smallest;
    return smallest;
}

static int64_t first_zero(const REAL *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (sums[i] == 0)
            return i + 1;
    }
    return 0;
}

/* From the sums of the rows. The others of a row are its sum less the diagonal's part, which errs
 * by no more than the sum itself does. */
static void find_dominance(const struct pass *pass, struct host_identity *identity)
{
    identity->dominant = true;
    for (int64_t i = 0; i < pass->n; i++) {
        REAL diagonal = REAL_FABS(pass->a[i * (pass->ld + 1)] * pass->factor);
        REAL others = pass->rows[i] - diagonal;
        double ratio = diagonal > 0 ? (double)others / (double)diagonal : HUGE_VAL;
        identity->dominant = identity->dominant && others < diagonal;
        identity->dominance = ratio > identity->dominance ? ratio : identity->dominance;
    }
}

struct host_identity R(host__identify)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                                       REAL *lines, int64_t line_ld)
{
    struct host_identity identity = {0};
    struct pass pass = {.a = a, .n = n, .ld = ld, .factor = 1, .lines = lines};
    pass.line_ld = line_ld;
    pass.rows = lines + tiles(n) * line_ld;
    int shift = 0;
    for (;; shift = REAL_DIG, pass.factor = REAL_LDEXP(1, -shift)) {
        host_team_run(team, tiles(n), pass_tiles, &pass);
        gather(&pass);
        if (shift == 0) { /* or small numbers may have vanished */
            identity.zero_column = first_zero(lines, n);
            identity.zero_row = first_zero(pass.rows, n);
            identity.min = fmin(smallest_of(lines, n), smallest_of(pass.rows, n));
        }
        identity.norm_1 = norm_of(largest_of(lines, n), shift);
        identity.norm_inf = norm_of(largest_of(pass.rows, n), shift);
        identity.finite = identity.norm_1.finite && identity.norm_inf.finite;
        /* A sum alone may overflow: n <= 2^REAL_DIG. */
        if (identity.finite || shift > 0)
            break;
    }
    if (!identity.finite)
        return identity;
    find_dominance(&pass, &identity);
    return identity;
}

struct host_measure R(host__measure)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                                     REAL factor, REAL *lines, int64_t line_ld)
{
    struct pass pass = {.a = a, .n = n, .ld = ld, .factor = factor, .lines = lines};
    pass.line_ld = line_ld;
    pass.squares = lines + tiles(n) * line_ld;
    host_team_run(team, tiles(n), pass_tiles, &pass);
    gather(&pass);
    double squares = 0;
    for (int64_t t = 0; t < tiles(n); t++)
        squares += (double)pass.squares[t];
    return (struct host_measure){.norm_1 = (double)largest_of(lines, n),
                                 .frobenius = sqrt(squares)};
}
