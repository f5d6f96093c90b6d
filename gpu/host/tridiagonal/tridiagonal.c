/* gpu/host/tridiagonal/tridiagonal.c: `tridiagonal`: chooses the way, writes the inverse and its
 * report.
 *
 * The O(n) part (tridiagonal.h) is in double for both precisions and the same whatever is wanted of
 * the inverse: so are INFO, RCOND, METHOD and DIAGONAL, bit for bit. The inverse, or a block of it,
 * is then written tile by tile from its generators, or merged in place, without scratch of its
 * size.
 *
 * Dominant matrices take the two sweeps, others the minors. A way that divides by zero, overflows,
 * or fails its trial leaves the matrix to the next one; the minors, which never divide by a pivot,
 * are the last.
 *
 * Threads: any; a team writes large blocks. Cost: O(n), and for a block a multiplication and a
 * store an entry (merging: O(n log n), and about two products and sums an entry).
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/base/host.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/base/team.h"
#include "gpu/host/tridiagonal/number.h"
#include "gpu/host/tridiagonal/tridiagonal.h"
#include "gpu/methods/tridiagonal.h"

#define ARRAYS 14    /* of n doubles, in scratch */
#define GROWTH_MAX 4 /* of the blocks that are merged, by |X| */
#define ERROR_MAX 4  /* what is measured of |I - X A|, by n eps |A| |X|; the contract has 15 */

/* A part of X of so many numbers is work for the team. It has no part in its bits. */
#define TEAM_NUMBERS (INT64_C(1) << 18)
#define MERGED_ROWS 64 /* in a piece of work */
#define MERGED_COLUMNS 512
#define WIDE 64 /* a row of the part with more numbers is merged with a look at each */

/* The part of X that is wanted, row-major. */
struct block {
    void *x; /* NULL: none */
    struct method_range rows, columns;
    int64_t ld;
};

/* One matrix on its way. */
struct work {
    struct host_tri a;
    struct host_team *team; /* may be NULL */
    long double norm;       /* |A| */
    bool dominant;
    struct host_tri_sweep sweep;
    struct host_tri_blocks blocks;
    struct host_tri_minors minors;
    struct host_tri_generators generators;
    struct block block;
    double *levels;    /* of the mergers, two arrays of `step` numbers for each that is kept */
    bool keeps_levels; /* else all share the first two */
    int64_t step;
    /* The answer: */
    enum method_algorithm algorithm;
    const double *diagonal; /* of X */
    long double norm_x;
};

static int64_t padded(int64_t n)
{
    int64_t unit = HOST_ALIGN_BYTES / (int64_t)sizeof(double);
    return (n + unit - 1) / unit * unit;
}

/* How often blocks are merged; their products are kept if there is room, that is for orders whose
 * whole inverse may be wanted. */
static int levels_kept(int64_t n)
{
    int levels = 0;
    while (n <= METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX && INT64_C(2) << levels < n)
        levels++;
    return levels > 1 ? levels : 1;
}

/* Layout: ARRAYS arrays of n, padded, and two for every level that is kept. */
int64_t host__tridiagonal_scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    (void)precision;
    (void)m;
    int64_t bytes, arrays = ARRAYS + 2 * levels_kept(n);
    if (!checked_mul(n, arrays * (int64_t)sizeof(double), &bytes) ||
        !checked_add(bytes, (arrays + 1) * HOST_ALIGN_BYTES, &bytes) ||
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

/* band: three arrays for A's diagonals in double. A matrix that needs minors needs no sweep, and
 * one that is merged needs generators after that, if at all. */
static void lay_out(struct work *work, const struct host_matrix *matrix, double *band[3])
{
    int64_t step = padded(matrix->n);
    double *at[ARRAYS];
    at[0] = matrix->scratch;
    for (int i = 1; i < ARRAYS; i++)
        at[i] = at[i - 1] + step;
    for (int i = 0; i < 3; i++)
        band[i] = at[i];
    work->sweep = (struct host_tri_sweep){.above = at[3], .below = at[4], .diagonal = at[5]};
    work->blocks = (struct host_tri_blocks){.first_row = at[6],
                                            .last_row = at[7],
                                            .first_column = at[8],
                                            .last_column = at[9],
                                            .diagonal = at[10],
                                            .entries = at[11]};
    work->keeps_levels = matrix->n <= METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX;
    work->levels = at[ARRAYS - 1] + step;
    work->step = step;
    struct host_tri_generators *generators = &work->generators;
    struct host_tri_line *lines[] = {&generators->upper_row, &generators->upper_column,
                                     &generators->lower_row, &generators->lower_column};
    for (int i = 0; i < 4; i++) /* two lines' exponents fill an array */
        *lines[i] = (struct host_tri_line){at[6 + i], (int32_t *)at[10 + i / 2] + i % 2 * step};
    generators->upper_max = (int32_t *)at[12];
    generators->lower_max = generators->upper_max + step;
    work->minors.sums = (struct host_tri_line){at[4], (int32_t *)at[13]};
    work->minors.diagonal = at[5];
}

HOST_INLINE int64_t length(struct method_range range)
{
    return range.end - range.first;
}

/* What of `range` lies in `other`; may be empty. */
HOST_INLINE struct method_range within(struct method_range range, struct method_range other)
{
    range.first = range.first > other.first ? range.first : other.first;
    range.end = range.end < other.end ? range.end : other.end;
    return range;
}

/* A merger of two blocks subtracts column row^T from what they are beside each other. */
struct product {
    double *column, *row;
};

HOST_INLINE struct product product_of(const struct work *work, int level)
{
    double *column = work->levels + (work->keeps_levels ? 2 * level * work->step : 0);
    return (struct product){column, column + work->step};
}

/* Blocks of `half` rows that are merged into one, which holds row i; the lower is empty where the
 * upper stays alone. */
struct pair {
    struct method_range upper, lower;
};

HOST_INLINE struct pair pair_of(int64_t n, int64_t i, int64_t half)
{
    int64_t first = i / (2 * half) * (2 * half), end = first + 2 * half;
    end = end < n ? end : n;
    return (struct pair){{first, first + half}, {first + half, end}};
}

static struct host_team *team_for(const struct work *work, int64_t numbers)
{
    return numbers >= TEAM_NUMBERS ? work->team : NULL;
}

/* Sets |A| and whether it is dominant. False: a number is not finite. */
static bool look(struct work *work)
{
    const struct host_tri *a = &work->a;
    double norm = host__tri_look(a, &work->dominant);
    work->norm = norm;
    if (isfinite(norm))
        return true;
    long double largest = 0, excess = 0;
    for (int64_t j = 0; j < a->n; j++) {
        host_stop_check_row(j);
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
        host_stop_check_row(i);
        double difference = fabs(work->blocks.diagonal[i] - work->sweep.diagonal[i]);
        largest = difference > largest ? difference : largest;
    }
    return work->blocks.growth <= GROWTH_MAX * work->sweep.norm &&
           largest <= (double)work->a.n * eps * work->sweep.norm;
}

static void copy_exponents(int32_t *to, const int32_t *from, int64_t count)
{
    for (int64_t i = 0, end; i < count; i = end) {
        end = host_stop_part(i, count);
        memcpy(to + i, from + i, (size_t)(end - i) * sizeof *to);
    }
}

static void clear_exponents(int32_t *exponents, int64_t count)
{
    for (int64_t i = 0, end; i < count; i = end) {
        end = host_stop_part(i, count);
        memset(exponents + i, 0, (size_t)(end - i) * sizeof *exponents);
    }
}

#define REAL_FILE "gpu/host/tridiagonal/tridiagonal.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_tridiagonal = {
    .name = "tridiagonal",
    .run = {[PRECISION_FP32] = host__tridiagonal_f32, [PRECISION_FP64] = host__tridiagonal_f64},
    .scratch_bytes = host__tridiagonal_scratch_bytes,
    .kernel = kernel,
};
