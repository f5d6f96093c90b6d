/* The host's cases of how `iterative` ends, through the CUDA engine's kernels: see iter_host.h. */
#include "tests/unit/gpu/cuda/iter_host.h"

#define host_method_at cudatest_iterative_at
#define TOLERANCE_ROUNDS 3 /* the stand-in takes its time */
#define FAMILY 100
#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/host/iterate.c"
#include "tests/unit/gpu/host/test_iterative_ends.c"
#undef main

static void test_some_hostile_matrices(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 3, 17};
    static const struct gputest_iterate options[] = {
        {0},
        {.scheme = METHOD_ITERATIVE_ORDER7_HORNER},
        {.scheme = METHOD_ITERATIVE_ORDER19, .initial = METHOD_ITERATIVE_SCALED_IDENTITY},
        {.scheme = METHOD_ITERATIVE_ORDER7, .initial = METHOD_ITERATIVE_DIAGONAL},
    };
    for (size_t i = 0; i < COUNT(orders) * COUNT(options) * HOSTILES; i++)
        try_hostile((enum hostile)(i / COUNT(orders) / COUNT(options)), (enum precision)(i / 3 % 2),
                    orders[i % COUNT(orders)], &options[i / COUNT(orders) % COUNT(options)]);
}

/* To the conditions that the host is tried with, in fewer matrices. */
static void test_some_conditions(void **state)
{
    (void)state;
    enum {
        N = 36
    };
    double *a = gputest_numbers((int64_t)N * N);
    for (int digits = 0; digits <= 12; digits += 4) {
        gputest_dge(4, 3, PRECISION_FP64, N, (uint64_t)digits, a);
        for (int64_t k = 0; k < N; k++) /* a last column that has all but vanished */
            a[k * N + N - 1] *= pow(10, -digits);
        struct gputest_iterate task = {.precision = PRECISION_FP64, .n = N, .a = a};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        assert_true(gputest_inverse_ratio(PRECISION_FP64, N, a, result.inverse) <= 1);
        gputest_iterated_free(&result);
    }
    free(a);
}

/* Norms at both ends of the range, and beyond it where A is finite. */
static void test_scales(void **state)
{
    (void)state;
    static const double scales[] = {1e-300, 1e-307, 1e300, 4e306};
    int64_t n = 60;
    double *a = gputest_numbers(n * n);
    for (size_t k = 0; k < COUNT(scales); k++) {
        for (int64_t i = 0; i < n * n; i++)
            a[i] = scales[k] * (i / n == i % n ? 40 : i % 7 ? 0.3 : -0.4);
        struct gputest_iterate task = {.precision = PRECISION_FP64, .n = n, .a = a};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        for (int64_t i = 0; i < n * n; i++)
            a[i] /= scales[k];
        task.a = a;
        struct gputest_iterated plain = gputest_iterate(&task);
        for (int64_t i = 0; i < n * n; i++)
            assert_true(fabs(result.inverse[i] * scales[k] - plain.inverse[i]) <= 1e-12);
        assert_true(fabs(result.rcond - plain.rcond) <= 1e-12);
        gputest_iterated_free(&plain);
        gputest_iterated_free(&result);
    }
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_iterations),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_tolerance_is_kept),
        cmocka_unit_test(test_hidden_tolerances),
        cmocka_unit_test(test_unseen_residual),
        cmocka_unit_test(test_some_hostile_matrices),
        cmocka_unit_test(test_singular_matrices_do_not_converge),
        cmocka_unit_test(test_zero_lines),
        cmocka_unit_test(test_some_conditions),
        cmocka_unit_test(test_power_of_two),
        cmocka_unit_test(test_scales),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
