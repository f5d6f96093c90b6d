/* gpu/host/tri_sweep.c: the inverse of a dominant tridiagonal matrix by two sweeps; see
 * tridiagonal.h.
 *
 * delta_i, the pivots of elimination from the top, and gamma_i, those from the bottom, give the
 * ratios of neighbours in a column of X: above[i] = -du_i / delta_i, below[i] = -dl_{i-1} /
 * gamma_i. Of a matrix that is dominant by rows they are at most 1 in magnitude.
 *
 * A X = I holds to rounding column by column. X A = I also needs neighbours on the diagonal to
 * agree, delta_j X_jj = gamma_{j+1} X_{j+1,j+1}, which the rounding of nearly singular matrices
 * breaks; how far they disagree is measured.
 *
 * Threads: any. Cost: four divisions a row. The sweeps are chains of divisions; they run side by
 * side, so that one's latency hides the other's.
 */
#include "gpu/host/speed.h"

#include <math.h>

#include "gpu/host/tridiagonal.h"

bool host__tri_dominant(const struct host_tri *a)
{
    bool rows = true, columns = true;
    for (int64_t i = 0; i < a->n; i++) {
        double size = fabs(a->d[i]);
        double lower = i + 1 < a->n ? fabs(a->dl[i]) : 0, left = i > 0 ? fabs(a->dl[i - 1]) : 0;
        double right = i + 1 < a->n ? fabs(a->du[i]) : 0, upper = i > 0 ? fabs(a->du[i - 1]) : 0;
        rows = rows && size >= left + right;
        columns = columns && size >= lower + upper;
    }
    return rows || columns;
}

/* Fills above and below. Returns 0, or a NaN when a number is not finite. */
static double find_ratios(const struct host_tri *a, const struct host_tri_sweep *sweep)
{
    int64_t n = a->n;
    double delta = a->d[0], gamma = a->d[n - 1], excess = 0;
    for (int64_t i = 0, k = n - 1; k > 0; i++, k--) {
        double above = -a->du[i] / delta, below = -a->dl[k - 1] / gamma;
        delta = a->d[i + 1] + a->dl[i] * above;
        gamma = a->d[k - 1] + a->du[k - 1] * below;
        excess += above * 0 + below * 0;
        sweep->above[i] = above;
        sweep->below[k] = below;
    }
    return excess;
}

bool host__tri_sweep(const struct host_tri *a, struct host_tri_sweep *sweep)
{
    int64_t n = a->n;
    double excess = find_ratios(a, sweep);
    /* sum: of the magnitudes in a column below the diagonal, then above it, by X_jj's. */
    double *lower = sweep->diagonal, sum = 0, largest = 0, before = 1, error = 0;
    for (int64_t j = n - 1; j >= 0; j--) {
        lower[j] = sum;
        sum = j > 0 ? fabs(sweep->below[j]) * (1 + sum) : 0;
    }
    for (int64_t j = 0; j < n; j++) {
        double from_above = j > 0 ? a->dl[j - 1] * sweep->above[j - 1] : 0;
        double from_below = j + 1 < n ? a->du[j] * sweep->below[j + 1] : 0;
        double x = 1 / (a->d[j] + from_above + from_below);
        sum = j > 0 ? fabs(sweep->above[j - 1]) * (1 + sum) : 0;
        double column = fabs(x) * (1 + sum + lower[j]);
        double now = (a->d[j] + from_below) * x, wrong = j > 0 ? fabs(now / before - 1) : 0;
        before = (a->d[j] + from_above) * x;
        sweep->diagonal[j] = x;
        largest = column > largest ? column : largest;
        error = wrong > error ? wrong : error;
        excess += column * 0 + wrong * 0;
    }
    sweep->norm = largest;
    sweep->error = error;
    return excess == 0;
}
