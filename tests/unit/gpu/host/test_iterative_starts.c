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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v0_with_a_line_of_zeros),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
