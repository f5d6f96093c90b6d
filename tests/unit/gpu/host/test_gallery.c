/* Matrices with a name: known inverses, and structures that have broken inverters before. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/method.h"
#include "tests/support/gallery.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static double frank(int64_t i, int64_t j, int64_t n)
{
    return j >= i ? (double)(n - j) : j == i - 1 ? (double)(n - j - 1) : 0;
}

static double vandermonde(int64_t i, int64_t j, int64_t n)
{
    return pow((double)(i + 1) / (double)n, (double)j);
}

static double identity(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i == j;
}

static double rotation_of_rows(int64_t i, int64_t j, int64_t n)
{
    return (i + 1) % n == j;
}

static double reversal(int64_t i, int64_t j, int64_t n)
{
    return i + j == n - 1;
}

static double second_difference(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i == j ? 2 : llabs(i - j) == 1 ? -1 : 0;
}

static double second_difference_inverse(int64_t i, int64_t j, int64_t n)
{
    int64_t low = i < j ? i : j, high = i < j ? j : i;
    return (double)(low + 1) * (double)(n - high) / (double)(n + 1);
}

/* min(i, j): its inverse is the second difference with 1 in the last corner. */
static double minimum(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return (double)((i < j ? i : j) + 1);
}

static double minimum_inverse(int64_t i, int64_t j, int64_t n)
{
    return i == n - 1 && j == n - 1 ? 1 : second_difference(i, j, n);
}

/* Unit lower triangular of ones, and its bidiagonal inverse. */
static double steps(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i >= j;
}

static double steps_inverse(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i == j ? 1 : i == j + 1 ? -1 : 0;
}

static double binomial(int64_t n, int64_t k)
{
    double value = 1;
    for (int64_t i = 1; i <= k; i++)
        value = value * (double)(n - k + i) / (double)i;
    return k < 0 || k > n ? 0 : round(value);
}

static double pascal(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return binomial(i + j, i);
}

/* Sum of L^-T L^-1's products, L being Pascal's triangle. */
static double pascal_inverse(int64_t i, int64_t j, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += binomial(k, i) * binomial(k, j);
    return (i + j) % 2 ? -sum : sum;
}

/* Ones up to the diagonal, as ill-conditioned as a triangle of unit entries can be. */
static double wilkinson_triangle(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return i == j ? 1 : i < j ? -1 : 0;
}

static double graded(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return ldexp(1 / (double)(i + j + 1) + (i == j), (int)(-3 * (i + j)));
}

static double arrow(int64_t i, int64_t j, int64_t n)
{
    return i == j ? 1e-9 : i == 0 || j == 0 ? 1 : (double)(i * j % 7) / (double)n;
}

struct entry {
    const char *name;
    double (*at)(int64_t i, int64_t j, int64_t n);
    double (*inverse)(int64_t i, int64_t j, int64_t n); /* NULL: only the residual is checked */
    int64_t n;
    bool single;                    /* FP32 too */
    double slack;                   /* times eps |X|, for the known inverse */
    enum method_algorithm expected; /* of auto; NONE: whichever */
    bool well_conditioned;          /* INFO is 0 */
};

static const struct entry entries[] = {
    {"Hilbert", gallery_hilbert, NULL, 4, true, 0, METHOD_ALGORITHM_LU, false},
    {"Hilbert", gallery_hilbert, NULL, 8, false, 0, METHOD_ALGORITHM_NONE, false},
    {"Hilbert", gallery_hilbert, NULL, 12, false, 0, METHOD_ALGORITHM_NONE, false},
    {"Kahan", gallery_kahan, NULL, 30, true, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"Kahan", gallery_kahan, NULL, 90, false, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"Kahan transposed", gallery_kahan_transposed, NULL, 30, true, 0, METHOD_ALGORITHM_TRIANGULAR,
     false},
    {"Kahan transposed", gallery_kahan_transposed, NULL, 90, false, 0, METHOD_ALGORITHM_TRIANGULAR,
     false},
    {"Frank", frank, NULL, 9, false, 0, METHOD_ALGORITHM_LU, false},
    {"Frank", frank, NULL, 16, false, 0, METHOD_ALGORITHM_LU, false},
    {"Vandermonde", vandermonde, NULL, 6, true, 0, METHOD_ALGORITHM_LU, false},
    {"Vandermonde", vandermonde, NULL, 12, false, 0, METHOD_ALGORITHM_LU, false},
    {"growth factor", gallery_growing, NULL, 20, true, 0, METHOD_ALGORITHM_LU, false},
    {"growth factor", gallery_growing, NULL, 45, false, 0, METHOD_ALGORITHM_LU, false},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 20, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 32, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 33, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 34, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 64, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 100, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor, inexact", gallery_growing_inexact, NULL, 300, true, 0, METHOD_ALGORITHM_LU,
     true},
    {"growth factor", gallery_growing, NULL, 100, true, 0, METHOD_ALGORITHM_LU, true},
    {"Wright", gallery_wright, NULL, 20, true, 0, METHOD_ALGORITHM_LU, true},
    {"Wright", gallery_wright, NULL, 32, true, 0, METHOD_ALGORITHM_LU, true},
    {"Wright", gallery_wright, NULL, 100, true, 0, METHOD_ALGORITHM_LU, true},
    {"Wright", gallery_wright, NULL, 200, true, 0, METHOD_ALGORITHM_LU, true},
    {"Foster", gallery_foster, NULL, 20, true, 0, METHOD_ALGORITHM_LU, true},
    {"Foster", gallery_foster, NULL, 32, true, 0, METHOD_ALGORITHM_LU, true},
    {"Foster", gallery_foster, NULL, 33, true, 0, METHOD_ALGORITHM_LU, true},
    {"Foster", gallery_foster, NULL, 100, true, 0, METHOD_ALGORITHM_LU, true},
    {"Foster", gallery_foster, NULL, 200, true, 0, METHOD_ALGORITHM_LU, true},
    {"identity", identity, identity, 32, true, 0, METHOD_ALGORITHM_DIAGONAL, false},
    {"identity", identity, identity, 40, true, 0, METHOD_ALGORITHM_DIAGONAL, false},
    {"rotation", rotation_of_rows, NULL, 31, true, 0, METHOD_ALGORITHM_LU, false},
    {"rotation", rotation_of_rows, NULL, 67, true, 0, METHOD_ALGORITHM_LU, false},
    {"reversal", reversal, reversal, 32, true, 0, METHOD_ALGORITHM_LU, false},
    {"reversal", reversal, reversal, 66, true, 0, METHOD_ALGORITHM_LU, false},
    {"second difference", second_difference, second_difference_inverse, 9, true, 20,
     METHOD_ALGORITHM_TRIDIAGONAL, false},
    {"second difference", second_difference, second_difference_inverse, 32, true, 20,
     METHOD_ALGORITHM_TRIDIAGONAL, false},
    {"second difference", second_difference, second_difference_inverse, 33, true, 20,
     METHOD_ALGORITHM_TRIDIAGONAL, false},
    {"second difference", second_difference, second_difference_inverse, 150, false, 100,
     METHOD_ALGORITHM_TRIDIAGONAL, false},
    {"minimum", minimum, minimum_inverse, 20, true, 200, METHOD_ALGORITHM_LU, false},
    {"minimum", minimum, minimum_inverse, 40, true, 4000, METHOD_ALGORITHM_CHOLESKY, false},
    {"steps", steps, steps_inverse, 24, true, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"steps", steps, steps_inverse, 50, true, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"Pascal", pascal, pascal_inverse, 5, true, 1e3, METHOD_ALGORITHM_NONE, false},
    {"Pascal", pascal, pascal_inverse, 8, false, 1e6, METHOD_ALGORITHM_NONE, false},
    {"unit triangle", wilkinson_triangle, NULL, 20, true, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"unit triangle", wilkinson_triangle, NULL, 50, false, 0, METHOD_ALGORITHM_TRIANGULAR, false},
    {"graded", graded, NULL, 10, false, 0, METHOD_ALGORITHM_NONE, false},
    {"arrow", arrow, NULL, 30, false, 0, METHOD_ALGORITHM_NONE, false},
    {"arrow", arrow, NULL, 40, false, 0, METHOD_ALGORITHM_NONE, false},
};

static void try_entry(const struct entry *entry, const char *method, enum precision precision)
{
    int64_t n = entry->n;
    if (!gputest_takes(method, precision, n))
        return;
    double *a = gputest_numbers(n * n), eps = gputest_eps(precision);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = entry->at(i / n, i % n, n);
        a[i] = precision == PRECISION_FP32 ? (double)(float)a[i] : a[i];
    }
    struct gputest_answer answer = gputest_run(method, precision, n, a, false);
    double ratio = gputest_inverse_ratio(precision, n, a, answer.inverse);
    bool iterates = gputest_iterates(method);
    /* Iteration gives up where rounding leaves no digit, and loses as many as the condition says
     * where elimination of small integers is exact. */
    bool gave_up = iterates && answer.info == n + 2 && !entry->well_conditioned;
    double slack = iterates ? entry->slack + 1 / answer.rcond : entry->slack;
    if (!gave_up && !(ratio <= GPUTEST_RATIO_MAX))
        fail_msg("%s: %s %d %s: residual ratio %g", method, entry->name, (int)n,
                 precision_name(precision), ratio);
    assert_true(gave_up || answer.info == 0 || (answer.info == n + 1 && answer.rcond < eps));
    if (answer.info != 0 && entry->well_conditioned)
        fail_msg("%s: %s %d %s: INFO %d", method, entry->name, (int)n, precision_name(precision),
                 answer.info);
    enum method_algorithm expected = gputest_algorithm(entry->expected, n);
    if (strcmp(method, "auto") == 0 && expected != METHOD_ALGORITHM_NONE &&
        answer.algorithm != (int)expected && answer.rcond >= eps)
        fail_msg("%s %d took %s", entry->name, (int)n, method_algorithm_name(answer.algorithm));
    double worst = 0, norm = residual_norm(n, answer.inverse);
    for (int64_t i = 0; entry->inverse && i < n * n; i++)
        worst = residual_larger(worst, fabs(answer.inverse[i] - entry->inverse(i / n, i % n, n)));
    if (!gave_up && !(worst <= slack * eps * norm))
        fail_msg("%s: %s %d %s: off by %g eps |X|", method, entry->name, (int)n,
                 precision_name(precision), worst / eps / norm);
    gputest_free(&answer);
    free(a);
}

static void test_gallery(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(entries); i++) {
        for (size_t j = 0; j < gputest_inverters(); j++) {
            try_entry(&entries[i], gputest_inverter(j), PRECISION_FP64);
            if (entries[i].single)
                try_entry(&entries[i], gputest_inverter(j), PRECISION_FP32);
        }
    }
}

/* n has no factor 5 or 7. */
static void try_permuted(const char *method, int64_t n)
{
    if (!gputest_takes(method, PRECISION_FP64, n))
        return;
    double *a = gputest_numbers(n * n), *b = gputest_numbers(n * n), *x = gputest_numbers(n * n);
    uint64_t seed = 99;
    for (int64_t i = 0; i < n * n; i++)
        a[i] = gputest_random(&seed);
    for (int64_t i = 0; i < n * n; i++)
        b[i] = a[i / n * 5 % n * n + i % n * 7 % n];
    struct gputest_answer answer = gputest_run(method, PRECISION_FP64, n, b, false);
    for (int64_t i = 0; i < n * n; i++)
        x[i / n * 7 % n * n + i % n * 5 % n] = answer.inverse[i];
    assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, x) <= GPUTEST_RATIO_MAX);
    gputest_free(&answer);
    free(a);
    free(b);
    free(x);
}

/* Exchanging rows of A exchanges columns of its inverse, and the other way round. */
static void test_permutations_carry_over(void **state)
{
    (void)state;
    for (size_t k = 0; k < gputest_inverters(); k++) {
        try_permuted(gputest_inverter(k), 48);
        try_permuted(gputest_inverter(k), 31);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_permutations_carry_over),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
