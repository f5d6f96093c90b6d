/* tridiagonal on the host: both residuals of every variant over matrices of every kind, the
 * algorithms that are taken, INFO and RCOND on what has no inverse, and the diagonal alone. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/methods/tridiagonal.h"
#include "tests/unit/gpu/host/band_run.h"
#include "tests/unit/gpu/host/bands.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    AUTO = METHOD_TRIDIAGONAL_AUTO,
    MERGED = METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
    SWEPT = METHOD_TRIDIAGONAL_TWO_SWEEP,
    PIVOTED = METHOD_TRIDIAGONAL_PIVOTED,
    VARIANTS
};

static struct gputest_band_answer run(const struct gputest_bands *a, int variant, bool inverse,
                                      bool diagonal)
{
    struct gputest_band_request request = {
        .variant = variant, .inverse = inverse, .diagonal = diagonal};
    return gputest_band_run(a, &request);
}

/* ---- Measures ---- */

static void assert_same(const struct gputest_bands *a, int variant,
                        const struct gputest_band_answer *whole)
{
    struct gputest_band_answer alone = run(a, variant, false, true);
    assert_int_equal(alone.info, whole->info);
    assert_int_equal(alone.algorithm, whole->algorithm);
    assert_memory_equal(&alone.rcond, &whole->rcond, sizeof alone.rcond);
    assert_memory_equal(alone.diagonal, whole->diagonal, (size_t)a->n * sizeof(double));
    gputest_band_free(&alone);
}

static void check_good(const struct gputest_bands *a, const struct gputest_band_answer *answer)
{
    double eps = gputest_eps(a->precision), ratio = gputest_band_ratio(a, answer->x);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        print_error("n %lld algorithm %d ratio %g rcond %g\n", (long long)a->n, answer->algorithm,
                    ratio, answer->rcond);
    assert_true(ratio <= GPUTEST_RATIO_MAX);
    assert_true(answer->rcond >= eps);
    long double rcond = 1 / gputest_band_norm(a) / gputest_dense_norm(answer->x, a->n);
    assert_true(fabsl((long double)answer->rcond / rcond - 1) <= 20 * (long double)(a->n * eps));
    for (int64_t i = 0; i < a->n; i++)
        assert_true(answer->x[i * a->n + i] == answer->diagonal[i]);
}

/* An exact zero pivot with NaN, or n + 1. */
static void check_bad(const struct gputest_bands *a, const struct gputest_band_answer *answer)
{
    assert_in_range(answer->info, 1, a->n + 1);
    assert_true(answer->rcond < gputest_eps(a->precision));
    for (int64_t i = 0; i < a->n * a->n && answer->info <= a->n; i++)
        assert_true(isnan(answer->x[i]));
}

static void check_one(enum gputest_bands_kind kind, enum precision precision, int64_t n,
                      int variant)
{
    struct gputest_bands a =
        gputest_bands_make(kind, precision, n, (uint64_t)(n * BANDS_KINDS + kind));
    struct gputest_band_answer answer = run(&a, variant, true, true);
    if (answer.info == 0)
        check_good(&a, &answer);
    else
        check_bad(&a, &answer);
    bool singular = kind >= BANDS_FIRST_COLUMN_ZERO && kind <= BANDS_LAST_HALF_ZERO;
    bool surely_good = kind == BANDS_CONDITION_2 || kind == BANDS_LARGE || kind == BANDS_ILL ||
                       kind == BANDS_LAPLACE || kind == BANDS_STRONG_COLUMNS || kind == BANDS_FAR ||
                       (kind == BANDS_ZERO_DIAGONAL && n % 2 == 0);
    if (singular)
        assert_int_not_equal(answer.info, 0);
    if (surely_good)
        assert_int_equal(answer.info, 0);
    if (kind == BANDS_ZERO_DIAGONAL && n % 2)
        assert_int_equal(answer.info, n);
    assert_same(&a, variant, &answer);
    gputest_band_free(&answer);
    gputest_bands_free(&a);
}

static void test_every_kind(void **state)
{
    (void)state;
    static const int64_t orders[] = {1,  2,  3,  4,  5,  7,  8,  9,   15,  16, 17,
                                     31, 32, 33, 50, 63, 64, 65, 127, 128, 129};
    for (size_t i = 0; i < COUNT(orders); i++)
        for (int kind = 0; kind < BANDS_KINDS; kind++)
            for (int k = 0; k < VARIANTS * PRECISION_COUNT; k++)
                check_one((enum gputest_bands_kind)kind, (enum precision)(k / VARIANTS), orders[i],
                          k % VARIANTS);
}

static void test_larger_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {500, 777, 1000};
    static const enum gputest_bands_kind kinds[] = {BANDS_CONDITION_2, BANDS_RANDOM,
                                                    BANDS_LAPLACE,     BANDS_ALTERNATING,
                                                    BANDS_WEAK_ROWS,   BANDS_GROWING};
    for (size_t i = 0; i < COUNT(orders) * COUNT(kinds); i++)
        for (int k = 0; k < VARIANTS; k++)
            check_one(kinds[i % COUNT(kinds)], (enum precision)((k + (int)i) % 2),
                      orders[i / COUNT(kinds)], k);
}

/* Many of these are nearly singular, or have nearly singular halves. */
static void test_weakly_dominant(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 150; n++)
        for (int k = 0; k < 2 * VARIANTS * PRECISION_COUNT; k++)
            check_one(k % 2 ? BANDS_WEAK_ROWS : BANDS_WEAK_COLUMNS,
                      (enum precision)(k / 2 / VARIANTS), n, k / 2 % VARIANTS);
}

/* More columns than the host writes together. */
static void test_strips(void **state)
{
    (void)state;
    check_one(BANDS_STRONG_COLUMNS, PRECISION_FP64, 2051, AUTO);
    check_one(BANDS_CONDITION_2, PRECISION_FP32, 2050, AUTO);
}

/* ---- Algorithms ---- */

static void test_algorithms(void **state)
{
    (void)state;
    static const struct {
        enum gputest_bands_kind kind;
        int64_t n;
        int variant, algorithm;
    } rows[] = {
        {BANDS_LAPLACE, 64, AUTO, METHOD_ALGORITHM_TWO_SWEEP},
        {BANDS_STRONG_COLUMNS, 65, AUTO, METHOD_ALGORITHM_TWO_SWEEP},
        {BANDS_RANDOM, 64, AUTO, METHOD_ALGORITHM_PIVOTED},
        {BANDS_LAPLACE, 64, MERGED, METHOD_ALGORITHM_SHERMAN_MORRISON},
        {BANDS_ALTERNATING, 64, MERGED, METHOD_ALGORITHM_SHERMAN_MORRISON},
        {BANDS_ALTERNATING, 777, MERGED, METHOD_ALGORITHM_SHERMAN_MORRISON},
        {BANDS_CONDITION_2, 33, MERGED, METHOD_ALGORITHM_SHERMAN_MORRISON},
        {BANDS_RANDOM, 64, MERGED, METHOD_ALGORITHM_PIVOTED},
        {BANDS_RANDOM, 64, SWEPT, METHOD_ALGORITHM_PIVOTED},
        {BANDS_LAPLACE, 64, SWEPT, METHOD_ALGORITHM_TWO_SWEEP},
        {BANDS_LAPLACE, 64, PIVOTED, METHOD_ALGORITHM_PIVOTED},
        {BANDS_FIRST_COLUMN_ZERO, 5, AUTO, METHOD_ALGORITHM_PIVOTED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gputest_bands a = gputest_bands_make(rows[i].kind, PRECISION_FP64, rows[i].n, 7);
        struct gputest_band_answer answer = run(&a, rows[i].variant, true, false);
        assert_int_equal(answer.algorithm, rows[i].algorithm);
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

/* Strictly dominant, and yet the poster's formulas divide by zero. */
static void test_counterexample(void **state)
{
    (void)state;
    double dl[] = {1, 1, 0.5, 0}, d[] = {2, 1.5, 3, 3}, du[] = {1, 0.4, 0.5, 0};
    struct gputest_bands a = {4, PRECISION_FP64, dl, d, du};
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_band_answer answer = run(&a, variant, true, true);
        assert_int_equal(answer.info, 0);
        check_good(&a, &answer);
        if (variant == MERGED)
            assert_int_equal(answer.algorithm, METHOD_ALGORITHM_SHERMAN_MORRISON);
        gputest_band_free(&answer);
    }
}

/* The inverse of (-1, 2, -1) is min(i, j) (n + 1 - max(i, j)) / (n + 1). */
static void test_closed_form(void **state)
{
    (void)state;
    enum {
        N = 200
    };
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, N, 1);
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_band_answer answer = run(&a, variant, true, false);
        for (int64_t k = 0; k < N * N; k++) {
            int64_t i = k / N + 1, j = k % N + 1, low = i < j ? i : j, high = i + j - low;
            double x = (double)(low * (N + 1 - high)) / (N + 1);
            assert_true(fabs(answer.x[k] / x - 1) < 1e-12);
        }
        gputest_band_free(&answer);
    }
    gputest_bands_free(&a);
}

/* ---- The ends of the range, and beyond ---- */

static void test_not_finite(void **state)
{
    (void)state;
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < VARIANTS * 3 * 3; k++) {
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 9, 1);
        double *bands[] = {a.dl, a.d, a.du};
        bands[k % 3][k % 8] = poisons[k / 3 % 3];
        struct gputest_band_answer answer = run(&a, k / 9, true, true);
        assert_int_equal(answer.info, -1);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_NONE);
        assert_true(isnan(answer.rcond) && isnan(answer.x[0]) && isnan(answer.x[80]));
        assert_true(isnan(answer.diagonal[0]) && isnan(answer.diagonal[8]));
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

static void test_singular(void **state)
{
    (void)state;
    static const struct {
        double dl, d, du;
        int32_t info[2]; /* of n = 2 and n = 3 */
    } rows[] = {{0, 0, 0, {1, 1}}, {1, 1, 1, {2, 0}}, {0, 0, 1, {1, 1}}, {1, 0, 1, {0, 3}}};
    for (size_t i = 0; i < COUNT(rows) * 2 * VARIANTS; i++) {
        size_t row = i / 2 / VARIANTS;
        struct gputest_bands a =
            gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 2 + (int64_t)(i % 2), 1);
        gputest_bands_fill(&a, rows[row].dl, rows[row].d, rows[row].du);
        struct gputest_band_answer answer = run(&a, (int)(i / 2 % VARIANTS), true, true);
        assert_int_equal(answer.info, rows[row].info[i % 2]);
        if (answer.info) {
            check_bad(&a, &answer);
            assert_true(answer.rcond == 0 && isnan(answer.diagonal[0]));
        }
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

static void test_scales(void **state)
{
    (void)state;
    static const struct {
        double scale;
        bool good;
    } rows[] = {{1e150, true},     {1e-150, true},     {0x1p1020, true},
                {0x1p-1010, true}, {0x1p-1060, false}, {0x1p-1074, false}};
    for (size_t i = 0; i < COUNT(rows) * VARIANTS * 2; i++) {
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 12, 1);
        double scale = rows[i / 2 / VARIANTS].scale, off = i % 2 ? 2 : -1;
        gputest_bands_fill(&a, off * scale, 3 * scale, off * scale);
        struct gputest_band_answer answer = run(&a, (int)(i / 2 % VARIANTS), true, true);
        assert_int_equal(answer.info, rows[i / 2 / VARIANTS].good ? 0 : 13);
        if (answer.info == 0)
            check_good(&a, &answer);
        else
            assert_true(answer.rcond == 0 && !isnan(answer.x[0]) && isinf(answer.diagonal[0]));
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

/* Finite numbers whose sums overflow are finite all the same. */
static void test_sums_may_overflow(void **state)
{
    (void)state;
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 9, 1);
    gputest_bands_fill(&a, 0.8 * DBL_MAX, DBL_MAX, 0.7 * DBL_MAX);
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_band_answer answer = run(&a, variant, true, true);
        assert_int_equal(answer.info, 0);
        assert_true(answer.rcond > 0.01 && answer.rcond < 1);
        gputest_band_free(&answer);
    }
    gputest_bands_free(&a);
}

/* A power of two changes exponents, and nothing else. */
static void test_powers_of_two(void **state)
{
    (void)state;
    static const enum gputest_bands_kind kinds[] = {BANDS_CONDITION_2, BANDS_RANDOM};
    for (size_t k = 0; k < COUNT(kinds) * VARIANTS; k++) {
        struct gputest_bands a = gputest_bands_make(kinds[k % 2], PRECISION_FP64, 40, 3);
        struct gputest_band_answer once = run(&a, (int)(k / 2), true, false);
        for (int64_t i = 0; i < 3 * a.n; i++)
            a.dl[i] *= 0x1p20;
        struct gputest_band_answer twice = run(&a, (int)(k / 2), true, false);
        for (int64_t i = 0; i < a.n * a.n; i++)
            assert_true(once.x[i] == twice.x[i] * 0x1p20);
        gputest_band_free(&once);
        gputest_band_free(&twice);
        gputest_bands_free(&a);
    }
}

/* Entries that underflow are 0, not NaN, and cost no accuracy elsewhere. */
static void test_far_entries_underflow(void **state)
{
    (void)state;
    struct gputest_bands a = gputest_bands_make(BANDS_FAR, PRECISION_FP64, 400, 1);
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_band_answer answer = run(&a, variant, true, true);
        assert_int_equal(answer.info, 0);
        assert_true(answer.x[399] == 0 && answer.x[399 * 400] == 0);
        check_good(&a, &answer);
        gputest_band_free(&answer);
    }
    gputest_bands_free(&a);
}

/* ---- The diagonal alone ---- */

/* By the two sweeps in long double. */
static long double *true_diagonal(const struct gputest_bands *a)
{
    int64_t n = a->n;
    long double *gamma = calloc((size_t)n, sizeof *gamma), delta = a->d[0];
    assert_non_null(gamma);
    gamma[n - 1] = a->d[n - 1];
    for (int64_t i = n - 2; i >= 0; i--)
        gamma[i] = a->d[i] - (long double)a->dl[i] * a->du[i] / gamma[i + 1];
    for (int64_t i = 0; i < n; i++) {
        long double next = i + 1 < n ? a->d[i + 1] - (long double)a->dl[i] * a->du[i] / delta : 0;
        gamma[i] = 1 / (delta + gamma[i] - a->d[i]);
        delta = next;
    }
    return gamma;
}

static void test_diagonal_of_large_orders(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        int variant;
    } rows[] = {{100000, AUTO}, {100000, MERGED}, {100000, PIVOTED}, {1000000, AUTO}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        struct gputest_bands a =
            gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, rows[k].n, 5);
        struct gputest_band_answer answer = run(&a, rows[k].variant, false, true);
        long double *truth = true_diagonal(&a);
        assert_int_equal(answer.info, 0);
        for (int64_t i = 0; i < a.n; i++)
            assert_true(fabsl(answer.diagonal[i] / truth[i] - 1) < 1e-13L);
        free(truth);
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

static void test_scratch_grows_with_n(void **state)
{
    (void)state;
    const struct host_method *host =
        host_method_at((uint32_t)method_index(method_find("tridiagonal")), PRECISION_FP64);
    assert_true(host->scratch_bytes(1000000, 0) < 200 * INT64_C(1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_counterexample),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_larger_orders),
        cmocka_unit_test(test_weakly_dominant),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_sums_may_overflow),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_far_entries_underflow),
        cmocka_unit_test(test_diagonal_of_large_orders),
        cmocka_unit_test(test_scratch_grows_with_n),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
