/* gpu/host/tridiagonal/sweep.c: the inverse of a dominant tridiagonal matrix by two sweeps; see
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
#include "gpu/host/base/speed.h"

#include <math.h>

#include "gpu/host/base/stop.h"
#include "gpu/host/tridiagonal/tridiagonal.h"

/* Accumulators of so many rows at once, side by side. */
#define LANES 8

struct look {
    double column[LANES];     /* the largest sum of magnitudes in a column */
    double column_gap[LANES]; /* by how much at most the others exceed the diagonal's there */
    double row_gap[LANES];    /* likewise, in a row */
    double excess[LANES];     /* NaN when a sum is not finite */
};

HOST_INLINE double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Row and column i. */
HOST_INLINE void look_at(struct look *look, int lane, double middle, double left, double right,
                         double upper, double lower)
{
    double size = fabs(middle), others = fabs(left) + fabs(right);
    double around = fabs(upper) + fabs(lower), sum = size + around;
    look->column[lane] = larger(sum, look->column[lane]);
    look->column_gap[lane] = larger(around - size, look->column_gap[lane]);
    look->row_gap[lane] = larger(others - size, look->row_gap[lane]);
    look->excess[lane] += sum * 0;
}

double host__tri_look(const struct host_tri *a, bool *dominant)
{
    struct look look = {{0}, {0}, {0}, {0}};
    const double *dl = a->dl, *d = a->d, *du = a->du;
    int64_t n = a->n, i = 1;
    look_at(&look, 0, d[0], 0, n > 1 ? du[0] : 0, 0, n > 1 ? dl[0] : 0);
    if (n > 1)
        look_at(&look, 1, d[n - 1], dl[n - 2], 0, du[n - 2], 0);
    while (i < n - LANES) {
        int64_t end = host_stop_part(i, n - LANES);
        for (; i < end; i += LANES) {
            for (int k = 0; k < LANES; k++)
                look_at(&look, k, d[i + k], dl[i + k - 1], du[i + k], du[i + k - 1], dl[i + k]);
        }
    }
    for (; i + 1 < n; i++)
        look_at(&look, 0, d[i], dl[i - 1], du[i], du[i - 1], dl[i]);
    for (int k = 1; k < LANES; k++) {
        look.column[0] = larger(look.column[k], look.column[0]);
        look.column_gap[0] = larger(look.column_gap[k], look.column_gap[0]);
        look.row_gap[0] = larger(look.row_gap[k], look.row_gap[0]);
        look.excess[0] += look.excess[k];
    }
    *dominant = look.column_gap[0] <= 0 || look.row_gap[0] <= 0;
    return look.column[0] + look.excess[0];
}

/* Fills above and below, and diagonal with the sum of the magnitudes in each column below the
 * diagonal, by X_jj's. Returns 0, or a NaN when a number is not finite. */
static double find_ratios(const struct host_tri *a, const struct host_tri_sweep *sweep)
{
    int64_t n = a->n;
    double delta = a->d[0], gamma = a->d[n - 1], sum = 0, excess = 0;
    sweep->diagonal[n - 1] = 0;
    for (int64_t i = 0, k = n - 1; k > 0; i++, k--) {
        host_stop_check_row(i);
        double above = -a->du[i] / delta, below = -a->dl[k - 1] / gamma;
        delta = a->d[i + 1] + a->dl[i] * above;
        gamma = a->d[k - 1] + a->du[k - 1] * below;
        sum = fabs(below) * (1 + sum);
        excess += above * 0 + below * 0;
        sweep->above[i] = above;
        sweep->below[k] = below;
        sweep->diagonal[k - 1] = sum;
    }
    return excess;
}

bool host__tri_sweep(const struct host_tri *a, struct host_tri_sweep *sweep)
{
    int64_t n = a->n;
    double excess = find_ratios(a, sweep), *diagonal = sweep->diagonal;
    double sum = 0, largest = 0, before = 1, error = 0; /* sum: above the diagonal, by X_jj's */
    for (int64_t j = 0; j < n; j++) {
        host_stop_check_row(j);
        double from_above = j > 0 ? a->dl[j - 1] * sweep->above[j - 1] : 0;
        double from_below = j + 1 < n ? a->du[j] * sweep->below[j + 1] : 0;
        double x = 1 / (a->d[j] + from_above + from_below);
        sum = j > 0 ? fabs(sweep->above[j - 1]) * (1 + sum) : 0;
        double column = fabs(x) * (1 + sum + diagonal[j]);
        double now = (a->d[j] + from_below) * x, wrong = j > 0 ? fabs(now / before - 1) : 0;
        before = (a->d[j] + from_above) * x;
        diagonal[j] = x;
        largest = column > largest ? column : largest;
        error = wrong > error ? wrong : error;
        excess += column * 0 + wrong * 0;
    }
    sweep->norm = largest;
    sweep->error = error;
    return excess == 0;
}
