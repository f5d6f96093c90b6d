/* gpu/host/tridiagonal/tridiagonal.c: `tridiagonal`: chooses the way, writes the inverse and its
 * report.
 *
 * The O(n) part (tridiagonal.h) is in double for both precisions and the same whatever is wanted of
 * the inverse: so are INFO, RCOND, METHOD and DIAGONAL, bit for bit. The inverse, or a block of it,
 * is then written tile by tile from its generators, or merged in place, without scratch of its
 * size.
 *
 * Dominant matrices take the two sweeps, others the minors. A way that divides by zero, overflows,
 * or fails its residual check leaves the matrix to the next one; the minors, which never divide by
 * a pivot, are the last.
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

#include "gpu/host/base/by_precision.h"

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
int64_t R(host__tridiagonal_scratch_bytes)(int64_t n, int64_t m)
{
    (void)m;
    int64_t bytes, arrays = ARRAYS + 2 * levels_kept(n);
    if (!checked_mul(n, arrays * (int64_t)sizeof(double), &bytes) ||
        !checked_add(bytes, (arrays + 1) * HOST_ALIGN_BYTES, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

static const char *kernel(int64_t n)
{
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

/* A merger of two blocks subtracts column row^T from what they are next to each other. */
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

/* ---- Generators: tiles ---- */

/* A block cut into tiles, from left to right and from top to bottom. */
struct cut {
    const struct work *work;
    int64_t tile_rows, tiles_across;
};

static void write_tile(void *context, int64_t index)
{
    const struct cut *cut = context;
    const struct block *block = &cut->work->block;
    struct method_range rows = block->rows, columns = block->columns;
    rows.first += index / cut->tiles_across * cut->tile_rows;
    columns.first += index % cut->tiles_across * HOST_TRI_TILE_COLUMNS;
    if (length(rows) > cut->tile_rows)
        rows.end = rows.first + cut->tile_rows;
    if (length(columns) > HOST_TRI_TILE_COLUMNS)
        columns.end = columns.first + HOST_TRI_TILE_COLUMNS;
    REAL *x = (REAL *)block->x + (rows.first - block->rows.first) * block->ld +
              (columns.first - block->columns.first);
    int64_t bytes = length(block->rows) * block->ld * (int64_t)sizeof(REAL);
    struct host_tri_tile tile = {.rows = rows,
                                 .columns = columns,
                                 .x = x,
                                 .ld = block->ld,
                                 .past_caches = bytes >= HOST_PAST_CACHES_BYTES};
    R(host__tri_tile)(&cut->work->generators, cut->work->diagonal, &tile);
}

static void write_block(const struct work *work)
{
    const struct block *block = &work->block;
    int64_t height = length(block->rows), width = length(block->columns);
    struct cut cut = {.work = work, .tile_rows = HOST_TRI_TILE_ROWS};
    cut.tiles_across = (width + HOST_TRI_TILE_COLUMNS - 1) / HOST_TRI_TILE_COLUMNS;
    if (cut.tiles_across == 1) /* a narrow block's tiles are higher */
        cut.tile_rows *= HOST_TRI_TILE_COLUMNS / width;
    int64_t tiles = (height + cut.tile_rows - 1) / cut.tile_rows * cut.tiles_across;
    host_team_run(team_for(work, height * width), tiles, write_tile, &cut);
}

/* ---- Merging ---- */

HOST_INLINE REAL *entry(const struct block *block, int64_t i, int64_t j)
{
    return (REAL *)block->x + (i - block->rows.first) * block->ld + (j - block->columns.first);
}

HOST_INLINE void put(const struct block *block, int64_t i, int64_t j, double x)
{
    if (j >= block->columns.first && j < block->columns.end)
        *entry(block, i, j) = (REAL)x;
}

/* Row i of the leaves. */
HOST_INLINE void write_leaf(const struct work *work, const struct block *block, int64_t i)
{
    int64_t leaf = i - i % 2;
    put(block, i, i, work->blocks.diagonal[i]);
    if (leaf + 1 < work->a.n)
        put(block, i, i % 2 ? leaf : leaf + 1, work->blocks.entries[i]);
}

/* Of row i, columns in the range: minus the merger's column's entry times its row. They have been
 * written before if `add`. */
HOST_INLINE void subtract_row(const struct block *block, const struct product *product, int64_t i,
                              struct method_range columns, bool add)
{
    columns = within(columns, block->columns);
    if (columns.end <= columns.first)
        return;
    double factor = -product->column[i];
    const double *restrict row = product->row + columns.first;
    REAL *restrict x = entry(block, i, columns.first);
    for (int64_t j = 0; j < length(columns); j++)
        x[j] = add ? (REAL)((double)x[j] + factor * row[j]) : (REAL)(factor * row[j]);
}

HOST_INLINE void write_row(const struct work *work, const struct block *block, int level, int64_t i,
                           struct pair pair)
{
    struct product product = product_of(work, level);
    subtract_row(block, &product, i, pair.upper, i < pair.upper.end);
    subtract_row(block, &product, i, pair.lower, i >= pair.upper.end);
    put(block, i, i, work->blocks.diagonal[i]);
}

/* A strip of columns, and rows up to end - 1 of it, each with all its mergers. */
HOST_INLINE void write_merged_strip(const struct work *work, const struct block *strip, int64_t end)
{
    int64_t n = work->a.n, half = 2;
    for (int64_t i = strip->rows.first; i < end; i++) {
        write_leaf(work, strip, i);
        for (int level = 0; (half = INT64_C(2) << level) < n; level++) {
            struct pair pair = pair_of(n, i, half);
            if (length(pair.lower) > 0)
                write_row(work, strip, level, i, pair);
        }
    }
}

HOST_AVX512 static void write_merged_strip_avx512(const struct work *work,
                                                  const struct block *strip, int64_t end)
{
    write_merged_strip(work, strip, end);
}

HOST_AVX2 static void write_merged_strip_avx2(const struct work *work, const struct block *strip,
                                              int64_t end)
{
    write_merged_strip(work, strip, end);
}

/* A piece of work: some rows of the block, strip by strip, so that what is subtracted stays in the
 * caches. */
static void write_merged_rows(void *context, int64_t index)
{
    const struct work *work = context;
    const struct block *block = &work->block;
    struct block strip = *block;
    strip.rows.first += index * MERGED_ROWS;
    int64_t end = strip.rows.first + MERGED_ROWS;
    end = end < block->rows.end ? end : block->rows.end;
    for (int64_t first = block->columns.first; first < block->columns.end;
         first += MERGED_COLUMNS) {
        int64_t last = first + MERGED_COLUMNS;
        strip.columns.first = first;
        strip.columns.end = last < block->columns.end ? last : block->columns.end;
        strip.x = entry(block, strip.rows.first, first);
        if (__builtin_cpu_supports("avx512f"))
            write_merged_strip_avx512(work, &strip, end);
        else if (__builtin_cpu_supports("avx2"))
            write_merged_strip_avx2(work, &strip, end);
        else
            write_merged_strip(work, &strip, end);
    }
}

/* In place, as soon as two blocks are merged. */
static void write_merger(const struct work *work, int level, struct pair pair)
{
    struct method_range both = {pair.upper.first, pair.lower.end};
    struct method_range rows = within(work->block.rows, both);
    bool wide = work->block.ld > WIDE;
    for (int64_t i = rows.first, end; i < rows.end; i = end) {
        end = wide ? i + 1 : host_stop_part(i, rows.end);
        if (wide)
            host_stop_check();
        for (int64_t k = i; k < end; k++)
            write_row(work, &work->block, level, k, pair);
    }
}

/* All pairs whose lower block ends before row `end`, from small to large: what they are made of has
 * been merged. */
static bool merge_up_to(struct work *work, int64_t end)
{
    int64_t n = work->a.n, half = 2;
    for (int level = 0; (half = INT64_C(2) << level) < n; level++) {
        struct pair pair = pair_of(n, end - 1, half);
        if (pair.lower.end > end)
            return true;
        if (length(pair.lower) <= 0)
            continue;
        struct product product = product_of(work, level);
        work->blocks.column = product.column;
        work->blocks.row = product.row;
        if (!host__tri_merge(&work->a, &work->blocks, pair.upper.first, pair.lower.first,
                             pair.lower.end))
            return false;
        if (work->block.x && !work->keeps_levels)
            write_merger(work, level, pair);
    }
    return true;
}

static bool merge(struct work *work)
{
    int64_t n = work->a.n, height = length(work->block.rows);
    if (!host__tri_leaves(&work->a, &work->blocks))
        return false;
    bool in_place = work->block.x && !work->keeps_levels;
    for (int64_t i = work->block.rows.first; in_place && i < work->block.rows.end; i++) {
        host_stop_check_row(i);
        write_leaf(work, &work->block, i);
    }
    for (int64_t end = 2; end < n + 2; end += 2) {
        host_stop_check_row(end - 1);
        if (!merge_up_to(work, end < n ? end : n))
            return false;
    }
    if (!agree(work, (double)REAL_EPS))
        return false;
    if (work->block.x && work->keeps_levels)
        host_team_run(team_for(work, height * work->block.ld),
                      (height + MERGED_ROWS - 1) / MERGED_ROWS, write_merged_rows, work);
    return true;
}

/* ---- One matrix ---- */

static void report(const struct host_matrix *matrix, int64_t info, REAL rcond,
                   enum method_algorithm algorithm)
{
    if (matrix->outputs[HOST_TRI_INFO])
        *(int32_t *)matrix->outputs[HOST_TRI_INFO] = (int32_t)info;
    if (matrix->outputs[HOST_TRI_RCOND])
        *(REAL *)matrix->outputs[HOST_TRI_RCOND] = rcond;
    if (matrix->outputs[HOST_TRI_ALGORITHM])
        *(int32_t *)matrix->outputs[HOST_TRI_ALGORITHM] = (int32_t)algorithm;
}

static void fill_nan(REAL *x, int64_t count)
{
    if (x)
        R(host__fill_nan)(x, count);
}

static void widen(double *restrict to, const REAL *restrict from, int64_t count)
{
    for (int64_t first = 0, end; first < count; first = end) {
        end = host_stop_part(first, count);
        for (int64_t i = first; i < end; i++)
            to[i] = (double)from[i];
    }
}

static void narrow(REAL *restrict to, const double *restrict from, int64_t count)
{
    for (int64_t first = 0, end; first < count; first = end) {
        end = host_stop_part(first, count);
        for (int64_t i = first; i < end; i++)
            to[i] = (REAL)from[i];
    }
}

/* No inverse: NaN wherever one was wanted. */
static void refuse(const struct host_matrix *matrix, const struct work *work, int64_t info,
                   REAL rcond)
{
    int64_t n = matrix->n;
    fill_nan(work->block.x, length(work->block.rows) * work->block.ld);
    fill_nan(matrix->outputs[HOST_TRI_DIAGONAL], n);
    fill_nan(matrix->outputs[HOST_TRI_GENERATORS], 4 * n);
    if (matrix->outputs[HOST_TRI_EXPONENTS])
        clear_exponents(matrix->outputs[HOST_TRI_EXPONENTS], 4 * n);
    report(matrix, info, rcond, work->algorithm);
}

/* A's diagonals as double: where they are, or copied to `band`. */
static void load(struct work *work, const struct host_matrix *matrix, double *band[3])
{
    int64_t n = matrix->n;
    const double *wide[3];
    for (int k = 0; k < 3; k++) {
        bool copied = REAL_BITS == 32;
        if (copied)
            widen(band[k], matrix->inputs[k], k == 1 ? n : n - 1);
        wide[k] = copied ? band[k] : (const double *)matrix->inputs[k];
    }
    work->a = (struct host_tri){.dl = wide[0], .d = wide[1], .du = wide[2], .n = n};
}

/* The ways for dominant matrices. False: neither holds. Merging writes the block, the sweeps leave
 * generators, where they are wanted. */
static bool run_dominant(struct work *work, int64_t variant)
{
    if (variant == METHOD_TRIDIAGONAL_PIVOTED || !work->dominant ||
        !host__tri_sweep(&work->a, &work->sweep) || work->sweep.norm > (double)REAL_MAX ||
        work->sweep.error > ERROR_MAX * (double)work->a.n * (double)REAL_EPS)
        return false;
    work->norm_x = work->sweep.norm;
    work->algorithm = METHOD_ALGORITHM_SHERMAN_MORRISON;
    work->diagonal = work->blocks.diagonal;
    if (variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON && merge(work))
        return true;
    work->algorithm = METHOD_ALGORITHM_TWO_SWEEP;
    work->diagonal = work->sweep.diagonal;
    if (work->block.x)
        host__tri_sweep_generators(&work->sweep, work->a.n, &work->generators);
    return true;
}

/* Returns INFO: 0, a zero pivot's step, or n + 1 when the inverse that came out is not good. */
static int64_t run_minors(struct work *work)
{
    int64_t n = work->a.n;
    work->algorithm = METHOD_ALGORITHM_PIVOTED;
    int64_t info = host__tri_minors(&work->a, &work->minors, &work->generators);
    if (info)
        return info;
    work->diagonal = work->minors.diagonal;
    work->norm_x = work->minors.norm;
    long double condition = work->norm * work->norm_x;
    bool good = work->minors.error <= ERROR_MAX * (double)n * (double)REAL_EPS * (double)condition;
    return !good && condition * (long double)REAL_EPS <= 1 ? n + 1 : 0;
}

/* Line k of four. FP32 holds every mantissa's range. */
static void put_generators(const struct host_matrix *matrix, int k,
                           const struct host_tri_line *line)
{
    int64_t n = matrix->n;
    REAL *mantissas = matrix->outputs[HOST_TRI_GENERATORS];
    int32_t *exponents = matrix->outputs[HOST_TRI_EXPONENTS];
    if (mantissas)
        narrow(mantissas + k * n, line->mantissa, n);
    if (exponents)
        copy_exponents(exponents + k * n, line->exponent, n);
}

/* What is wanted of X and has not been written yet. */
static void answer(const struct host_matrix *matrix, struct work *work)
{
    const struct host_tri_generators *generators = &work->generators;
    REAL *diagonal = matrix->outputs[HOST_TRI_DIAGONAL];
    bool merged = work->algorithm == METHOD_ALGORITHM_SHERMAN_MORRISON;
    if (diagonal)
        narrow(diagonal, work->diagonal, matrix->n);
    if (work->block.x && !merged)
        write_block(work);
    if (!matrix->outputs[HOST_TRI_GENERATORS] && !matrix->outputs[HOST_TRI_EXPONENTS])
        return;
    if (merged || (work->algorithm == METHOD_ALGORITHM_TWO_SWEEP && !work->block.x))
        host__tri_sweep_generators(&work->sweep, matrix->n, generators);
    const struct host_tri_line *lines[] = {&generators->upper_row, &generators->upper_column,
                                           &generators->lower_row, &generators->lower_column};
    for (int k = 0; k < 4; k++)
        put_generators(matrix, k, lines[k]);
}

void R(host__tridiagonal)(const struct host_matrix *matrix)
{
    int64_t n = matrix->n, variant = matrix->options[METHOD_TRIDIAGONAL_VARIANT];
    struct work work = {.team = matrix->team, .algorithm = METHOD_ALGORITHM_NONE};
    work.block = (struct block){
        .x = matrix->outputs[HOST_TRI_INVERSE],
        .rows = method_range_unpack(matrix->options[METHOD_TRIDIAGONAL_ROWS], n),
        .columns = method_range_unpack(matrix->options[METHOD_TRIDIAGONAL_COLUMNS], n)};
    work.block.ld = length(work.block.columns);
    double *band[3];
    lay_out(&work, matrix, band);
    load(&work, matrix, band);
    if (!look(&work)) {
        refuse(matrix, &work, -1, (REAL)NAN);
        return;
    }
    int64_t info = run_dominant(&work, variant) ? 0 : run_minors(&work);
    if (info) {
        refuse(matrix, &work, info, 0);
        return;
    }
    answer(matrix, &work);
    bool overflows = work.norm_x > (long double)REAL_MAX;
    REAL rcond = overflows ? 0 : (REAL)(1 / work.norm / work.norm_x);
    report(matrix, rcond < REAL_EPS ? n + 1 : 0, rcond, work.algorithm);
}

const struct host_method R(host_method_tridiagonal) = {
    .name = "tridiagonal",
    .run = R(host__tridiagonal),
    .scratch_bytes = R(host__tridiagonal_scratch_bytes),
    .kernel = kernel,
};
