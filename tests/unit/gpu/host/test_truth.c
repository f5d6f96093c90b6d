/* INFO, RCOND and METHOD on input that has no inverse, hardly one, or numbers at the ends of the
 * range; and bits that must not depend on a power of two. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/method.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t orders[] = {1, 2, 8, 9, 17, 31, 32, 33, 70, 129};

static double *random_matrix(int64_t n, enum precision precision, uint64_t seed)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++) {
        double value = gputest_random(&seed);
        a[i] = precision == PRECISION_FP32 ? (double)(float)value : value;
    }
    return a;
}

static void assert_all_nan(const struct gputest_answer *answer)
{
    for (int64_t i = 0; i < answer->n * answer->n; i++)
        assert_true(isnan(answer->inverse[i]));
}

/* ---- Not finite ---- */

static void try_poisoned(const char *method, enum precision precision, int64_t n, double poison,
                         int64_t place)
{
    if (!gputest_takes(method, precision, n))
        return;
    double *a = random_matrix(n, precision, 5);
    a[place] = poison;
    struct gputest_answer answer = gputest_run(method, precision, n, a, false);
    const struct method *of = method_find(method);
    assert_int_equal(answer.info, -1);
    if (of->outputs[0].kind == METHOD_REAL && of->outputs[0].rank == 2)
        assert_all_nan(&answer);
    for (int64_t i = 0; method_output_find(of, "PIVOTS") >= 0 && i < n; i++)
        assert_int_equal(answer.pivots[i], 0);
    assert_true(method_output_find(of, "RCOND") < 0 || isnan(answer.rcond));
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_NONE);
    gputest_free(&answer);
    free(a);
}

static void test_not_finite(void **state)
{
    (void)state;
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    const size_t methods = (size_t)method_count();
    for (size_t i = 0; i < methods * COUNT(orders) * COUNT(poisons); i++) {
        const struct method *method = method_at((int)(i % methods));
        int64_t n = orders[i / methods % COUNT(orders)];
        double poison = poisons[i / methods / COUNT(orders)];
        if (!method_takes_dense(method))
            continue;
        int64_t places[] = {0, n - 1, n * n / 2, n * n - 1};
        for (size_t j = 0; j < COUNT(places); j++) {
            try_poisoned(method->name, PRECISION_FP64, n, poison, places[j]);
            try_poisoned(method->name, PRECISION_FP32, n, poison, places[j]);
        }
    }
}

/* ---- Singular ---- */

enum defect {
    ZERO_MATRIX,
    ZERO_COLUMN,
    ZERO_ROW,
    EQUAL_ROWS,
    RANK_ONE,
    DEFECTS
};

static void spoil(double *a, int64_t n, enum defect defect, int64_t at)
{
    for (int64_t i = 0; i < n * n; i++) {
        int64_t row = i / n, column = i % n;
        bool zero = defect == ZERO_MATRIX || (defect == ZERO_COLUMN && column == at) ||
                    (defect == ZERO_ROW && row == at);
        if (zero)
            a[i] = 0;
        if (defect == EQUAL_ROWS && row == n - 1)
            a[i] = a[column];
        if (defect == RANK_ONE)
            a[i] = (double)(row + 1) * (double)(column % 4 + 1);
    }
}

/* Exactly singular: an exact zero pivot, or an inverse that RCOND calls worthless, or no
 * convergence. Never good. */
static void try_singular(const char *method, enum precision precision, int64_t n,
                         enum defect defect)
{
    if (!gputest_takes(method, precision, n))
        return;
    double *a = random_matrix(n, precision, 6);
    spoil(a, n, defect, n / 2);
    struct gputest_answer answer = gputest_run(method, precision, n, a, false);
    bool exact = answer.info >= 1 && answer.info <= n;
    if (exact) {
        assert_all_nan(&answer);
        assert_true(answer.rcond == 0);
    } else if (answer.info != n + 2 || !gputest_iterates(method)) {
        assert_int_equal(answer.info, n + 1);
        assert_true(answer.rcond < gputest_eps(precision));
    }
    if (defect == ZERO_MATRIX || (defect == ZERO_COLUMN && strcmp(method, "auto") != 0))
        assert_int_equal(answer.info, defect == ZERO_MATRIX ? 1 : n / 2 + 1);
    gputest_free(&answer);

    /* lu_factor: complete factors all the same, and LAPACK's step. */
    answer = gputest_run("lu_factor", precision, n, a, false);
    assert_true(gputest_factor_ratio(precision, n, a, &answer) <= GPUTEST_RATIO_MAX);
    if (answer.info) {
        assert_in_range(answer.info, 1, n);
        assert_true(answer.inverse[(answer.info - 1) * (n + 1)] == 0);
    }
    gputest_free(&answer);
    free(a);
}

static void test_singular(void **state)
{
    (void)state;
    for (size_t i = 0; i < gputest_inverters() * COUNT(orders); i++) {
        int64_t n = orders[i / gputest_inverters()];
        for (int defect = 0; defect < DEFECTS; defect++) {
            if (n == 1 && (defect == EQUAL_ROWS || defect == RANK_ONE))
                continue;
            try_singular(gputest_inverter(i % gputest_inverters()), PRECISION_FP64, n,
                         (enum defect)defect);
            try_singular(gputest_inverter(i % gputest_inverters()), PRECISION_FP32, n,
                         (enum defect)defect);
        }
    }
}

/* ---- The ends of the range ---- */

struct extreme {
    const char *what;
    double scale;
    bool info_good; /* else: the inverse overflows, INFO n + 1 and RCOND 0 */
};

static const struct extreme extremes[] = {
    {"1e150", 1e150, true},
    {"1e-150", 1e-150, true},
    {"near overflow", 0x1p1023, true},
    {"near underflow", 0x1p-1019, true},
    {"denormal", 0x1p-1060, false},
    {"smallest", 0x1p-1074, false},
};

static void try_extreme(const char *method, const struct extreme *extreme, int64_t n)
{
    if (!gputest_takes(method, PRECISION_FP64, n))
        return;
    /* Small integers on a dominant diagonal: exact at every scale. */
    double *a = random_matrix(n, PRECISION_FP64, 8), norm, norm_x;
    for (int64_t i = 0; i < n * n; i++)
        a[i] = (i / n == i % n ? 1 : trunc(a[i] * 1.6) * (n > 8 ? 0 : 0.25)) * extreme->scale;
    struct gputest_answer answer = gputest_run(method, PRECISION_FP64, n, a, false);
    if (extreme->info_good) {
        assert_int_equal(answer.info, 0);
        assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, answer.inverse) <=
                    GPUTEST_RATIO_MAX);
        norm = residual_norm(n, a) / extreme->scale;
        norm_x = residual_norm(n, answer.inverse) * extreme->scale;
        if (isfinite(norm * norm_x) && norm_x > 0)
            assert_true(fabs(answer.rcond * norm * norm_x - 1) < 1e-13);
    } else {
        assert_int_equal(answer.info, n + 1);
        assert_true(answer.rcond == 0);
        assert_true(isinf(answer.inverse[0]));
    }
    gputest_free(&answer);
    free(a);
}

static void test_ends_of_the_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < gputest_inverters() * COUNT(orders); i++) {
        for (size_t j = 0; j < COUNT(extremes); j++)
            try_extreme(gputest_inverter(i % gputest_inverters()), &extremes[j],
                        orders[i / gputest_inverters()]);
    }
}

/* Finite entries whose sums overflow are finite all the same. */
static void test_sums_may_overflow(void **state)
{
    (void)state;
    enum {
        N = 16
    };
    double *a = random_matrix(N, PRECISION_FP64, 3);
    for (int i = 0; i < N * N; i++)
        a[i] *= DBL_MAX;
    for (size_t i = 0; i < gputest_inverters(); i++) {
        if (!gputest_takes(gputest_inverter(i), PRECISION_FP64, N))
            continue;
        struct gputest_answer answer =
            gputest_run(gputest_inverter(i), PRECISION_FP64, N, a, false);
        assert_int_equal(answer.info, 0);
        assert_true(answer.rcond > 1e-6 && answer.rcond < 1);
        gputest_free(&answer);
    }
    free(a);
}

/* Sylvester's matrix of signs, times a number so small that the sums of its inverse overflow, which
 * its entries do not. iterative counts that as an overflow. */
static void try_large_inverse(const char *method, enum precision precision, int64_t n)
{
    if (!gputest_takes(method, precision, n) || gputest_iterates(method))
        return;
    double scale = precision == PRECISION_FP32 ? 0x1p-129 : 0x1p-1025,
           *a = calloc(n * n, sizeof *a);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = __builtin_parityll((uint64_t)(i / n & i % n)) ? -scale : scale;
    struct gputest_answer answer = gputest_run(method, precision, n, a, false);
    assert_int_equal(answer.info, 0);
    assert_true(fabs(answer.rcond * (double)n - 1) < (double)n * gputest_eps(precision));
    for (int64_t i = 0; i < n * n; i++)
        assert_true(fabs(answer.inverse[i] * a[i] * (double)n - 1) <
                    (double)n * gputest_eps(precision));
    gputest_free(&answer);
    free(a);
}

static void test_sums_of_the_inverse_may_overflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < gputest_inverters() * PRECISION_COUNT; i++) {
        for (int64_t n = 8; n <= 512; n *= 2)
            try_large_inverse(gputest_inverter(i / PRECISION_COUNT),
                              (enum precision)(i % PRECISION_COUNT), n);
    }
}

/* Both ends of the range in one matrix: no pivot is zero as A is written, and it is well
 * conditioned but for its scaling, which is taken away. */
static void test_no_false_zero_pivot(void **state)
{
    (void)state;
    static const double ends[][2] = {{1e308, 1e-308}, {1e38, 1e-38}};
    for (size_t i = 0; i < gputest_inverters() * 2; i++) {
        enum precision precision = i % 2 ? PRECISION_FP32 : PRECISION_FP64;
        double great = ends[i % 2][0], small = ends[i % 2][1];
        if (!gputest_takes(gputest_inverter(i / 2), precision, 2))
            continue;
        double rows[][4] = {{great, 0, 0, small}, {great, great / 2, 0, small}};
        for (size_t k = 0; k < COUNT(rows); k++) {
            for (int j = 0; j < 4 && precision == PRECISION_FP32; j++)
                rows[k][j] = (float)rows[k][j];
            struct gputest_answer answer =
                gputest_run(gputest_inverter(i / 2), precision, 2, rows[k], false);
            assert_int_equal(answer.info, 0);
            assert_true(answer.rcond < gputest_eps(precision));
            assert_true(fabs(answer.inverse[0] * great - 1) < 1e-3);
            assert_true(fabs(answer.inverse[3] * small - 1) < 1e-3);
            gputest_free(&answer);
        }
    }
}

/* Likewise, where the small pivots have a reciprocal as A is written and none when its norm is
 * brought down. */
static void try_far_ends(const char *method, enum precision precision, int64_t n, bool triangular)
{
    static const double ends[PRECISION_COUNT][2] = {{1e35, 1e-35}, {1e300, 1e-300}};
    double great = ends[precision][0], small = ends[precision][1], *a = gputest_numbers(n * n);
    if (precision == PRECISION_FP32) {
        great = (double)(float)great;
        small = (double)(float)small;
    }
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = i % 2 ? small : great;
    if (triangular)
        a[1] = great / 2;
    struct gputest_answer answer = gputest_run(method, precision, n, a, false);
    assert_int_equal(answer.info, 0);
    assert_true(answer.rcond < gputest_eps(precision));
    for (int64_t k = 0; k < n * n; k++) {
        bool diagonal = k % (n + 1) == 0;
        double expected = diagonal ? 1 / a[k] : triangular && k == 1 ? -1 / small / 2 : 0;
        if (!(fabs(answer.inverse[k] - expected) <= 1e-3 * fabs(expected)))
            fail_msg("%s, n = %d, entry %d: %g", method, (int)n, (int)k, answer.inverse[k]);
    }
    gputest_free(&answer);
    free(a);
}

static void test_far_ends(void **state)
{
    (void)state;
    static const char *const eliminations[] = {"lu", "gauss_jordan", "auto"};
    static const int64_t of_orders[] = {2, 3, 8, 9, 20, 33, 65, 300};
    for (size_t i = 0; i < COUNT(eliminations) * COUNT(of_orders) * 4; i++) {
        const char *method = eliminations[i / 4 % COUNT(eliminations)];
        int64_t n = of_orders[i / 4 / COUNT(eliminations)];
        enum precision precision = (enum precision)(i % 2);
        if (gputest_takes(method, precision, n))
            try_far_ends(method, precision, n, i / 2 % 2);
    }
}

/* Pivots whose reciprocal overflows. */
static void try_tiny_factors(int64_t n, const double *a)
{
    if (!gputest_takes("lu_factor", PRECISION_FP64, n))
        return;
    struct gputest_answer answer = gputest_run("lu_factor", PRECISION_FP64, n, a, false);
    assert_int_equal(answer.info, 0);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(isfinite(answer.inverse[i]));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            assert_true(fabs(answer.inverse[i * n + j]) <= 1);
    }
    assert_true(gputest_factor_ratio(PRECISION_FP64, n, a, &answer) <= GPUTEST_RATIO_MAX);
    gputest_free(&answer);
}

static void test_factors_of_tiny_pivots(void **state)
{
    (void)state;
    static const double small[] = {1, 0, 0, 0, 1e-310, 1e-310, 0, 3e-310, 2e-310};
    try_tiny_factors(3, small);
    for (size_t k = 1; k < COUNT(orders); k++) {
        double *a = random_matrix(orders[k], PRECISION_FP64, 12);
        for (int64_t i = 0; i < orders[k] * orders[k]; i++)
            a[i] *= 1e-309;
        try_tiny_factors(orders[k], a);
        free(a);
    }
}

/* The reciprocal of the first pivot has lost digits, the quotients have none to lose. */
static void test_factors_of_great_pivots(void **state)
{
    (void)state;
    static const int64_t tried[] = {2, 3, 4, 33, 150};
    for (size_t k = 0; k < COUNT(tried); k++) {
        int64_t n = tried[k];
        if (!gputest_takes("lu_factor", PRECISION_FP64, n))
            continue;
        double *a = gputest_numbers(n * n);
        memset(a, 0, (size_t)(n * n) * sizeof a[0]);
        for (int64_t i = 0; i < n; i++) {
            a[i * n + i] = i == 0 ? 0x1.ffc6676c98944p1023 : 1;
            a[i * n] = i == 0 ? a[0] : a[0] / (double)(i + 2);
        }
        struct gputest_answer answer = gputest_run("lu_factor", PRECISION_FP64, n, a, false);
        assert_int_equal(answer.info, 0);
        for (int64_t i = 1; i < n; i++)
            assert_true(fabs(answer.inverse[i * n] / (a[i * n] / a[0]) - 1) < 3 * DBL_EPSILON / 2);
        gputest_free(&answer);
        free(a);
    }
}

/* Columns times powers of two from both ends of the range have the same L and the same pivots. */
static void try_shifted_factors(int64_t n)
{
    static const int shifts[] = {0, 1016, -1000, -3, 1018};
    if (!gputest_takes("lu_factor", PRECISION_FP64, n))
        return;
    double *a = random_matrix(n, PRECISION_FP64, 31), *b = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++) {
        int shift = shifts[i % n % (int64_t)COUNT(shifts)];
        a[i] = ldexp(trunc(ldexp(a[i], 10)), -11); /* with few digits, so that all are kept */
        b[i] = ldexp(a[i], shift);
    }
    struct gputest_answer plain = gputest_run("lu_factor", PRECISION_FP64, n, a, false);
    struct gputest_answer shifted = gputest_run("lu_factor", PRECISION_FP64, n, b, false);
    assert_int_equal(plain.info, 0);
    assert_int_equal(shifted.info, 0);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(plain.pivots[i], shifted.pivots[i]);
        for (int64_t j = 0; j < i; j++)
            assert_true(fabs(plain.inverse[i * n + j] - shifted.inverse[i * n + j]) < 1e-9);
    }
    gputest_free(&plain);
    gputest_free(&shifted);
    free(a);
    free(b);
}

static void test_factors_of_shifted_columns(void **state)
{
    (void)state;
    static const int64_t tried[] = {2, 7, 33, 150, 300};
    for (size_t k = 0; k < COUNT(tried); k++)
        try_shifted_factors(tried[k]);
}

/* ---- Powers of two ---- */

static void try_scaled(const char *method, enum precision precision, int64_t n, int exponent,
                       bool symmetric)
{
    if (!gputest_takes(method, precision, n))
        return;
    double *a = random_matrix(n, precision, 21), *b = gputest_numbers(n * n);
    for (int64_t i = 0; symmetric && i < n * n; i++) {
        int64_t row = i / n, column = i % n;
        a[i] = row < column ? a[i] : row > column ? a[column * n + row] : (double)n;
    }
    for (int64_t i = 0; i < n * n; i++)
        b[i] = ldexp(a[i], exponent);
    struct gputest_answer plain = gputest_run(method, precision, n, a, false);
    struct gputest_answer scaled = gputest_run(method, precision, n, b, false);
    assert_int_equal(plain.info, scaled.info);
    assert_int_equal(plain.algorithm, scaled.algorithm);
    assert_true(plain.rcond == scaled.rcond);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(ldexp(plain.inverse[i], -exponent) == scaled.inverse[i]);
    gputest_free(&plain);
    gputest_free(&scaled);
    free(a);
    free(b);
}

static void test_power_of_two(void **state)
{
    (void)state;
    static const int exponents[] = {1, -1, 2, 7, -33, 40};
    for (size_t i = 0; i < gputest_inverters() * COUNT(orders); i++) {
        const char *method = gputest_inverter(i % gputest_inverters());
        for (size_t j = 0; j < 2 * COUNT(exponents); j++) {
            int exponent = exponents[j / 2];
            bool symmetric = j % 2;
            try_scaled(method, PRECISION_FP64, orders[i / gputest_inverters()], 17 * exponent,
                       symmetric);
            try_scaled(method, PRECISION_FP32, orders[i / gputest_inverters()], exponent,
                       symmetric);
        }
    }
}

/* ---- Algorithms of auto ---- */

static enum method_algorithm algorithm_of(const double *a, int64_t n, bool spd)
{
    struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, n, a, spd);
    assert_int_equal(answer.info, 0);
    assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, answer.inverse) <= GPUTEST_RATIO_MAX);
    int algorithm = answer.algorithm;
    gputest_free(&answer);
    return (enum method_algorithm)algorithm;
}

static void test_algorithms(void **state)
{
    (void)state;
    if (!gputest_takes("auto", PRECISION_FP64, orders[COUNT(orders) - 1]))
        skip();
    for (size_t k = 1; k < COUNT(orders); k++) {
        int64_t n = orders[k];
        double *a = random_matrix(n, PRECISION_FP64, 31);
        assert_int_equal(algorithm_of(a, n, false), METHOD_ALGORITHM_LU);
        for (int64_t i = 0; i < n; i++) {
            a[i * n + i] = (double)n;
            for (int64_t j = 0; j < i; j++)
                a[i * n + j] = a[j * n + i];
        }
        /* Up to 32 a symmetric matrix is one of lu's group, whatever the hint. */
        enum method_algorithm symmetric =
            n <= 32 ? METHOD_ALGORITHM_LU : gputest_algorithm(METHOD_ALGORITHM_CHOLESKY, n);
        assert_int_equal(algorithm_of(a, n, false), symmetric);
        assert_int_equal(algorithm_of(a, n, true), symmetric);
        /* A last bit apart: equal to the hinted only. */
        a[n - 1] = nextafter(a[n - 1], 9);
        assert_int_equal(algorithm_of(a, n, false), METHOD_ALGORITHM_LU);
        assert_int_equal(algorithm_of(a, n, true), METHOD_ALGORITHM_CHOLESKY);
        a[n - 1] += 1e-3;
        assert_int_equal(algorithm_of(a, n, true), METHOD_ALGORITHM_LU);
        /* Symmetric, positive diagonal, not definite. */
        a[n - 1] = a[(n - 1) * n] = 3.0 * (double)n;
        assert_int_equal(algorithm_of(a, n, false), METHOD_ALGORITHM_LU);
        for (int64_t i = 0; i < n * n; i++)
            a[i] = i % n < i / n ? 0 : a[i];
        assert_int_equal(algorithm_of(a, n, false),
                         gputest_algorithm(METHOD_ALGORITHM_TRIANGULAR, n));
        for (int64_t i = 0; i < n * n; i++)
            a[i] = i % n == i / n ? a[i] : 0;
        assert_int_equal(algorithm_of(a, n, false),
                         gputest_algorithm(METHOD_ALGORITHM_DIAGONAL, n));
        free(a);
    }
}

/* A symmetric positive definite matrix too ill-conditioned for Cholesky's answer to be trusted. */
static void test_ill_conditioned_leaves_cholesky(void **state)
{
    (void)state;
    if (!gputest_takes("auto", PRECISION_FP64, 13))
        skip();
    for (int64_t n = 11; n <= 13; n++) {
        double *a = gputest_numbers(n * n);
        for (int64_t i = 0; i < n * n; i++)
            a[i] = 1 / (double)(i / n + i % n + 1);
        a[n - 1] = nextafter(a[n - 1], 9); /* or so small a one were lu's at once */
        struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, n, a, true);
        struct gputest_answer lu = gputest_run("lu", PRECISION_FP64, n, a, false);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
        assert_memory_equal(answer.inverse, lu.inverse, (size_t)(n * n) * sizeof(double));
        assert_int_equal(answer.info, lu.info);
        gputest_free(&answer);
        gputest_free(&lu);
        free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_ends_of_the_range),
        cmocka_unit_test(test_sums_may_overflow),
        cmocka_unit_test(test_sums_of_the_inverse_may_overflow),
        cmocka_unit_test(test_no_false_zero_pivot),
        cmocka_unit_test(test_far_ends),
        cmocka_unit_test(test_factors_of_tiny_pivots),
        cmocka_unit_test(test_factors_of_great_pivots),
        cmocka_unit_test(test_factors_of_shifted_columns),
        cmocka_unit_test(test_power_of_two),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_ill_conditioned_leaves_cholesky),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
