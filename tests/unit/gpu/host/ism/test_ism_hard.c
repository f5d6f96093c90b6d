/* `ism` where rounding errors could pass for an answer, or an answer for rounding errors: A0 and
 * X Y^T that cancel, updates that meet an ill-conditioned inverse, norms that hide in one column.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* X Y^T = -A0 but for `off` eps of it: all of A but its last digits, or all of it, cancels. */
static struct ismtest_problem cancelling(enum precision precision, enum ismtest_kind kind,
                                         int64_t n, double off, uint64_t *seed)
{
    struct ismtest_problem problem = ismtest_blank(precision, kind, n, n);
    double eps = gputest_eps(precision);
    for (int64_t i = 0; i < n; i++) {
        double *d = &problem.a0[i * (n + 1)], x = 3.3 + gputest_random(seed);
        *d = kind == ISMTEST_DEFAULT ? 1 : 2.2 + gputest_random(seed);
        problem.x[i * (n + 1)] = x;
        problem.y[i * (n + 1)] = -*d / x * (1 + off * eps * (1 + gputest_random(seed) / 2));
    }
    ismtest_complete(&problem);
    ismtest_sum_exactly(&problem);
    return problem;
}

/* What is left of A0 + X Y^T may be a few ulps of A0: no check may take chance for agreement. */
static void test_cancellation(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0};
    static const double offs[] = {0, 1, 5, 40, 1e3, 1e5};
    int64_t inverted = 0;
    uint64_t seed = 77;
    ismtest_wrongs = 0;
    for (int64_t turn = 0; turn < 4 * 9 * 2 * 3 * (int64_t)COUNT(offs); turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        struct ismtest_problem problem =
            cancelling(precision, kinds[turn / 2 % 3], turn / 6 % 9 + 1,
                       offs[turn / 54 % (int64_t)COUNT(offs)], &seed);
        problem.variant = turn / 54 / (int64_t)COUNT(offs) % (METHOD_ISM_REDUCED_MEMORY + 1);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double ratio = answer.info == 0
                           ? gputest_inverse_ratio(precision, problem.n, problem.a, answer.inverse)
                           : 0;
        inverted += answer.info == 0;
        if (!(ratio <= GPUTEST_RATIO_MAX))
            ismtest_tell(&problem, "of what cancelled: ratio", ratio);
        if (answer.info == 0 && !(answer.rcond <= 1 + 100 * gputest_eps(precision)))
            ismtest_tell(&problem, "of what cancelled: RCOND", answer.rcond);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
    assert_true(inverted > 400);
}

/* The pivots of an update that lost accuracy are not those of the inverse that Newton's step made
 * of it. */
static void test_det_ratio_of_the_repaired(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (int64_t turn = 0; turn < 2 * 4 * 9 * 6; turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = 8 << turn / 2 % 4, m = 2 + turn / 8 % 2;
        double digits = (double)(turn / 16 % 9 + 1) * (precision == PRECISION_FP64 ? 1 : 0.5);
        uint64_t seed = (uint64_t)turn;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_DIAGONAL, n, m);
        for (int64_t i = 0; i < n; i++)
            problem.a0[i * (n + 1)] = 1 + 0.3 * gputest_random(&seed);
        for (int64_t i = 0; i < n * m; i++) {
            problem.x[i] = gputest_random(&seed);
            problem.y[i] = gputest_random(&seed);
        }
        problem.a0[0] = pow(10, -digits);
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double off = fabs(answer.det_ratio / ismtest_det_ratio(&problem) - 1);
        off *= answer.rcond / gputest_eps(precision);
        if (answer.info == 0 && !(off <= 100))
            ismtest_tell(&problem, "DET_RATIO is off by so many eps / RCOND:", off);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- A0_INVERSE alone ---- */

/* INFO 0 is to be had, and keeps the contract. */
static void check_update(const struct ismtest_problem *problem, const char *what)
{
    struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
    double ratio = ismtest_solution_ratio(problem, answer.inverse);
    if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
        ismtest_tell(problem, what, ratio);
    ismtest_forget(&answer);
}

/* Two nodes and a spring between them that is far stiffer than what holds them, then the spring's
 * force on another row: Y^T A0^-1 loses most digits, and X has a power of two in a row in which Y
 * has zeros, so that products with Y^T A0^-1 repeat its rounding bit for bit. */
static void test_a_stiff_spring(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (int64_t turn = 0; turn < 2 * 10 * (METHOD_ISM_REDUCED_MEMORY + 1); turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = 3 + turn / 2 % 10;
        double stiff = precision == PRECISION_FP64 ? 123456789.1 : 12345.6;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, 1);
        problem.variant = turn / 20;
        problem.a0[0] = stiff + 0.7;
        problem.a0[1] = problem.a0[n] = -stiff;
        problem.a0[n + 1] = stiff + 1.3;
        problem.x[n - 1] = 1;
        problem.y[0] = stiff;
        problem.y[1] = -stiff;
        ismtest_complete(&problem);
        check_update(&problem, "of a stiff spring: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* Two columns of X are the same, those of Y nearly opposite: of X Y^T A0^-1 all but a few digits
 * cancels, and Y^T A0^-1 rounded once does not have them. */
static void test_opposite_columns(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 6, 9, 40};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < 2 * COUNT(orders) * 4; k++) {
        enum precision precision = k % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = orders[k / 2 % COUNT(orders)];
        double large = pow(precision == PRECISION_FP64 ? 1e3 : 30, (double)(k / 2 / COUNT(orders)));
        uint64_t seed = k + 1;
        struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, n, 2, k);
        for (int64_t i = 0; i < n; i++) {
            double y = (double)(float)(large * gputest_random(&seed));
            problem.x[2 * i + 1] = problem.x[2 * i];
            problem.y[2 * i] = y;
            problem.y[2 * i + 1] = gputest_random(&seed) / (double)n - y;
        }
        ismtest_complete(&problem);
        check_update(&problem, "of opposite columns: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A0^-1 is tiny and X Y^T huge: the sum of a column's magnitudes overflows, and that of their
 * products with A0^-1 does not. */
static void test_terms_beyond_the_range(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{6, 2}, {9, 1}, {20, 4}, {33, 30}, {40, 8}, {80, 70}};
    ismtest_wrongs = 0;
    for (size_t turn = 0; turn < 2 * COUNT(shapes) * (METHOD_ISM_REDUCED_MEMORY + 1) * 3; turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        size_t rest = turn / 2 / COUNT(shapes);
        int64_t n = shapes[turn / 2 % COUNT(shapes)][0], m = shapes[turn / 2 % COUNT(shapes)][1];
        const int top = precision == PRECISION_FP64 ? 1024 : 128;
        const int beyond = (int)(rest / (METHOD_ISM_REDUCED_MEMORY + 1)) - 1;
        uint64_t seed = turn + 1;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, m);
        problem.variant = (int64_t)(rest % (METHOD_ISM_REDUCED_MEMORY + 1));
        for (int64_t i = 0; i < n * m; i++) {
            problem.x[i] = ldexp(gputest_random(&seed), top / 2);
            problem.y[i] = ldexp(gputest_random(&seed) / sqrt((double)(n * m)), top / 2 + beyond);
        }
        ismtest_complete(&problem);
        for (int64_t i = 0; i < n * n; i++) {
            const double b = 0.1 * gputest_random(&seed) + (double)(i % (n + 1) == 0);
            problem.b[i] = ldexp((double)(float)b, 4 - top);
            if (precision == PRECISION_FP32)
                problem.b[i] = (double)(float)problem.b[i];
        }
        check_update(&problem, "of terms beyond the range: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* The last column of A0^-1 begins with large numbers and ends with their opposites; between them
 * are many that a sum of it loses one by one. */
static void test_lost_terms(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (int64_t turn = 0; turn < 2 * 6 * 3; turn++) {
        enum precision precision = turn % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = 8 << turn / 2 % 6, heads = INT64_C(1) << turn / 12;
        double large = (double)(8 * n) / (double)heads;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, 1);
        ismtest_complete(&problem);
        memset(problem.b, 0, (size_t)(n * n) * sizeof *problem.b);
        for (int64_t i = 0; i < n; i++) {
            problem.y[i] = 1;
            problem.b[i * (n + 1)] = 0x1p-12;
            problem.b[i * n + n - 1] = large * gputest_eps(precision) * 0.49 / 2;
        }
        for (int64_t i = 0; i < heads; i++) {
            problem.b[i * n + n - 1] = large;
            problem.b[(n - 1 - i) * n + n - 1] = -large;
        }
        problem.x[0] = 1;
        problem.b[0] = 0;
        problem.b[2 * n] = large * (double)heads;
        problem.b[3 * n] = -large * (double)heads;
        for (int64_t i = 0; precision == PRECISION_FP32 && i < n * n; i++)
            problem.b[i] = (double)(float)problem.b[i];
        check_update(&problem, "of lost terms: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A0^-1 is so large that an inverse with errors of its size times M leaves the range, though the
 * inverse itself does not: that says nothing of M. */
static void test_a_large_inverse(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 9, 17};
    uint64_t seed = 9;
    ismtest_wrongs = 0;
    for (size_t k = 0; k < 16 * COUNT(orders); k++) {
        int64_t n = orders[k % COUNT(orders)];
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_INVERSE, n, n);
        for (int64_t i = 0; i < n * n; i++) {
            const double own = i % (n + 1) == 0 ? 3 : 0;
            problem.x[i] = own + gputest_random(&seed) / (double)n;
            problem.y[i] = own + gputest_random(&seed) / (double)n;
        }
        ismtest_complete(&problem);
        for (int64_t i = 0; i < n * n; i++)
            problem.b[i] = ldexp((i % (n + 1) == 0 ? 3 : 0) + gputest_random(&seed) / (double)n,
                                 540 + (int)(k / COUNT(orders)) * 4);
        check_update(&problem, "of a large inverse: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A row of an ill-conditioned A0 is doubled: Y^T A0^-1 is a sum of large terms that cancel to a row
 * of the identity, nearly, and the answer is A0^-1 with half a column, nearly. */
static void test_a_doubled_row(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 5, 8, 9, 16, 17, 33, 70};
    static const double distances[] = {1e-1, 1e-3, 1e-5};
    uint64_t seed = 5;
    ismtest_wrongs = 0;
    for (size_t k = 0; k < 2 * COUNT(orders) * COUNT(distances); k++) {
        enum precision precision = k % 2 ? PRECISION_FP64 : PRECISION_FP32;
        int64_t n = orders[k / 2 % COUNT(orders)];
        double distance = distances[k / 2 / COUNT(orders)];
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, 1);
        distance = precision == PRECISION_FP32 ? sqrt(distance) : distance;
        for (int64_t e = 0; e < n * n; e++)
            problem.a0[e] = (1 + (double)(e / n)) * (1 - 0.3 * (double)(e % n)) / (double)n +
                            distance * gputest_random(&seed);
        problem.x[n / 2] = 1;
        memcpy(problem.y, problem.a0 + n / 2 * n, (size_t)n * sizeof *problem.y);
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double ratio = ismtest_solution_ratio(&problem, answer.inverse);
        if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
            ismtest_tell(&problem, "of a doubled row: ratio", ratio);
        if (!(fabs(answer.det_ratio - 2) < 0.1))
            ismtest_tell(&problem, "of a doubled row: DET_RATIO", answer.det_ratio);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- RCOND ---- */

/* One column of entries that are small next to the diagonal, and many: RCOND has to see it. */
static void test_a_long_column(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_SCALE, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0};
    ismtest_wrongs = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        int64_t n = seed % 2 ? 100 : 230;
        struct ismtest_problem problem =
            ismtest_blank(PRECISION_FP64, kinds[seed / 2 % COUNT(kinds)], n, 1);
        uint64_t random = seed;
        for (int64_t i = 0; i < n; i++) {
            problem.a0[i * (n + 1)] = 2.5 * sqrt((double)n);
            problem.x[i] = gputest_random(&random) < 0 ? -1 : 1;
        }
        problem.y[(int64_t)seed * 13 % n] = 1;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double ratio = gputest_inverse_ratio(problem.precision, n, problem.a, answer.inverse);
        double rcond = 1 / residual_norm(n, problem.a) / residual_norm(n, answer.inverse);
        if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
            ismtest_tell(&problem, "of a long column: ratio", ratio);
        if (!(answer.rcond >= rcond * 0.999 && answer.rcond <= rcond * 1.5))
            ismtest_tell(&problem, "of a long column: RCOND is off by the factor",
                         answer.rcond / rcond);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A dozen columns have one large entry each, and another column many small ones that add up to
 * more. By their products with a few lines the former seem longer by far. */
static void test_sparse_columns(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < PRECISION_COUNT * COUNT(kinds) * 2; k++) {
        int64_t n = k < PRECISION_COUNT * COUNT(kinds) ? 90 : 400;
        struct ismtest_problem problem = ismtest_blank(
            (enum precision)(k % PRECISION_COUNT), kinds[k / PRECISION_COUNT % COUNT(kinds)], n, 2);
        uint64_t seed = k;
        problem.x[2] = 100;
        for (int64_t j = 10; j < 46; j += 3)
            problem.y[2 * j] = 1;
        for (int64_t i = 0; i < n; i++)
            problem.x[2 * i + 1] = gputest_random(&seed) < 0 ? -1 : 1;
        problem.y[2 * 7 + 1] = 60 / sqrt((double)n);
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double rcond = 1 / residual_norm(n, problem.a) / residual_norm(n, answer.inverse);
        if (!(answer.rcond >= rcond * 0.999 && answer.rcond <= rcond * 1.001))
            ismtest_tell(&problem, "of sparse columns: RCOND is off by the factor",
                         answer.rcond / rcond);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancellation),     cmocka_unit_test(test_det_ratio_of_the_repaired),
        cmocka_unit_test(test_a_stiff_spring),

        cmocka_unit_test(test_opposite_columns), cmocka_unit_test(test_terms_beyond_the_range),
        cmocka_unit_test(test_lost_terms),       cmocka_unit_test(test_a_large_inverse),
        cmocka_unit_test(test_a_doubled_row),    cmocka_unit_test(test_a_long_column),
        cmocka_unit_test(test_sparse_columns),

    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
