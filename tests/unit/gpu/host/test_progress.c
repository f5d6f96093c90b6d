/* What is reported of a matrix on its way, and what `iterative` says: gpu/common/iteration.h says
 * how much.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/base/progress.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/process/batch.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define REPORTED_MAX (METHOD_PROGRESS_WHOLE + 1)

static struct engine_batch batch;

/* What was reported, one after the other. */
static struct {
    int count;
    uint64_t sums[REPORTED_MAX];
} reported;

static uint64_t last_reported(void)
{
    return reported.count > 0 ? reported.sums[reported.count - 1] : 0;
}

/* In the place of the engine's own. */
void process_batch_advance(struct engine_batch *of, uint64_t parts)
{
    uint64_t before = last_reported();
    assert_ptr_equal(of, &batch);
    assert_true(parts > 0 && reported.count < REPORTED_MAX);
    reported.sums[reported.count++] = before + parts;
}

static struct host_progress begin(void)
{
    reported.count = 0;
    return (struct host_progress){.batch = &batch};
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        int64_t done, whole;
        uint64_t sum;
    } rows[] = {
        {0, 7, 0},   {3, 0, 0},     {0, 0, 0},   {1, 2000, 0},        {1, 4, 250},
        {1, 5, 250}, {2, 4, 500},   {2, 0, 500}, {-1, 4, 500},        {1, 4, 500},
        {2, 3, 666}, {999, 9, 999}, {4, 4, 999}, {INT64_MAX, 1, 999},
    };
    struct host_progress progress = begin();
    for (size_t i = 0; i < COUNT(rows); i++) {
        host_progress_report(&progress, rows[i].done, rows[i].whole);
        host_progress_report(NULL, rows[i].done, rows[i].whole);
        assert_int_equal(last_reported(), rows[i].sum);
    }
    host__progress_end(&progress, 1);
    assert_int_equal(last_reported(), METHOD_PROGRESS_WHOLE);
    progress = begin();
    host__progress_end(&progress, 3);
    assert_int_equal(last_reported(), 3 * METHOD_PROGRESS_WHOLE);
    assert_int_equal(reported.count, 1);
}

/* ---- iterative ---- */

#define N 16

/* From V0 = (1 - 2^-6) I for I every residual is known, and so is what is foreseen. */
static void test_foreseen_steps(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        enum method_iterative_scheme scheme;
        int64_t max_iterations;
        double tolerance;
        uint64_t products; /* one to measure, and those of the steps */
    } rows[] = {
        /* 2^-6, 2^-12, 2^-24, 2^-48, 2^-96: the goal is 2^-51 */
        {PRECISION_FP64, METHOD_ITERATIVE_NEWTON_SCHULZ, 0, 0, 1 + 4 * 2},
        {PRECISION_FP64, METHOD_ITERATIVE_NEWTON_SCHULZ, 2, 0, 1 + 2 * 2},
        {PRECISION_FP64, METHOD_ITERATIVE_NEWTON_SCHULZ, 0, 0x1p-13, 1 + 2 * 2},
        {PRECISION_FP64, METHOD_ITERATIVE_CHEBYSHEV, 0, 0, 1 + 2 * 3},
        {PRECISION_FP64, METHOD_ITERATIVE_ORDER7, 0, 0, 1 + 2 * 5},
        {PRECISION_FP64, METHOD_ITERATIVE_ORDER19, 0, 0, 1 + 1 * 7},
        {PRECISION_FP32, METHOD_ITERATIVE_NEWTON_SCHULZ, 0, 0, 1 + 2 * 2},
    };
    double *a = gputest_numbers(N * N), *v0 = gputest_numbers(N * N);
    for (int i = 0; i < N; i++) {
        a[i * (N + 1)] = 1;
        v0[i * (N + 1)] = 1 - 0x1p-6;
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct host_progress progress = begin();
        struct gputest_iterate task = {.precision = rows[i].precision,
                                       .n = N,
                                       .a = a,
                                       .v0 = v0,
                                       .tolerance = rows[i].tolerance,
                                       .max_iterations = rows[i].max_iterations,
                                       .scheme = rows[i].scheme,
                                       .progress = &progress};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(reported.count, rows[i].products);
        for (uint64_t k = 1; k < rows[i].products; k++)
            assert_int_equal(reported.sums[k - 1], k * METHOD_PROGRESS_WHOLE / rows[i].products);
        assert_int_equal(last_reported(), METHOD_PROGRESS_WHOLE - 1);
        gputest_iterated_free(&result);
    }
    free(a);
    free(v0);
}

#define ORDER 50
#define AUTO METHOD_ITERATIVE_SCHEME_AUTO
#define PLAIN METHOD_ITERATIVE_NEWTON_SCHULZ

/* Whatever comes out, and from whatever start, the figure rises in small pieces, and does not say
 * that most is done before it is: last of all where there is no inverse. */
static void test_rises(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int type; /* of gputest_dge */
        enum method_iterative_scheme scheme;
        enum method_iterative_initial initial;
        bool warm;            /* a V0 that leads nowhere soon */
        uint64_t middle, min; /* at most when half was reported, and at least at the end */
    } rows[] = {
        {PRECISION_FP64, 4, AUTO, METHOD_ITERATIVE_INITIAL_AUTO, false, 800, 999},
        {PRECISION_FP64, 4, AUTO, METHOD_ITERATIVE_TRANSPOSE, false, 200, 999},
        {PRECISION_FP32, 4, AUTO, METHOD_ITERATIVE_TRANSPOSE, false, 200, 999},
        {PRECISION_FP64, 8, AUTO, METHOD_ITERATIVE_TRANSPOSE, false, 400, 999},
        {PRECISION_FP64, 4, AUTO, METHOD_ITERATIVE_SCALED_IDENTITY, true, 200, 999},
        /* Two rows are the same: there is no inverse. */
        {PRECISION_FP64, 0, AUTO, METHOD_ITERATIVE_TRANSPOSE, false, 600, 850},
        {PRECISION_FP32, 0, AUTO, METHOD_ITERATIVE_TRANSPOSE, false, 600, 850},
        {PRECISION_FP64, 0, AUTO, METHOD_ITERATIVE_INITIAL_AUTO, true, 700, 850},
        {PRECISION_FP64, 0, PLAIN, METHOD_ITERATIVE_TRANSPOSE, false, 600, 850},
        {PRECISION_FP32, 0, PLAIN, METHOD_ITERATIVE_TRANSPOSE, false, 600, 850},
    };
    double *a = gputest_numbers(ORDER * ORDER), *v0 = gputest_numbers(ORDER * ORDER);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t seed = i + 1;
        gputest_dge(rows[i].type ? rows[i].type : 4, 3, rows[i].precision, ORDER, seed, a);
        for (int k = 0; k < ORDER && rows[i].type == 0; k++)
            a[k] = a[ORDER + k];
        /* A^T, as the transpose start has it. */
        double size = residual_norm(ORDER, a) * ORDER;
        for (int k = 0; k < ORDER * ORDER; k++)
            v0[k] = a[k % ORDER * ORDER + k / ORDER] / (size * size);
        struct host_progress progress = begin();
        struct gputest_iterate task = {.precision = rows[i].precision,
                                       .n = ORDER,
                                       .a = a,
                                       .v0 = rows[i].warm ? v0 : NULL,
                                       .max_iterations = METHOD_ITERATIVE_ITERATIONS_MAX,
                                       .scheme = rows[i].scheme,
                                       .initial = rows[i].initial,
                                       .progress = &progress};
        struct gputest_iterated result = gputest_iterate(&task);
        uint64_t middle = reported.sums[reported.count / 2], last = last_reported();
        if (last < rows[i].min || last >= METHOD_PROGRESS_WHOLE || middle > rows[i].middle)
            fail_msg("row %d: reported %d times, %d in the middle and %d at the end", (int)i,
                     reported.count, (int)middle, (int)last);
        gputest_iterated_free(&result);
    }
    free(a);
    free(v0);
}

/* ---- lu ---- */

/* By blocks: a third is the factorisation's, and every step is a share of what is left. */
static void test_blocks(void **state)
{
    (void)state;
    const int64_t n = 700, ld = host__ld(PRECISION_FP64, n);
    const size_t bytes = sizeof(double) * (size_t)ld;
    double *a = aligned_alloc(HOST_ALIGN_BYTES, bytes * (size_t)n);
    double *lines = aligned_alloc(HOST_ALIGN_BYTES, bytes * HOST_LARGE_BLOCK_MAX);
    int32_t *pivots = malloc((size_t)n * sizeof *pivots);
    uint64_t seed = 1;
    assert_true(a && lines && pivots);
    for (int64_t i = 0; i < n * ld; i++)
        a[i] = gputest_random(&seed) + (i % (ld + 1) == 0 ? (double)n : 0);
    struct host_progress progress = begin();
    assert_int_equal(host__reporting_getrf_f64(NULL, n, a, ld, pivots, &progress), 0);
    assert_in_range(last_reported(), METHOD_PROGRESS_WHOLE / 4, METHOD_PROGRESS_WHOLE / 3);
    int count = reported.count;
    assert_true(count >= 5);
    host__reporting_getri_f64(NULL, n, a, ld, pivots, lines, &progress);
    assert_true(reported.count >= 3 * count);
    assert_int_equal(last_reported(), METHOD_PROGRESS_WHOLE - 1);
    free(pivots);
    free(lines);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_foreseen_steps),
        cmocka_unit_test(test_rises),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
