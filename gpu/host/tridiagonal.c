/* gpu/host/tridiagonal.c: `tridiagonal`: chooses the way, writes the inverse and its report.
 *
 * The O(n) part (tridiagonal.h) is in double for both precisions and the same whether the inverse
 * is wanted or not: so are INFO, RCOND, METHOD and DIAGONAL, bit for bit. The inverse is then
 * written in place, without scratch of its size: strips of columns (two sweeps), rows (minors), or
 * block by block (the merging).
 *
 * Dominant matrices take the two sweeps, others the minors. A way that divides by zero, overflows,
 * or fails its trial leaves the matrix to the next one; the minors, which never divide by a pivot,
 * are the last.
 *
 * Threads: any. Cost: O(n), and for the inverse a multiplication and a store an entry (merging: a
 * product and a sum an entry and level).
 */
#include "gpu/host/speed.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/host.h"
#include "gpu/host/tridiagonal.h"
#include "gpu/methods/tridiagonal.h"

#define STRIP 2048   /* columns written together: their numbers stay in the first-level cache */
#define ROWS 4       /* rows written together */
#define ARRAYS 16    /* of n doubles, in scratch */
#define GROWTH_MAX 4 /* of the blocks that are merged, by |X| */
#define ERROR_MAX 4  /* what is measured of |I - X A|, by n eps |A| |X|; the contract has 15 */

enum output {
    OUTPUT_INVERSE,
    OUTPUT_DIAGONAL,
    OUTPUT_INFO,
    OUTPUT_RCOND,
    OUTPUT_ROAD
};

/* One matrix on its way. */
struct work {
    struct host_tri a;
    long double norm; /* |A| */
    struct host_tri_sweep sweep;
    struct host_tri_blocks blocks; /* its arrays are the minors', too */
    struct host_tri_minors minors;
    double *strip; /* STRIP numbers */
    /* The answer: */
    enum method_road road;
    const double *diagonal; /* of X */
    long double norm_x;
};

static int64_t padded(int64_t n)
{
    int64_t unit = HOST_ALIGN_BYTES / (int64_t)sizeof(double);
    return (n + unit - 1) / unit * unit;
}

/* Layout: ARRAYS arrays of n, padded; the strip. */
static int64_t scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    (void)precision;
    (void)m;
    int64_t bytes;
    if (!checked_mul(n, ARRAYS * (int64_t)sizeof(double), &bytes) ||
        !checked_add(bytes, (ARRAYS + 1) * HOST_ALIGN_BYTES + STRIP * (int64_t)sizeof(double),
                     &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    (void)n;
    return "host tridiagonal";
}

/* band: three arrays for A's diagonals in double. */
static void lay_out(struct work *work, const struct host_matrix *matrix, double *band[3])
{
    int64_t step = padded(matrix->n);
    double *at[ARRAYS];
    at[0] = matrix->scratch;
    for (int i = 1; i < ARRAYS; i++)
        at[i] = at[i - 1] + step;
    for (int i = 0; i < 3; i++)
        band[i] = at[i];
    work->strip = at[ARRAYS - 1] + step;
    work->sweep = (struct host_tri_sweep){.above = at[3], .below = at[4], .diagonal = at[5]};
    work->blocks = (struct host_tri_blocks){.first_row = at[6],
                                            .last_row = at[7],
                                            .first_column = at[8],
                                            .last_column = at[9],
                                            .diagonal = at[10],
                                            .column = at[11],
                                            .row = at[12],
                                            .entries = at[13]};
    /* A matrix that needs minors needs nothing else. */
    struct host_tri_line *lines[] = {&work->minors.upper_row, &work->minors.upper_column,
                                     &work->minors.lower_row, &work->minors.lower_column,
                                     &work->minors.sums};
    for (int i = 0; i < 5; i++)
        *lines[i] = (struct host_tri_line){at[5 + 2 * i], (int64_t *)at[6 + 2 * i]};
    work->minors.diagonal = at[3];
}

/* |A|, where no sum of a column overflows; else not finite. */
static double norm_of(const struct host_tri *a)
{
    int64_t n = a->n;
    double first = fabs(a->d[0]) + (n > 1 ? fabs(a->dl[0]) : 0);
    double last = n > 1 ? fabs(a->d[n - 1]) + fabs(a->du[n - 2]) : 0;
    double largest = first > last ? first : last, excess = first * 0 + last * 0;
    for (int64_t j = 1; j + 1 < n; j++) {
        double sum = fabs(a->du[j - 1]) + fabs(a->d[j]) + fabs(a->dl[j]);
        largest = sum > largest ? sum : largest;
        excess += sum * 0;
    }
    return largest + excess;
}

/* Sets |A|. False: a number is not finite. */
static bool look(struct work *work)
{
    const struct host_tri *a = &work->a;
    double norm = norm_of(a);
    work->norm = norm;
    if (isfinite(norm))
        return true;
    long double largest = 0, excess = 0;
    for (int64_t j = 0; j < a->n; j++) {
        long double sum = fabs(a->d[j]);
        sum += j > 0 ? fabs(a->du[j - 1]) : 0;
        sum += j + 1 < a->n ? fabs(a->dl[j]) : 0;
        largest = sum > largest ? sum : largest;
        excess += sum * 0;
    }
    work->norm = largest;
    return excess == 0;
}

/* Did the merging's blocks stay as small as X, and does the diagonal that it found agree with the
 * two sweeps'? */
static bool agree(const struct work *work, double eps)
{
    double largest = 0;
    for (int64_t i = 0; i < work->a.n; i++) {
        double difference = fabs(work->blocks.diagonal[i] - work->sweep.diagonal[i]);
        largest = difference > largest ? difference : largest;
    }
    return work->blocks.growth <= GROWTH_MAX * work->sweep.norm &&
           largest <= (double)work->a.n * eps * work->sweep.norm;
}

/* 2^exponent, -1022 <= exponent <= 1023. */
HOST_INLINE double power_of_two(int64_t exponent)
{
    uint64_t bits = (uint64_t)(exponent + DBL_MAX_EXP - 1) << (DBL_MANT_DIG - 1);
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* mantissa * 2^exponent; 0 or infinite where that is out of range. Only the last product rounds. */
HOST_INLINE double assemble(double mantissa, int64_t exponent)
{
    exponent = exponent > 2000 ? 2000 : exponent;
    exponent = exponent < -2000 ? -2000 : exponent;
    int64_t half = exponent / 2;
    return mantissa * power_of_two(half) * power_of_two(exponent - half);
}

/* Rewrites two lines as plain numbers, the first divided and the second multiplied by one power of
 * two. False, and nothing done, when their exponents range too far. */
static bool flatten(const struct host_tri_line *row, const struct host_tri_line *column, int64_t n)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        least = row->exponent[i] < least ? row->exponent[i] : least;
        most = row->exponent[i] > most ? row->exponent[i] : most;
    }
    int64_t middle = least + (most - least) / 2;
    bool fits = most - least < 1000;
    for (int64_t i = 0; i < n; i++)
        fits = fits && llabs(column->exponent[i] + middle) < 900;
    for (int64_t i = 0; fits && i < n; i++) {
        row->mantissa[i] = ldexp(row->mantissa[i], (int)(row->exponent[i] - middle));
        column->mantissa[i] = ldexp(column->mantissa[i], (int)(column->exponent[i] + middle));
        row->exponent[i] = column->exponent[i] = 0;
    }
    return fits;
}

#define REAL_FILE "gpu/host/tridiagonal.inc"
#include "gpu/host/both.inc"

const struct host_method host_method_tridiagonal = {
    .name = "tridiagonal",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = scratch_bytes,
    .kernel = kernel,
};
