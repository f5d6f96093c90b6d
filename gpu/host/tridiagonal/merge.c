/* gpu/host/tridiagonal/merge.c: the inverse of a dominant tridiagonal matrix by merging blocks with
 * Sherman and Morrison's formula; see tridiagonal.h.
 *
 * After "Accelerating Tridiagonal Matrix Inversion on the GPU" (Demere, Hormenou, Yoon): A is
 * reorganised into independent blocks of two rows, and level by level neighbours are merged,
 * X = B - (B u)(v^T B) / (1 + v^T B u). Here n is any number, and the split at h takes
 * u = e_h + s e_{h+1}, v = s dl_h e_h + du_h e_{h+1} with a sign s, which turns d_h into
 * d_h - s dl_h and d_{h+1} into d_{h+1} - s du_h. The paper's s = 1 can make a half singular, of a
 * matrix as harmless as the Toeplitz (2, 1). s = -sign(d_h dl_h) makes both diagonals larger where
 * the signs allow that; where they do not, the sign is taken that spends less than the dominance
 * of the row or column gained by losing its neighbour.
 *
 * Of each block only the border and the diagonal are needed. Threads: any. Cost: O(n) a level.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "gpu/host/base/stop.h"
#include "gpu/host/tridiagonal/tridiagonal.h"

/* The sign s of the split between rows h and h + 1. */
static double sign_of_split(const struct host_tri *a, int64_t h)
{
    double upper = signbit(a->d[h]) == signbit(a->dl[h]) ? -1 : 1;
    double lower = signbit(a->d[h + 1]) == signbit(a->du[h]) ? -1 : 1;
    return fabs(a->du[h]) <= fabs(a->dl[h]) ? upper : lower;
}

static void store_single(const struct host_tri_blocks *blocks, int64_t i, double x)
{
    blocks->first_row[i] = blocks->last_row[i] = x;
    blocks->first_column[i] = blocks->last_column[i] = x;
    blocks->diagonal[i] = x;
}

/* The inverse of [p b; c q], by its two Schur complements. */
static double store_pair(const struct host_tri *a, struct host_tri_blocks *blocks, int64_t i)
{
    double p = blocks->entries[i], q = blocks->entries[i + 1], b = a->du[i], c = a->dl[i];
    double upper = 1 / (p - b * (c / q)), lower = 1 / (q - c * (b / p));
    double right = -(b / p) * lower, left = -(c / q) * upper;
    blocks->diagonal[i] = blocks->first_row[i] = blocks->first_column[i] = upper;
    blocks->diagonal[i + 1] = blocks->last_row[i + 1] = blocks->last_column[i + 1] = lower;
    blocks->first_row[i + 1] = blocks->last_column[i] = blocks->entries[i] = right;
    blocks->last_row[i] = blocks->first_column[i + 1] = blocks->entries[i + 1] = left;
    double sum = fabs(upper) + fabs(lower) + fabs(left) + fabs(right);
    blocks->growth = sum > blocks->growth ? sum : blocks->growth;
    return sum * 0;
}

bool host__tri_leaves(const struct host_tri *a, struct host_tri_blocks *blocks)
{
    int64_t n = a->n;
    double excess = 0;
    blocks->growth = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        end = host_stop_part(i, n);
        memcpy(blocks->entries + i, a->d + i, (size_t)(end - i) * sizeof *blocks->entries);
    }
    for (int64_t h = 1; h + 1 < n; h += 2) {
        host_stop_check_row(h);
        double sign = sign_of_split(a, h);
        blocks->entries[h] -= sign * a->dl[h];
        blocks->entries[h + 1] -= sign * a->du[h];
    }
    for (int64_t i = 0; i + 1 < n; i += 2) {
        host_stop_check_row(i + 1);
        excess += store_pair(a, blocks, i);
    }
    if (n % 2) {
        store_single(blocks, n - 1, 1 / blocks->entries[n - 1]);
        excess += blocks->diagonal[n - 1] * 0;
    }
    return excess == 0;
}

/* Of the inverse, one row (or column) of the border loses its entry times the other factor. */
static void subtract(double *line, const double *factor, double entry, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        line[i] -= entry * factor[i];
}

/* A NaN is no larger. */
HOST_INLINE double larger(double a, double b)
{
    return a > b ? a : b;
}

/* A merger of the blocks on both sides of `middle`. */
struct merger {
    struct host_tri_blocks *blocks;
    int64_t middle;
    double sign, dl, du, divisor; /* dl: times the sign */
    double largest_column, largest_row;
    double excess; /* NaN when a number is not finite */
};

/* Rows first to end - 1 of column and row, which the diagonal loses; the inner borders are gone. */
static void find_product(struct merger *merger, int64_t first, int64_t end)
{
    struct host_tri_blocks *blocks = merger->blocks;
    double *column = blocks->column, *row = blocks->row;
    double sign = merger->sign, dl = merger->dl, du = merger->du, divisor = merger->divisor;
    int64_t upper_end = end < merger->middle ? end : merger->middle;
    int64_t lower_first = first > merger->middle ? first : merger->middle;
    for (int64_t i = first; i < upper_end; i++) {
        column[i] = blocks->last_column[i] / divisor;
        row[i] = dl * blocks->last_row[i];
        blocks->last_row[i] = blocks->last_column[i] = 0;
    }
    for (int64_t i = lower_first; i < end; i++) {
        column[i] = sign * blocks->first_column[i] / divisor;
        row[i] = du * blocks->first_row[i];
        blocks->first_row[i] = blocks->first_column[i] = 0;
    }
    double excess = merger->excess, largest_column = merger->largest_column;
    double largest_row = merger->largest_row;
    for (int64_t i = first; i < end; i++) {
        largest_column = larger(fabs(column[i]), largest_column);
        largest_row = larger(fabs(row[i]), largest_row);
        blocks->diagonal[i] -= column[i] * row[i];
        excess += blocks->diagonal[i] * 0 + column[i] * 0 + row[i] * 0;
    }
    merger->excess = excess;
    merger->largest_column = largest_column;
    merger->largest_row = largest_row;
}

bool host__tri_merge(const struct host_tri *a, struct host_tri_blocks *blocks, int64_t first,
                     int64_t middle, int64_t end)
{
    int64_t h = middle - 1;
    double sign = sign_of_split(a, h), dl = sign * a->dl[h], du = a->du[h];
    struct merger merger = {.blocks = blocks, .middle = middle, .sign = sign, .dl = dl, .du = du};
    merger.divisor = 1 + dl * blocks->diagonal[h] + sign * du * blocks->diagonal[middle];
    for (int64_t i = first, next; i < end; i = next) {
        next = host_stop_part(i, end);
        find_product(&merger, i, next);
    }
    blocks->growth = larger(merger.largest_column * merger.largest_row, blocks->growth);
    const double *column = blocks->column, *row = blocks->row;
    for (int64_t i = first, next; i < end; i = next) {
        next = host_stop_part(i, end);
        subtract(blocks->first_row, row, column[first], i, next);
        subtract(blocks->last_row, row, column[end - 1], i, next);
        subtract(blocks->first_column, column, row[first], i, next);
        subtract(blocks->last_column, column, row[end - 1], i, next);
    }
    return merger.excess == 0;
}
