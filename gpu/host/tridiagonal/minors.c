/* gpu/host/tridiagonal/minors.c: the inverse of any nonsingular tridiagonal matrix from its leading
 * and trailing minors; see tridiagonal.h.
 *
 * With theta_i the leading minor of order i and phi_i the one that begins at row i (from 0),
 * X_ij = theta_i (-du_i) ... (-du_{j-1}) phi_{j+1} / det A for i <= j, and with dl and i, j
 * exchanged below the diagonal. Each minor follows from two others by products and one sum, never
 * by a division: a zero or a tiny pivot does no harm, which is what pivoting is for elsewhere. Each
 * carries its own exponent, for minors leave the range of numbers soon.
 *
 * Why both residuals are small: every recurrence that rows and columns of A impose on X off its
 * diagonal is one that the minors obey to rounding, term by term. On the diagonal A X and X A have
 * det A computed in n places, by the det A that X was divided by; these differ by n roundings of
 * sums of |A| |X| at most. The largest difference is measured.
 *
 * Threads: any. Cost: O(n): a few products, sums and divisions a row, of numbers that carry an
 * exponent of their own.
 */
#include "gpu/host/base/speed.h"

#include <math.h>

#include "gpu/host/base/stop.h"
#include "gpu/host/tridiagonal/number.h"

#define EXPONENT_MAX 250 /* of a long double, nearly, by 64 */

static const struct tri_number zero = {0, 0}, one = {1, 0};

static struct tri_number magnitude(struct tri_number a)
{
    return (struct tri_number){fabs(a.mantissa), a.exponent};
}

static bool is_larger(struct tri_number a, struct tri_number b)
{
    return tri_plus(a, (struct tri_number){-b.mantissa, b.exponent}).mantissa > 0;
}

/* -dl_i du_i b; 0 where i is outside. */
static struct tri_number crossing(const struct host_tri *a, int64_t i, struct tri_number b)
{
    return i < 0 || i + 1 >= a->n ? zero : tri_scaled(tri_scaled(b, -a->dl[i]), a->du[i]);
}

/* upper_row[i] = theta_i, upper_column[i] = phi_{i+1}. */
static void find_minors(const struct host_tri *a, const struct host_tri_generators *generators)
{
    struct tri_number before = zero, now = one;
    for (int64_t i = 0; i < a->n; i++) {
        host_stop_check_row(i);
        tri_set(&generators->upper_row, i, now);
        struct tri_number next = tri_plus(tri_scaled(now, a->d[i]), crossing(a, i - 1, before));
        before = now;
        now = next;
    }
    before = zero;
    now = one;
    for (int64_t i = a->n - 1; i >= 0; i--) {
        host_stop_check_row(i);
        tri_set(&generators->upper_column, i, now);
        struct tri_number next = tri_plus(tri_scaled(now, a->d[i]), crossing(a, i, before));
        before = now;
        now = next;
    }
}

/* det A as row and column j of A X and X A have it. */
static struct tri_number determinant(const struct host_tri *a,
                                     const struct host_tri_generators *generators, int64_t j)
{
    struct tri_number theta = tri_get(&generators->upper_row, j),
                      phi = tri_get(&generators->upper_column, j);
    struct tri_number sum = tri_scaled(tri_times(theta, phi), a->d[j]);
    if (j > 0)
        sum = tri_plus(sum,
                       crossing(a, j - 1, tri_times(tri_get(&generators->upper_row, j - 1), phi)));
    if (j + 1 < a->n)
        sum = tri_plus(sum,
                       crossing(a, j, tri_times(theta, tri_get(&generators->upper_column, j + 1))));
    return sum;
}

static double largest_error(const struct host_tri *a, const struct host_tri_generators *generators,
                            struct tri_number det)
{
    double largest = 0;
    struct tri_number minus_one = {-1, 0};
    for (int64_t j = 0; j < a->n; j++) {
        host_stop_check_row(j);
        struct tri_number error = tri_plus(tri_over(determinant(a, generators, j), det), minus_one);
        double size = fabs(tri_plain(error));
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Minors become generators, and sums[j] the sum of column j of |X| down to the diagonal. */
static void find_generators(const struct host_tri *a, struct host_tri_minors *minors,
                            const struct host_tri_generators *generators, struct tri_number det)
{
    struct tri_number upper = one, lower = one, sum = zero;
    for (int64_t i = 0; i < a->n; i++) {
        host_stop_check_row(i);
        bool joined = i > 0 && a->du[i - 1] != 0;
        upper = joined ? tri_scaled(upper, -a->du[i - 1]) : one;
        lower = i > 0 && a->dl[i - 1] != 0 ? tri_scaled(lower, -a->dl[i - 1]) : one;
        struct tri_number theta = tri_get(&generators->upper_row, i);
        struct tri_number phi = tri_over(tri_get(&generators->upper_column, i), det);
        struct tri_number row = tri_over(theta, upper), column = tri_times(phi, upper);
        minors->diagonal[i] = tri_product(row, column);
        tri_set(&generators->upper_row, i, row);
        tri_set(&generators->upper_column, i, column);
        tri_set(&generators->lower_row, i, tri_times(phi, lower));
        tri_set(&generators->lower_column, i, tri_over(theta, lower));
        sum = tri_plus(joined ? sum : zero, magnitude(row));
        tri_set(&minors->sums, i, tri_times(sum, magnitude(column)));
    }
}

static long double find_norm(const struct host_tri *a, const struct host_tri_minors *minors,
                             const struct host_tri_generators *generators)
{
    struct tri_number sum = zero, largest = zero;
    for (int64_t j = a->n - 1; j >= 0; j--) {
        host_stop_check_row(j);
        struct tri_number lower = tri_times(sum, magnitude(tri_get(&generators->lower_column, j)));
        struct tri_number column = tri_plus(tri_get(&minors->sums, j), lower);
        if (is_larger(column, largest))
            largest = column;
        bool joined = j > 0 && a->dl[j - 1] != 0;
        sum = joined ? tri_plus(sum, magnitude(tri_get(&generators->lower_row, j))) : zero;
    }
    int64_t exponent = largest.exponent > EXPONENT_MAX ? EXPONENT_MAX : largest.exponent;
    exponent = exponent < -EXPONENT_MAX ? -EXPONENT_MAX : exponent;
    return ldexpl(largest.mantissa, 64 * (int)exponent);
}

/* The first zero pivot of elimination with row interchanges, as LAPACK's gttrf does it; n when
 * rounding has left none. */
static int64_t zero_pivot(const struct host_tri *a)
{
    int64_t n = a->n;
    double pivot = a->d[0], right = n > 1 ? a->du[0] : 0;
    for (int64_t k = 0; k + 1 < n; k++) {
        host_stop_check_row(k);
        double below = a->dl[k], next = a->d[k + 1], next_right = k + 2 < n ? a->du[k + 1] : 0;
        bool keeps = fabs(pivot) >= fabs(below);
        if (keeps && pivot == 0)
            return k + 1;
        double factor = keeps ? below / pivot : pivot / below;
        pivot = keeps ? next - factor * right : right - factor * next;
        right = keeps ? next_right : -factor * next_right;
    }
    return n;
}

/* Zeros take their neighbour's exponent, so that none stands out. */
static void level_zeros(const struct host_tri_line *line, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        host_stop_check_row(i);
        if (line->mantissa[i] == 0)
            line->exponent[i] = line->exponent[i - 1];
    }
    for (int64_t i = n - 2; i >= 0 && line->mantissa[0] == 0; i--) {
        host_stop_check_row(i);
        if (line->mantissa[i] == 0)
            line->exponent[i] = line->exponent[i + 1];
    }
}

int64_t host__tri_minors(const struct host_tri *a, struct host_tri_minors *minors,
                         const struct host_tri_generators *generators)
{
    find_minors(a, generators);
    struct tri_number det = determinant(a, generators, a->n / 2);
    if (det.mantissa == 0)
        return zero_pivot(a);
    minors->error = largest_error(a, generators, det);
    find_generators(a, minors, generators, det);
    minors->norm = find_norm(a, minors, generators);
    level_zeros(&generators->upper_row, a->n);
    level_zeros(&generators->upper_column, a->n);
    level_zeros(&generators->lower_row, a->n);
    level_zeros(&generators->lower_column, a->n);
    host__tri_separate(generators, a->n, a->du, a->dl);
    return 0;
}
