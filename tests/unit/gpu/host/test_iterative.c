/* `iterative` on the host: the order of every scheme, every start, warm starts, all ways to end,
 * and an answer whose residual is true and whose bits depend on no one's help. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/iterative/shared.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/common/iteration.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct scheme {
    const char *name;
    enum method_iterative_scheme scheme;
    int order, products;
} schemes[] = {
    {"newton_schulz", METHOD_ITERATIVE_NEWTON_SCHULZ, 2, 2},
    {"chebyshev", METHOD_ITERATIVE_CHEBYSHEV, 3, 3},
    {"order5", METHOD_ITERATIVE_ORDER5, 5, 4},
    {"order7", METHOD_ITERATIVE_ORDER7, 7, 5},
    {"order7_horner", METHOD_ITERATIVE_ORDER7_HORNER, 7, 9},
    {"order19", METHOD_ITERATIVE_ORDER19, 19, 7},
};

static double *random_matrix(enum precision precision, int64_t n, uint64_t seed)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = gputest_random(&seed);
        a[i] = precision == PRECISION_FP32 ? (double)(float)a[i] : a[i];
    }
    return a;
}

static double *dominant_matrix(enum precision precision, int64_t n, uint64_t seed)
{
    double *a = random_matrix(precision, n, seed);
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = (i % 2 ? -1.0 : 1.0) * (double)n;
    return a;
}

/* Symmetric with eigenvalues in [1, 1 + n] or so: the second difference, times n / 4, plus I. */
static double *definite_matrix(int64_t n)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n; i++) {
        a[i * (n + 1)] = 1 + (double)n / 2;
        if (i + 1 < n)
            a[i * n + i + 1] = a[(i + 1) * n + i] = -(double)n / 4;
    }
    return a;
}

/* c = a b */
static double *product(int64_t n, const double *a, const double *b)
{
    double *c = gputest_numbers(n * n);
    host__gemm_f64(n, n, n, a, n, b, n, c, n);
    return c;
}

/* A^-1 by lu. */
static double *inverse_of(int64_t n, const double *a)
{
    struct gputest_answer answer = gputest_run("lu", PRECISION_FP64, n, a, false);
    assert_int_equal(answer.info, 0);
    double *inverse = answer.inverse;
    answer.inverse = NULL;
    gputest_free(&answer);
    return inverse;
}

/* What holds of every answer. */
static void check(const char *what, const struct gputest_iterate *task,
                  const struct gputest_iterated *result)
{
    int64_t n = task->n;
    double eps = gputest_eps(task->precision), size, residual, rcond, ratio;
    size = residual_norm(n, task->a) * residual_norm(n, result->inverse);
    residual = residual_inverse(n, result->inverse, task->a);
    rcond = 1 / size;
    ratio = residual / (size * (double)n * eps);
    if (result->info == 0 && task->tolerance == 0 && !(ratio <= GPUTEST_RATIO_MAX / 2))
        fail_msg("%s, n = %d: ratio %g", what, (int)n, ratio);
    if (result->info == 0 && task->tolerance > 0)
        assert_true(result->residual <= task->tolerance);
    assert_true(result->info == 0 || result->info == n + 1 || result->info == n + 2);
    assert_true(result->info == n + 2 || (result->info == n + 1) == (result->rcond < eps));
    assert_true(fabs(result->rcond - rcond) <= 2 * (double)n * eps * rcond);
    if (!(fabs(result->residual - residual) <= (double)n * eps * size + 4 * eps * residual))
        fail_msg("%s, n = %d: RESIDUAL %g, but %g", what, (int)n, result->residual, residual);
    assert_in_range(result->iterations, 0, result->history_length);
    for (int64_t i = 0; i < result->history_length; i++)
        assert_int_equal(!isnan(result->history[i]), i <= result->iterations);
}

/* ---- What rounding does to R ---- */

/* R - (I - V A) to 113 bits. */
static void exact_rounding(const struct host_iter_f32 *iter, double *error)
{
    int64_t n = iter->n, ld = iter->ld;
    for (int64_t e = 0; e < n * n; e++) {
        __float128 entry = (__float128)iter->r[e / n * ld + e % n] - (e % (n + 1) == 0);
        for (int64_t k = 0; k < n; k++)
            entry += (__float128)iter->v[e / n * ld + k] * iter->a[k * ld + e % n];
        error[e] = (double)entry;
    }
}

/* It is estimated from above, and not by far; also where it is all in one row and column. */
static void test_rounding_is_estimated(void **state)
{
    (void)state;
    enum {
        N = ITERATION_WHOLE_FIRST + 6,
        LD = 80
    };
    uint64_t seed = 4;
    float *numbers = aligned_alloc(HOST_ALIGN_BYTES, sizeof(float) * HOST_ITER_MATRICES * N * LD);
    double *error = gputest_numbers((int64_t)N * N);
    assert_non_null(numbers);
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        int products = 0;
        float *at = numbers + HOST_ITER_SPARE * N * LD;
        struct host_iter_f32 iter = {.n = N, .ld = LD, .products = &products};
        iter.a = at;
        iter.v = at + N * LD;
        iter.r = at + 2 * N * LD;
        for (int k = 0; k < HOST_ITER_SPARE; k++)
            iter.spare[k] = numbers + k * N * LD;
        for (int64_t e = 0; e < (int64_t)N * LD; e++) {
            bool diagonal = e / LD == e % LD, here = !per_thread || (diagonal && e % LD == 41);
            iter.a[e] = (float)gputest_random(&seed) * (float)here + (float)diagonal;
            iter.v[e] = (float)gputest_random(&seed) * (float)here + (float)diagonal;
        }
        host__iter_residual_f32(&iter);
        exact_rounding(&iter, error);
        double norm = residual_norm(N, error), frobenius = 0;
        for (int64_t e = 0; e < (int64_t)N * N; e++)
            frobenius = hypot(frobenius, error[e]);
        struct host_iter_rounding rounding = host__iter_rounding_f32(&iter);
        assert_true(norm > 0);
        assert_true(rounding.norm_1 >= norm &&
                    rounding.norm_1 <= (per_thread ? 2.1 * sqrt(N) : 4) * norm);
        assert_true(fabs(rounding.frobenius - frobenius) <= frobenius / 8);
        host__iter_residual_dd_f32(&iter);
        exact_rounding(&iter, error);
        for (int64_t e = 0; e < (int64_t)N * N; e++)
            assert_true(fabs(error[e]) <= 0x1p-24 * fabs((double)iter.r[e / N * LD + e % N]));
    }
    free(error);
    free(numbers);
}

/* ---- Orders ---- */

/* What a scheme makes of the residual e. */
static double next_of(const struct scheme *scheme, double e)
{
    if (scheme->scheme == METHOD_ITERATIVE_ORDER7_HORNER)
        return pow(e, 7) * (3 + e) * (3 + e) / 16;
    return pow(e, scheme->order);
}

/* A step by itself: so many products, as the table says, and no more. */
static void test_products_are_counted(void **state)
{
    (void)state;
    enum {
        N = 6
    };
    int64_t ld = host__ld(PRECISION_FP64, N);
    for (size_t i = 0; i < COUNT(schemes); i++) {
        const struct host_iter_scheme *facts = host__iter_scheme(schemes[i].scheme);
        double *numbers = gputest_numbers(HOST_ITER_MATRICES * N * ld), *at = numbers;
        int products = 0;
        struct host_iter_f64 iter = {.n = N, .ld = ld, .products = &products};
        iter.a = at;
        iter.v = at += N * ld;
        iter.r = at += N * ld;
        for (int k = 0; k < HOST_ITER_SPARE; k++)
            iter.spare[k] = at += N * ld;
        for (int64_t k = 0; k < N; k++) {
            iter.a[k * (ld + 1)] = 2;
            iter.v[k * (ld + 1)] = 0.45; /* R = I / 10 */
        }
        host__iter_residual_f64(&iter);
        assert_true(fabs(iter.r[0] - 0.1) < 1e-15 && iter.r[1] == 0);
        host__iter_step_f64(&iter, schemes[i].scheme);
        assert_int_equal(products, schemes[i].products);
        assert_int_equal(facts->products, schemes[i].products);
        assert_int_equal(facts->order, schemes[i].order);
        host__iter_residual_f64(&iter);
        assert_true(fabs(iter.r[N / 2 * (ld + 1)]) <= pow(0.1, facts->order) + 1e-13);
        free(numbers);
    }
}

/* A = 1, V0 = 1 - e: the history is the scheme's own recurrence. */
static void test_orders_of_numbers(void **state)
{
    (void)state;
    static const double starts[] = {0.95, 0.7, 0.3, -0.5, -0.9, 0.999};
    for (size_t k = 0; k < COUNT(schemes) * COUNT(starts); k++) {
        const struct scheme *scheme = &schemes[k / COUNT(starts)];
        double e = starts[k % COUNT(starts)], one = 1, v0 = 1 - e;
        struct gputest_iterate task = {
            .precision = PRECISION_FP64, .n = 1, .a = &one, .v0 = &v0, .scheme = scheme->scheme};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        assert_int_equal(result.algorithm, METHOD_ALGORITHM_WARM_START);
        assert_true(result.iterations > 0);
        for (int i = 0; i < result.iterations; i++) {
            double expected = fabs(e = next_of(scheme, e));
            /* Horner's large coefficients cost some 200 eps. */
            if (!(fabs(result.history[i + 1] - expected) <= 1e-9 * expected + 1e-13))
                fail_msg("%s, step %d: %g, not %g", scheme->name, i + 1, result.history[i + 1],
                         expected);
        }
        gputest_iterated_free(&result);
    }
}

/* V0 = (I - E) A^-1 for a matrix E: the next residual is the scheme's polynomial of E. */
static void test_orders_of_matrices(void **state)
{
    (void)state;
    enum {
        N = 12
    };
    double *a = random_matrix(PRECISION_FP64, N, 4), *inverse = inverse_of(N, a);
    double *e = random_matrix(PRECISION_FP64, N, 5);
    for (int64_t i = 0; i < (int64_t)N * N; i++)
        e[i] *= -0.15;
    double *v0 = product(N, e, inverse);
    for (int64_t i = 0; i < (int64_t)N * N; i++)
        v0[i] = inverse[i] - v0[i];
    for (size_t k = 0; k < COUNT(schemes); k++) {
        struct gputest_iterate task = {
            .precision = PRECISION_FP64, .n = N, .a = a, .v0 = v0, .scheme = schemes[k].scheme};
        struct gputest_iterated result = gputest_iterate(&task);
        double *power = product(N, e, e), *next;
        for (int p = 2; p < schemes[k].order; p++) {
            next = product(N, power, e);
            free(power);
            power = next;
        }
        if (schemes[k].scheme == METHOD_ITERATIVE_ORDER7_HORNER) {
            for (int twice = 0; twice < 2; twice++) {
                next = product(N, power, e);
                for (int64_t i = 0; i < (int64_t)N * N; i++)
                    next[i] = (next[i] + 3 * power[i]) / 4;
                free(power);
                power = next;
            }
        }
        double expected = residual_norm(N, power), size = residual_norm(N, e);
        assert_true(fabs(result.history[0] - size) <= 1e-12 * size);
        if (!(fabs(result.history[1] - expected) <= 1e-9 * expected + 1e-11))
            fail_msg("%s: %g, not %g", schemes[k].name, result.history[1], expected);
        gputest_iterated_free(&result);
        free(power);
    }
    free(a);
    free(inverse);
    free(e);
    free(v0);
}

/* auto takes the scheme of the fewest products. */
static void test_plan(void **state)
{
    (void)state;
    static const struct {
        double residual, goal;
        enum method_iterative_scheme first;
    } rows[] = {
        {2, 1e-12, METHOD_ITERATIVE_ORDER19},      {1e-8, 1e-12, METHOD_ITERATIVE_NEWTON_SCHULZ},
        {1e-5, 1e-12, METHOD_ITERATIVE_CHEBYSHEV}, {1e-2, 1e-9, METHOD_ITERATIVE_ORDER5},
        {0.95, 1e-12, METHOD_ITERATIVE_ORDER19},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(host__iter_plan(rows[i].residual, rows[i].goal), rows[i].first);
}

/* ---- Schemes and starts ---- */

static const struct start {
    enum method_iterative_initial initial;
    enum method_algorithm algorithm;
} starts[] = {
    {METHOD_ITERATIVE_LOW_PRECISION, METHOD_ALGORITHM_LOW_PRECISION_START},
    {METHOD_ITERATIVE_DIAGONAL, METHOD_ALGORITHM_DIAGONAL_START},
    {METHOD_ITERATIVE_TRANSPOSE, METHOD_ALGORITHM_TRANSPOSE_START},
    {METHOD_ITERATIVE_SCALED_IDENTITY, METHOD_ALGORITHM_SCALED_IDENTITY_START},
};

static void try_start(enum precision precision, int64_t n, const struct start *start,
                      enum method_iterative_scheme scheme)
{
    double *a = start->initial == METHOD_ITERATIVE_SCALED_IDENTITY
                    ? definite_matrix(n)
                    : dominant_matrix(precision, n, (uint64_t)n);
    enum method_algorithm algorithm = start->algorithm;
    if (precision == PRECISION_FP32 && algorithm == METHOD_ALGORITHM_LOW_PRECISION_START)
        algorithm = METHOD_ALGORITHM_DIAGONAL_START; /* the next that suits the matrix */
    struct gputest_iterate task = {
        .precision = precision, .n = n, .a = a, .scheme = scheme, .initial = start->initial};
    struct gputest_iterated result = gputest_iterate(&task);
    check("a start", &task, &result);
    assert_int_equal(result.info, 0);
    assert_int_equal(result.algorithm, algorithm);
    gputest_iterated_free(&result);
    free(a);
}

static void test_every_scheme_from_every_start(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 7, 16, 33, 100};
    for (int scheme = 0; scheme < METHOD_ITERATIVE_SCHEMES; scheme++) {
        for (size_t i = 0; i < COUNT(starts) * COUNT(orders); i++) {
            const struct start *start = &starts[i % COUNT(starts)];
            int64_t n = orders[i / COUNT(starts)];
            try_start(PRECISION_FP64, n, start, (enum method_iterative_scheme)scheme);
            try_start(PRECISION_FP32, n, start, (enum method_iterative_scheme)scheme);
        }
    }
}

/* As near to the inverse as LU's, and nearer than conditions tell. */
static void test_against_lu(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 5, 20, 64, 129, 256, 300};
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i];
        double *a = random_matrix(PRECISION_FP64, n, 11), *inverse = inverse_of(n, a);
        struct gputest_iterate task = {.precision = PRECISION_FP64, .n = n, .a = a};
        struct gputest_iterated result = gputest_iterate(&task);
        double worst = 0, ours, lus;
        check("random", &task, &result);
        assert_int_equal(result.info, 0);
        for (int64_t k = 0; k < n * n; k++)
            worst = residual_larger(worst, fabs(result.inverse[k] - inverse[k]));
        assert_true(worst <= 4 * DBL_EPSILON / result.rcond * residual_norm(n, inverse));
        ours = residual_inverse(n, result.inverse, a);
        lus = residual_inverse(n, inverse, a);
        if (!(ours <= 4 * lus + 8 * DBL_EPSILON))
            fail_msg("n = %d: residual %g, lu's %g", (int)n, ours, lus);
        gputest_iterated_free(&result);
        free(inverse);
        free(a);
    }
}

/* A start that does not lead to the inverse gives way to the next. */
static void test_next_start(void **state)
{
    (void)state;
    int64_t n = 40;
    double *a = random_matrix(PRECISION_FP64, n, 3);
    struct gputest_iterate task = {
        .precision = PRECISION_FP64, .n = n, .a = a, .initial = METHOD_ITERATIVE_DIAGONAL};
    for (int zero = 0; zero < 2; zero++) {
        if (zero)
            a[5 * (n + 1)] = 0; /* no diagonal start at all */
        struct gputest_iterated result = gputest_iterate(&task);
        check("no diagonal start", &task, &result);
        assert_int_equal(result.info, 0);
        assert_int_equal(result.algorithm, METHOD_ALGORITHM_TRANSPOSE_START);
        gputest_iterated_free(&result);
    }
    free(a);

    /* FP32's LU breaks down, or is of no use, from condition 1e7 on. */
    a = gputest_numbers(n * n);
    gputest_dge(8, 3, PRECISION_FP64, n, 7, a);
    for (int64_t j = 0; j < n; j++) /* by no row's or column's scale */
        a[j] = a[n + j] + 1e-4 * a[j];
    task.initial = METHOD_ITERATIVE_INITIAL_AUTO;
    task.a = a;
    struct gputest_iterated result = gputest_iterate(&task);
    check("ill-conditioned", &task, &result);
    assert_int_equal(result.info, 0);
    assert_int_equal(result.algorithm, METHOD_ALGORITHM_TRANSPOSE_START);
    gputest_iterated_free(&result);
    free(a);
}

/* For positive definite matrices the scaled identity saves half of the transpose's steps. */
static void test_scaled_identity_pays(void **state)
{
    (void)state;
    double *a = definite_matrix(64);
    int32_t steps[2];
    for (int i = 0; i < 2; i++) {
        struct gputest_iterate task = {.precision = PRECISION_FP64,
                                       .n = 64,
                                       .a = a,
                                       .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ,
                                       .initial = i ? METHOD_ITERATIVE_SCALED_IDENTITY
                                                    : METHOD_ITERATIVE_TRANSPOSE};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        steps[i] = result.iterations;
        gputest_iterated_free(&result);
    }
    assert_true(steps[1] < steps[0] - 4);
    free(a);
}

/* ---- Warm starts ---- */

/* V0 = (I - E) A^-1 with |E|_F = distance. */
static double *near_inverse(int64_t n, const double *inverse, double distance)
{
    double *e = random_matrix(PRECISION_FP64, n, 31), square = 0;
    for (int64_t i = 0; i < n * n; i++)
        square += e[i] * e[i];
    for (int64_t i = 0; i < n * n; i++)
        e[i] *= -distance / sqrt(square);
    double *v0 = product(n, e, inverse);
    for (int64_t i = 0; i < n * n; i++)
        v0[i] += inverse[i];
    free(e);
    return v0;
}

static void test_warm_start(void **state)
{
    (void)state;
    static const double distances[] = {0.9, 0.5, 0.1, 0.01, 1e-6, 0};
    int64_t n = 50;
    for (int precision = 0; precision < PRECISION_COUNT; precision++) {
        double *a = dominant_matrix((enum precision)precision, n, 2), *inverse = inverse_of(n, a);
        int32_t last = 9;
        for (size_t i = 0; i < COUNT(distances); i++) {
            double *v0 = near_inverse(n, inverse, distances[i]);
            struct gputest_iterate task = {.precision = (enum precision)precision,
                                           .n = n,
                                           .a = a,
                                           .v0 = v0,
                                           .scheme = METHOD_ITERATIVE_CHEBYSHEV};
            struct gputest_iterated result = gputest_iterate(&task);
            check("warm", &task, &result);
            assert_int_equal(result.info, 0);
            assert_int_equal(result.algorithm, METHOD_ALGORITHM_WARM_START);
            assert_true(result.iterations <= last + 1); /* rounding decides on the last step */
            last = result.iterations;
            gputest_iterated_free(&result);
            free(v0);
        }
        assert_true(last <= 1);
        free(inverse);
        free(a);
    }
}

/* A V0 that leads nowhere does no harm; one that is not finite is bad input. */
static void test_useless_warm_start(void **state)
{
    (void)state;
    static const double fills[] = {0, 1e3, -1, 1e300, NAN, INFINITY};
    int64_t n = 20;
    double *a = dominant_matrix(PRECISION_FP64, n, 9), *v0 = gputest_numbers(n * n);
    struct gputest_iterate task = {.precision = PRECISION_FP64, .n = n, .a = a};
    struct gputest_iterated cold = gputest_iterate(&task);
    task.v0 = v0;
    for (size_t i = 0; i < COUNT(fills); i++) {
        for (int64_t k = 0; k < n * n; k++)
            v0[k] = fills[i];
        struct gputest_iterated result = gputest_iterate(&task);
        if (isfinite(fills[i])) {
            check("useless V0", &task, &result);
            assert_true(gputest_iterated_equal(&result, &cold, n));
        } else {
            assert_int_equal(result.info, -1);
            assert_true(isnan(result.rcond) && isnan(result.residual));
            assert_true(isnan(result.inverse[0]) && isnan(result.history[0]));
            assert_int_equal(result.algorithm, METHOD_ALGORITHM_NONE);
        }
        gputest_iterated_free(&result);
    }
    gputest_iterated_free(&cold);
    free(a);
    free(v0);
}

/* Errors of one column that every vector of signs misses: a tolerance is not reached all the same.
 */
static void test_collinear_errors(void **state)
{
    (void)state;
    enum {
        N = 65
    };
    static const int rows[] = {11, 4, 51, 42, 35};
    double *a = gputest_numbers((int64_t)N * N), *v0 = gputest_numbers((int64_t)N * N);
    for (int i = 0; i < N; i++)
        a[i * N + i] = v0[i * N + i] = 1;
    a[0] = 49;
    v0[0] = 1 / a[0];
    for (int i = 0; i < 5; i++) {
        a[rows[i] * N] = i % 2 ? 1 : -1;
        v0[rows[i] * N] = -a[rows[i] * N] * v0[0];
    }
    struct gputest_iterate task = {
        .precision = PRECISION_FP64, .n = N, .a = a, .v0 = v0, .tolerance = 1e-18};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, N + 2);
    assert_true(result.residual > 1e-18);
    gputest_iterated_free(&result);
    free(v0);
    free(a);
}

/* Newton's step from V0 = 2 A^-1 is 0, from which none comes back: another start is taken. */
static void test_v_becomes_zero(void **state)
{
    (void)state;
    double a[] = {1, 1, 1, 1, -1, 1, -1, -1, 1}, v0[] = {0, 1, -1, 1, -1, 0, 1, 0, 1};
    struct gputest_iterate task = {.precision = PRECISION_FP64,
                                   .n = 3,
                                   .a = a,
                                   .v0 = v0,
                                   .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, 0);
    assert_int_not_equal(result.algorithm, METHOD_ALGORITHM_WARM_START);
    gputest_iterated_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_is_estimated),
        cmocka_unit_test(test_products_are_counted),
        cmocka_unit_test(test_orders_of_numbers),
        cmocka_unit_test(test_orders_of_matrices),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_every_scheme_from_every_start),
        cmocka_unit_test(test_against_lu),
        cmocka_unit_test(test_next_start),
        cmocka_unit_test(test_scaled_identity_pays),
        cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_useless_warm_start),
        cmocka_unit_test(test_v_becomes_zero),
        cmocka_unit_test(test_collinear_errors),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
