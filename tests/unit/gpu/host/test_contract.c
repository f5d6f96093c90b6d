/* The accuracy contract (docs/methods.md) over LAPACK's eleven types of general matrix, at the
 * orders where code paths change, in both precisions, for every method on dense matrices. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/method.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

/* Every order up to 33, then these. */
#define EVERY_ORDER_MAX 33
static const int64_t orders[] = {50, 63, 64, 65, 100, 127, 128, 129};
#define ORDER_MAX 500
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct sample {
    enum precision precision;
    int type, mode;
    int64_t n;
    double *a;
};

static int failures;

static void complain(const struct sample *sample, const char *method, const char *what,
                     double value)
{
    failures++;
    print_error("%s %s, type %d (%s), mode %d, n = %d: %s %g\n", method,
                precision_name(sample->precision), sample->type, gputest_dge_name(sample->type),
                sample->mode, (int)sample->n, what, value);
}

/* INFO n + 2 is iterative's right where FP32's LU is no help and the condition is near 1 / eps. */
static bool may_give_up(const struct sample *sample, const char *method)
{
    return gputest_iterates(method) && sample->type == 9;
}

static void check_inverse(const struct sample *sample, const char *method)
{
    int64_t n = sample->n;
    double eps = gputest_eps(sample->precision);
    if (!gputest_takes(method, sample->precision, n))
        return;
    struct gputest_answer answer = gputest_run(method, sample->precision, n, sample->a, false);
    bool singular = gputest_dge_singular(sample->type, n);
    if (singular != (answer.info >= 1 && answer.info <= n))
        complain(sample, method, "INFO", answer.info);
    if (singular) {
        for (int64_t i = 0; i < n * n; i++)
            assert_true(isnan(answer.inverse[i]));
        assert_true(answer.rcond == 0);
    } else if (answer.info != n + 2 || !may_give_up(sample, method)) {
        double ratio = gputest_inverse_ratio(sample->precision, n, sample->a, answer.inverse);
        if (answer.info > n + 1)
            complain(sample, method, "INFO", answer.info);
        if (!(ratio <= GPUTEST_RATIO_MAX))
            complain(sample, method, "residual ratio", ratio);
        /* Scaling is not singularity: an RCOND below eps may come with INFO 0. */
        if (answer.info == n + 1 && answer.rcond >= eps)
            complain(sample, method, "RCOND against INFO", answer.rcond);
        int exponent;
        frexp(residual_norm(n, sample->a), &exponent);
        double rcond = 1 / ldexp(residual_norm(n, sample->a), -exponent) /
                       ldexp(residual_norm(n, answer.inverse), exponent);
        if (!(fabs(rcond - answer.rcond) <= 2 * (double)n * eps * rcond))
            complain(sample, method, "RCOND is off", answer.rcond / rcond);
    }
    gputest_free(&answer);
}

/* LAPACK's own choice of pivots, on a column-major copy of A as written. */
static int64_t reference_factor(const struct sample *sample, int32_t *pivots)
{
    int64_t n = sample->n, info;
    double *wide = gputest_numbers(n * n);
    float *narrow = (float *)wide;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (sample->precision == PRECISION_FP32)
                narrow[j * n + i] = (float)sample->a[i * n + j];
            else
                wide[j * n + i] = sample->a[i * n + j];
        }
    }
    info = sample->precision == PRECISION_FP32 ? host__getrf_f32(n, narrow, n, pivots)
                                               : host__getrf_f64(n, wide, n, pivots);
    free(wide);
    return info;
}

static void check_factor(const struct sample *sample)
{
    int64_t n = sample->n;
    if (!gputest_takes("lu_factor", sample->precision, n))
        return;
    struct gputest_answer answer = gputest_run("lu_factor", sample->precision, n, sample->a, false);
    int32_t pivots[ORDER_MAX];
    int64_t info = reference_factor(sample, pivots);
    if (answer.info != info)
        complain(sample, "lu_factor", "INFO", answer.info);
    for (int64_t i = 0; i < n; i++) {
        if (answer.pivots[i] != pivots[i])
            complain(sample, "lu_factor", "another pivot at", (double)i);
    }
    double ratio = gputest_factor_ratio(sample->precision, n, sample->a, &answer);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        complain(sample, "lu_factor", "residual ratio", ratio);
    gputest_free(&answer);
}

static void try_order(enum precision precision, int64_t n)
{
    struct sample sample = {.precision = precision, .n = n, .a = gputest_numbers(n * n)};
    for (sample.type = 1; sample.type <= GPUTEST_DGE_TYPES; sample.type++) {
        bool both = sample.type == 8 || sample.type == 9;
        for (sample.mode = both ? 3 : 4; sample.mode <= 4; sample.mode++) {
            gputest_dge(sample.type, sample.mode, precision, n, (uint64_t)(n * 16 + sample.type),
                        sample.a);
            for (size_t i = 0; i < gputest_inverters(); i++)
                check_inverse(&sample, gputest_inverter(i));
            check_factor(&sample);
        }
    }
    free(sample.a);
}

static void test_small_orders(void **state)
{
    (void)state;
    failures = 0;
    for (size_t i = 0; i < EVERY_ORDER_MAX + COUNT(orders); i++) {
        int64_t n = i < EVERY_ORDER_MAX ? (int64_t)i + 1 : orders[i - EVERY_ORDER_MAX];
        try_order(PRECISION_FP64, n);
        try_order(PRECISION_FP32, n);
    }
    assert_int_equal(failures, 0);
}

static void test_large_order(void **state)
{
    (void)state;
    failures = 0;
    try_order(PRECISION_FP64, ORDER_MAX);
    assert_int_equal(failures, 0);
}

/* A measure that cannot fail proves nothing. */
static void test_measure_sees_errors(void **state)
{
    (void)state;
    int64_t n = 32;
    double *a = gputest_numbers(n * n);
    gputest_dge(4, 4, PRECISION_FP64, n, 7, a);
    struct gputest_answer answer = gputest_run("lu", PRECISION_FP64, n, a, false);
    assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, answer.inverse) < 1);
    answer.inverse[5 * n + 3] += 1e-10;
    assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, answer.inverse) > 100);
    gputest_free(&answer);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_orders),
        cmocka_unit_test(test_large_order),
        cmocka_unit_test(test_measure_sees_errors),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
