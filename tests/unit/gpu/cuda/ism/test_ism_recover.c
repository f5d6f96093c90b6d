/* What `ism` on the CUDA engine's kernels recovers: with A0_INVERSE alone by solving Z M = A0^-1
 * with M = I + X Y^T A0^-1, judged by what was given in more than double-double; and
 * determinants near the ends of the range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/gpu/cuda/ism/ism_host.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A0 is all but singular, and the change makes it well conditioned: A0^-1 is much larger than Z. */
static void test_a_large_inverse(void **state)
{
    (void)state;
    struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_INVERSE, 2, 1);
    double a0[] = {1, 2, 2, 4 + 1e-10};
    memcpy(problem.a0, a0, sizeof a0);
    problem.x[0] = 1;
    problem.x[1] = 0.3;
    problem.y[0] = 0.5;
    problem.y[1] = -0.7;
    ismtest_complete(&problem);
    cudatest_check_solution(&problem, METHOD_ALGORITHM_LU);
}

/* The same of orders of one panel and more. Columns of X that are zeros, so that there are more of
 * them than rows, have lu take it at once. */
static void test_large_inverses(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 4, 8, 16, 31, 32, 33, 64, 70, 129};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        int64_t n = orders[k / PRECISION_COUNT], m = n + 1;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, m);
        uint64_t seed = 7 + k;
        for (int64_t i = 0; i < n * n; i++)
            problem.a0[i] = gputest_random(&seed);
        for (int64_t j = 0; j < n; j++) {
            double off = (precision == PRECISION_FP32 ? 1e-4 : 1e-11) * gputest_random(&seed);
            problem.a0[(n - 1) * n + j] = problem.a0[j] + problem.a0[n + j] + off;
            problem.x[j * m] = gputest_random(&seed);
            problem.y[j * m] = gputest_random(&seed);
        }
        ismtest_complete(&problem);
        cudatest_check_solution(&problem, METHOD_ALGORITHM_LU);
    }
}

/* Elimination of M doubles its last column at every step. */
static void test_growing_factors(void **state)
{
    (void)state;
    static const int64_t orders[] = {20, 36, 70};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        int64_t n = orders[k / PRECISION_COUNT], m = n + 1;
        struct ismtest_problem problem =
            ismtest_blank((enum precision)(k % PRECISION_COUNT), ISMTEST_INVERSE, n, m);
        uint64_t seed = 11;
        for (int64_t i = 0; i < n; i++) {
            problem.a0[i * (n + 1)] = problem.y[i * m + i] = 1;
            for (int64_t j = 0; j < n; j++) {
                double low = -1 + 0.1 * fabs(gputest_random(&seed));
                problem.x[i * m + j] = j < i ? low : j == n - 1 && i < j;
            }
        }
        ismtest_complete(&problem);
        cudatest_check_solution(&problem, METHOD_ALGORITHM_LU);
    }
}

/* Columns of X and Y, of which two by two leave little of each other in X Y^T A0^-1, though their
 * own parts of it are large. */
static void cancel(struct ismtest_problem *problem, double large)
{
    int64_t n = problem->n, m = problem->m;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < m / 2; c++) {
            double *x = problem->x + i * m, *y = problem->y + i * m;
            double own = large * y[c];
            y[c] = problem->precision == PRECISION_FP32 ? (double)(float)own : own;
            y[m - 1 - c] -= y[c];
            x[m - 1 - c] = x[c];
        }
    }
}

static void test_products_that_cancel(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m;
        double large[PRECISION_COUNT];
    } rows[] = {{2, 3, {1e5, 1e13}},  {6, 7, {1e3, 1e10}},   {6, 8, {1e6, 1e13}},
                {3, 300, {1e4, 1e9}}, {33, 34, {1e4, 1e11}}, {40, 260, {1e3, 1e9}}};
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++) {
        size_t row = k / PRECISION_COUNT;
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE, rows[row].n, rows[row].m, 5 + k);
        cancel(&problem, rows[row].large[precision]);
        ismtest_complete(&problem);
        cudatest_check_solution(&problem, METHOD_ALGORITHM_LU);
    }
}

/* So much cancels that nothing is left of M in double-double either: it is not distinguished
 * from a singular one, and never a wrong inverse. */
static void test_what_cannot_be_formed(void **state)
{
    (void)state;
    static const double large[PRECISION_COUNT] = {1e12, 1e25};
    for (size_t k = 0; k < 2 * PRECISION_COUNT; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, 6, 8, 5 + k);
        for (int64_t i = 0; i < 6 * 6; i++)
            problem.a0[i] += 0.1 * (double)(i % 5);
        cancel(&problem, large[precision]);
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 7);
        assert_true(isnan(answer.inverse[0]) && isnan(answer.rcond));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* 0 is no matrix's inverse, though Z M = 0 has a solution. */
static void test_an_inverse_of_zeros(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{2, 1},  {2, 0},   {5, 6},   {16, 3},
                                        {33, 2}, {70, 30}, {90, 40}, {150, 90}};
    for (size_t k = 0; k < COUNT(shapes) * PRECISION_COUNT; k++) {
        int64_t n = shapes[k / PRECISION_COUNT][0], m = shapes[k / PRECISION_COUNT][1];
        struct ismtest_problem problem =
            ismtest_problem((enum precision)(k % PRECISION_COUNT), ISMTEST_INVERSE, n, m, 3);
        memset(problem.b, 0, (size_t)(n * n) * sizeof(double));
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, n + 1);
        assert_true(isnan(answer.inverse[0]) && isnan(answer.inverse[n * n - 1]));
        assert_true(isnan(answer.rcond));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

static void test_too_small_an_inverse(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1},  {8, 2},  {12, 3},  {32, 1},
                                        {24, 6}, {40, 4}, {70, 40}, {150, 90}};
    for (size_t k = 0; k < COUNT(shapes) * PRECISION_COUNT; k++)
        ismtest_too_small((enum precision)(k % PRECISION_COUNT), shapes[k / PRECISION_COUNT][0],
                          shapes[k / PRECISION_COUNT][1]);
}

/* M's numbers are near the end of the range, and Z's near the other one. */
static void test_a_large_change(void **state)
{
    (void)state;
    static const double roots[PRECISION_COUNT] = {0x1p59, 0x1p505};
    static const int64_t orders[] = {2, 9, 40};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        int64_t n = orders[k / PRECISION_COUNT], m = n + 1;
        struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, n, m, k);
        for (int64_t i = 0; i < n * m; i++) {
            problem.x[i] *= roots[precision];
            problem.y[i] *= roots[precision];
        }
        ismtest_complete(&problem);
        cudatest_check_solution(&problem, METHOD_ALGORITHM_LU);
    }
}

/* ---- A0 is known ---- */

/* Two rows of size I are turned, so that one of A's pivots is nearly twice `size`. */
static void test_determinants_near_the_ends(void **state)
{
    (void)state;
    static const double sizes[PRECISION_COUNT][2] = {{2.7e38, 1e-37}, {1.5e308, 1e-307}};
    static const enum ismtest_kind kinds[] = {ISMTEST_SCALE, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0, ISMTEST_ALONE};
    static const int64_t orders[] = {2, 3, 12, 40};
    for (size_t k = 0; k < 2 * PRECISION_COUNT * COUNT(kinds) * COUNT(orders); k++) {
        enum precision precision = (enum precision)(k / 2 % PRECISION_COUNT);
        enum ismtest_kind kind = kinds[k / (2 * PRECISION_COUNT) % COUNT(kinds)];
        int64_t n = orders[k / (2 * PRECISION_COUNT * COUNT(kinds))];
        double size = sizes[precision][k % 2], root = sqrt(size * 0.96);
        struct ismtest_problem problem = ismtest_blank(precision, kind, n, n);
        for (int64_t i = 0; i < n; i++)
            problem.a0[i * (n + 1)] = size;
        problem.x[1] = problem.y[0] = problem.y[n + 1] = root;
        problem.x[n] = -root;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_true(answer.info == 0 || answer.info == n + 1);
        assert_true(fabs(answer.det_ratio - (1 + 0.96 * 0.96)) <= 100 * gputest_eps(precision));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_inverse),
        cmocka_unit_test(test_large_inverses),
        cmocka_unit_test(test_growing_factors),
        cmocka_unit_test(test_products_that_cancel),
        cmocka_unit_test(test_what_cannot_be_formed),
        cmocka_unit_test(test_an_inverse_of_zeros),
        cmocka_unit_test(test_too_small_an_inverse),
        cmocka_unit_test(test_a_large_change),
        cmocka_unit_test(test_determinants_near_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
