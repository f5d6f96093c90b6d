/* Families of random matrices for `iterative`. A start that leads nowhere gives way to the next. A
 * matrix that is well conditioned but for the scales of its rows and columns gets INFO 0, each
 * entry right relative to the largest of its equilibrated row and column, and RCOND and RESIDUAL of
 * the matrix that was sent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#ifndef FAMILY
#define FAMILY 10000 /* matrices */
#define LARGE 100
#endif
#define ORDER_MAX 8

static int below(int count, uint64_t *seed)
{
    return (int)((gputest_random(seed) + 1) / 2 * count) % count;
}

/* ---- Matrices ---- */

/* A = D S E, V0 near its inverse, and how to see entries of that: those of E X D are those of
 * S^-1. */
struct scaled {
    int64_t n;
    double rows[ORDER_MAX], columns[ORDER_MAX]; /* D, E */
    double inverse[ORDER_MAX * ORDER_MAX];      /* of S */
    double a[ORDER_MAX * ORDER_MAX], v0[ORDER_MAX * ORDER_MAX];
};

static double reflected(int64_t i, int64_t j, const double *v, double square)
{
    return (i == j) - 2 * v[i] * v[j] / square;
}

/* S: singular values from 1 to 1/4; D and E: powers of ten up to 10^decades. */
static void make_scaled(struct scaled *to, enum precision precision, int64_t n, int row_decades,
                        int column_decades, uint64_t *seed)
{
    double left[ORDER_MAX], right[ORDER_MAX], of_left = 0, of_right = 0;
    to->n = n;
    for (int64_t i = 0; i < n; i++) {
        left[i] = gputest_random(seed);
        right[i] = gputest_random(seed);
        of_left += left[i] * left[i];
        of_right += right[i] * right[i];
        to->rows[i] = pow(10, row_decades * gputest_random(seed));
        to->columns[i] = pow(10, column_decades * gputest_random(seed));
    }
    for (int64_t k = 0; k < n * n; k++) {
        const int64_t i = k / n, j = k % n;
        to->a[k] = to->inverse[k] = 0;
        for (int64_t e = 0; e < n; e++) {
            const double value = 1 - 0.75 * (double)e / (double)n;
            const double forth = reflected(i, e, left, of_left) * reflected(e, j, right, of_right);
            const double back = reflected(i, e, right, of_right) * reflected(e, j, left, of_left);
            to->a[k] += forth * value * to->rows[i] * to->columns[j];
            to->inverse[k] += back / value;
        }
        to->v0[k] =
            to->inverse[k] * (1 + 0.1 * gputest_random(seed)) / to->columns[i] / to->rows[j];
        to->a[k] = precision == PRECISION_FP32 ? (double)(float)to->a[k] : to->a[k];
    }
}

/* A task of even rows and columns, by any scheme. */
static struct gputest_iterate even_task(struct scaled *scaled, uint64_t *seed)
{
    const enum precision precision = (enum precision)below(PRECISION_COUNT, seed);
    make_scaled(scaled, precision, 2 + below(ORDER_MAX - 1, seed), 0, 0, seed);
    return (struct gputest_iterate){
        .precision = precision,
        .n = scaled->n,
        .a = scaled->a,
        .scheme = (enum method_iterative_scheme)below(METHOD_ITERATIVE_SCHEMES, seed)};
}

/* A good answer, from no more steps of its start than are allowed. Returns its METHOD. */
static int32_t check_good(const struct gputest_iterate *task)
{
    struct gputest_iterated result = gputest_iterate(task);
    const double ratio = gputest_inverse_ratio(task->precision, task->n, task->a, result.inverse);
    const int64_t steps_max = task->max_iterations ? task->max_iterations : 100;
    const int32_t algorithm = result.algorithm;
    if (result.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
        fail_msg("n = %d, scheme %d: INFO %d after %d steps from %d, ratio %g", (int)task->n,
                 (int)task->scheme, result.info, result.iterations, algorithm, ratio);
    assert_in_range(result.iterations, 0, steps_max);
    for (int64_t i = 0; i < result.history_length; i++)
        assert_int_equal(!isnan(result.history[i]), i <= result.iterations);
    gputest_iterated_free(&result);
    return algorithm;
}

/* ---- Starts: a V0 that leads nowhere ---- */

static void check_counts_as_none(struct gputest_iterate *task, const double *v0)
{
    struct gputest_iterated without = gputest_iterate(task);
    task->v0 = v0;
    struct gputest_iterated with = gputest_iterate(task);
    assert_int_equal(without.info, 0);
    assert_true(gputest_iterated_equal(&with, &without, task->n));
    gputest_iterated_free(&without);
    gputest_iterated_free(&with);
}

/* No step fills a row or a column of zeros: such a V0 costs nothing. */
static void test_v0_with_a_line_of_zeros(void **state)
{
    (void)state;
    const double a[] = {4, 1, 2, 3}, v0[] = {.3, -.1, 0, 0};
    struct gputest_iterate task = {
        .precision = PRECISION_FP64, .n = 2, .a = a, .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ};
    check_counts_as_none(&task, v0);
    double start[ORDER_MAX * ORDER_MAX];
    struct scaled scaled;
    uint64_t seed = 1;
    for (int k = 0; k < FAMILY; k++) {
        task = even_task(&scaled, &seed);
        const int64_t n = task.n, at = below((int)n, &seed);
        const bool row = below(2, &seed);
        for (int64_t e = 0; e < n * n; e++)
            start[e] = (row ? e / n : e % n) == at ? 0 : gputest_random(&seed);
        check_counts_as_none(&task, start);
    }
}

/* One row or column is twice another one: so it is of all that follow, but for rounding. The steps
 * from there are not the next start's: 30 are enough for that. */
static void test_v0_without_full_rank(void **state)
{
    (void)state;
    double v0[ORDER_MAX * ORDER_MAX];
    struct scaled scaled;
    uint64_t seed = 2;
    for (int k = 0; k < FAMILY; k++) {
        struct gputest_iterate task = even_task(&scaled, &seed);
        const int64_t n = task.n, to = below((int)n, &seed), from = (to + 1) % n;
        const bool row = below(2, &seed);
        for (int64_t e = 0; e < n * n; e++)
            v0[e] = (double)(float)gputest_random(&seed) / 8;
        for (int64_t i = 0; i < n; i++)
            v0[row ? to * n + i : i * n + to] = 2 * v0[row ? from * n + i : i * n + from];
        task.v0 = v0;
        task.max_iterations = 30;
        (void)check_good(&task);
    }
}

/* ---- Starts: a multiple of the identity ---- */

/* Where it leads nowhere the transpose follows. */
static void test_scaled_identity(void **state)
{
    (void)state;
    struct scaled scaled;
    uint64_t seed = 3;
    int others = 0;
    for (int k = 0; k < FAMILY; k++) {
        struct gputest_iterate task = even_task(&scaled, &seed);
        task.initial = METHOD_ITERATIVE_SCALED_IDENTITY;
        const int32_t algorithm = check_good(&task);
        others += algorithm == METHOD_ALGORITHM_TRANSPOSE_START;
        assert_true(algorithm == METHOD_ALGORITHM_TRANSPOSE_START ||
                    algorithm == METHOD_ALGORITHM_SCALED_IDENTITY_START);
    }
    assert_true(others > FAMILY / 4 && others < FAMILY);
}

/* ---- Scales: known inverses ---- */

static const struct known {
    enum precision precision;
    int64_t n;
    double a[9], x[9];
} known[] = {
    {PRECISION_FP64, 3, {1e-200, 0, 0, 0, 1, 0, 0, 0, 1e200}, {1e200, 0, 0, 0, 1, 0, 0, 0, 1e-200}},
    {PRECISION_FP64, 2, {1e-20, 0, 1e305, 1e20}, {1e20, 0, -1e305, 1e-20}},
    {PRECISION_FP64, 2, {1e-200, 1e-200, 1e200, -1e200}, {5e199, 5e-201, 5e199, -5e-201}},
    {PRECISION_FP32, 2, {1e-9, 0, 1e37, 1e9}, {1e9, 0, -1e37, 1e-9}},
    /* D S D with D = diag(1, 1e-9, 1e9), S = [[2, 1, .5], [1, 3, 1], [.5, 1, 2]]; det S = 8.25 */
    {PRECISION_FP64,
     3,
     {2, 1e-9, .5e9, 1e-9, 3e-18, 1, .5e9, 1, 2e18},
     {5 / 8.25, -1.5e9 / 8.25, -.5e-9 / 8.25, -1.5e9 / 8.25, 3.75e18 / 8.25, -1.5 / 8.25,
      -.5e-9 / 8.25, -1.5 / 8.25, 5e-18 / 8.25}},
    {PRECISION_FP64, 1, {1e-307}, {1e307}},
    {PRECISION_FP64, 1, {1e307}, {1e-307}},
};

static void test_known_inverses(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(known) * METHOD_ITERATIVE_INITIALS; k++) {
        const struct known *row = &known[k / METHOD_ITERATIVE_INITIALS];
        const double error = row->precision == PRECISION_FP32 ? 1e-5 : 1e-13;
        struct gputest_iterate task = {
            .precision = row->precision,
            .n = row->n,
            .a = row->a,
            .initial = (enum method_iterative_initial)(k % METHOD_ITERATIVE_INITIALS)};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        for (int64_t e = 0; e < row->n * row->n; e++) {
            if (!(fabs(result.inverse[e] - row->x[e]) <= error * fabs(row->x[e])))
                fail_msg("row %d, entry %d: %.17g, not %.17g", (int)(k / METHOD_ITERATIVE_INITIALS),
                         (int)e, result.inverse[e], row->x[e]);
        }
        gputest_iterated_free(&result);
    }
}

/* The entry below the diagonal is 10^-16 where those next to it are 1: it may be 0. */
static void test_a_small_coupling(void **state)
{
    (void)state;
    const double a[] = {1e-300, 0, 1e-16, 1e300};
    struct gputest_iterate task = {.precision = PRECISION_FP64, .n = 2, .a = a};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, 0);
    assert_true(fabs(result.inverse[0] / 1e300 - 1) < 1e-15 && result.inverse[1] == 0);
    assert_true(fabs(result.inverse[3] / 1e-300 - 1) < 1e-15);
    assert_true(fabs(result.inverse[2] + 1e-16) <= 1e-16);
    gputest_iterated_free(&result);
}

/* X^T X of X = [1, z], z of random numbers of that size. */
static void test_normal_equations(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * PRECISION_COUNT; k++) {
        const enum precision precision = (enum precision)(k / 2);
        const double size = precision == PRECISION_FP32 ? 1e-4 : 1e-8;
        uint64_t seed = 5 + (uint64_t)k;
        double a[4] = {100, 0, 0, 0};
        for (int i = 0; i < 100; i++) {
            const double z = size * gputest_random(&seed);
            a[1] += z;
            a[2] += z;
            a[3] += z * z;
        }
        struct gputest_iterate task = {.precision = precision, .n = 2, .a = a};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        gputest_iterated_free(&result);
    }
}

/* ---- Scales: random ones ---- */

static void check_scaled(const struct scaled *of, const struct gputest_iterate *task)
{
    const int64_t n = of->n;
    const double eps = gputest_eps(task->precision);
    struct gputest_iterated result = gputest_iterate(task);
    const double size = residual_norm(n, of->a) * residual_norm(n, result.inverse);
    const double residual = gputest_exact_residual(n, result.inverse, of->a);
    if (result.info != 0)
        fail_msg("n = %d, scheme %d, initial %d: INFO %d after %d steps, RESIDUAL %g", (int)n,
                 (int)task->scheme, (int)task->initial, result.info, result.iterations,
                 result.residual);
    for (int64_t k = 0; k < n * n; k++) {
        const double x = result.inverse[k] * of->columns[k / n] * of->rows[k % n];
        if (!(fabs(x - of->inverse[k]) <= 1e4 * eps + 10 * task->tolerance))
            fail_msg("n = %d, scheme %d, initial %d: entry %d is off by %g", (int)n,
                     (int)task->scheme, (int)task->initial, (int)k, x - of->inverse[k]);
    }
    assert_true(residual <= (task->tolerance > 0 ? task->tolerance
                                                 : GPUTEST_RATIO_MAX * (double)n * eps * size));
    assert_true(fabs(result.residual - residual) <= (double)n * eps * size);
    assert_true(fabs(result.rcond * size - 1) <= 1e-3);
    assert_int_equal(result.algorithm == METHOD_ALGORITHM_WARM_START, task->v0 != NULL);
    gputest_iterated_free(&result);
}

/* Rows and columns of all scales for which the numbers are in range. */
static void test_random_scales(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int k = 0; k < FAMILY; k++) {
        const enum precision precision = (enum precision)(k % PRECISION_COUNT);
        const int most = precision == PRECISION_FP32 ? 8 : 70;
        struct scaled scaled;
        make_scaled(&scaled, precision, 1 + below(ORDER_MAX, &seed), below(most, &seed),
                    below(most, &seed), &seed);
        check_scaled(
            &scaled,
            &(struct gputest_iterate){
                .precision = precision,
                .n = scaled.n,
                .a = scaled.a,
                .v0 = below(3, &seed) ? NULL : scaled.v0,
                .scheme = (enum method_iterative_scheme)below(METHOD_ITERATIVE_SCHEMES, &seed),
                .initial = (enum method_iterative_initial)below(METHOD_ITERATIVE_INITIALS, &seed)});
    }
}

/* The scales of rows alone leave I - X A as it is: a tolerance is reached. */
static void test_rows_and_a_tolerance(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int k = 0; k < FAMILY; k++) {
        const enum precision precision = (enum precision)(k % PRECISION_COUNT);
        const bool single = precision == PRECISION_FP32;
        struct scaled scaled;
        make_scaled(&scaled, precision, 1 + below(ORDER_MAX, &seed), single ? 10 : 12, 0, &seed);
        check_scaled(&scaled, &(struct gputest_iterate){.precision = precision,
                                                        .n = scaled.n,
                                                        .a = scaled.a,
                                                        .tolerance = single ? 1e-4 : 1e-13});
    }
}

/* The scales of columns change I - X A: INFO 0 promises that of the matrix that was sent. */
static void test_columns_and_a_tolerance(void **state)
{
    (void)state;
    uint64_t seed = 8;
    int reached = 0;
    for (int k = 0; k < FAMILY; k++) {
        struct scaled scaled;
        make_scaled(&scaled, PRECISION_FP64, 2 + below(ORDER_MAX - 1, &seed), below(3, &seed),
                    below(8, &seed), &seed);
        struct gputest_iterate task = {.precision = PRECISION_FP64,
                                       .n = scaled.n,
                                       .a = scaled.a,
                                       .tolerance = pow(10, -1 - below(13, &seed))};
        struct gputest_iterated result = gputest_iterate(&task);
        const double residual = gputest_exact_residual(scaled.n, result.inverse, scaled.a);
        assert_true(result.info == scaled.n + 2 || residual <= task.tolerance);
        assert_true(result.info == 0 || residual > 0.99 * task.tolerance);
        reached += result.info == 0;
        gputest_iterated_free(&result);
    }
    assert_true(reached > FAMILY / 4 && reached < FAMILY);
}

/* ---- Scales: larger orders ---- */

/* The power of two that is `decades` powers of ten, or less. */
static int digits_of(double decades)
{
    return (int)(decades / log10(2));
}

/* Uniform numbers, rows from 1 down to 10^-12 and columns up to 10^decades. With the scales taken
 * off it is as good an inverse. */
static void try_large(enum precision precision, int64_t n, int decades,
                      enum method_iterative_initial initial)
{
    const double eps = gputest_eps(precision), row = precision == PRECISION_FP32 ? -10 : -12;
    const double order = (double)n;
    double *s = gputest_numbers(n * n), *a = gputest_numbers(n * n);
    uint64_t seed = 9;
    for (int64_t k = 0; k < n * n; k++) {
        s[k] = (double)(float)(gputest_random(&seed) + (k % (n + 1) == 0 ? 3 : 0));
        a[k] = ldexp(s[k], digits_of(row * (double)(k / n) / order) +
                               digits_of(decades * (double)(k % n) / order));
    }
    struct gputest_iterate task = {.precision = precision, .n = n, .a = a, .initial = initial};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, 0);
    assert_true(gputest_inverse_ratio(precision, n, a, result.inverse) <= GPUTEST_RATIO_MAX);
    const double size = residual_norm(n, a) * residual_norm(n, result.inverse);
    assert_true(fabs(result.residual - residual_inverse(n, result.inverse, a)) <=
                (double)n * eps * size);
    for (int64_t k = 0; k < n * n; k++) {
        result.inverse[k] =
            ldexp(result.inverse[k], digits_of(row * (double)(k % n) / order) +
                                         digits_of(decades * (double)(k / n) / order));
    }
    const double ratio = gputest_inverse_ratio(precision, n, s, result.inverse);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        fail_msg("n = %d, initial %d: ratio %g", (int)n, (int)initial, ratio);
    gputest_iterated_free(&result);
    free(a);
    free(s);
}

static void test_large_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {9, 33, 65, LARGE};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT * METHOD_ITERATIVE_INITIALS; k++) {
        const enum precision precision = (enum precision)(k / COUNT(orders) % PRECISION_COUNT);
        const enum method_iterative_initial initial =
            (enum method_iterative_initial)(k / COUNT(orders) / PRECISION_COUNT);
        try_large(precision, orders[k % COUNT(orders)], 0, initial);
        try_large(precision, orders[k % COUNT(orders)], precision == PRECISION_FP32 ? 8 : 20,
                  initial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v0_with_a_line_of_zeros), cmocka_unit_test(test_v0_without_full_rank),
        cmocka_unit_test(test_scaled_identity),         cmocka_unit_test(test_known_inverses),
        cmocka_unit_test(test_a_small_coupling),        cmocka_unit_test(test_normal_equations),
        cmocka_unit_test(test_random_scales),           cmocka_unit_test(test_rows_and_a_tolerance),
        cmocka_unit_test(test_columns_and_a_tolerance), cmocka_unit_test(test_large_orders),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
