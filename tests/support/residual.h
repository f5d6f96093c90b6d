/* tests/support/residual.h: how good an answer is, by the ratios of LAPACK's own tests (dget03,
 * dget01). All sums are of long doubles, so that what is measured is the answer's error and not
 * that of the measurement; their range needs no scaling.
 *
 * A ratio is NaN where the answer holds a NaN. Numbers of FP32 are given as doubles; eps: that of
 * the answer's precision. Threads: any. Cost: n^3 products.
 */
#ifndef TESTS_SUPPORT_RESIDUAL_H
#define TESTS_SUPPORT_RESIDUAL_H

#include <math.h>
#include <stdint.h>

/* The larger one; a NaN stays, so that what is not a number is never within a bound. */
static inline double residual_larger(double one, double other)
{
    return other > one || isnan(other) ? other : one;
}

/* The largest sum of a column's magnitudes of a (n x n, row-major). A NaN stays. */
double residual_norm(int64_t n, const double *a);
/* |I - X A| */
double residual_inverse(int64_t n, const double *x, const double *a);
/* |I - X A| / (n |A| |X| eps) */
double residual_inverse_ratio(double eps, int64_t n, const double *a, const double *x);

/* The same on both sides: of I - X A and of I - A X. From n = RESIDUAL_SAMPLED_MIN on by some
 * columns, which n^2 products choose: those where probe vectors find the most, and some others. The
 * largest may be missed, but one of nearly that size is met. */
#define RESIDUAL_SAMPLED_MIN 400
struct residual_sides {
    double left, right;
};
struct residual_sides residual_sides(double eps, int64_t n, const double *a, const double *x);
/* |P A - L U| / (n |A| eps); lu: L without its diagonal, and U. pivots: row k changed places with
 * row pivots[k], from 1. HUGE_VAL where a pivot is no such row. */
double residual_factors_ratio(double eps, int64_t n, const double *a, const double *lu,
                              const int32_t *pivots);

/* |B - Z M| / (n eps |Z| (1 + |M - I|)) with M = I + X Y^T B: of Z, an update of the inverse B by
 * X and Y (n x m). Its sums have 113 bits: terms that cancel leave the rounding of a long double.
 */
double residual_update_ratio(double eps, int64_t n, int64_t m, const double *b, const double *x,
                             const double *y, const double *z);

#endif
