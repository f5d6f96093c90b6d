/* gpu/host/linalg/equilibrate.c: see equilibrate.h.
 *
 * Threads: any; all state is the caller's. Cost: a pass takes some nanoseconds an entry, for its
 * exponent; scaling likewise.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/equilibrate.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/common/equilibrate.h"

#include "gpu/host/base/by_precision.h"

#define TILE HOST_IDENTIFY_TILE /* rows, or columns, of a piece of work */
#define PASSES (REAL_BITS == 32 ? EQUILIBRATE_PASSES_FP32 : EQUILIBRATE_PASSES_FP64)
#define PLAIN_MAX 1000 /* 2^-PLAIN_MAX and 2^PLAIN_MAX are normal doubles */

struct pass {
    const REAL *a;
    int64_t n, ld;
    struct host_equilibrium to;
    int32_t *rows, *lines; /* the largest exponents of rows, and of columns in each piece */
};

static int exponent_of(REAL x)
{
    int exponent;
    (void)REAL_FREXP(x, &exponent);
    return x == 0 ? EQUILIBRATE_NONE : exponent;
}

/* The largest exponents of a piece. */
static void pass_rows(void *context, int64_t index)
{
    const struct pass *pass = context;
    const int64_t n = pass->n, first = index * TILE, end = min_i64(first + TILE, n);
    int32_t *line = pass->lines + index * n;
    for (int64_t j = 0; j < n; j++)
        line[j] = EQUILIBRATE_NONE;
    for (int64_t i = first; i < end; i++) {
        const REAL *row = pass->a + i * pass->ld;
        int32_t largest = EQUILIBRATE_NONE, own = pass->to.rows[i];
        for (int64_t j = 0; j < n; j++) {
            const int32_t e = exponent_of(row[j]) + own + pass->to.columns[j];
            line[j] = e > line[j] ? e : line[j];
            largest = e > largest ? e : largest;
        }
        pass->rows[i] = largest;
    }
}

/* Those of the columns, in the first line. */
static void gather(const struct pass *pass)
{
    int32_t *restrict largest = pass->lines;
    for (int64_t t = 1; t < pieces(pass->n, TILE); t++) {
        const int32_t *restrict line = pass->lines + t * pass->n;
        for (int64_t j = 0; j < pass->n; j++)
            largest[j] = line[j] > largest[j] ? line[j] : largest[j];
    }
}

static bool are_even(const int32_t *largest, int64_t n)
{
    bool even = true;
    for (int64_t i = 0; i < n; i++)
        even = even && EQUILIBRATE_IS_EVEN(largest[i]);
    return even;
}

static void grow(int32_t *exponents, const int32_t *largest, int64_t n, bool others_even)
{
    for (int64_t i = 0; i < n; i++)
        exponents[i] += EQUILIBRATE_GROWTH(largest[i], others_even);
}

/* Takes the largest exponent off them all, and off the rows'. */
static void take_level(const struct pass *pass)
{
    int32_t level = EQUILIBRATE_NONE;
    for (int64_t i = 0; i < pass->n; i++)
        level = pass->rows[i] > level ? pass->rows[i] : level;
    for (int64_t i = 0; i < pass->n && !EQUILIBRATE_IS_ZERO(level); i++) {
        pass->to.rows[i] -= EQUILIBRATE_IS_ZERO(pass->rows[i]) ? 0 : level;
        pass->rows[i] -= level;
        pass->lines[i] -= level;
    }
}

void R(host__equilibrate)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                          const struct host_equilibrium *to, int32_t *scratch)
{
    struct pass pass = {.a = a, .n = n, .ld = ld, .to = *to, .rows = scratch, .lines = scratch + n};
    memset(to->rows, 0, (size_t)n * sizeof *to->rows);
    memset(to->columns, 0, (size_t)n * sizeof *to->columns);
    for (int k = 0; k < PASSES; k++) {
        host_team_run(team, pieces(n, TILE), pass_rows, &pass);
        gather(&pass);
        if (k == 0)
            take_level(&pass);
        const bool rows_even = are_even(pass.rows, n), columns_even = are_even(pass.lines, n);
        if (!rows_even)
            grow(to->rows, pass.rows, n, columns_even);
        if (!columns_even)
            grow(to->columns, pass.lines, n, rows_even);
        if (rows_even || columns_even)
            break;
    }
}

/* ---- Scaling ---- */

struct scaled {
    const struct host_scaling *by;
    const REAL *from;
    REAL *to;
    int64_t n, from_ld, to_ld;
    double *sums;
};

HOST_INLINE REAL times_two_to(REAL x, int exponent)
{
    /* 2^exponent by its bits. One product rounds once, as ldexp does. */
    if (exponent >= -PLAIN_MAX && exponent <= PLAIN_MAX) {
        const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
        double factor;
        memcpy(&factor, &bits, sizeof factor);
        return (REAL)((double)x * factor);
    }
    return REAL_LDEXP(x, exponent);
}

/* Of row i. */
HOST_INLINE REAL scaled_entry(const struct scaled *all, int64_t i, int64_t j)
{
    const struct host_scaling *by = all->by;
    return times_two_to(all->from[i * all->from_ld + j],
                        by->row_sign * by->rows[i] + by->column_sign * by->columns[j]);
}

static void scale_rows(void *context, int64_t index)
{
    const struct scaled *all = context;
    const int64_t first = index * TILE, end = min_i64(first + TILE, all->n);
    for (int64_t i = first; i < end; i++) {
        for (int64_t j = 0; j < all->n; j++)
            all->to[i * all->to_ld + j] = scaled_entry(all, i, j);
    }
}

void R(host__scale)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                    int64_t to_ld, int64_t n, const struct host_scaling *scaling)
{
    struct scaled all = {
        .by = scaling, .from = from, .to = to, .n = n, .from_ld = from_ld, .to_ld = to_ld};
    host_team_run(team, pieces(n, TILE), scale_rows, &all);
}

static void sum_columns(void *context, int64_t index)
{
    const struct scaled *all = context;
    const int64_t first = index * TILE, end = min_i64(first + TILE, all->n);
    memset(all->sums + first, 0, (size_t)(end - first) * sizeof *all->sums);
    for (int64_t i = 0; i < all->n; i++) {
        for (int64_t j = first; j < end; j++)
            all->sums[j] += fabs((double)scaled_entry(all, i, j));
    }
}

double R(host__scaled_norm)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                            const struct host_scaling *scaling, double *sums)
{
    struct scaled all = {.by = scaling, .from = a, .n = n, .from_ld = ld, .sums = sums};
    double largest = 0;
    host_team_run(team, pieces(n, TILE), sum_columns, &all);
    for (int64_t j = 0; j < n; j++)
        largest = sums[j] > largest || isnan(sums[j]) ? sums[j] : largest;
    return largest;
}
