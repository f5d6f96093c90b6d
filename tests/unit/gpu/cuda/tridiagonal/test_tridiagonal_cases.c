/* The host's cases of `tridiagonal`, through the CUDA engine's kernels: see as_host.h. Those of
 * large orders are fewer here: the stand-in takes its time. */
#include "tests/unit/gpu/cuda/as_host.h"

#define host_method_at cudatest_method_at
#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/host/test_tridiagonal.c"
#undef main

/* Orders of several rounds of a block's threads, and of several tiles. */
static void test_some_larger_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {300, 511, 777, 1000};
    for (size_t i = 0; i < COUNT(orders); i++)
        for (int kind = (int)i; kind < BANDS_KINDS; kind += (int)COUNT(orders))
            check_one((enum gputest_bands_kind)kind, (enum precision)(kind / 4 % 2), orders[i],
                      kind / 8 % VARIANTS);
}

/* Chunks of a warp's rows: every kind, and those of several dozen chunks. */
static void test_middle_orders(void **state)
{
    (void)state;
    for (int kind = 0; kind < BANDS_KINDS; kind++)
        check_one((enum gputest_bands_kind)kind, (enum precision)(kind % 2), 513 + kind,
                  (kind / 2 + kind / 8) % VARIANTS);
    check_one(BANDS_WEAK_ROWS, PRECISION_FP64, 1100, AUTO);
    check_one(BANDS_ILL, PRECISION_FP64, 1101, SWEPT);
}

static void test_some_weakly_dominant(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 150; n++)
        check_one(n % 2 ? BANDS_WEAK_ROWS : BANDS_WEAK_COLUMNS, (enum precision)(n / 2 % 2), n,
                  (int)(n / 4 % VARIANTS));
}

static void test_diagonal_of_some_large_orders(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_bands a =
            gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, 20000 + variant, 5);
        struct gputest_band_answer answer = run(&a, variant, false, true);
        long double *truth = true_diagonal(&a);
        assert_int_equal(answer.info, 0);
        for (int64_t i = 0; i < a.n; i++)
            assert_true(fabsl(answer.diagonal[i] / truth[i] - 1) < 1e-13L);
        free(truth);
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

/* Levels of merging above a block of threads: by all blocks, and beyond 32768 rows by one. */
static void test_many_chunks_are_merged(void **state)
{
    (void)state;
    static const int64_t orders[] = {513, 600, 1030, 20001, 33000};
    for (size_t k = 0; k < COUNT(orders); k++) {
        struct gputest_bands a =
            gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, orders[k], 5 + k);
        struct gputest_band_answer answer = run(&a, MERGED, false, true);
        long double *truth = true_diagonal(&a);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_SHERMAN_MORRISON);
        for (int64_t i = 0; i < a.n; i++)
            assert_true(fabsl(answer.diagonal[i] / truth[i] - 1) < 1e-13L);
        free(truth);
        gputest_band_free(&answer);
        gputest_bands_free(&a);
        if (orders[k] < 2000)
            check_one(BANDS_ALTERNATING, PRECISION_FP64, orders[k], MERGED);
    }
}

/* Minors that are followed as doubles have the bits of those that need exponents of their own. */
static void test_far_minors(void **state)
{
    (void)state;
    static const int64_t orders[] = {8, 63, 64, 65, 150};
    for (size_t k = 0; k < COUNT(orders); k++) {
        struct gputest_bands a = gputest_bands_make(BANDS_RANDOM, PRECISION_FP64, orders[k], k);
        struct gputest_band_answer near = run(&a, PIVOTED, true, false);
        for (int64_t i = 0; i < 3 * a.n; i++)
            a.dl[i] *= 0x1p60;
        struct gputest_band_answer far = run(&a, PIVOTED, true, false);
        assert_int_equal(near.algorithm, METHOD_ALGORITHM_PIVOTED);
        for (int64_t i = 0; i < a.n * a.n; i++)
            assert_true(near.x[i] == far.x[i] * 0x1p60);
        gputest_band_free(&near);
        gputest_band_free(&far);
        gputest_bands_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_counterexample),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_some_larger_orders),
        cmocka_unit_test(test_middle_orders),
        cmocka_unit_test(test_some_weakly_dominant),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_sums_may_overflow),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_far_entries_underflow),
        cmocka_unit_test(test_diagonal_of_some_large_orders),
        cmocka_unit_test(test_many_chunks_are_merged),
        cmocka_unit_test(test_far_minors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
