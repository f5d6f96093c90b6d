/* demo/residual.c: how good an answer is, by the measure of LAPACK's own tests (dget03, dget01).
 *
 * Everything is computed in long double, so that what is measured is the answer's error and not
 * that of the measurement. Cost: O(batch n^3).
 */
#include "demo/demo.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The larger of both; a NaN wins for good. */
static long double larger(long double largest, long double value)
{
    return isnan(largest) || value <= largest ? largest : value;
}

static double norm_1(int64_t n, const double *a)
{
    long double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += fabs(a[i * n + j]);
        largest = larger(largest, sum);
    }
    return (double)largest;
}

static double eps(const struct demo_problem *problem)
{
    return problem->fp32 ? FLT_EPSILON : DBL_EPSILON;
}

/* |I - X A|, X and A of n x n. */
static double residual_inverse(int64_t n, const double *x, const double *a)
{
    long double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            long double r = i == j;
            for (int64_t k = 0; k < n; k++)
                r -= (long double)x[i * n + k] * a[k * n + j];
            sum += fabsl(r);
        }
        largest = larger(largest, sum);
    }
    return (double)largest;
}

double demo_ratio_inverse(const struct demo_problem *problem, const double *x)
{
    int64_t n = problem->n;
    double largest = 0;
    for (int64_t b = 0; b < problem->batch; b++) {
        const double *matrix = problem->a + b * n * n, *inverse = x + b * n * n;
        double scale = (double)n * norm_1(n, matrix) * norm_1(n, inverse) * eps(problem);
        double ratio = residual_inverse(n, inverse, matrix) / scale;
        largest = (double)larger(largest, ratio);
    }
    return largest;
}

/* |P A - L U|; pa, n x n, holds A at first and is overwritten with P A. */
static double residual_factors(int64_t n, const double *lu, const int32_t *pivots, double *pa)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t other = pivots[i] - 1;
        if (other < i || other >= n)
            return INFINITY;
        for (int64_t j = 0; j < n; j++) {
            double swapped = pa[i * n + j];
            pa[i * n + j] = pa[other * n + j];
            pa[other * n + j] = swapped;
        }
    }
    long double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            long double r = pa[i * n + j];
            for (int64_t k = 0; k <= i && k <= j; k++)
                r -= (k == i ? 1 : (long double)lu[i * n + k]) * lu[k * n + j];
            sum += fabsl(r);
        }
        largest = larger(largest, sum);
    }
    return (double)largest;
}

double demo_ratio_factors(const struct demo_problem *problem, const double *lu,
                          const int32_t *pivots)
{
    int64_t n = problem->n;
    double largest = 0;
    double *pa = calloc((size_t)(n * n), sizeof *pa);
    if (pa == NULL)
        return INFINITY;
    for (int64_t b = 0; b < problem->batch; b++) {
        const double *matrix = problem->a + b * n * n;
        for (int64_t i = 0; i < n * n; i++)
            pa[i] = matrix[i];
        double scale = (double)n * norm_1(n, matrix) * eps(problem);
        double ratio = residual_factors(n, lu + b * n * n, pivots + b * n, pa) / scale;
        largest = (double)larger(largest, ratio);
    }
    free(pa);
    return largest;
}
