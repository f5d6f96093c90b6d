#include "tests/unit/cuda/ism_truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/gpu/matrices.h"

typedef __float128 wide;

/* The largest column's sum of magnitudes. */
static wide norm_of(int64_t n, const wide *a)
{
    wide largest = 0;
    for (int64_t j = 0; j < n; j++) {
        wide sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += a[i * n + j] < 0 ? -a[i * n + j] : a[i * n + j];
        largest = sum <= largest ? largest : sum;
    }
    return largest;
}

static wide *wides(int64_t count)
{
    wide *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    return numbers;
}

/* to (rows x columns) += a (rows x inner) b, by steps from number to number. */
static void add_product(int64_t rows, int64_t columns, int64_t inner, const double *a,
                        int64_t row_step, int64_t inner_step, const wide *b, wide *to)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < inner; k++) {
            for (int64_t j = 0; j < columns; j++)
                to[i * columns + j] += (wide)a[i * row_step + k * inner_step] * b[k * columns + j];
        }
    }
}

double ismtest_update_ratio(const struct ismtest_problem *problem, const double *inverse)
{
    int64_t n = problem->n, m = problem->m;
    wide *b = wides(n * n), *k = wides(m * n), *change = wides(n * n), *z = wides(n * n);
    wide *error = wides(n * n);
    for (int64_t e = 0; e < n * n; e++) {
        b[e] = problem->b[e];
        z[e] = inverse[e];
    }
    add_product(m, n, n, problem->y, 1, m, b, k);
    add_product(n, n, m, problem->x, m, 1, k, change);
    add_product(n, n, n, inverse, n, 1, change, error);
    for (int64_t e = 0; e < n * n; e++)
        error[e] += z[e] - b[e];
    wide size = norm_of(n, z) * (1 + norm_of(n, change));
    double ratio = (double)(norm_of(n, error) / size);
    free(b);
    free(k);
    free(change);
    free(z);
    free(error);
    return ratio / ((double)n * gputest_eps(problem->precision));
}
