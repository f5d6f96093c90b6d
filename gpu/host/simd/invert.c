/* gpu/host/simd/invert.c: inverts as many matrices as a vector has lanes; see small.h.
 *
 * Element (i, j) of all matrices is one vector. Elimination is Gauss and Jordan's, in place, two
 * columns at a time, so that the rest of the matrix is read and written once for two steps. Pivots
 * are LAPACK's, the largest magnitude of a column (of equals, the one that stands first in A). Rows
 * stay where they are, for each lane has a pivot row of its own: with p_k the row of step k's
 * pivot, the inverse's entry (k, p_j) ends up in row p_k and column j, so the interchanges are made
 * where the answer is stored.
 *
 * In a step, M being its multipliers and R its pivot row, every other row i loses M_i R. The pivot
 * row itself is set to zero and then loses M_p R too, with M_p = -1 / pivot. Column k becomes -M.
 *
 * Threads: any, each on its own scratch. Cost: see small.h.
 */
#include "gpu/host/linalg/dense.h"
#include "gpu/host/simd/small.h"

#include "gpu/host/simd/vector.h"

#define TILE 2 /* rows updated together: each pair of pivot row entries is loaded once for them */

#define LINE_BYTES 64 /* of the processor's caches */

/* The vector on which the left side of an inverse is tried: signs without a pattern. */
static const REAL probe[HOST_SMALL_ORDER_MAX] = {1, -1, -1, 1, 1,  1,  -1, 1,  -1, -1, -1,
                                                 1, -1, 1,  1, -1, 1,  1,  -1, -1, -1, -1,
                                                 1, -1, 1,  1, 1,  -1, 1,  -1, -1, 1};

/* The same for the right side, as dense.c has them. The others are next to orthogonal to what
 * changes slowly, and so to the errors of kernels of points in order. */
static const REAL probe_right[HOST_SMALL_ORDER_MAX] = {1, -1, -1, -1, -1, -1, -1, 1,  -1, -1, 1,
                                                       1, 1,  -1, 1,  -1, 1,  -1, -1, -1, -1, 1,
                                                       1, 1,  1,  1,  1,  -1, 1,  -1, 1,  -1};

/* The sides of an inverse that are tried. */
struct sides {
    bool left, right;
};

/* A group's work. Masks are all ones or zero in every lane. */
struct work {
    int64_t n, ld;
    V *a;                      /* n x ld */
    V *rows[2];                /* n each: pivot rows; scratch at other times */
    V *multipliers[2], *ends;  /* n each: of two steps; what the first of two columns becomes */
    V *next;                   /* n: the second of two columns, after the first step */
    V *image[2];               /* n each: A t and s^T A, t and s being vectors of signs */
    BITS *is_pivot[2], *spare; /* n each: masks of rows: of a step's pivot; not a pivot so far */
    BITS *pivots;              /* n: p_k */
    V norm;                    /* |A| */
    V grown;                   /* the largest entry of U, if that is asked for */
    BITS good;
};

HOST_INLINE struct work carve(int64_t n, void *scratch)
{
    /* An odd number of vectors: the numbers of a column do not meet in a few sets of the cache. */
    int64_t ld = n | 1;
    V *a = scratch, *lines = a + n * ld;
    BITS *masks = (BITS *)(lines + 8 * n);
    return (struct work){
        .n = n,
        .ld = ld,
        .a = a,
        .rows = {lines, lines + n},
        .multipliers = {lines + 2 * n, lines + 3 * n},
        .ends = lines + 4 * n,
        .next = lines + 5 * n,
        .image = {lines + 6 * n, lines + 7 * n},
        .is_pivot = {masks, masks + n},
        .spare = masks + 2 * n,
        .pivots = masks + 3 * n,
    };
}

/* ---- Before ---- */

HOST_INLINE void load(const struct work *work, const REAL *const *a)
{
    int64_t n = work->n;
    for (int64_t i = 0; i < n; i++)
        gather(a, i * n, n, work->a + i * work->ld);
}

/* |A|, A t and s^T A. Good are lanes that host__scaling would leave as they are. */
HOST_INLINE void measure(struct work *work, struct sides tried)
{
    int64_t n = work->n;
    V *restrict sums = work->rows[0], *restrict image = work->image[METHOD_RIGHT];
    for (int64_t j = 0; j < n; j++)
        sums[j] = image[j] = (V){0};
    for (int64_t i = 0; i < n; i++) {
        const V *restrict row = work->a + i * work->ld;
        V sum = {0};
        for (int64_t j = 0; j < n; j++) {
            sums[j] += magnitude(row[j]);
            if (tried.left)
                sum += row[j] * probe[j];
            if (tried.right)
                image[j] += row[j] * probe_right[i];
        }
        work->image[METHOD_LEFT][i] = sum;
    }
    work->norm = work->grown = (V){0};
    work->good = ~(BITS){0};
    for (int64_t j = 0; j < n; j++) {
        work->good &= sums[j] < all(REAL_LDEXP(1, REAL_MAX_EXP - REAL_DIG));
        work->norm = LARGER(work->norm, sums[j]);
    }
    work->good &= work->norm >= all(REAL_LDEXP(1, REAL_MIN_EXP + REAL_DIG - 1));
}

/* ---- Elimination ---- */

/* A column of the matrix, or of the work next to it: n numbers, `stride` vectors apart. */
struct column {
    const V *numbers;
    int64_t stride;
};

struct pivot {
    V value;
    V adjacent; /* what another column has in the pivot's row */
};

/* Finds step k's pivot in `column`. A lane with a zero pivot, or with one that has grown, is good
 * no longer; its pivot row is any. */
HOST_INLINE struct pivot find_pivot(struct work *work, int64_t k, struct column column,
                                    struct column other, BITS *restrict is_pivot)
{
    int64_t n = work->n;
    V *restrict magnitudes = work->rows[0], largest = {0};
    BITS *restrict spare = work->spare, unfound = ~(BITS){0}, index = {0}, value = {0},
                   adjacent = {0};
    for (int64_t i = 0; i < n; i++) {
        magnitudes[i] = keep(magnitude(column.numbers[i * column.stride]), spare[i]);
        largest = LARGER(largest, magnitudes[i]);
    }
    work->good &= (largest > all(0)) & (largest <= work->norm * all(HOST_GROWTH_MAX));
    for (int64_t i = 0; i < n; i++) {
        BITS is = (magnitudes[i] == largest) & unfound;
        unfound &= ~is;
        is_pivot[i] = is;
        spare[i] &= ~is;
        index |= is & (INTEGER)i;
        value |= is & (BITS)column.numbers[i * column.stride];
        adjacent |= is & (BITS)other.numbers[i * other.stride];
    }
    work->pivots[k] = index;
    return (struct pivot){.value = (V)value, .adjacent = (V)adjacent};
}

/* The pivot row of step k as it stands in the matrix. */
HOST_INLINE void take_row(const struct work *work, int64_t k, V *restrict row)
{
    const INTEGER *pivots = (const INTEGER *)&work->pivots[k];
    const REAL *from[LANES];
    for (int lane = 0; lane < LANES; lane++)
        from[lane] = (const REAL *)(work->a + pivots[lane] * work->ld) + lane;
    for (int64_t j = 0; j < work->n; j++)
        row[j] = (V){ALL_LANES(from, j * LANES)};
}

/* One step, for the odd column of an odd order. */
HOST_INLINE void eliminate_one(struct work *work, int64_t k)
{
    int64_t n = work->n, ld = work->ld;
    struct column column = {.numbers = work->a + k, .stride = ld};
    V reciprocal = 1 / find_pivot(work, k, column, column, work->is_pivot[0]).value;
    take_row(work, k, work->rows[0]);
    for (int64_t i = 0; i < n; i++) {
        V *restrict row = work->a + i * ld;
        const V *restrict pivot_row = work->rows[0];
        BITS is_pivot = work->is_pivot[0][i];
        V multiplier = choose(is_pivot, -reciprocal, row[k] * reciprocal);
        for (int64_t j = 0; j < n; j++)
            row[j] = keep(row[j], ~is_pivot) - multiplier * pivot_row[j];
        row[k] = -multiplier;
    }
}

/* Steps k and k + 1 in their own two columns, which wait in ends and next. A row that is to be the
 * second pivot row is taken as the first step leaves it, so it has nothing to lose in that step:
 * its first multiplier becomes zero. Returns minus what it was. */
HOST_INLINE V eliminate_columns(struct work *work, int64_t k)
{
    int64_t n = work->n, ld = work->ld;
    V *restrict first = work->multipliers[0], *restrict second = work->multipliers[1];
    V *restrict next = work->next, *restrict ends = work->ends;
    BITS *restrict is_first = work->is_pivot[0], *restrict is_second = work->is_pivot[1];
    struct column left = {.numbers = work->a + k, .stride = ld};
    struct column right = {.numbers = work->a + k + 1, .stride = ld};
    struct pivot pivot = find_pivot(work, k, left, right, is_first);
    V reciprocal = 1 / pivot.value;
    for (int64_t i = 0; i < n; i++) {
        first[i] = choose(is_first[i], -reciprocal, left.numbers[i * ld] * reciprocal);
        next[i] = keep(right.numbers[i * ld], ~is_first[i]) - first[i] * pivot.adjacent;
    }
    left = (struct column){.numbers = first, .stride = 1};
    right = (struct column){.numbers = next, .stride = 1};
    pivot = find_pivot(work, k + 1, right, left, is_second);
    reciprocal = 1 / pivot.value;
    for (int64_t i = 0; i < n; i++) {
        second[i] = choose(is_second[i], -reciprocal, next[i] * reciprocal);
        ends[i] = keep(-first[i], ~is_second[i]) + second[i] * pivot.adjacent;
        first[i] = keep(first[i], ~is_second[i]);
    }
    return -pivot.adjacent;
}

/* Every row loses what two steps take from it; `rows` of them, known to the compiler. */
HOST_INLINE void update_rows(const struct work *work, int64_t i, int64_t rows)
{
    int64_t n = work->n, ld = work->ld;
    V *restrict a = work->a + i * ld, first[TILE], second[TILE];
    const V *restrict first_row = work->rows[0], *restrict second_row = work->rows[1];
    BITS kept[TILE];
    for (int64_t r = 0; r < rows; r++) {
        first[r] = work->multipliers[0][i + r];
        second[r] = work->multipliers[1][i + r];
        kept[r] = ~(work->is_pivot[0][i + r] | work->is_pivot[1][i + r]);
    }
    for (int64_t j = 0; j < n; j++) {
        V x = first_row[j], y = second_row[j];
        for (int64_t r = 0; r < rows; r++)
            a[r * ld + j] = keep(a[r * ld + j], kept[r]) - first[r] * x - second[r] * y;
    }
}

/* The pivot rows of steps k and k + 1, the second as the first step leaves it. */
HOST_INLINE void take_rows(struct work *work, int64_t k, V minus_multiplier, bool tried)
{
    V *restrict first = work->rows[0], *restrict second = work->rows[1], grown = work->grown;
    take_row(work, k, first);
    take_row(work, k + 1, second);
    for (int64_t j = 0; j < work->n; j++)
        second[j] += minus_multiplier * first[j];
    for (int64_t j = k; tried && j < work->n; j++)
        grown = LARGER(grown, LARGER(magnitude(first[j]), magnitude(second[j])));
    work->grown = grown;
}

/* Steps k and k + 1. */
HOST_INLINE void eliminate_two(struct work *work, int64_t k, bool tried)
{
    int64_t n = work->n, i = 0;
    take_rows(work, k, eliminate_columns(work, k), tried);
    for (; i + TILE <= n; i += TILE)
        update_rows(work, i, TILE);
    for (; i < n; i++)
        update_rows(work, i, 1);
    for (i = 0; i < n; i++) {
        V *row = work->a + i * work->ld;
        row[k] = work->ends[i];
        row[k + 1] = -work->multipliers[1][i];
    }
}

/* Has two rows of every lane's next matrix on their way, while there is work to hide it behind. */
HOST_INLINE void fetch_next(const struct R(host_small_group) * group, int64_t n, int64_t k)
{
    for (int lane = 0; lane < LANES; lane++) {
        const char *rows = (const char *)(group->next[lane] + k * n);
        for (int64_t at = 0; at < 2 * n * (int64_t)sizeof(REAL); at += LINE_BYTES)
            __builtin_prefetch(rows + at);
    }
}

/* ---- After ---- */

/* What the checks need, in the order of the rows and columns as they stand: t goes to next and A t
 * to ends; for the right side s goes to one line of multipliers and s^T A to the other. */
HOST_INLINE void arrange(const struct work *work, struct sides tried)
{
    const INTEGER *pivots = (const INTEGER *)work->pivots;
    const REAL *left = (const REAL *)work->image[METHOD_LEFT],
               *right = (const REAL *)work->image[METHOD_RIGHT];
    REAL *signs = (REAL *)work->next, *image = (REAL *)work->ends;
    REAL *column_signs = (REAL *)work->multipliers[0], *weights = (REAL *)work->multipliers[1];
    for (int64_t k = 0; k < work->n; k++) {
        for (int lane = 0; lane < LANES; lane++) {
            int64_t at = k * LANES + lane, row = pivots[at], place = row * LANES + lane;
            if (tried.left) {
                signs[place] = probe[k];
                image[at] = left[place];
            }
            if (tried.right) {
                column_signs[at] = probe_right[row];
                weights[place] = right[at];
            }
        }
    }
}

/* Is X (A t) near t, and are U's entries not far beyond |A|? Where they are, errors may cancel in
 * A t. With errors of the size e in X A, an entry of the difference is near sqrt(n) e, and the sum
 * of all, `off`, is n sqrt(n) e; one bad column of X A - I adds all of itself to it. */
HOST_INLINE void judge_left(struct work *work, V off, V size)
{
    work->good &= off <= size * all((REAL)work->n * REAL_EPS);
    work->good &= work->grown <= work->norm * all(HOST_GROWTH_PASSING_MAX);
}

/* Is each entry of (s^T A) X near that of s? Rounding leaves more of I - A X than of I - X A, so
 * that more is allowed: an error that is spread over a column has a ratio of 1 there. Next to a
 * condition near 1 it is the check's own rounding that shows. */
HOST_INLINE void judge_right(struct work *work, const V *image, V size)
{
    const V allowed = (size + all(4)) * all((REAL)sqrt((double)work->n) * REAL_EPS);
    for (int64_t j = 0; j < work->n; j++)
        work->good &= magnitude(image[j] - work->multipliers[0][j]) <= allowed;
}

/* |X|, and whether X is good: finite, and on the sides that are tried. Returns RCOND. */
HOST_INLINE V judge(struct work *work, struct sides tried)
{
    int64_t n = work->n;
    V *restrict sums = work->rows[0], *restrict right = work->rows[1], off = {0}, norm = {0};
    const V *restrict signs = work->next, *restrict image = work->ends;
    for (int64_t j = 0; j < n; j++)
        sums[j] = right[j] = (V){0};
    for (int64_t i = 0; i < n; i++) {
        const V *restrict row = work->a + i * work->ld;
        const V weight = work->multipliers[1][i];
        V sum = {0};
        for (int64_t j = 0; j < n; j++) {
            sums[j] += magnitude(row[j]);
            if (tried.left)
                sum += row[j] * image[j];
            if (tried.right)
                right[j] += row[j] * weight;
        }
        if (tried.left)
            off += magnitude(sum - signs[i]);
    }
    for (int64_t j = 0; j < n; j++) {
        work->good &= sums[j] <= all(REAL_MAX);
        norm = LARGER(norm, sums[j]);
    }
    work->good &= norm > all(0);
    if (tried.left)
        judge_left(work, off, work->norm * norm);
    if (tried.right)
        judge_right(work, right, work->norm * norm);
    return 1 / work->norm / norm;
}

HOST_INLINE void store(const struct work *work, int lane, REAL *restrict x)
{
    int64_t n = work->n;
    const INTEGER *pivots = (const INTEGER *)work->pivots + lane;
    const REAL *a = (const REAL *)work->a + lane;
    for (int64_t k = 0; k < n; k++, x += n) {
        const REAL *row = a + pivots[k * LANES] * work->ld * LANES;
        for (int64_t j = 0; j < n; j++)
            x[pivots[j * LANES]] = row[j * LANES];
    }
}

HOST_INLINE void invert_order(struct R(host_small_group) * group, int64_t n, void *scratch)
{
    struct work work = carve(n, scratch);
    const struct sides tried = {.left = n >= HOST_CHECKED_ORDER_MIN,
                                .right = n >= HOST_CHECKED_RIGHT_MIN};
    int64_t k = 0;
    load(&work, group->a);
    measure(&work, tried);
    for (int64_t i = 0; i < n; i++)
        work.spare[i] = ~(BITS){0};
    if (n % 2)
        eliminate_one(&work, k++);
    for (; k < n; k += 2) {
        fetch_next(group, n, k);
        eliminate_two(&work, k, tried.left);
    }
    if (tried.left || tried.right)
        arrange(&work, tried);
    V rcond = judge(&work, tried);
    for (int lane = 0; lane < LANES; lane++) {
        group->rcond[lane] = rcond[lane];
        group->good[lane] = work.good[lane] != 0;
        if (group->good[lane] && group->x[lane])
            store(&work, lane, group->x[lane]);
    }
}

/* The smallest orders have code of their own, whose loops the compiler unrolls. */
void AT_WIDTH(host__small_invert)(struct R(host_small_group) * group, int64_t n, void *scratch)
{
    switch (n) {
    case 1:
        invert_order(group, 1, scratch);
        break;
    case 2:
        invert_order(group, 2, scratch);
        break;
    case 3:
        invert_order(group, 3, scratch);
        break;
    case 4:
        invert_order(group, 4, scratch);
        break;
    case 5:
        invert_order(group, 5, scratch);
        break;
    case 6:
        invert_order(group, 6, scratch);
        break;
    case 7:
        invert_order(group, 7, scratch);
        break;
    case 8:
        invert_order(group, 8, scratch);
        break;
    default:
        invert_order(group, n, scratch);
    }
}
