/* gpu/host/tri_minors.c: the inverse of any nonsingular tridiagonal matrix from its leading and
 * trailing minors; see tridiagonal.h.
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
 * Threads: any. Cost: O(n).
 */
#include "gpu/host/speed.h"

#include <math.h>

#include "gpu/host/tridiagonal.h"

#define EXPONENT_MAX 16000 /* of a long double, nearly */

struct number {
    double mantissa;
    int64_t exponent;
};

static struct number normal(double mantissa, int64_t exponent)
{
    int shift;
    mantissa = frexp(mantissa, &shift);
    return (struct number){mantissa, mantissa == 0 ? 0 : exponent + shift};
}

static struct number times(struct number a, struct number b)
{
    return normal(a.mantissa * b.mantissa, a.exponent + b.exponent);
}

static struct number scaled(struct number a, double factor)
{
    int shift;
    factor = frexp(factor, &shift);
    return normal(a.mantissa * factor, a.exponent + shift);
}

static struct number over(struct number a, struct number b)
{
    return normal(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

static struct number plus(struct number a, struct number b)
{
    if (a.mantissa == 0 || (b.mantissa != 0 && b.exponent > a.exponent)) {
        struct number swapped = a;
        a = b;
        b = swapped;
    }
    int64_t down = a.exponent - b.exponent;
    double small = b.mantissa == 0 || down > 200 ? 0 : ldexp(b.mantissa, -(int)down);
    return normal(a.mantissa + small, a.exponent);
}

static struct number magnitude(struct number a)
{
    return (struct number){fabs(a.mantissa), a.exponent};
}

static bool is_larger(struct number a, struct number b)
{
    return plus(a, (struct number){-b.mantissa, b.exponent}).mantissa > 0;
}

static struct number get(const struct host_tri_line *line, int64_t i)
{
    return (struct number){line->mantissa[i], line->exponent[i]};
}

static void set(const struct host_tri_line *line, int64_t i, struct number number)
{
    line->mantissa[i] = number.mantissa;
    line->exponent[i] = number.exponent;
}

static int clamp(int64_t exponent)
{
    return (int)(exponent > EXPONENT_MAX    ? EXPONENT_MAX
                 : exponent < -EXPONENT_MAX ? -EXPONENT_MAX
                                            : exponent);
}

static const struct number zero = {0, 0}, one = {0.5, 1};

/* -dl_i du_i b; 0 where i is outside. */
static struct number crossing(const struct host_tri *a, int64_t i, struct number b)
{
    return i < 0 || i + 1 >= a->n ? zero : scaled(scaled(b, -a->dl[i]), a->du[i]);
}

/* upper_row[i] = theta_i, upper_column[i] = phi_{i+1}. */
static void find_minors(const struct host_tri *a, const struct host_tri_minors *minors)
{
    struct number before = zero, now = one;
    for (int64_t i = 0; i < a->n; i++) {
        set(&minors->upper_row, i, now);
        struct number next = plus(scaled(now, a->d[i]), crossing(a, i - 1, before));
        before = now;
        now = next;
    }
    before = zero;
    now = one;
    for (int64_t i = a->n - 1; i >= 0; i--) {
        set(&minors->upper_column, i, now);
        struct number next = plus(scaled(now, a->d[i]), crossing(a, i, before));
        before = now;
        now = next;
    }
}

/* det A as row and column j of A X and X A have it. */
static struct number determinant(const struct host_tri *a, const struct host_tri_minors *minors,
                                 int64_t j)
{
    struct number theta = get(&minors->upper_row, j), phi = get(&minors->upper_column, j);
    struct number sum = scaled(times(theta, phi), a->d[j]);
    if (j > 0)
        sum = plus(sum, crossing(a, j - 1, times(get(&minors->upper_row, j - 1), phi)));
    if (j + 1 < a->n)
        sum = plus(sum, crossing(a, j, times(theta, get(&minors->upper_column, j + 1))));
    return sum;
}

static double largest_error(const struct host_tri *a, const struct host_tri_minors *minors,
                            struct number det)
{
    double largest = 0;
    struct number minus_one = {-0.5, 1};
    for (int64_t j = 0; j < a->n; j++) {
        struct number error = plus(over(determinant(a, minors, j), det), minus_one);
        double size = ldexp(fabs(error.mantissa), clamp(error.exponent));
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Minors become generators, and sums[j] the sum of column j of |X| down to the diagonal. */
static void find_generators(const struct host_tri *a, struct host_tri_minors *minors,
                            struct number det)
{
    struct number upper = one, lower = one, sum = zero;
    for (int64_t i = 0; i < a->n; i++) {
        bool joined = i > 0 && a->du[i - 1] != 0;
        upper = joined ? scaled(upper, -a->du[i - 1]) : one;
        lower = i > 0 && a->dl[i - 1] != 0 ? scaled(lower, -a->dl[i - 1]) : one;
        struct number theta = get(&minors->upper_row, i);
        struct number phi = over(get(&minors->upper_column, i), det);
        struct number row = over(theta, upper), column = times(phi, upper);
        struct number diagonal = times(row, column);
        minors->diagonal[i] = ldexp(diagonal.mantissa, clamp(diagonal.exponent));
        set(&minors->upper_row, i, row);
        set(&minors->upper_column, i, column);
        set(&minors->lower_row, i, times(phi, lower));
        set(&minors->lower_column, i, over(theta, lower));
        sum = plus(joined ? sum : zero, magnitude(row));
        set(&minors->sums, i, times(sum, magnitude(column)));
    }
}

static long double find_norm(const struct host_tri *a, const struct host_tri_minors *minors)
{
    struct number sum = zero, largest = zero;
    for (int64_t j = a->n - 1; j >= 0; j--) {
        struct number lower = times(sum, magnitude(get(&minors->lower_column, j)));
        struct number column = plus(get(&minors->sums, j), lower);
        if (is_larger(column, largest))
            largest = column;
        bool joined = j > 0 && a->dl[j - 1] != 0;
        sum = joined ? plus(sum, magnitude(get(&minors->lower_row, j))) : zero;
    }
    return ldexpl(largest.mantissa, clamp(largest.exponent));
}

/* The first zero pivot of elimination with row interchanges, as LAPACK's gttrf does it; n when
 * rounding has left none. */
static int64_t zero_pivot(const struct host_tri *a)
{
    int64_t n = a->n;
    double pivot = a->d[0], right = n > 1 ? a->du[0] : 0;
    for (int64_t k = 0; k + 1 < n; k++) {
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

int64_t host__tri_minors(const struct host_tri *a, struct host_tri_minors *minors)
{
    find_minors(a, minors);
    struct number det = determinant(a, minors, a->n / 2);
    if (det.mantissa == 0)
        return zero_pivot(a);
    minors->error = largest_error(a, minors, det);
    find_generators(a, minors, det);
    minors->norm = find_norm(a, minors);
    return 0;
}
