/* The starts of `iterative`: one that leads nowhere gives way to the next, whatever it is that was
 * sent or asked for. Families of random matrices around each case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#ifndef FAMILY
#define FAMILY 10000 /* matrices */
#endif
#define ORDER_MAX 6

static int below(int count, uint64_t *seed)
{
    return (int)((gputest_random(seed) + 1) / 2 * count) % count;
}

/* A family's next task: singular values from 1 to 1/4, by any scheme. a: of ORDER_MAX^2 numbers. */
static struct gputest_iterate next_task(double *a, uint64_t *seed)
{
    struct gputest_iterate task = {
        .precision = (enum precision)below(PRECISION_COUNT, seed),
        .n = 2 + below(ORDER_MAX - 1, seed),
        .a = a,
        .scheme = (enum method_iterative_scheme)below(METHOD_ITERATIVE_SCHEMES, seed)};
    double left[ORDER_MAX], right[ORDER_MAX], left_square = 0, right_square = 0, dot = 0;
    const int64_t n = task.n;
    /* D times two reflections, D = diag(1, .., 1/4). */
    for (int64_t i = 0; i < n; i++) {
        left[i] = gputest_random(seed);
        right[i] = gputest_random(seed);
        left_square += left[i] * left[i];
        right_square += right[i] * right[i];
        dot += left[i] * right[i];
    }
    for (int64_t k = 0; k < n * n; k++) {
        const int64_t i = k / n, j = k % n;
        const double scale = 1 - 0.75 * (double)i / (double)(n - 1);
        a[k] = (i == j) - 2 * left[i] * left[j] / left_square -
               2 * right[i] * right[j] / right_square +
               4 * left[i] * dot * right[j] / left_square / right_square;
        a[k] = (double)(float)(a[k] * scale);
    }
    return task;
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

/* ---- A V0 that leads nowhere ---- */

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
    double random[ORDER_MAX * ORDER_MAX], start[ORDER_MAX * ORDER_MAX];
    uint64_t seed = 1;
    for (int k = 0; k < FAMILY; k++) {
        task = next_task(random, &seed);
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
    double a[ORDER_MAX * ORDER_MAX], v0[ORDER_MAX * ORDER_MAX];
    uint64_t seed = 2;
    for (int k = 0; k < FAMILY; k++) {
        struct gputest_iterate task = next_task(a, &seed);
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

/* ---- A multiple of the identity ---- */

/* Where it leads nowhere the transpose follows. */
static void test_scaled_identity(void **state)
{
    (void)state;
    double a[ORDER_MAX * ORDER_MAX];
    uint64_t seed = 3;
    int others = 0;
    for (int k = 0; k < FAMILY; k++) {
        struct gputest_iterate task = next_task(a, &seed);
        task.initial = METHOD_ITERATIVE_SCALED_IDENTITY;
        const int32_t algorithm = check_good(&task);
        others += algorithm == METHOD_ALGORITHM_TRANSPOSE_START;
        assert_true(algorithm == METHOD_ALGORITHM_TRANSPOSE_START ||
                    algorithm == METHOD_ALGORITHM_SCALED_IDENTITY_START);
    }
    assert_true(others > FAMILY / 4 && others < FAMILY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v0_with_a_line_of_zeros),
        cmocka_unit_test(test_v0_without_full_rank),
        cmocka_unit_test(test_scaled_identity),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
