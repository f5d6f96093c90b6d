/* gpu/host/lu/gauss_jordan.c: `gauss_jordan`, elimination in place with partial pivoting.
 *
 * Up to IN_PLACE_MAX all columns are eliminated in place, step by step. Beyond, a panel of columns
 * is eliminated by itself, and then all columns take its steps in two products. They are made of
 * the two factors of plain elimination. F (n x steps) holds what each row had in a step's column
 * when that step took place; T is its lower triangle in the pivot rows, pivots included. With R,
 * the pivot rows before the panel, Z = T^-1 R are the pivot rows as their steps meet them, divided
 * by the pivot. Every other row loses F Z. So do the pivot rows, after zeros have taken their
 * place, with 0 in F for the steps before a row's own and -1 for its own: they become Z, less what
 * the later steps take. The panel's own columns are the identity's by then.
 *
 * |I - X A| and |I - A X| are both small because all rows lose multiples of the same computed Z.
 * Were the panel's steps accumulated in one matrix P and applied as W += P R, |I - A X| would be
 * lost, by as much as A is ill-conditioned.
 *
 * A panel is eliminated as Crout does: a column takes all earlier steps when its own is due, so
 * that F is read and not written again; then the pivot's row of T^-1 R is made, within the panel.
 * Pivots are the first largest magnitude, as LAPACK's.
 *
 * The elimination is compiled for three widths of vector and chosen by the CPU. All three do the
 * same operations in the same order, so the bits do not depend on the choice (the product with F is
 * OpenBLAS's, and does). A team shares the products in pieces of PIECE rows or columns; the pieces
 * depend on n alone.
 *
 * A zero pivot is not the last word, for it may come of rounding or of scaling: lu then decides.
 * Nor is an RCOND below eps: lu tries the matrix equilibrated.
 *
 * Threads: any. Cost: 2 n^3 operations.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/transpose.h"
#include "gpu/host/simd/small.h"

#include "gpu/host/base/by_precision.h"

#define IN_PLACE_MAX 48
#define BLOCK_MAX 64 /* columns of a panel */
#define PIECE 128    /* rows or columns, for one thread; shares of transpose.h divide it */
_Static_assert(BLOCK_MAX <= HOST_LINES, "Z takes a line for each step");

/* Vectors of numbers, of which a row or column of scratch has a whole number. */
typedef REAL vector __attribute__((vector_size(HOST_ALIGN_BYTES)));
#define LANES ((int64_t)(sizeof(vector) / sizeof(REAL)))
#define SWAPPED_ROWS 4
#define WIDE 4 /* vectors that are summed up together */
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#if REAL_BITS == 32
typedef int32_t place; /* as wide as a number */
#else
typedef int64_t place;
#endif

static const char *kernel(int64_t n)
{
    return n <= IN_PLACE_MAX ? "host gauss-jordan" : "host gauss-jordan blocked";
}

/* Columns of a panel. Wider ones cost more by themselves, but the matrix, once it is larger than
 * caches, passes fewer times. */
static int64_t block_of(int64_t n)
{
    return n < 512 ? 16 : n < 1024 ? 32 : BLOCK_MAX;
}

/* An inverse under way, and the panel of columns first to first + steps - 1. grown: the largest
 * entry of a pivot row, in its panel's columns. */
struct inversion {
    struct R(host_work) work;
    int64_t n, block, first, steps;
    REAL *f; /* F, by columns that are work.ld apart, zeros behind the last row */
    REAL *t; /* T, by rows that are block apart */
    REAL *u; /* Z in the panel, right of the diagonal; by rows that are block apart */
    REAL grown;
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

/* ---- In place ---- */

/* row -= row[k] * pivot_row, but row[k] becomes the inverse's entry. That is stored last: a wide
 * load right after a narrow store into it would wait for the cache. */
HOST_INLINE void eliminate_row(REAL *restrict row, const REAL *restrict pivot_row, REAL reciprocal,
                               int64_t k, int64_t width)
{
    REAL multiplier = row[k];
    for (int64_t j = 0; j < width; j++)
        row[j] -= multiplier * pivot_row[j];
    row[k] = -multiplier * reciprocal;
}

/* All of the matrix; width: n in whole vectors, known to the compiler. Returns INFO. */
HOST_INLINE int64_t eliminate(struct inversion *inversion, int64_t width)
{
    int64_t ld = inversion->work.ld, n = inversion->n;
    REAL *a = inversion->work.a, grown = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = find_pivot(a + k, ld, k, n);
        REAL pivot = a[best * ld + k], *pivot_row = a + k * ld;
        if (pivot == 0)
            return k + 1;
        REAL reciprocal = 1 / pivot;
        inversion->work.pivots[k] = (int32_t)best;
        if (best != k)
            swap_rows(pivot_row, a + best * ld, width);
        for (int64_t j = k; j < width; j++)
            grown = REAL_FABS(pivot_row[j]) > grown ? REAL_FABS(pivot_row[j]) : grown;
        for (int64_t j = 0; j < width; j++)
            pivot_row[j] /= pivot;
        for (int64_t i = 0; i < k; i++)
            eliminate_row(a + i * ld, pivot_row, reciprocal, k, width);
        for (int64_t i = k + 1; i < n; i++)
            eliminate_row(a + i * ld, pivot_row, reciprocal, k, width);
        pivot_row[k] = reciprocal;
    }
    inversion->grown = grown;
    return 0;
}

HOST_INLINE int64_t eliminate_any(struct inversion *inversion)
{
    switch (pieces(inversion->n, LANES)) {
    case 1:
        return eliminate(inversion, LANES);
    case 2:
        return eliminate(inversion, 2 * LANES);
    case 3:
        return eliminate(inversion, 3 * LANES);
    case 4:
        return eliminate(inversion, 4 * LANES);
    case 5:
        return eliminate(inversion, 5 * LANES);
    default:
        return eliminate(inversion, 6 * LANES);
    }
}

/* ---- By panels ---- */

/* Column k of F loses f_q z_q for all earlier steps q; `count` vectors of rows from the one at
 * `row` on, known to the compiler. */
HOST_INLINE void take_steps(const struct inversion *inversion, int64_t k, int64_t row,
                            int64_t count)
{
    const int64_t step = inversion->work.ld / LANES;
    const vector *f = (const vector *)(const void *)inversion->f + row;
    const REAL *z = inversion->u + k;
    vector sums[WIDE];
    for (int64_t v = 0; v < count; v++)
        sums[v] = f[k * step + v];
    for (int64_t q = 0; q < k; q++, z += inversion->block) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < count; v++)
            sums[v] -= f[q * step + v] * *z;
    }
    for (int64_t v = 0; v < count; v++)
        ((vector *)(void *)inversion->f)[k * step + row + v] = sums[v];
}

/* The first largest magnitude of column k among the rows that have not been pivot rows. Each lane
 * looks through rows of its own. */
HOST_INLINE int64_t find_in_column(const struct inversion *inversion, int64_t k)
{
    const REAL *column = inversion->f + k * inversion->work.ld;
    const int64_t from = inversion->first + k, n = inversion->n;
    REAL largest[LANES];
    place places[LANES];
    int64_t i = from, best = 0;
    for (int64_t l = 0; l < LANES; l++) {
        largest[l] = -1;
        places[l] = (place)from;
    }
    for (; i + LANES <= n; i += LANES) {
        for (int64_t l = 0; l < LANES; l++) {
            const REAL magnitude = REAL_FABS(column[i + l]);
            places[l] = magnitude > largest[l] ? (place)(i + l) : places[l];
            largest[l] = magnitude > largest[l] ? magnitude : largest[l];
        }
    }
    for (int64_t l = 0; i < n; i++, l++) {
        const REAL magnitude = REAL_FABS(column[i]);
        places[l] = magnitude > largest[l] ? (place)i : places[l];
        largest[l] = magnitude > largest[l] ? magnitude : largest[l];
    }
    for (int64_t l = 1; l < LANES; l++) {
        if (largest[l] > largest[best] || (largest[l] == largest[best] && places[l] < places[best]))
            best = l;
    }
    return places[best];
}

/* Step k's pivot row, which is row `best`, changes places with the row that stands where it
 * belongs. T gets its numbers, and F zeros and -1. Z's row is made; what is left of its diagonal is
 * of no use. width: of a row of T, in vectors; known to the compiler. */
HOST_INLINE void take_pivot_row(const struct inversion *inversion, int64_t k, int64_t best,
                                int64_t width)
{
    const int64_t ld = inversion->work.ld, block = width * LANES, row = inversion->first + k;
    REAL *restrict t = inversion->t + k * block, *f = inversion->f;
    for (int64_t q = 0; q < block; q++, f += ld) {
        t[q] = f[best];
        f[best] = f[row];
        f[row] = 0;
    }
    inversion->f[k * ld + row] = -1;
    if (best != row)
        swap_rows(inversion->work.a + row * ld, inversion->work.a + best * ld, ld);
    vector *restrict z = (vector *)(void *)(inversion->u + k * block), sums[BLOCK_MAX / LANES];
    for (int64_t v = 0; v < width; v++)
        sums[v] = ((const vector *)(const void *)t)[v];
    for (int64_t q = 0; q < k; q++) {
        const vector *restrict earlier = (const vector *)(const void *)(inversion->u + q * block);
        for (int64_t v = 0; v < width; v++)
            sums[v] -= earlier[v] * t[q];
    }
    for (int64_t v = 0; v < width; v++)
        z[v] = sums[v] / t[k];
}

/* The largest entry of the panel's pivot rows as their steps met them: Z's times the pivot. */
HOST_INLINE REAL largest_pivot_entry(const struct inversion *inversion)
{
    REAL largest = 0;
    for (int64_t k = 0; k < inversion->steps; k++) {
        const REAL *z = inversion->u + k * inversion->block;
        REAL share = 1;
        for (int64_t j = k + 1; j < inversion->steps; j++)
            share = LARGER(share, REAL_FABS(z[j]));
        largest = LARGER(largest, share * REAL_FABS(inversion->t[k * inversion->block + k]));
    }
    return largest;
}

/* The panel becomes F, T and U. Returns INFO. */
HOST_INLINE int64_t factor(struct inversion *inversion, int64_t width)
{
    const int64_t vectors = pieces(inversion->n, LANES);
    for (int64_t k = 0; k < inversion->steps; k++) {
        int64_t i = 0, row = inversion->first + k;
        for (; i + WIDE <= vectors; i += WIDE)
            take_steps(inversion, k, i, WIDE);
        for (; i < vectors; i++)
            take_steps(inversion, k, i, 1);
        const int64_t best = find_in_column(inversion, k);
        const REAL pivot = inversion->f[k * inversion->work.ld + best];
        if (pivot == 0)
            return row + 1;
        inversion->work.pivots[row] = (int32_t)best;
        take_pivot_row(inversion, k, best, width);
    }
    inversion->grown = LARGER(inversion->grown, largest_pivot_entry(inversion));
    return 0;
}

HOST_INLINE int64_t factor_any(struct inversion *inversion)
{
    switch (inversion->block) {
    case 16:
        return factor(inversion, 16 / LANES);
    case 32:
        return factor(inversion, 32 / LANES);
    default:
        return factor(inversion, BLOCK_MAX / LANES);
    }
}

/* R becomes Z, in `count` vectors of its rows from the one at `from` on; zeros take its place in
 * the matrix. count is known to the compiler. */
HOST_INLINE void solve(const struct inversion *inversion, int64_t from, int64_t count)
{
    const int64_t step = inversion->work.ld / LANES;
    vector *row = (vector *)(void *)inversion->work.a + inversion->first * step + from;
    vector *z = (vector *)(void *)inversion->work.lines + from;
    for (int64_t k = 0; k < inversion->steps; k++, row += step) {
        const REAL *t = inversion->t + k * inversion->block;
        vector sums[WIDE];
        for (int64_t v = 0; v < count; v++) {
            sums[v] = row[v];
            row[v] = (vector){0};
        }
        for (int64_t q = 0; q < k; q++) {
#pragma GCC unroll 4
            for (int64_t v = 0; v < count; v++)
                sums[v] -= z[q * step + v] * t[q];
        }
        for (int64_t v = 0; v < count; v++)
            z[k * step + v] = sums[v] / t[k];
    }
}

HOST_INLINE void solve_any(const struct inversion *inversion, int64_t from, int64_t end)
{
    int64_t i = from;
    for (; i + WIDE <= end; i += WIDE)
        solve(inversion, i, WIDE);
    for (; i < end; i++)
        solve(inversion, i, 1);
}

/* ---- For three widths of vector ---- */

HOST_AVX512 static int64_t eliminate_avx512(struct inversion *inversion)
{
    return inversion->n <= IN_PLACE_MAX ? eliminate_any(inversion) : factor_any(inversion);
}

HOST_AVX2 static int64_t eliminate_avx2(struct inversion *inversion)
{
    return inversion->n <= IN_PLACE_MAX ? eliminate_any(inversion) : factor_any(inversion);
}

/* The whole matrix in place, or a panel. Returns INFO. */
static int64_t eliminate_columns(struct inversion *inversion)
{
    if (__builtin_cpu_supports("avx512f"))
        return eliminate_avx512(inversion);
    if (__builtin_cpu_supports("avx2"))
        return eliminate_avx2(inversion);
    return inversion->n <= IN_PLACE_MAX ? eliminate_any(inversion) : factor_any(inversion);
}

HOST_AVX512 static void solve_avx512(const struct inversion *inversion, int64_t from, int64_t end)
{
    solve_any(inversion, from, end);
}

HOST_AVX2 static void solve_avx2(const struct inversion *inversion, int64_t from, int64_t end)
{
    solve_any(inversion, from, end);
}

/* ---- Pieces of the steps ---- */

/* Rows of the panel go to f; zeros take their place. */
static void load_rows(void *context, int64_t index)
{
    const struct inversion *inversion = context;
    const int64_t n = inversion->n, ld = inversion->work.ld, steps = inversion->steps;
    const int64_t end = min_i64((index + 1) * PIECE, n);
    REAL *panel = inversion->work.a + inversion->first;
    for (int64_t i = index * PIECE; i < end; i += HOST_TRANSPOSE_ROWS)
        R(host__transpose_rows)(panel, ld, n, steps, inversion->f, ld, 1, HOST_WRITES_NEAR, i);
    for (int64_t i = index * PIECE; i < end; i++) {
        vector *row = (vector *)(void *)(panel + i * ld);
        for (int64_t v = 0; v < pieces(steps, LANES); v++)
            row[v] = (vector){0};
    }
}

static void solve_columns(void *context, int64_t index)
{
    const struct inversion *inversion = context;
    const int64_t from = index * PIECE / LANES;
    const int64_t end = min_i64(from + PIECE / LANES, pieces(inversion->n, LANES));
    if (__builtin_cpu_supports("avx512f"))
        solve_avx512(inversion, from, end);
    else if (__builtin_cpu_supports("avx2"))
        solve_avx2(inversion, from, end);
    else
        solve_any(inversion, from, end);
}

static void subtract_rows(void *context, int64_t index)
{
    const struct inversion *inversion = context;
    const int64_t ld = inversion->work.ld, n = inversion->n, from = index * PIECE;
    R(host__product)
    (true, false, min_i64(PIECE, n - from), n, inversion->steps, -1, inversion->f + from, ld,
     inversion->work.lines, ld, 1, inversion->work.a + from * ld, ld);
}

/* The rows were exchanged; the columns of the inverse are, in reverse: `count` rows at a time, for
 * each of them waits for itself. */
HOST_INLINE void swap_columns(const struct inversion *inversion, int64_t i, int64_t count)
{
    const int64_t ld = inversion->work.ld;
    const int32_t *pivots = inversion->work.pivots;
    REAL *a = inversion->work.a + i * ld;
    for (int64_t k = inversion->n - 1; k >= 0; k--) {
        const int64_t other = pivots[k];
        for (int64_t r = 0; r < count; r++) {
            REAL *row = a + r * ld, old = row[k];
            row[k] = row[other];
            row[other] = old;
        }
    }
}

static void swap_piece(void *context, int64_t index)
{
    const struct inversion *inversion = context;
    const int64_t end = min_i64((index + 1) * PIECE, inversion->n);
    int64_t i = index * PIECE;
    for (; i + SWAPPED_ROWS <= end; i += SWAPPED_ROWS)
        swap_columns(inversion, i, SWAPPED_ROWS);
    for (; i < end; i++)
        swap_columns(inversion, i, 1);
}

/* Returns INFO. */
static int64_t invert_by_panels(struct inversion *inversion)
{
    const int64_t n = inversion->n, parts = pieces(n, PIECE);
    const struct R(host_work) *work = &inversion->work;
    for (; inversion->first < n; inversion->first += inversion->block) {
        inversion->steps = min_i64(inversion->block, n - inversion->first);
        host_team_run(work->team, parts, load_rows, inversion);
        const int64_t info = eliminate_columns(inversion);
        if (info)
            return info;
        for (int64_t k = 0; k < inversion->steps; k++)
            work->a[(inversion->first + k) * (work->ld + 1)] = 1;
        host_team_run(work->team, parts, solve_columns, inversion);
        host_team_run(work->team, parts, subtract_rows, inversion);
    }
    return 0;
}

/* Copies 2^scaling A to scratch and inverts it. Returns INFO. */
static int64_t invert_scaled(const struct host_matrix *matrix, const struct R(host_work) * work,
                             int scaling, REAL *grown)
{
    const int64_t n = matrix->n, ld = work->ld, block = block_of(n);
    struct inversion inversion = {.work = *work, .n = n, .block = block};
    R(host__copy)(work->team, matrix->inputs[0], n, work->a, ld, n, REAL_LDEXP(1, scaling));
    for (int64_t i = 0; i < n; i++)
        memset(work->a + i * ld + n, 0, (size_t)(ld - n) * sizeof(REAL));
    if (n > IN_PLACE_MAX) {
        void *more = (char *)matrix->scratch + R(host__dense_scratch_bytes)(n, 0);
        inversion.f = more;
        inversion.t = inversion.f + block * ld;
        inversion.u = inversion.t + block * block;
        memset(inversion.f, 0, (size_t)(block * ld) * sizeof(REAL));
    }
    const int64_t info =
        n <= IN_PLACE_MAX ? eliminate_columns(&inversion) : invert_by_panels(&inversion);
    if (info == 0)
        host_team_run(work->team, pieces(n, PIECE), swap_piece, &inversion);
    *grown = inversion.grown;
    return info;
}

/* Of a finite matrix. Returns whether that is the last word. */
static bool by_elimination(const struct host_matrix *matrix, struct host_norm norm)
{
    int64_t n = matrix->n;
    REAL grown = 0;
    struct R(host_work) work = R(host__work)(matrix);
    int scaling = R(host__scaling)(norm);
    int64_t info = invert_scaled(matrix, &work, scaling, &grown);
    if (info == 0 && scaling < 0 &&
        !R(host__norm)(work.team, work.a, n, work.ld, work.lines).finite) {
        /* Scaled down, a small pivot may have no reciprocal any more. */
        scaling = 0;
        info = invert_scaled(matrix, &work, scaling, &grown);
    }
    double bound = ldexp(HOST_GROWTH_PASSING_MAX * norm.fraction, norm.exponent + scaling);
    bool unverified = n >= HOST_CHECKED_ORDER_MIN && !((double)grown <= bound);
    if (info > 0) {
        R(host__lu)(matrix, norm);
        return true;
    }
    struct host_answered answered =
        R(host__answer)(matrix, &work, HOST_ROW_MAJOR, scaling, norm, METHOD_ALGORITHM_GAUSS_JORDAN,
                        unverified ? HOST_UNVERIFIED : HOST_CHECK);
    return answered.rcond >= (double)REAL_EPS;
}

/* Scratch of lu; f, t and u. */
static int64_t own_bytes(int64_t n, int64_t m)
{
    int64_t bytes = R(host__lu_scratch_bytes)(n, m), more;
    const int64_t block = block_of(n), unit = block * (int64_t)sizeof(REAL);
    if (bytes < 0 || n <= IN_PLACE_MAX)
        return bytes;
    if (!checked_mul(host__ld(REAL_PRECISION, n) + 2 * block, unit, &more) ||
        !checked_add(bytes, more, &bytes))
        return -1;
    return bytes;
}

static int64_t scratch_bytes(int64_t n, int64_t m)
{
    return R(host__bytes_with_inverse)(own_bytes(n, m), n, false);
}

static int64_t task_scratch_bytes(const struct host_task *task)
{
    return R(host__bytes_with_inverse)(own_bytes(task->n, 0), task->n,
                                       task->outputs & UINT32_C(1) << HOST_INVERSE);
}

static void run(const struct host_matrix *matrix)
{
    const int64_t n = matrix->n;
    const struct host_matrix whole = R(host__with_inverse)(matrix, own_bytes(n, 0));
    struct R(host_work) work = R(host__work)(matrix);
    struct host_norm norm = R(host__norm)(work.team, matrix->inputs[0], n, n, work.lines);
    bool spoilt;
    if (!norm.finite)
        R(host__refuse)(&whole, -1, METHOD_ALGORITHM_GAUSS_JORDAN);
    else if (!by_elimination(&whole, norm) && !R(host__lu_equilibrated)(&whole, norm, &spoilt) &&
             spoilt)
        (void)by_elimination(&whole, norm);
}

const struct host_method R(host_method_gauss_jordan) = {
    .name = "gauss_jordan",
    .run = run,
    .scratch_bytes = scratch_bytes,
    .task_scratch_bytes = task_scratch_bytes,
    .kernel = kernel,
};
