/* gpu/host/tridiagonal/generators.c: the inverse of a tridiagonal matrix as products of two
 * numbers; see tridiagonal.h.
 *
 * The upper triangle of X has rank one, and so has the lower: that is what "tridiagonal inverse"
 * means. The factors, known as generators, leave the range of numbers soon, so they carry their
 * exponents. Where A falls apart (a zero next to the diagonal) X has zeros in the corner, and the
 * generators of the parts have nothing to do with each other; exponents that differ by enough say
 * so, and no product needs a look for zeros.
 *
 * Threads: any. Cost: O(n).
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/base/stop.h"
#include "gpu/host/tridiagonal/number.h"

/* Below 2^(64 * this) times two mantissas a product underflows. */
#define UNDERFLOW_EXPONENT (-18)

void host__tri_sweep_generators(const struct host_tri_sweep *sweep, int64_t n,
                                const struct host_tri_generators *generators)
{
    static const struct tri_number one = {1, 0};
    struct tri_number upper = one, lower = one;
    for (int64_t i = n - 1, k = 0; i >= 0; i--, k++) {
        host_stop_check_row(k);
        if (k > 0) {
            upper = sweep->above[i] == 0 ? one : tri_scaled(upper, sweep->above[i]);
            lower = sweep->below[k] == 0 ? one : tri_scaled(lower, sweep->below[k]);
        }
        tri_set(&generators->upper_row, i, upper);
        tri_set(&generators->lower_row, k, lower);
    }
    for (int64_t i = 0; i < n; i++) {
        host_stop_check_row(i);
        struct tri_number x = tri_number(sweep->diagonal[i], 0);
        tri_set(&generators->upper_column, i, tri_over(x, tri_get(&generators->upper_row, i)));
        tri_set(&generators->lower_column, i, tri_over(x, tri_get(&generators->lower_row, i)));
    }
    host__tri_separate(generators, n, sweep->above, sweep->below + 1);
}

static int32_t largest(const int32_t *exponents, int64_t first, int64_t end)
{
    int32_t max = INT32_MIN;
    for (int64_t i = first; i < end; i++)
        max = exponents[i] > max ? exponents[i] : max;
    return max;
}

/* Where the part that begins with row `first` ends. */
static int64_t part_end(const double *joins, int64_t first, int64_t n)
{
    int64_t end = first;
    do {
        host_stop_check_row(end);
        end++;
    } while (end < n && joins[end - 1] != 0);
    return end;
}

/* Numbers of `early` with an index in one part times numbers of `late` in a later part underflow.
 */
static void part(const struct host_tri_line *early, const struct host_tri_line *late, int64_t n,
                 const double *joins)
{
    int64_t max_early = INT32_MIN;
    for (int64_t first = 0, end = 0; first < n; first = end) {
        end = part_end(joins, first, n);
        if (first == 0 && end == n)
            return;
        int64_t sum = first > 0 ? max_early + largest(late->exponent, first, end) : INT32_MIN;
        int32_t down = sum > UNDERFLOW_EXPONENT ? (int32_t)(sum - UNDERFLOW_EXPONENT) : 0;
        for (int64_t i = first; i < end; i++) {
            host_stop_check_row(i);
            early->exponent[i] += down;
            late->exponent[i] -= down;
        }
        int64_t here = largest(early->exponent, first, end);
        max_early = here > max_early ? here : max_early;
    }
}

void host__tri_separate(const struct host_tri_generators *generators, int64_t n,
                        const double *upper_joins, const double *lower_joins)
{
    part(&generators->upper_row, &generators->upper_column, n, upper_joins);
    part(&generators->lower_column, &generators->lower_row, n, lower_joins);
    for (int64_t first = 0; first < n; first += HOST_TRI_CHUNK) {
        int64_t end = n - first < HOST_TRI_CHUNK ? n : first + HOST_TRI_CHUNK;
        host_stop_check_row(end - 1);
        generators->upper_max[first / HOST_TRI_CHUNK] =
            largest(generators->upper_column.exponent, first, end);
        generators->lower_max[first / HOST_TRI_CHUNK] =
            largest(generators->lower_column.exponent, first, end);
    }
}
