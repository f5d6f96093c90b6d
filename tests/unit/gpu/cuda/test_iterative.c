/* The host's cases of `iterative`, through the CUDA engine's kernels: see iter_host.h. Those of
 * many matrices or large ones are fewer here: the stand-in takes its time. */
#include "gpu/cuda/iterative/call.h"
#include "tests/unit/gpu/cuda/iter_host.h"

#define host_method_at cudatest_iterative_at
#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/host/iterate.c"
#include "tests/unit/gpu/host/test_iterative.c"
#undef main

static void test_schemes_and_starts(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 7, 16, 33, 70};
    for (size_t k = 0; k < COUNT(orders) * COUNT(starts) * METHOD_ITERATIVE_SCHEMES; k++) {
        int scheme = (int)(k % METHOD_ITERATIVE_SCHEMES);
        const struct start *start = &starts[k / METHOD_ITERATIVE_SCHEMES % COUNT(starts)];
        int64_t n = orders[k / METHOD_ITERATIVE_SCHEMES / COUNT(starts)];
        try_start((enum precision)((int)n % 2), n, start, (enum method_iterative_scheme)scheme);
    }
}

/* The host's algorithms, steps and plans, but where rounding decides on the last step. */
static void test_as_the_host(void **state)
{
    (void)state;
    static const int64_t orders[] = {5, 24, 40};
    for (size_t k = 0; k < COUNT(orders) * METHOD_ITERATIVE_SCHEMES; k++) {
        int64_t n = orders[k / METHOD_ITERATIVE_SCHEMES];
        double *a = random_matrix(PRECISION_FP64, n, 40 + k);
        struct gputest_iterate task = {
            .precision = PRECISION_FP64,
            .n = n,
            .a = a,
            .scheme = (enum method_iterative_scheme)(k % METHOD_ITERATIVE_SCHEMES),
            .initial = METHOD_ITERATIVE_TRANSPOSE};
        struct gputest_iterated ours = gputest_iterate(&task), theirs;
        cudatest_iterative_of_host(true);
        theirs = gputest_iterate(&task);
        cudatest_iterative_of_host(false);
        assert_int_equal(ours.info, theirs.info);
        assert_int_equal(ours.algorithm, theirs.algorithm);
        assert_true(abs(ours.iterations - theirs.iterations) <= 1);
        assert_true(fabs(ours.rcond - theirs.rcond) <= 1e-6 * theirs.rcond);
        for (int i = 0; i + 2 < theirs.iterations; i++) {
            if (!(fabs(ours.history[i] - theirs.history[i]) <= 1e-6 * theirs.history[i] + 1e-12))
                fail_msg("n = %d, step %d: %g, not %g", (int)n, i, ours.history[i],
                         theirs.history[i]);
        }
        gputest_iterated_free(&ours);
        gputest_iterated_free(&theirs);
        free(a);
    }
}

/* Of an order where all matrices of a run have their turn, and products are the library's. */
static void test_order7_works_in_the_residual(void **state)
{
    (void)state;
    assert_true(cuda__iter_gap(646) == 0 && cuda__iter_gap(70) > 0);
    try_start(PRECISION_FP64, 646, &starts[1], METHOD_ITERATIVE_ORDER7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_of_numbers),
        cmocka_unit_test(test_orders_of_matrices),
        cmocka_unit_test(test_schemes_and_starts),
        cmocka_unit_test(test_next_start),
        cmocka_unit_test(test_scaled_identity_pays),
        cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_useless_warm_start),
        cmocka_unit_test(test_v_becomes_zero),
        cmocka_unit_test(test_collinear_errors),
        cmocka_unit_test(test_as_the_host),
        cmocka_unit_test(test_order7_works_in_the_residual),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
