/* Rounding errors of one sign: updates of a known inverse by the CUDA engine's kernels, where every
 * small number of a column of A0^-1 is lost next to a large one that another one cancels. A check
 * that takes the same sums loses the same ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/gpu/cuda/ism/ism_host.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Column `column` of A0^-1: large numbers that cancel, at both ends of every `stride` rows, and
 * between them numbers below half a unit in their last place. */
static void fill_column(struct ismtest_problem *problem, int64_t column, int64_t stride)
{
    const double large = problem->precision == PRECISION_FP32 ? 0x1p23 : 0x1p52;
    const int64_t n = problem->n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i / stride * stride;
        const int64_t last = (first + stride < n ? first + stride : n) - 1;
        double number = 0.45;
        if (first < last && i == first)
            number = large;
        if (first < last && i == last)
            number = -large;
        problem->b[i * n + column] = number;
    }
}

/* X has one row, which meets that column. terms: the sum of |X| |Y^T| |A0^-1| that is aimed at,
 * where |M - I| is small. */
static struct ismtest_problem problem_of(enum precision precision, int64_t n, int64_t m,
                                         int64_t stride, double terms)
{
    struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, n, m, 17);
    const double pairs = (double)((n + stride - 1) / stride);
    const double large = precision == PRECISION_FP32 ? 0x1p23 : 0x1p52;
    const double x = terms / (2 * (double)m * pairs * large);
    fill_column(&problem, n / 2, stride);
    for (int64_t e = 0; e < n * m; e++) {
        problem.x[e] = e / m != n / 2 ? 0 : precision == PRECISION_FP32 ? (double)(float)x : x;
        problem.y[e] = 1;
    }
    return problem;
}

/* Never a bad inverse with INFO 0, whatever kernel takes it. */
static void test_no_bad_inverse(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{6, 1},  {8, 1},  {8, 4},   {16, 1}, {13, 3},
                                        {16, 8}, {32, 1}, {27, 2},  {32, 4}, {32, 8},
                                        {48, 6}, {64, 1}, {64, 16}, {70, 40}};
    static const double terms[] = {3, 20, 60, 200, 1000, 20000};
    for (size_t k = 0; k < COUNT(shapes) * COUNT(terms) * PRECISION_COUNT; k++) {
        const int64_t *shape = shapes[k / PRECISION_COUNT / COUNT(terms)], n = shape[0];
        const double sum = terms[k / PRECISION_COUNT % COUNT(terms)];
        const int64_t strides[] = {n, 4, 8, 16, 32};
        for (size_t s = 0; s < COUNT(strides) && (s == 0 || strides[s] < n); s++) {
            struct ismtest_problem problem =
                problem_of((enum precision)(k % PRECISION_COUNT), n, shape[1], strides[s], sum);
            cudatest_check_solution(&problem,
                                    sum > 3 ? METHOD_ALGORITHM_NONE : METHOD_ALGORITHM_BLOCK);
        }
    }
}

/* Columns of X Y^T cancel among themselves, and what each loses of A0^-1 X the check loses too: Z
 * is A0^-1. */
static void test_columns_that_cancel(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{8, 3},  {16, 3}, {32, 3},  {16, 6},
                                        {32, 8}, {48, 3}, {64, 20}, {80, 3}};
    for (size_t k = 0; k < COUNT(shapes) * PRECISION_COUNT; k++) {
        const int64_t n = shapes[k / PRECISION_COUNT][0], m = shapes[k / PRECISION_COUNT][1];
        const enum precision precision = (enum precision)(k % PRECISION_COUNT);
        const double large = 1024, small = 0.45 * large * gputest_eps(precision);
        struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, n, m, 41);
        for (int64_t i = 0; i < n; i++) {
            const bool end = i == 0 || i == n - 1;
            for (int64_t j = 0; j < n; j++)
                problem.b[i * n + j] = 1 + (i == j ? 0x1p-6 : 0);
            for (int64_t c = 0; c < m; c++) {
                problem.x[i * m + c] = 0;
                problem.y[i * m + c] = c < 3 && i == 0;
            }
            problem.x[i * m] = i == 0 ? large : end ? -large : small;
            problem.x[i * m + 1] = end ? 0 : -small;
            problem.x[i * m + 2] = i == 0 ? -large : end ? large : 0;
            for (int64_t c = 0; c < 3 && precision == PRECISION_FP32; c++)
                problem.x[i * m + c] = (double)(float)problem.x[i * m + c];
        }
        cudatest_check_solution(&problem, METHOD_ALGORITHM_NONE);
    }
}

/* Z is below the smallest number of FP32, which that in FP64 does not show. */
static void test_an_inverse_that_vanishes(void **state)
{
    (void)state;
    static const int64_t orders[] = {10, 20, 40, 80};
    for (size_t k = 0; k < COUNT(orders); k++) {
        const int64_t n = orders[k], m = n < 40 ? n : 4;
        struct ismtest_problem problem = ismtest_problem(PRECISION_FP32, ISMTEST_INVERSE, n, m, 43);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                problem.b[i * n + j] = i == j ? 0x1p-149 : 0;
            for (int64_t c = 0; c < m; c++) {
                problem.x[i * m + c] = i == c ? 0x1p75 : 0;
                problem.y[i * m + c] = i == c ? 7 * 0x1p74 : 0;
            }
        }
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_true(answer.info != 0 ||
                    ismtest_solution_ratio(&problem, answer.inverse) <= GPUTEST_RATIO_MAX);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Terms of Y^T A0^-1 cancel, but rounding errors do not add up: the update need not be made anew.
 */
static void test_terms_that_cancel(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{6, 1},  {8, 2},  {16, 1}, {14, 4}, {32, 1},
                                        {30, 2}, {32, 8}, {64, 3}, {70, 40}};
    for (size_t k = 0; k < COUNT(shapes); k++) {
        const int64_t n = shapes[k][0], m = shapes[k][1];
        struct ismtest_problem problem =
            ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE, n, m, 29 + k);
        uint64_t seed = 31;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                problem.b[i * n + j] += 1e5 * (1 + gputest_random(&seed) * 1e-3 * (j == i));
            for (int64_t c = 0; c < m; c++) {
                problem.x[i * m + c] = 20 * (double)n * 1e-5 / (double)(n * n * m);
                problem.y[i * m + c] = i % 2 ? -1 : 1;
            }
        }
        cudatest_check_solution(&problem, METHOD_ALGORITHM_BLOCK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_bad_inverse), cmocka_unit_test(test_columns_that_cancel),
        cmocka_unit_test(test_an_inverse_that_vanishes), cmocka_unit_test(test_terms_that_cancel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
