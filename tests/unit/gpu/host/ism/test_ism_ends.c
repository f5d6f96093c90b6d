/* What `ism` on the host says of matrices that have no inverse, or hardly one, and of numbers that
 * are not finite or do not stay so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* X Y^T takes the first row of A0 away. */
static void test_singular(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 4, 20, 40};
    for (size_t i = 0; i < COUNT(orders); i++) {
        for (int k = 0; k < ISMTEST_KINDS; k++) {
            int64_t n = orders[i];
            struct ismtest_problem problem =
                ismtest_blank(PRECISION_FP64, (enum ismtest_kind)k, n, 1);
            problem.x[0] = 1;
            problem.y[0] = -1;
            ismtest_complete(&problem);
            struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
            assert_in_range(answer.info, 1, n);
            assert_true(answer.rcond == 0 && answer.det_ratio == 0);
            assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
            for (int64_t j = 0; j < n * n; j++)
                assert_true(isnan(answer.inverse[j]));
            ismtest_forget(&answer);
            ismtest_free(&problem);
        }
    }
}

/* Nearly so: RCOND reports it, and the inverse comes all the same. */
static void test_nearly_singular(void **state)
{
    (void)state;
    for (int k = 0; k < ISMTEST_KINDS; k++) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, (enum ismtest_kind)k, 20, 1);
        problem.x[0] = 1;
        problem.y[0] = -1 + 0x1p-53;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        /* For its scaling alone, which lu takes away: on the host of a dense A that is sent, on a
         * GPU of one that is formed too. */
        const bool may_be_good = k != ISMTEST_INVERSE, is_good = k == ISMTEST_ALONE;
        assert_true((answer.info == 21 && !is_good) || (answer.info == 0 && may_be_good));
        assert_true(k == ISMTEST_INVERSE ? isnan(answer.rcond)
                                         : answer.rcond > 0 && answer.rcond < 0x1p-52);
        assert_true(isfinite(answer.inverse[0]) && fabs(answer.inverse[0]) > 1e15);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Wilkinson's matrix, whose elements grow, and next to it a singular block of three rows. */
static struct ismtest_problem growing_and_singular(enum precision precision, int64_t n)
{
    static const double singular[3][3] = {{1, -6, 7}, {6, 1, -3}, {-1, 6, -7}};
    struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_DEFAULT, n, n);
    uint64_t seed = 7;
    int64_t most = n - 3;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; i < most && j < most; j++)
            problem.x[i * n + j] = j < i ? -0.9 + 0.05 * gputest_random(&seed) : j == most - 1;
        for (int64_t j = most; i >= most && j < n; j++)
            problem.x[i * n + j] = singular[i - most][j - most];
        problem.x[i * (n + 1)] = i < most ? 0 : problem.x[i * (n + 1)] - 1;
        problem.y[i * (n + 1)] = 1;
    }
    ismtest_complete(&problem);
    return problem;
}

/* What fails to be recovered is lu's own inverse, with lu's INFO and RCOND. */
static void test_as_lu(void **state)
{
    (void)state;
    static const int64_t orders[] = {40, 90, 150, 300};
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        int64_t n = orders[i / PRECISION_COUNT];
        enum precision precision = (enum precision)(i % PRECISION_COUNT);
        struct ismtest_problem problem = growing_and_singular(precision, n);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        struct gputest_answer lu = gputest_run("lu", precision, n, problem.a, false);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
        assert_int_equal(answer.info, lu.info);
        assert_true(precision == PRECISION_FP32 || lu.info == n + 1);
        assert_true(answer.rcond == lu.rcond);
        assert_memory_equal(answer.inverse, lu.inverse, (size_t)(n * n) * sizeof(double));
        gputest_free(&lu);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* ---- Hostile numbers ---- */

/* One number of one tensor is not finite; `at` says which. */
static void try_not_finite(enum ismtest_kind kind, int64_t n, int64_t m, int64_t at)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct ismtest_problem problem = ismtest_problem(PRECISION_FP64, kind, n, m, (uint64_t)at + 1);
    double *const tensors[] = {problem.x, problem.y, problem.a0, problem.b, problem.a};
    double *tensor = tensors[at % 5];
    bool read = at % 5 < 2    ? kind != ISMTEST_ALONE
                : at % 5 == 2 ? kind == ISMTEST_SCALE || kind == ISMTEST_DIAGONAL ||
                                    kind == ISMTEST_INVERSE_AND_A0
                : at % 5 == 3 ? problem.b != NULL
                              : kind == ISMTEST_ALONE;
    int64_t index = kind == ISMTEST_SCALE && at % 5 == 2 ? 0
                    : at % 5 < 2                         ? (at / 5) * (n / 12) * (m + 1) % (n * m)
                                                         : (n + 1) * (at / 5) * (n / 12);
    if (read)
        tensor[index] = bad[at % 3];
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.info, read ? -1 : 0);
    if (read) {
        assert_true(isnan(answer.rcond) && isnan(answer.det_ratio));
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_NONE);
        for (int64_t j = 0; j < n * n; j++)
            assert_true(isnan(answer.inverse[j]));
    }
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* Of orders from 256 on the inverse is made by other products. */
static void test_not_finite(void **state)
{
    (void)state;
    for (int k = 0; k < ISMTEST_KINDS; k++) {
        for (int64_t at = 0; at < 24; at++) {
            try_not_finite((enum ismtest_kind)k, 12, at % 2 ? 2 : 7, at);
            if (at % 5 < 3 || k >= ISMTEST_INVERSE)
                try_not_finite((enum ismtest_kind)k, 260, at % 2 ? 5 : 65, at);
        }
    }
}

/* A = c (I - 2/n 1 1^T), its own inverse but for c^2: |A^-1| = 3 / c is beyond the range, though
 * no number of it is. */
static void test_norm_beyond_the_range(void **state)
{
    (void)state;
    static const int64_t orders[] = {100, 300};
    const double c = 1.2e-308;
    for (size_t i = 0; i < COUNT(orders); i++) {
        for (int64_t m = 1; m <= 70; m += 69) {
            const int64_t n = orders[i];
            struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_SCALE, n, m);
            for (int64_t j = 0; j < n; j++) {
                problem.a0[j * (n + 1)] = c;
                problem.x[j * m] = -2 * c / (double)n;
                problem.y[j * m] = 1;
            }
            problem.variant = METHOD_ISM_BLOCK;
            ismtest_complete(&problem);
            struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
            const double norm = 3 - 4 / (double)n;
            assert_int_equal(answer.info, 0);
            assert_true(fabs(answer.rcond * norm * norm - 1) <= 1e-9);
            for (int64_t j = 0; j < n * n; j++) {
                const double exact = (j % (n + 1) == 0) - 2 / (double)n;
                assert_true(fabs(answer.inverse[j] * c - exact) <= 1e-9);
            }
            ismtest_forget(&answer);
            ismtest_free(&problem);
        }
    }
}

/* Finite factors whose product is not. Without A0 there is no A that could overflow. */
static void test_overflow(void **state)
{
    (void)state;
    static const struct {
        enum ismtest_kind kind;
        int32_t info;
    } rows[] = {{ISMTEST_DEFAULT, -1}, {ISMTEST_INVERSE_AND_A0, -1}, {ISMTEST_INVERSE, 13}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, rows[k].kind, 12, 2);
        ismtest_complete(&problem);
        for (int64_t i = 0; i < 24; i++)
            problem.x[i] = problem.y[i] = i % 3 ? 1e200 : -1e250;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, rows[k].info);
        assert_true(isnan(answer.rcond) && isnan(answer.det_ratio));
        for (int64_t j = 0; j < 144; j++)
            assert_true(isnan(answer.inverse[j]));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* A0 near the largest number, and X Y^T next to its diagonal: what is factored is of A scaled. */
static void test_det_ratio_at_the_end(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_SCALE, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0};
    static const int64_t orders[] = {2, 9, 70};
    for (size_t i = 0; i < PRECISION_COUNT * COUNT(kinds) * COUNT(orders); i++) {
        enum precision precision = (enum precision)(i % PRECISION_COUNT);
        int64_t n = orders[i / PRECISION_COUNT / COUNT(kinds)];
        double large = precision == PRECISION_FP32 ? 2.7e38 : 1.5e308, root = sqrt(large * 0.96);
        struct ismtest_problem problem =
            ismtest_blank(precision, kinds[i / PRECISION_COUNT % COUNT(kinds)], n, 2);
        for (int64_t j = 0; j < n; j++)
            problem.a0[j * (n + 1)] = large;
        problem.x[1] = problem.y[0] = problem.y[3] = root;
        problem.x[2] = -root;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 0);
        assert_true(fabs(answer.det_ratio - 1.9216) < 2e-6 * (double)n); /* A0^-1 is denormal */
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* DET_RATIO of A = `a` (side x side), and the numbers from side to n - 1 on the diagonal behind it.
 */
static void check_det_ratio_of(enum precision precision, int64_t side, const double *a,
                               double det_ratio)
{
    for (int64_t n = side; n <= 40; n += 9) {
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_ALONE, n, n);
        for (int64_t j = 0; j < side * side; j++)
            problem.a[j / side * n + j % side] = a[j];
        for (int64_t j = side; j < n; j++)
            problem.a[j * (n + 1)] = (double)j;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        bool finite = true;
        for (int64_t j = 0; j < n * n; j++)
            finite = finite && isfinite(answer.inverse[j]);
        assert_int_equal(answer.info, finite ? 0 : n + 1); /* scaling is not singularity */
        assert_true(ismtest_same(answer.det_ratio, det_ratio) ||
                    fabs(answer.det_ratio - det_ratio) <= 1e-6);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Lines of a known A that are denormal have pivots without a reciprocal, or multipliers that have
 * lost digits. s is such a number. */
static void test_det_ratio_of_denormal_lines(void **state)
{
    (void)state;
    static const double small[PRECISION_COUNT] = {0x1p-140, 0x1p-1060};
    static const struct {
        double a[4], s[4], det_ratio; /* A = a + s * small */
    } rows[] = {{{0, 0, 0, 1}, {1, 0, 0, 0}, 1},        {{0, 0, 1, 1}, {1, 2, 0, 0}, -1},
                {{0, 1, 0, 1}, {1, 0, 2, 0}, -1},       {{0, 0, -3, -1}, {2, 0, 0, 0}, 1},
                {{0, 1, 0, 3}, {3, 0, 0, 0}, 1},        {{0, -1, 0, 1}, {1, 0, 0, 0}, 1},
                {{0, -3, 0, -1}, {2, 0, 0, 0}, 1},      {{0, 0, -3, 0x1p100}, {2, 0, 0, 0}, 1},
                {{0, -3, 0, 0x1p100}, {2, 0, 0, 0}, 1}, {{0, 0, 7, 5}, {5, 3, 0, 0}, 0.16},
                {{0, 7, 0, 5}, {5, 0, 3, 0}, 0.16}};
    for (size_t i = 0; i < COUNT(rows) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        double a[4];
        for (int j = 0; j < 4; j++)
            a[j] =
                rows[i / PRECISION_COUNT].a[j] + rows[i / PRECISION_COUNT].s[j] * small[precision];
        check_det_ratio_of(precision, 2, a, rows[i / PRECISION_COUNT].det_ratio);
    }
}

/* Pivots that are zero only because they are below the range, and lines that are equilibrated
 * together or not at all. s: the least number; l: near the largest; t: their product by four. */
static void test_det_ratio_of_vanished_pivots(void **state)
{
    (void)state;
    static const double s[PRECISION_COUNT] = {0x1p-149, 0x1p-1074};
    static const double l[PRECISION_COUNT] = {0x1p115, 0x1p1010};
    for (int i = 0; i < 3 * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const double least = s[precision], large = l[precision], t = 4 * least * large;
        const double rows[][9] = {{1, large, 0, least, t, 0, 0, 0, 1},
                                  {1, 2, 0, 3, 1, 1, least, -2 * least, least},
                                  {1, least, 0, 3, least, 0, 0, 0, 1}};
        static const double wanted[] = {0.75, -1, -2};
        check_det_ratio_of(precision, 3, rows[i / PRECISION_COUNT], wanted[i / PRECISION_COUNT]);
    }
}

/* Where equilibrated lines would lose numbers of others, DET_RATIO is not reported: it is 1/2. */
static void test_det_ratio_of_lost_numbers(void **state)
{
    (void)state;
    static const double small[PRECISION_COUNT] = {0x1p-140, 0x1p-1060};
    static const double large[PRECISION_COUNT] = {0x1p100, 0x1p900};
    static const double lost[PRECISION_COUNT] = {0x1p-67, 0x1p-300};
    for (int i = 0; i < 2 * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t n = i < PRECISION_COUNT ? 3 : 20;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_ALONE, n, n);
        problem.a[0] = small[precision];
        problem.a[n + 1] = problem.a[2 * n + 1] = large[precision];
        problem.a[n + 2] = lost[precision];
        problem.a[2 * n + 2] = 2 * lost[precision];
        for (int64_t j = 3; j < n; j++)
            problem.a[j * (n + 1)] = (double)j;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, n + 1);
        assert_true(isnan(answer.det_ratio) || fabs(answer.det_ratio - 0.5) <= 1e-6);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Rows and columns are scaled, so that a pivot is far smaller than any line. */
static void test_det_ratio_of_scaled_lines(void **state)
{
    (void)state;
    static const double scales[PRECISION_COUNT] = {0x1p31, 0x1p260};
    for (int precision = 0; precision < PRECISION_COUNT; precision++) {
        const double s = scales[precision];
        const double a[9] = {7 * s * s, 5, s, 5, 3 / s / s, 0, 0, 0, 2};
        check_det_ratio_of((enum precision)precision, 3, a, -4.0 / 21);
    }
}

/* Lines that are so far apart, without a pivot that is: equilibrated, they would lose a number. */
static void test_det_ratio_of_lines_that_cannot_be_equilibrated(void **state)
{
    (void)state;
    static const double scales[PRECISION_COUNT] = {0x1p60, 0x1p500};
    static const double least[PRECISION_COUNT] = {0x1p-149, 0x1p-1074};
    for (int precision = 0; precision < PRECISION_COUNT; precision++) {
        const double s = scales[precision];
        const double a[9] = {s, 0, 3 * least[precision], 0, 3 / s, 0, s, 0, 5};
        check_det_ratio_of((enum precision)precision, 3, a, 1);
    }
}

/* Pivots times the least number there is keep all digits of it. */
static void test_det_ratio_of_the_least_number(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 20; n += 9) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_ALONE, n, n);
        for (int64_t j = 0; j < n; j++)
            problem.a[j * (n + 1)] = j == 1 ? 0x1p-1074 : 3;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, n + 1);
        assert_true(answer.det_ratio == 1);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* An A0_INVERSE in range, a column of which has a sum that is not, and no change: no check can
 * measure it, and it comes back. */
static void test_column_sum_beyond_the_range(void **state)
{
    (void)state;
    static const double large[PRECISION_COUNT] = {0x1.cp127, 0x1.cp1023};
    static const int64_t orders[] = {2, 8, 9, 16, 40, 70};
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t n = orders[i / PRECISION_COUNT];
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, 1);
        ismtest_complete(&problem);
        problem.b[0] = problem.b[n] = large[precision];
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, n + 1);
        assert_true(isnan(answer.rcond) && answer.det_ratio == 1);
        for (int64_t j = 0; j < n * n; j++)
            assert_true(answer.inverse[j] == problem.b[j]);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Z's terms overflow though M's do not. With A0_INVERSE alone a Z with a NaN is none: all of it is
 * NaN, and DET_RATIO. */
static void test_solution_beyond_the_range(void **state)
{
    (void)state;
    static const double large[PRECISION_COUNT] = {0x1p126, 0x1p1022};
    static const double tiny[PRECISION_COUNT] = {0x1p-70, 0x1p-530};
    static const int64_t orders[] = {2, 12, 12}, places[] = {0, 0, 10};
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t n = orders[i / PRECISION_COUNT], at = places[i / PRECISION_COUNT];
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, 1);
        ismtest_complete(&problem);
        double *b = problem.b + at * (n + 1);
        b[0] = b[1] = b[n] = large[precision];
        b[n + 1] = -large[precision];
        problem.x[at + 1] = tiny[precision];
        problem.y[at + 1] = (1 - 0x1p-20) / large[precision] / tiny[precision];
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        bool nan = false;
        for (int64_t j = 0; j < n * n; j++)
            nan = nan || isnan(answer.inverse[j]);
        assert_int_equal(answer.info, n + 1);
        assert_true(nan || at != 10);
        assert_true(isnan(answer.det_ratio) == nan);
        for (int64_t j = 0; j < n * n; j++)
            assert_true(isnan(answer.inverse[j]) == nan);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Zero is no one's inverse, nor does any come of it. */
static void test_no_inverse(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 8, 9, 40};
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++) {
        int64_t n = orders[i / PRECISION_COUNT];
        struct ismtest_problem problem =
            ismtest_problem((enum precision)(i % PRECISION_COUNT), ISMTEST_INVERSE, n, 1, i);
        for (int64_t j = 0; j < n * n; j++)
            problem.b[j] = 0;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, n + 1);
        assert_true(isnan(answer.rcond) && isnan(answer.det_ratio));
        for (int64_t j = 0; j < n * n; j++)
            assert_true(isnan(answer.inverse[j]));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

static void test_too_small_an_inverse(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {4, 1}, {8, 2}, {12, 3}, {32, 1}, {40, 1}, {70, 9}};
    for (size_t i = 0; i < COUNT(shapes) * PRECISION_COUNT; i++)
        ismtest_too_small((enum precision)(i % PRECISION_COUNT), shapes[i / PRECISION_COUNT][0],
                          shapes[i / PRECISION_COUNT][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_nearly_singular),
        cmocka_unit_test(test_as_lu),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_norm_beyond_the_range),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_no_inverse),
        cmocka_unit_test(test_too_small_an_inverse),
        cmocka_unit_test(test_det_ratio_at_the_end),
        cmocka_unit_test(test_det_ratio_of_denormal_lines),
        cmocka_unit_test(test_det_ratio_of_vanished_pivots),
        cmocka_unit_test(test_det_ratio_of_lost_numbers),
        cmocka_unit_test(test_det_ratio_of_scaled_lines),
        cmocka_unit_test(test_det_ratio_of_lines_that_cannot_be_equilibrated),
        cmocka_unit_test(test_det_ratio_of_the_least_number),
        cmocka_unit_test(test_column_sum_beyond_the_range),
        cmocka_unit_test(test_solution_beyond_the_range),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
