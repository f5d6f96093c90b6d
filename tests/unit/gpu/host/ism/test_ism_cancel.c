/* `ism` with A known where columns of X Y^T cancel among themselves, and are far larger than A: no
 * sum of them in one precision says what A is. And the probe vectors, whose errors may be the
 * same in all rows there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/common/probes.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#endif

#define VARIANTS (METHOD_ISM_REDUCED_MEMORY + 1)

/* Every so many cases are tried. */
#ifndef CANCEL_STEP
#define CANCEL_STEP 1
#endif

static const enum ismtest_kind known[] = {ISMTEST_DEFAULT, ISMTEST_SCALE, ISMTEST_DIAGONAL,
                                          ISMTEST_INVERSE_AND_A0};

/* Columns 0 and 1 of X are opposite but for what they were, times `large`, and those of Y are the
 * same; the other way round if `turned`. */
static void oppose(struct ismtest_problem *problem, double large, bool turned)
{
    const int64_t m = problem->m;
    double *one = turned ? problem->y : problem->x, *other = turned ? problem->x : problem->y;
    for (int64_t i = 0; i < problem->n; i++) {
        const double u = (double)(float)(large * one[i * m]);
        one[i * m] = u;
        one[i * m + 1] -= u;
        other[i * m + 1] = other[i * m];
    }
}

/* INFO 0, a ratio within the contract for the exact sum, and its RCOND. */
static void check(struct ismtest_problem *problem, const char *what)
{
    const double eps = gputest_eps(problem->precision), n = (double)problem->n;
    ismtest_complete(problem);
    ismtest_sum_exactly(problem);
    struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
    const double size =
        residual_norm(problem->n, problem->a) * residual_norm(problem->n, answer.inverse);
    const double ratio =
        gputest_exact_residual(problem->n, answer.inverse, problem->a) / (n * eps * size);
    if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
        ismtest_tell(problem, what, ratio);
    else if (!(fabs(answer.rcond * size - 1) <= 0.5))
        ismtest_tell(problem, "RCOND is so many times too large:", answer.rcond * size);
    ismtest_forget(&answer);
}

/* Up to 6e4 times A in FP32, 1e12 times in FP64. */
static void test_opposite_columns_of_a_known(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 8, 9, 24, 70};
    ismtest_wrongs = 0;
    for (size_t turn = 0; turn < 2 * COUNT(orders) * COUNT(known) * VARIANTS * 3;
         turn += CANCEL_STEP) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = orders[turn / 2 % COUNT(orders)];
        size_t rest = turn / 2 / COUNT(orders);
        struct ismtest_problem problem =
            ismtest_problem(precision, known[rest % COUNT(known)], n, n < 8 ? 2 : n / 4, turn);
        rest /= COUNT(known);
        problem.variant = (int64_t)(rest % VARIANTS);
        rest /= VARIANTS;
        const double step = precision == PRECISION_FP64 ? 1e4 : 40;
        oppose(&problem, pow(step, (double)(rest + 1)), rest % 2);
        check(&problem, "of opposite columns: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* More columns than A has: A is formed at once. Of very many nothing need cancel. */
static void test_many_columns(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 8, 9, 40, 70};
    ismtest_wrongs = 0;
    for (size_t turn = 0; turn < 2 * COUNT(orders) * COUNT(known) * 2; turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = orders[turn / 2 % COUNT(orders)];
        size_t rest = turn / 2 / COUNT(orders);
        struct ismtest_problem problem =
            ismtest_problem(precision, known[rest % COUNT(known)], n, n + 3, turn);
        oppose(&problem, precision == PRECISION_FP64 ? 1e12 : 1e5, rest / COUNT(known) % 2);
        check(&problem, "of many columns: ratio");
        ismtest_free(&problem);
    }
    static const int64_t shapes[][2] = {{1, 500}, {1, 510}};
    for (size_t turn = 0; turn < 2 * COUNT(shapes) * 2; turn++) {
        const int64_t *shape = shapes[turn / 2 % COUNT(shapes)], n = shape[0], m = shape[1];
        struct ismtest_problem problem =
            ismtest_blank(turn % 2 ? PRECISION_FP64 : PRECISION_FP32, ISMTEST_DEFAULT, n, m);
        problem.a0[0] = problem.a0[n * n - 1] = 1;
        for (int64_t c = 0; c < m; c++) {
            problem.x[c % n * m + c] = 1.0 / 3;
            problem.y[c % n * m + c] = 0.7;
        }
        problem.variant = turn / 2 / COUNT(shapes) ? METHOD_ISM_BLOCK : METHOD_ISM_AUTO;
        check(&problem, "of very many columns: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A is in range, and partial sums of it are not. */
static void test_sums_that_overflow_on_the_way(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (size_t turn = 0; turn < COUNT(known) * VARIANTS; turn++) {
        if (known[turn % COUNT(known)] == ISMTEST_DEFAULT)
            continue; /* A0 would be too small next to the terms */
        const int64_t n = 2 + (int64_t)(turn % 3) * 10;
        struct ismtest_problem problem =
            ismtest_blank(PRECISION_FP32, known[turn % COUNT(known)], n, 4);
        for (int64_t i = 0; i < n; i++) {
            problem.a0[i * (n + 1)] = 0x1p118;
            for (int64_t c = 0; c < 4; c++) {
                problem.x[i * 4 + c] = (c < 2 ? 1.5 : -1.5) * 0x1p64;
                problem.y[i * 4 + c] = 0x1p63;
            }
        }
        problem.variant = (int64_t)(turn / COUNT(known));
        check(&problem, "of sums that overflow on the way: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A0 is larger than A, and X Y^T takes nearly all of it, in two parts. */
static void test_a_large_a0(void **state)
{
    (void)state;
    static const int64_t orders[] = {4, 9, 32, 72};
    ismtest_wrongs = 0;
    for (size_t turn = 0; turn < 2 * COUNT(orders) * VARIANTS * 4; turn += CANCEL_STEP) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = orders[turn / 2 % COUNT(orders)];
        size_t rest = turn / 2 / COUNT(orders);
        double large = pow(precision == PRECISION_FP64 ? 1e3 : 10, (double)(rest / VARIANTS + 1));
        uint64_t seed = turn;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE_AND_A0, n, 2 * n);
        problem.variant = (int64_t)(rest % VARIANTS);
        for (int64_t i = 0; i < n * n; i++) {
            const int64_t row = i / n, column = i % n;
            const double own = row == column ? 3 : gputest_random(&seed) / (double)n;
            const double a0 = large * (gputest_random(&seed) + (row == column ? 3 : 0));
            problem.a0[i] = precision == PRECISION_FP32 ? (double)(float)a0 : a0;
            problem.x[row * 2 * n + column] = row == column ? 0.7 : 0;
            problem.x[row * 2 * n + column + n] = row == column ? 0.3 : 0;
            problem.y[column * 2 * n + row] = own - problem.a0[i];
            problem.y[column * 2 * n + row + n] = problem.y[column * 2 * n + row];
        }
        check(&problem, "of a large A0: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* What gpu/common/probes.h says of the sums of the first two lines. */
static void test_no_line_misses_equal_rows(void **state)
{
    (void)state;
    double sums[2] = {0, 0};
    for (uint32_t i = 0; i < UINT32_C(1) << 15; i++) {
        for (uint32_t l = 0; l < 2; l++) {
            const uint32_t bits = ISM_PROBE_BITS(i, l);
            const double number = (double)ISM_PROBE_OF(bits);
            assert_true(fabs(number) >= 0.5 && fabs(number) <= 1);
            sums[l] += number;
        }
        const double larger = fmax(fabs(sums[0]), fabs(sums[1]));
        assert_true(i < 8 || larger >= 1.3 * sqrt((double)i + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opposite_columns_of_a_known),   cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_sums_that_overflow_on_the_way), cmocka_unit_test(test_a_large_a0),
        cmocka_unit_test(test_no_line_misses_equal_rows),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
