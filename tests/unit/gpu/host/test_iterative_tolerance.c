/* `iterative` with a tolerance, judged in more than double-double: INFO 0 promises it, and it
 * is called reached as soon as it is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static double *identity(int64_t n)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = 1;
    return a;
}

/* However large the Frobenius norm is. */
static void test_a_wide_tolerance(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 10, 70};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        const int64_t n = orders[k / PRECISION_COUNT];
        double *a = identity(n), *v0 = identity(n);
        for (int64_t i = 0; i < n; i++)
            v0[i * (n + 1)] = 0.625;
        struct gputest_iterate task = {.precision = (enum precision)(k % PRECISION_COUNT),
                                       .n = n,
                                       .a = a,
                                       .v0 = v0,
                                       .max_iterations = 1,
                                       .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ};
        for (int steps = 0; steps < 2; steps++) {
            const double left = steps ? 0.140625 : 0.375;
            task.tolerance = steps ? 0.25 : 0.5;
            struct gputest_iterated result = gputest_iterate(&task);
            assert_int_equal(result.info, 0);
            assert_int_equal(result.iterations, steps);
            assert_int_equal(result.algorithm, METHOD_ALGORITHM_WARM_START);
            assert_true(result.residual == left);
            gputest_iterated_free(&result);
        }
        free(a);
        free(v0);
    }
}

/* From v0, in FP64, by so many steps. */
static struct gputest_iterated iterate_from(int64_t n, const double *a, const double *v0,
                                            double tolerance, int64_t steps)
{
    struct gputest_iterate task = {.precision = PRECISION_FP64,
                                   .n = n,
                                   .a = a,
                                   .v0 = v0,
                                   .tolerance = tolerance,
                                   .max_iterations = steps};
    return gputest_iterate(&task);
}

/* A tolerance is called reached where it is, and RESIDUAL says so where it is not. */
static void check_claim(int64_t n, const double *a, const struct gputest_iterated *result,
                        double tolerance)
{
    const bool good = gputest_exact_residual(n, result->inverse, a) <= tolerance;
    assert_true(result->info == n + 2 || (result->info == 0 && good));
    assert_true(result->info == 0 || result->residual > tolerance);
}

/* Products that cancel to the last bit in double-double, but for one that is lost next to
 * them. */
static void test_what_is_lost_next_to_others(void **state)
{
    (void)state;
    static const double block[] = {
        0x1.443171d2bea2bp+23, 0, 0x1.236f92074a6d5p+23, /* the first two rows are alike, but for */
        0x1.443171d2bea2bp+23, 1, 0x1.236f92074a6d5p+23, /* the 1 */
        0x1.ec34add0a702ep+22, 0, 0x1.ba78d6612b9d2p+22};
    static const double start[] = {
        0x1.ba78d6612b9d2p+21,  0x1p-88, -0x1.236f92074a6d5p+22, -1, 1, 0,
        -0x1.ec34add0a702ep+21, 0,       0x1.443171d2bea2bp+22};
    static const int64_t orders[] = {3, 8, 9, 20, 66};
    static const double tolerances[] = {4e-26, 1e-22, 1e-18};
    for (size_t k = 0; k < COUNT(orders) * COUNT(tolerances); k++) {
        const int64_t n = orders[k / COUNT(tolerances)];
        double *a = identity(n), *v0 = identity(n);
        for (int64_t e = 0; e < 9; e++) {
            a[e / 3 * n + e % 3] = block[e];
            v0[e / 3 * n + e % 3] = start[e];
        }
        const double tolerance = tolerances[k % COUNT(tolerances)];
        struct gputest_iterated result = iterate_from(n, a, v0, tolerance, 3);
        check_claim(n, a, &result, tolerance);
        gputest_iterated_free(&result);
        free(a);
        free(v0);
    }
}

/* An entry of R in which 1 - 1 leaves the errors of n sums; what their own sum loses, always with
 * one sign, adds up to some n^2 2^-107. Next to it in its column is `seen`. */
static void make_a_sum_of_errors(int64_t n, double seen, double *a, double *v0)
{
    const double y = 0x1p-21;
    uint64_t seed = 5;
    double errors = 0;
    const int64_t last = n - 1;
    a[last] = 1;
    v0[last] = -1;
    for (int64_t k = 1; k < n - 3; k++) {
        double best = 0, most = -1;
        for (int tries = 0; tries < 100; tries++) {
            double x = 0x1p-33 * (0.99 + 0.01 * gputest_random(&seed));
            double next = errors + x * y, lost = x * y - (next - errors);
            if (lost > most) {
                most = lost;
                best = x;
            }
        }
        errors += best * y;
        a[k] = best;
        v0[k] = -best;
    }
    a[n - 2] = -errors / y;
    v0[n - 2] = errors / y;
    for (int64_t k = 1; k < last; k++) {
        a[k * n + last] = k == n - 3 ? 0 : y;
        v0[k * n + last] = k == n - 3 ? seen : -y;
    }
}

static void test_errors_that_add_up(void **state)
{
    (void)state;
    static const int64_t orders[] = {8, 40, 128};
    static const double tolerances[] = {3e-29, 1e-26, 1e-24};
    for (size_t k = 0; k < COUNT(orders) * COUNT(tolerances); k++) {
        const int64_t n = orders[k / COUNT(tolerances)];
        const double tolerance = tolerances[k % COUNT(tolerances)],
                     unseen = 1e-30 * (double)(n * n);
        for (int seen = 0; seen < 3; seen++) {
            double *a = identity(n), *v0 = identity(n);
            make_a_sum_of_errors(n,
                                 seen == 0   ? 0
                                 : seen == 1 ? tolerance * (1 - 1e-12)
                                             : tolerance - unseen,
                                 a, v0);
            struct gputest_iterated result = iterate_from(n, a, v0, tolerance, 1);
            check_claim(n, a, &result, tolerance);
            if (seen == 2 && tolerance > unseen)
                assert_int_equal(result.info, 0);
            gputest_iterated_free(&result);
            free(a);
            free(v0);
        }
    }
}

/* |A| |X| is 2^50, but no entry of |X| |A| is large. */
static void test_a_matrix_of_two_scales(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 8, 9, 50, 70};
    for (size_t k = 0; k < COUNT(orders); k++) {
        const int64_t n = orders[k];
        double *a = identity(n), *v0 = identity(n);
        for (int64_t i = 0; i < n; i++) {
            a[i * (n + 1)] = i % 2 ? 0x1p25 : 0x1p-25;
            v0[i * (n + 1)] = (1 - 0x1p-49) / a[i * (n + 1)];
        }
        struct gputest_iterated result = iterate_from(n, a, v0, 0x1.01p-49, 1);
        assert_int_equal(result.info, 0);
        assert_int_equal(result.iterations, 0);
        gputest_iterated_free(&result);
        free(a);
        free(v0);
    }
}

/* The sum of a column of the residual is rounded too. */
static void test_the_sum_of_a_column(void **state)
{
    (void)state;
    static const int64_t orders[] = {8, 64, 100};
    for (size_t k = 0; k < COUNT(orders); k++) {
        const int64_t n = orders[k];
        double *a = identity(n), *v0 = identity(n);
        for (int64_t i = 1; i < n; i++)
            v0[i * n] = 0x1.ac9afep-2 / (double)(n + n / 3);
        for (int64_t e = 0; e < n * n; e++)
            v0[e] = (double)(float)v0[e];
        const double whole = gputest_exact_residual(n, v0, a);
        for (int below = 0; below < 40; below++) {
            struct gputest_iterate task = {.precision = PRECISION_FP32,
                                           .n = n,
                                           .a = a,
                                           .v0 = v0,
                                           .tolerance = whole * (1 - 1e-8 * pow(1.3, below)),
                                           .max_iterations = 1};
            struct gputest_iterated result = gputest_iterate(&task);
            assert_true(result.info != 0 ||
                        gputest_exact_residual(n, result.inverse, a) <= task.tolerance);
            gputest_iterated_free(&result);
        }
        struct gputest_iterate task = {.precision = PRECISION_FP32,
                                       .n = n,
                                       .a = a,
                                       .v0 = v0,
                                       .tolerance = whole * (1 + 4e-7 * (double)n),
                                       .max_iterations = 1};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        assert_int_equal(result.iterations, 0);
        gputest_iterated_free(&result);
        free(a);
        free(v0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wide_tolerance), cmocka_unit_test(test_what_is_lost_next_to_others),
        cmocka_unit_test(test_errors_that_add_up), cmocka_unit_test(test_a_matrix_of_two_scales),
        cmocka_unit_test(test_the_sum_of_a_column)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
