/* tests/support/residual.c: see residual.h. */
#include "tests/support/residual.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 4  /* whose sums run side by side */
#define PROBES 4   /* vectors by which columns are chosen */
#define SAMPLED 16 /* columns that they choose */

/* A NaN stays. */
static long double larger(long double one, long double other)
{
    return other > one || isnan(other) ? other : one;
}

static long double norm(int64_t n, const double *a)
{
    long double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += fabsl((long double)a[i * n + j]);
        largest = larger(largest, sum);
    }
    return largest;
}

double residual_norm(int64_t n, const double *a)
{
    return (double)norm(n, a);
}

/* `count` columns of a matrix, those that `chosen` lists or the first ones, one behind the other;
 * zeros fill them up to whole COLUMNS. */
static double *columns_of(int64_t n, const double *a, int64_t count, const int64_t *chosen)
{
    double *columns = calloc((size_t)((count + COLUMNS) * n), sizeof *columns);
    if (!columns)
        abort();
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < count; j++)
            columns[j * n + i] = a[i * n + (chosen ? chosen[j] : j)];
    }
    return columns;
}

/* Adds line times the columns from `columns` on to sums; `count` numbers of each. */
static void add_products(int64_t count, int64_t n, const double *line, const double *columns,
                         long double sums[COLUMNS])
{
    long double a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (int64_t k = 0; k < count; k++) {
        const long double number = line[k];
        a += number * columns[k];
        b += number * columns[n + k];
        c += number * columns[2 * n + k];
        d += number * columns[3 * n + k];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* The largest sum of magnitudes of those columns of I - X A. */
static long double columns_residual(int64_t n, const double *x, const double *a, int64_t count,
                                    const int64_t *chosen)
{
    long double largest = 0;
    double *columns = columns_of(n, a, count, chosen);
    for (int64_t j = 0; j < count; j += COLUMNS) {
        const int64_t width = count - j < COLUMNS ? count - j : COLUMNS;
        long double norms[COLUMNS] = {0};
        for (int64_t i = 0; i < n; i++) {
            long double sums[COLUMNS] = {0};
            for (int64_t c = 0; c < width; c++)
                sums[c] = i == (chosen ? chosen[j + c] : j + c) ? -1 : 0;
            add_products(n, n, x + i * n, columns + j * n, sums);
            for (int c = 0; c < COLUMNS; c++)
                norms[c] += fabsl(sums[c]);
        }
        for (int64_t c = 0; c < width; c++)
            largest = larger(largest, norms[c]);
    }
    free(columns);
    return largest;
}

static long double inverse_residual(int64_t n, const double *x, const double *a)
{
    return columns_residual(n, x, a, n, NULL);
}

double residual_inverse(int64_t n, const double *x, const double *a)
{
    return (double)inverse_residual(n, x, a);
}

double residual_inverse_ratio(double eps, int64_t n, const double *a, const double *x)
{
    const long double size = norm(n, a) * norm(n, x);
    return (double)(inverse_residual(n, x, a) / size / ((long double)n * eps));
}

/* sums = line times a (n x n). */
static void times_matrix(int64_t n, const long double *line, const double *a, long double *sums)
{
    for (int64_t j = 0; j < n; j++)
        sums[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            sums[j] += line[i] * a[i * n + j];
    }
}

/* How much vectors of random signs find of I - X A in each column. */
static void probe(int64_t n, const double *x, const double *a, long double *found)
{
    long double *lines = calloc((size_t)(3 * n), sizeof *lines);
    uint64_t seed = (uint64_t)n;
    if (!lines)
        abort();
    for (int p = 0; p < PROBES; p++) {
        long double *signs = lines, *through = lines + n, *rest = lines + 2 * n;
        for (int64_t i = 0; i < n; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            signs[i] = seed >> 63 ? 1 : -1;
        }
        times_matrix(n, signs, x, through);
        times_matrix(n, through, a, rest);
        for (int64_t j = 0; j < n; j++)
            found[j] = larger(found[j], fabsl(signs[j] - rest[j]));
    }
    free(lines);
}

/* |I - X A| by the columns that probes choose, and as many that stand at equal distances. */
static long double sampled_residual(int64_t n, const double *x, const double *a)
{
    int64_t chosen[2 * SAMPLED];
    long double *found = calloc((size_t)n, sizeof *found);
    if (!found)
        abort();
    probe(n, x, a, found);
    for (int64_t c = 0; c < SAMPLED; c++) {
        int64_t best = 0;
        for (int64_t j = 1; j < n; j++)
            best = found[j] > found[best] || isnan(found[j]) ? j : best;
        found[best] = -1;
        chosen[2 * c] = best;
        chosen[2 * c + 1] = c * n / SAMPLED;
    }
    free(found);
    return columns_residual(n, x, a, 2 * SAMPLED, chosen);
}

struct residual_sides residual_sides(double eps, int64_t n, const double *a, const double *x)
{
    const long double unit = norm(n, a) * norm(n, x) * (long double)n * eps;
    const bool sampled = n >= RESIDUAL_SAMPLED_MIN;
    const long double left = sampled ? sampled_residual(n, x, a) : inverse_residual(n, x, a);
    const long double right = sampled ? sampled_residual(n, a, x) : inverse_residual(n, a, x);
    return (struct residual_sides){.left = (double)(left / unit), .right = (double)(right / unit)};
}

/* The columns of P A. False: a pivot is no row from its own on. */
static int exchange(int64_t n, const int32_t *pivots, double *columns)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t other = pivots[k] - 1;
        if (other < k || other >= n)
            return 0;
        for (int64_t j = 0; j < n; j++) {
            const double old = columns[j * n + k];
            columns[j * n + k] = columns[j * n + other];
            columns[j * n + other] = old;
        }
    }
    return 1;
}

double residual_factors_ratio(double eps, int64_t n, const double *a, const double *lu,
                              const int32_t *pivots)
{
    long double largest = 0;
    const long double size = norm(n, a);
    double *permuted = columns_of(n, a, n, NULL);
    const int whole = exchange(n, pivots, permuted);
    for (int64_t j = 0; whole && j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            long double entry = permuted[j * n + i];
            for (int64_t k = 0; k < i && k <= j; k++)
                entry -= (long double)lu[i * n + k] * lu[k * n + j];
            sum += fabsl(i <= j ? entry - lu[i * n + j] : entry);
        }
        largest = larger(largest, sum);
    }
    free(permuted);
    if (!whole)
        return HUGE_VAL;
    return size == 0 ? 0 : (double)(largest / size / ((long double)n * eps));
}

typedef __float128 wide;

/* sum + |number| */
static wide wide_sum(wide sum, wide number)
{
    return sum + (number < 0 ? -number : number);
}

static wide wide_larger(wide one, wide other)
{
    return other > one || other != other ? other : one;
}

/* Column j of X Y^T B. */
static void change_column(int64_t n, int64_t m, int64_t j, const double *b, const double *x,
                          const double *y, wide *column)
{
    memset(column, 0, (size_t)n * sizeof *column);
    for (int64_t k = 0; k < m; k++) {
        wide product = 0;
        for (int64_t i = 0; i < n; i++)
            product += (wide)y[i * m + k] * b[i * n + j];
        for (int64_t i = 0; i < n; i++)
            column[i] += x[i * m + k] * product;
    }
}

double residual_update_ratio(double eps, int64_t n, int64_t m, const double *b, const double *x,
                             const double *y, const double *z)
{
    wide *column = calloc((size_t)n, sizeof *column), change = 0, worst = 0;
    if (!column)
        abort();
    for (int64_t j = 0; j < n; j++) {
        wide size = 0, error = 0;
        change_column(n, m, j, b, x, y, column);
        for (int64_t i = 0; i < n; i++) {
            wide sum = (wide)b[i * n + j] - z[i * n + j];
            for (int64_t k = 0; k < n; k++)
                sum -= z[i * n + k] * column[k];
            size = wide_sum(size, column[i]);
            error = wide_sum(error, sum);
        }
        change = wide_larger(change, size);
        worst = wide_larger(worst, error);
    }
    free(column);
    return (double)(worst / norm(n, z) / (1 + change) / ((double)n * eps));
}
