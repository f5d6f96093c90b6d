/* gpu/host/lu/gauss_jordan.c: `gauss_jordan`, elimination in place with partial pivoting.
 *
 * A panel of BLOCK columns is eliminated in place, all n rows of it, which leaves in it the matrix
 * M (n x BLOCK) of the panel's row operations. Every other column C then becomes C with its pivot
 * rows zeroed, plus M R, R being those old pivot rows: one product. Up to BLOCK, the panel is the
 * whole matrix. From LARGE_MIN on, LARGE_BLOCK columns are eliminated so among themselves, panel
 * by panel, before the others take their product, which is then large enough for OpenBLAS. A
 * product is cut into pieces of PIECE_ROWS rows for a team; the pieces depend on n alone. Pivots
 * are the first largest magnitude, as LAPACK's.
 *
 * The elimination is compiled for three widths of vector and chosen by the CPU. All three do the
 * same operations in the same order, so the bits do not depend on the choice (the products of large
 * n are OpenBLAS's, and do).
 *
 * A zero pivot is not the last word, for it may come of rounding or of scaling: lu then decides.
 *
 * Threads: any. Cost: 2 n^3 operations.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/simd/small.h"

#include "gpu/host/base/by_precision.h"

#define BLOCK 32
#define LARGE_MIN 256
#define LARGE_BLOCK 64
#define PIECE_ROWS 128 /* of a product, for one thread */
_Static_assert(BLOCK <= HOST_LINES && LARGE_BLOCK <= HOST_LINES, "old pivot rows take a line each");

static const char *kernel(int64_t n)
{
    return n <= BLOCK ? "host gauss-jordan" : "host gauss-jordan blocked";
}

#define UNIT ((int64_t)(HOST_ALIGN_BYTES / sizeof(REAL))) /* of a row's width */

/* The columns that are eliminated now, `width` of them (padded to UNIT), and the whole rows they
 * belong to. The pivot of local column k is sought from row first + k down. grown: the largest
 * entry of a pivot row, in the panel's columns, of all panels so far. */
struct panel {
    REAL *rows; /* n x ld */
    int64_t n, ld, first, steps, width;
    int32_t *pivots; /* 0-based rows */
    REAL *grown;
};

HOST_INLINE int64_t find_pivot(const REAL *column, int64_t ld, int64_t from, int64_t n)
{
    int64_t best = from;
    REAL largest = REAL_FABS(column[from * ld]);
    for (int64_t i = from + 1; i < n; i++) {
        REAL magnitude = REAL_FABS(column[i * ld]);
        best = magnitude > largest ? i : best;
        largest = magnitude > largest ? magnitude : largest;
    }
    return best;
}

HOST_INLINE void swap_rows(REAL *restrict a, REAL *restrict b, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        REAL old = a[j];
        a[j] = b[j];
        b[j] = old;
    }
}

/* row -= row[k] * pivot_row, but row[k] becomes the row operation's own entry. That is stored last:
 * a wide load right after a narrow store into it would wait for the cache. */
HOST_INLINE void eliminate_row(REAL *restrict row, const REAL *restrict pivot_row, REAL reciprocal,
                               int64_t k, int64_t width)
{
    REAL multiplier = row[k];
    for (int64_t j = 0; j < width; j++)
        row[j] -= multiplier * pivot_row[j];
    row[k] = -multiplier * reciprocal;
}

/* Eliminates the panel; width is panel->width, known to the compiler. Returns INFO. */
HOST_INLINE int64_t eliminate(const struct panel *panel, int64_t width)
{
    int64_t ld = panel->ld, n = panel->n;
    REAL *columns = panel->rows + panel->first, grown = *panel->grown;
    for (int64_t k = 0; k < panel->steps; k++) {
        int64_t row = panel->first + k, best = find_pivot(columns + k, ld, row, n);
        REAL pivot = columns[best * ld + k], *pivot_row = columns + row * ld;
        if (pivot == 0)
            return row + 1;
        REAL reciprocal = 1 / pivot;
        panel->pivots[row] = (int32_t)best;
        if (best != row)
            swap_rows(panel->rows + row * ld, panel->rows + best * ld, ld);
        for (int64_t j = k; j < width; j++)
            grown = REAL_FABS(pivot_row[j]) > grown ? REAL_FABS(pivot_row[j]) : grown;
        for (int64_t j = 0; j < width; j++)
            pivot_row[j] /= pivot;
        for (int64_t i = 0; i < row; i++)
            eliminate_row(columns + i * ld, pivot_row, reciprocal, k, width);
        for (int64_t i = row + 1; i < n; i++)
            eliminate_row(columns + i * ld, pivot_row, reciprocal, k, width);
        pivot_row[k] = reciprocal;
    }
    *panel->grown = grown;
    return 0;
}

HOST_INLINE int64_t eliminate_any(const struct panel *panel)
{
    switch (panel->width) {
    case 8:
        return eliminate(panel, 8);
    case 16:
        return eliminate(panel, 16);
    case 24:
        return eliminate(panel, 24);
    default:
        return eliminate(panel, BLOCK);
    }
}

HOST_AVX512 static int64_t eliminate_avx512(const struct panel *panel)
{
    return eliminate_any(panel);
}

HOST_AVX2 static int64_t eliminate_avx2(const struct panel *panel)
{
    return eliminate_any(panel);
}

static int64_t eliminate_panel(const struct panel *panel)
{
    if (__builtin_cpu_supports("avx512f"))
        return eliminate_avx512(panel);
    if (__builtin_cpu_supports("avx2"))
        return eliminate_avx2(panel);
    return eliminate_any(panel);
}

/* Columns `first` to `first + steps - 1` hold M; `from` to `to - 1` outside of them take M R, R
 * being what stood in their pivot rows, which was moved to old_rows. */
struct update {
    const struct R(host_work) * work;
    int64_t n, first, steps, from, to;
};

static void update_rows(void *context, int64_t index)
{
    const struct update *update = context;
    int64_t ld = update->work->ld, row = index * PIECE_ROWS, first = update->first;
    int64_t rows = update->n - row < PIECE_ROWS ? update->n - row : PIECE_ROWS;
    int64_t steps = update->steps, from = update->from, last = first + steps;
    REAL *c = update->work->a + row * ld, *old_rows = update->work->lines;
    if (from < first)
        R(host__gemm)
    (rows, first - from, steps, c + first, ld, old_rows + from, ld, c + from, ld);
    if (last < update->to)
        R(host__gemm)
    (rows, update->to - last, steps, c + first, ld, old_rows + last, ld, c + last, ld);
}

/* Every column of the update becomes itself, its pivot rows zeroed, plus M R. */
static void apply(struct update update)
{
    const struct R(host_work) *work = update.work;
    int64_t ld = work->ld, first = update.first, last = first + update.steps;
    for (int64_t k = 0; k < update.steps; k++) {
        REAL *row = work->a + (first + k) * ld, *old = work->lines + k * ld;
        memcpy(old + update.from, row + update.from,
               (size_t)(update.to - update.from) * sizeof *row);
        memset(row + update.from, 0, (size_t)(first - update.from) * sizeof *row);
        memset(row + last, 0, (size_t)(update.to - last) * sizeof *row);
    }
    host_team_run(work->team, (update.n + PIECE_ROWS - 1) / PIECE_ROWS, update_rows, &update);
}

/* The rows were exchanged; the columns of the inverse are, in reverse. */
static void swap_columns(void *context, int64_t index)
{
    const struct update *update = context;
    int64_t n = update->n, end = (index + 1) * PIECE_ROWS < n ? (index + 1) * PIECE_ROWS : n;
    const int32_t *pivots = update->work->pivots;
    for (int64_t i = index * PIECE_ROWS; i < end; i++) {
        REAL *row = update->work->a + i * update->work->ld;
        for (int64_t k = n - 1; k >= 0; k--) {
            REAL old = row[k];
            row[k] = row[pivots[k]];
            row[pivots[k]] = old;
        }
    }
}

/* Eliminates the columns `first` to `end - 1` panel by panel, within themselves alone: M, of them
 * all, is left in their place. Returns INFO. */
static int64_t eliminate_block(const struct R(host_work) * work, int64_t n, int64_t first,
                               int64_t end, REAL *grown)
{
    int64_t padded = (n + UNIT - 1) / UNIT * UNIT;
    struct panel panel = {.rows = work->a,
                          .n = n,
                          .ld = work->ld,
                          .first = first,
                          .pivots = work->pivots,
                          .grown = grown};
    for (; panel.first < end; panel.first += BLOCK) {
        panel.steps = end - panel.first < BLOCK ? end - panel.first : BLOCK;
        panel.width = padded - panel.first < BLOCK ? padded - panel.first : BLOCK;
        int64_t info = eliminate_panel(&panel);
        if (info)
            return info;
        if (end - first > BLOCK)
            apply((struct update){.work = work,
                                  .n = n,
                                  .first = panel.first,
                                  .steps = panel.steps,
                                  .from = first,
                                  .to = end});
    }
    return 0;
}

/* Inverts a (n x ld, its padding zero) in place. grown: see the panel. Returns INFO. */
static int64_t invert(const struct R(host_work) * work, int64_t n, REAL *grown)
{
    int64_t block = n < LARGE_MIN ? BLOCK : LARGE_BLOCK;
    struct update update = {.work = work, .n = n, .to = n};
    for (; update.first < n; update.first += block) {
        update.steps = n - update.first < block ? n - update.first : block;
        int64_t info = eliminate_block(work, n, update.first, update.first + update.steps, grown);
        if (info)
            return info;
        if (n > block)
            apply(update);
    }
    host_team_run(work->team, (n + PIECE_ROWS - 1) / PIECE_ROWS, swap_columns, &update);
    return 0;
}

/* Copies 2^scaling A to scratch and inverts it. Returns INFO. */
static int64_t invert_scaled(const struct host_matrix *matrix, const struct R(host_work) * work,
                             int scaling, REAL *grown)
{
    int64_t n = matrix->n;
    R(host__copy)(work->team, matrix->inputs[0], n, work->a, work->ld, n, REAL_LDEXP(1, scaling));
    for (int64_t i = 0; i < n; i++)
        memset(work->a + i * work->ld + n, 0, (size_t)(work->ld - n) * sizeof(REAL));
    *grown = 0;
    return invert(work, n, grown);
}

static void run(const struct host_matrix *matrix)
{
    int64_t n = matrix->n, info = -1;
    REAL grown = 0;
    struct R(host_work) work = R(host__work)(matrix);
    struct host_norm norm = R(host__norm)(work.team, matrix->inputs[0], n, n, work.lines);
    int scaling = R(host__scaling)(norm);
    if (norm.finite)
        info = invert_scaled(matrix, &work, scaling, &grown);
    if (info == 0 && scaling < 0 &&
        !R(host__norm)(work.team, work.a, n, work.ld, work.lines).finite) {
        /* Scaled down, a small pivot may have no reciprocal any more. */
        scaling = 0;
        info = invert_scaled(matrix, &work, scaling, &grown);
    }
    double bound = ldexp(HOST_GROWTH_PASSING_MAX * norm.fraction, norm.exponent + scaling);
    bool unverified = n >= HOST_CHECKED_ORDER_MIN && !((double)grown <= bound);
    if (info == 0)
        R(host__answer)
    (matrix, &work, HOST_ROW_MAJOR, scaling, norm, METHOD_ALGORITHM_GAUSS_JORDAN,
     unverified ? HOST_UNVERIFIED : HOST_CHECK);
    else if (info > 0) R(host__lu)(matrix, norm);
    else R(host__refuse)(matrix, info, METHOD_ALGORITHM_GAUSS_JORDAN);
}

const struct host_method R(host_method_gauss_jordan) = {
    .name = "gauss_jordan",
    .run = run,
    .scratch_bytes = R(host__lu_scratch_bytes),
    .kernel = kernel,
};
