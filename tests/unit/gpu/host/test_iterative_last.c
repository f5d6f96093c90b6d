/* The last step of `iterative`: its V is the answer whether it is measured or not, and the product
 * that measures it is made for those who want RESIDUAL or its history. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/progress.h"
#include "gpu/common/iteration.h"
#include "gpu/process/batch.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct engine_batch batch;
static int reported; /* so often; each product is reported */

/* In the place of the engine's own. */
void process_batch_advance(struct engine_batch *of, uint64_t parts)
{
    assert_ptr_equal(of, &batch);
    assert_true(parts > 0);
    reported++;
}

/* ---- What is left out ---- */

#define N 16

/* I - R. What R is made of: 2^-6 on the diagonal; or, where few columns are large, 2^-10 in all of
 * the first one: its norm is 2^-6 and R^p is 2^-10 R^(p-1), which the norm does not tell. */
static double *start(bool column)
{
    double *v0 = gputest_numbers(N * N);
    for (int i = 0; i < N; i++) {
        v0[i * (N + 1)] = column ? 1 : 1 - 0x1p-6;
        v0[i * N] -= column ? 0x1p-10 : 0;
    }
    return v0;
}

/* The products of A = I from such a start, measured and not. */
static void test_products(void **state)
{
    (void)state;
    static const struct {
        enum method_iterative_scheme scheme;
        bool column;
        double tolerance;
        int measured, unmeasured;
    } rows[] = {
        /* 2^-6, 2^-12, 2^-24, 2^-48, 2^-96: the goal is 2^-51 */
        {METHOD_ITERATIVE_NEWTON_SCHULZ, false, 0, 1 + 4 * 2, 4 * 2},
        {METHOD_ITERATIVE_NEWTON_SCHULZ, false, 0x1p-23, 1 + 2 * 2, 2 * 2},
        /* 2^-24 itself: with rounding next to it only measuring says. */
        {METHOD_ITERATIVE_NEWTON_SCHULZ, false, 0x1p-24, 1 + 2 * 2, 1 + 2 * 2},
        {METHOD_ITERATIVE_CHEBYSHEV, false, 0, 1 + 2 * 3, 2 * 3},
        {METHOD_ITERATIVE_ORDER5, false, 0, 1 + 2 * 4, 2 * 4},
        {METHOD_ITERATIVE_ORDER7, false, 0, 1 + 2 * 5, 2 * 5},
        {METHOD_ITERATIVE_ORDER7_HORNER, false, 0, 1 + 2 * 9, 1 + 2 * 9},
        {METHOD_ITERATIVE_ORDER19, false, 0, 1 + 1 * 7, 1 * 7},
        {METHOD_ITERATIVE_ORDER5, true, 0, 1 + 2 * 4, 2 * 4},
        {METHOD_ITERATIVE_ORDER7, true, 0, 1 + 1 * 5, 1 * 5},
        {METHOD_ITERATIVE_ORDER7_HORNER, true, 0, 1 + 1 * 9, 1 + 1 * 9},
    };
    double *a = gputest_numbers(N * N);
    for (int i = 0; i < N; i++)
        a[i * (N + 1)] = 1;
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        double *v0 = start(rows[i / 2].column);
        struct host_progress progress = {.batch = &batch};
        struct gputest_iterate task = {.precision = PRECISION_FP64,
                                       .n = N,
                                       .a = a,
                                       .v0 = v0,
                                       .tolerance = rows[i / 2].tolerance,
                                       .scheme = rows[i / 2].scheme,
                                       .unmeasured = i % 2,
                                       .progress = &progress};
        reported = 0;
        struct gputest_iterated result = gputest_iterate(&task);
        int expected = i % 2 ? rows[i / 2].unmeasured : rows[i / 2].measured;
        assert_int_equal(result.info, 0);
        if (reported != expected)
            fail_msg("row %d: %d products, not %d", (int)(i / 2), reported, expected);
        gputest_iterated_free(&result);
        free(v0);
    }
    free(a);
}

/* ---- What is not ---- */

/* All else has the same bits. */
static void check_same(const struct gputest_iterate *options)
{
    struct gputest_iterate task = *options;
    int64_t n = task.n;
    struct gputest_iterated measured = gputest_iterate(&task);
    task.unmeasured = true;
    struct gputest_iterated alone = gputest_iterate(&task);
    assert_int_equal(alone.info, measured.info);
    assert_int_equal(alone.iterations, measured.iterations);
    assert_int_equal(alone.algorithm, measured.algorithm);
    assert_memory_equal(&alone.rcond, &measured.rcond, sizeof alone.rcond);
    assert_memory_equal(alone.inverse, measured.inverse, (size_t)(n * n) * sizeof(double));
    if (measured.info == 0 && task.tolerance > 0)
        assert_true(measured.residual <= task.tolerance);
    if (measured.info == 0 && task.tolerance == 0)
        assert_true(gputest_inverse_ratio(task.precision, n, task.a, measured.inverse) <=
                    GPUTEST_RATIO_MAX / 2);
    gputest_iterated_free(&alone);
    gputest_iterated_free(&measured);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 5, 8, 9, 33, 70, 129};
    static const double tolerances[] = {0, 0x1p-20, 1e-3, 1e-300};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        int64_t n = orders[k / PRECISION_COUNT];
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        double *a = gputest_numbers(n * n);
        for (int initial = 0; initial <= METHOD_ITERATIVE_SCALED_IDENTITY; initial++) {
            gputest_dge(4, 3, precision, n, k + (uint64_t)initial, a);
            for (int i = 0; i < METHOD_ITERATIVE_SCHEMES * (int)COUNT(tolerances); i++)
                check_same(&(struct gputest_iterate){
                    .precision = precision,
                    .n = n,
                    .a = a,
                    .tolerance = tolerances[i % (int)COUNT(tolerances)],
                    .scheme = (enum method_iterative_scheme)(i / (int)COUNT(tolerances)),
                    .initial = (enum method_iterative_initial)initial});
        }
        free(a);
    }
}

/* Of all conditions: where a last step's rounding is as large as what it improves, too. */
static void test_same_bits_of_the_hard(void **state)
{
    (void)state;
    int64_t n = 40;
    double *a = gputest_numbers(n * n);
    for (int digits = 0; digits <= 17; digits++) {
        for (int scheme = 0; scheme < METHOD_ITERATIVE_SCHEMES; scheme++) {
            enum precision precision = (enum precision)(digits % PRECISION_COUNT);
            gputest_dge(4, 4, precision, n, (uint64_t)digits, a);
            for (int64_t i = 0; i < n; i++) /* a last column that has all but vanished */
                a[i * n + n - 1] *= ldexp(1, -3 * digits);
            check_same(&(struct gputest_iterate){.precision = precision,
                                                 .n = n,
                                                 .a = a,
                                                 .scheme = (enum method_iterative_scheme)scheme});
        }
    }
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_of_the_hard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
