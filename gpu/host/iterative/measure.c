/* gpu/host/iterative/measure.c: how large V, R and X are, and the residual that counts; see
 * shared.h.
 *
 * A tolerance so near to the measured residual that its rounding could hide on which side it is, is
 * judged with R in double-double, or an estimate of what is hidden (gpu/common/iteration.h).
 *
 * Threads: any; passes run on a team. Cost: a product, and passes over V and R; where a tolerance
 * is judged those of double_double.c. Of a matrix that is equilibrated V is read twice, and R twice
 * where its columns are scaled.
 */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "gpu/common/iteration.h"
#include "gpu/host/iterative/shared.h"

#include "gpu/host/base/by_precision.h"

static double product_of(struct host_norm a, struct host_norm b)
{
    return b.finite ? ldexp(a.fraction * b.fraction, a.exponent + b.exponent) : HUGE_VAL;
}

/* The 1-norm of V, or R, times the columns' exponents by its rows and `columns` by its columns. */
static double scaled_norm(const struct R(host_iter) * iter, const REAL *matrix,
                          const int32_t *columns, int column_sign)
{
    const struct host_scaling scaling = {.rows = iter->equilibrium.columns,
                                         .columns = columns,
                                         .row_sign = 1,
                                         .column_sign = column_sign};
    return R(host__scaled_norm)(iter->team, matrix, iter->n, iter->ld, &scaling,
                                (double *)(void *)iter->lines);
}

/* R, and the residual that counts: C R C^-1, C being the columns' powers of two. */
static void measure_residual(const struct R(host_iter) * iter, struct host_iter_sizes *sizes)
{
    struct host_measure measure =
        R(host__measure)(iter->team, iter->r, iter->n, iter->ld, 1, iter->lines, iter->ld);
    sizes->residual = sizes->sent = measure.norm_1;
    sizes->frobenius = measure.frobenius;
    if (iter->uneven)
        sizes->sent = scaled_norm(iter, iter->r, iter->equilibrium.columns, -1);
}

void R(host__iter_measure_v)(const struct R(host_iter) * iter, struct host_iter_sizes *sizes)
{
    sizes->v = R(host__norm)(iter->team, iter->v, iter->n, iter->ld, iter->lines);
    sizes->x = sizes->v;
    if (iter->scaled) {
        const double norm = scaled_norm(iter, iter->v, iter->equilibrium.rows, 1);
        sizes->x = (struct host_norm){.finite = norm <= (double)REAL_MAX};
        sizes->x.fraction = frexp(sizes->x.finite ? norm : 0, &sizes->x.exponent);
    }
    sizes->size = product_of(iter->identity.norm_1, sizes->v);
    sizes->size_sent = product_of(iter->sent, sizes->x);
}

/* That of the residual that counts, by which its rounding is bounded. */
static double size_of_residual(const struct R(host_iter) * iter,
                               const struct host_iter_sizes *sizes)
{
    return iter->uneven ? sizes->size_sent : sizes->size;
}

/* To the residual that counts; and to |R|_F. */
static void add(const struct R(host_iter) * iter, double norm_1, double frobenius,
                struct host_iter_sizes *sizes)
{
    sizes->sent += norm_1;
    sizes->frobenius = hypot(sizes->frobenius, frobenius);
    if (!iter->uneven)
        sizes->residual = sizes->sent;
}

/* The 1-norm of |V| |A|, entry by entry, for R and for the residual that counts. */
static double terms_of_residual(const struct R(host_iter) * iter)
{
    return R(host__iter_terms)(iter, iter->v, iter->a, NULL);
}

static double terms_of_sent(const struct R(host_iter) * iter)
{
    return R(host__iter_terms)(iter, iter->v, iter->a, iter->equilibrium.columns);
}

/* Measures R anew where its rounding may hide on which side of the tolerance it is. A tolerance is
 * 1/2 at most, so that an R within it is that of an inverse, however large |R|_F. */
static void judge(const struct R(host_iter) * iter, double tolerance, struct host_iter_sizes *sizes)
{
    const double rounding =
        ITERATION_ROUNDING(iter->n, (double)REAL_EPS, size_of_residual(iter, sizes));
    if (!(fabs(sizes->sent - tolerance) < rounding))
        return;
    if (iter->n > ITERATION_WHOLE_FIRST) {
        struct host_iter_rounding hidden = {0};
        if (iter->uneven)
            hidden.norm_1 = ITERATION_ROUNDING(iter->n, (double)REAL_EPS, terms_of_sent(iter));
        else
            hidden = R(host__iter_rounding)(iter);
        if (sizes->sent - tolerance >= hidden.norm_1 || iter->n > ITERATION_WHOLE_MAX) {
            add(iter, hidden.norm_1, hidden.frobenius, sizes);
            return;
        }
    }
    R(host__iter_residual_dd)(iter);
    measure_residual(iter, sizes);
}

/* R was measured in double-double, which does not see everything: that is the least, and is
 * added where it could hide on which side of the tolerance the residual that counts is. finest: it
 * may. */
static void count_unseen(const struct R(host_iter) * iter, bool finest,
                         struct host_iter_sizes *sizes)
{
    const int64_t n = iter->n;
    const bool of_r = !iter->uneven || n <= ITERATION_DD_ORDER_MAX;
    const double unseen = of_r ? ITERATION_UNSEEN(n, terms_of_residual(iter)) : 0;
    const double of_sent = iter->uneven ? ITERATION_UNSEEN(n, terms_of_sent(iter)) : unseen;
    sizes->residual = sizes->residual < unseen ? unseen : sizes->residual;
    sizes->frobenius = sizes->frobenius < unseen ? unseen : sizes->frobenius;
    if (finest)
        add(iter, of_sent, 0, sizes);
    sizes->sent = sizes->sent < of_sent ? of_sent : sizes->sent;
}

/* What |R| is to come to. */
static double goal_of(const struct R(host_iter) * iter, double tolerance,
                      const struct host_iter_sizes *sizes)
{
    const double eps = (double)REAL_EPS, n = (double)iter->n;
    /* Of what counts. */
    const double share = iter->uneven && sizes->sent > 0 ? sizes->residual / sizes->sent : 1;
    if (tolerance > 0)
        return (tolerance - sizes->lost) * share;
    /* fmin: of a NaN, where X overflows, the other one. */
    return fmin(ITERATION_GOAL_ULPS * eps * sizes->size,
                ITERATION_RATIO_ACCEPTED * n * eps * sizes->size_sent * share);
}

double R(host__iter_lost)(const struct R(host_iter) * iter)
{
    return ITERATION_LOST(iter->n, iter->sent.fraction, iter->sent.exponent,
                          REAL_MIN_EXP - REAL_DIG, (double)REAL_EPS);
}

void R(host__iter_measure)(const struct R(host_iter) * iter, double tolerance, bool judges,
                           struct host_iter_sizes *sizes)
{
    const bool small = iter->n <= ITERATION_DD_ORDER_MAX;
    R(host__iter_residual)(iter);
    measure_residual(iter, sizes);
    R(host__iter_measure_v)(iter, sizes);
    sizes->lost = iter->scaled ? R(host__iter_lost)(iter) : 0;
    const double wanted = tolerance - sizes->lost;
    if (tolerance > 0 && judges && !small)
        judge(iter, wanted, sizes);
    /* Double-double does not show on which side it is, the rounding of the norm next to it? */
    const bool finest =
        tolerance > 0 &&
        fabs(sizes->sent - wanted) <= 2 * ITERATION_UNSEEN(iter->n, size_of_residual(iter, sizes));
    if (finest || (small && ITERATION_MAY_BE_UNSEEN(sizes->size)))
        count_unseen(iter, finest, sizes);
    sizes->goal = goal_of(iter, tolerance, sizes);
}
