/* `ism` on the host where X and Y are of far different sizes, so that products on the way leave the
 * range of numbers though the answer does not; and DET_RATIO next to an A0_INVERSE that has
 * drifted.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FACTORS (ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED)

/* ---- Updates ---- */

/* Numbers near x in X, y in Y, and b in A0_INVERSE. */
static struct ismtest_problem sized(enum precision precision, int64_t n, int64_t m, double x,
                                    double y, double b, uint64_t seed)
{
    struct ismtest_problem problem =
        ismtest_problem(precision, ISMTEST_INVERSE, n, m > 0 ? m : 1, seed);
    for (int64_t i = 0; i < n * n; i++)
        problem.b[i] *= b;
    for (int64_t i = 0; i < n * m; i++) {
        problem.x[i] = (1.5 + 0.4 * gputest_random(&seed)) * x;
        problem.y[i] = (1.5 + 0.4 * gputest_random(&seed)) * y;
    }
    struct ismtest_problem rounded = problem;
    rounded.kind = ISMTEST_DEFAULT;
    ismtest_complete(&rounded);
    for (int64_t i = 0; i < n * n && precision == PRECISION_FP32; i++)
        problem.b[i] = (double)(float)problem.b[i];
    return problem;
}

struct sizes {
    double x, y, b;
};

/* Powers of two, by precision. */
static const struct sizes sizes[PRECISION_COUNT][9] = {
    [PRECISION_FP32] = {{0x1p126, 0x1p-126, 1},
                        {0x1p-126, 0x1p126, 1},
                        {0x1p-146, 0x1p126, 0x1p16},
                        {0x1p126, 0x1p-146, 0x1p16},
                        {0x1p60, 0x1p-128, 0x1p64},
                        {0x1p-120, 0x1p60, 0x1p60},
                        {0x1p60, 0, 0x1p100},
                        {0, 0x1p100, 0x1p120},
                        {0x1p-100, 0, 0x1p-100}},
    [PRECISION_FP64] = {{0x1p1022, 0x1p-1022, 1},
                        {0x1p-1022, 0x1p1022, 1},
                        {0x1p-1070, 0x1p1020, 0x1p45},
                        {0x1p1020, 0x1p-1070, 0x1p45},
                        {0x1p333, 0x1p-1000, 0x1p664},
                        {0x1p-1000, 0x1p333, 0x1p664},
                        {0x1p333, 0, 0x1p698},
                        {0, 0x1p800, 0x1p900},
                        {0x1p-900, 0, 0x1p-900}},
};

/* All columns alike, or one in three as ordinary as in any other problem. */
static void check_sizes(enum precision precision, int64_t n, int64_t m, const struct sizes *of,
                        int64_t variant, bool mixed)
{
    struct ismtest_problem problem =
        sized(precision, n, m, of->x, of->y, of->b, (uint64_t)(n * 100 + m));
    uint64_t seed = 5;
    for (int64_t i = 0; mixed && i < n * m; i++) {
        if (i % m % 3 != 1)
            continue;
        problem.x[i] = (double)(float)gputest_random(&seed);
        problem.y[i] = (double)(float)gputest_random(&seed) / of->b;
    }
    problem.variant = variant;
    struct ismtest_answer answer = ismtest_run(&problem, FACTORS, NULL);
    const double ratio = ismtest_solution_ratio(&problem, answer.inverse);
    if (answer.info != 0)
        ismtest_tell(&problem, "INFO", answer.info);
    else if (!(ratio <= GPUTEST_RATIO_MAX))
        ismtest_tell(&problem, "ratio", ratio);
    if (answer.info == 0 && m <= n / 4 && answer.algorithm == METHOD_ALGORITHM_LU)
        ismtest_tell(&problem, "lu for x", of->x);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

static void test_sizes(void **state)
{
    (void)state;
    static const int64_t orders[][2] = {{1, 1}, {7, 1}, {7, 3}, {41, 1}, {41, 5}, {100, 70}};
    ismtest_wrongs = 0;
    for (size_t i = 0; i < COUNT(orders) * COUNT(sizes[0]) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t *order = orders[i / PRECISION_COUNT / COUNT(sizes[0])];
        const struct sizes *of = &sizes[precision][i / PRECISION_COUNT % COUNT(sizes[0])];
        for (int64_t variant = 0; variant < 4; variant++)
            check_sizes(precision, order[0], order[1], of, variant, false);
        check_sizes(precision, order[0], order[1], of, METHOD_ISM_AUTO, true);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* The order, and the numbers, of a case that was refused. */
static void test_a_long_thin_column(void **state)
{
    (void)state;
    static const double rows[PRECISION_COUNT][2] = {
        [PRECISION_FP32] = {1e37, 1e-37}, [PRECISION_FP64] = {5e306, 1.6e-307}};
    ismtest_wrongs = 0;
    for (int p = 0; p < PRECISION_COUNT; p++) {
        struct ismtest_problem problem =
            sized((enum precision)p, 41, 1, rows[p][0], rows[p][1], 1, 1);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        const double ratio = ismtest_solution_ratio(&problem, answer.inverse);
        if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
            ismtest_tell(&problem, "ratio", ratio);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- Bits and factors ---- */

static bool near(double value, double wanted, double off)
{
    return fabs(value - wanted) <= off;
}

/* Column c of X times 2^s[c], of Y divided by it: the same inverse, and factors that follow. */
static void check_shifted(enum precision precision, enum ismtest_kind kind, int64_t n, int64_t m,
                          int64_t variant)
{
    static const int shifts[PRECISION_COUNT][3] = {
        [PRECISION_FP32] = {90, -90, 20}, [PRECISION_FP64] = {900, -900, 5}};
    const double off = 1000 * gputest_eps(precision);
    struct ismtest_problem problem = ismtest_problem(precision, kind, n, m, (uint64_t)n);
    problem.variant = variant;
    struct ismtest_answer plain = ismtest_run(&problem, FACTORS, NULL);
    for (int64_t i = 0; i < n * m; i++) {
        problem.x[i] = ldexp(problem.x[i], shifts[precision][i % m % 3]);
        problem.y[i] = ldexp(problem.y[i], -shifts[precision][i % m % 3]);
    }
    struct ismtest_answer shifted = ismtest_run(&problem, FACTORS, NULL);
    if (shifted.info != 0 || shifted.algorithm != plain.algorithm)
        ismtest_tell(&problem, "INFO or METHOD, shifted", shifted.info);
    /* Next to those of vectors of matrices (gpu/host/ism/ism.c), which scaled ones are not among.
     */
    const bool lanes = kind == ISMTEST_INVERSE && variant == METHOD_ISM_AUTO && n <= 32;
    if (m == 1 && !lanes && memcmp(shifted.bytes, plain.bytes, (size_t)plain.byte_count) != 0)
        ismtest_tell(&problem, "bits", 0);
    for (int64_t i = 0; i < n * n; i++) {
        if (!near(shifted.inverse[i], plain.inverse[i], off))
            ismtest_tell(&problem, "inverse", shifted.inverse[i]);
    }
    const bool factors = plain.algorithm != METHOD_ALGORITHM_REDUCED_MEMORY;
    for (int64_t i = 0; factors && i < n * m; i++) {
        const int shift = shifts[precision][i % m % 3];
        if (!near(ldexp(shifted.u[i], -shift), plain.u[i], off) ||
            !near(ldexp(shifted.v[i], shift), plain.v[i], off))
            ismtest_tell(&problem, "U or V", shifted.u[i]);
    }
    for (int64_t i = 0; factors && i < m * m; i++) {
        const int shift = shifts[precision][i % m % 3] - shifts[precision][i / m % 3];
        const double r = ldexp(plain.r[i], shift);
        /* One that leaves the range is infinite, or 0. */
        if (fabs(r) < ldexp(1, precision == PRECISION_FP32 ? 127 : 1023) &&
            fabs(r) > ldexp(1, precision == PRECISION_FP32 ? -126 : -1022) &&
            !near(ldexp(shifted.r[i], -shift), plain.r[i], off))
            ismtest_tell(&problem, "R", shifted.r[i]);
    }
    ismtest_forget(&plain);
    ismtest_forget(&shifted);
    ismtest_free(&problem);
}

static void test_shifted(void **state)
{
    (void)state;
    static const int64_t orders[][2] = {{1, 1}, {6, 1}, {6, 4}, {30, 1}, {30, 7}, {70, 9}};
    ismtest_wrongs = 0;
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        for (int64_t variant = 0; variant < 4; variant++) {
            for (int k = 0; k < ISMTEST_ALONE; k++)
                check_shifted((enum precision)(i % PRECISION_COUNT), (enum ismtest_kind)k,
                              orders[i / PRECISION_COUNT][0], orders[i / PRECISION_COUNT][1],
                              variant);
        }
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- DET_RATIO ---- */

/* Where A0_INVERSE is another's, lu's DET_RATIO is that of the A0 given. */
static void test_det_ratio_of_a_drifted_inverse(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 3, 9, 40, 100};
    ismtest_wrongs = 0;
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t n = orders[i / PRECISION_COUNT];
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE_AND_A0, n, 1, (uint64_t)n);
        for (int64_t j = 0; j < n * n; j++)
            problem.b[j] *= 1.125;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        const double wanted = ismtest_det_ratio(&problem);
        if (answer.info != 0 || answer.algorithm != METHOD_ALGORITHM_LU)
            ismtest_tell(&problem, "INFO", answer.info);
        if (!near(answer.det_ratio, wanted, 100 * (double)n * gputest_eps(precision) * wanted))
            ismtest_tell(&problem, "DET_RATIO", answer.det_ratio / wanted);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A0 is singular, A is the identity. */
static void test_det_ratio_of_a_singular_a0(void **state)
{
    (void)state;
    for (int p = 0; p < PRECISION_COUNT; p++) {
        struct ismtest_problem problem =
            ismtest_blank((enum precision)p, ISMTEST_INVERSE_AND_A0, 12, 1);
        ismtest_complete(&problem);
        problem.a0[13] = 0;
        problem.x[1] = problem.y[1] = 1;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
        assert_true(isinf(answer.det_ratio));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_a_long_thin_column),
        cmocka_unit_test(test_shifted),
        cmocka_unit_test(test_det_ratio_of_a_drifted_inverse),
        cmocka_unit_test(test_det_ratio_of_a_singular_a0),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
