/* The host's cases of `ism`, through the CUDA engine's kernels: see ism_host.h. Those of large
 * orders are fewer here: the stand-in takes its time. Algorithms differ where the host tries one
 * block of all columns in one precision before lu. */
#include "tests/unit/gpu/cuda/ism/ism_host.h"

#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/host/ism/test_ism.c"
#undef main
#define main hard_cases
int hard_cases(void);
#include "tests/unit/gpu/host/ism/test_ism_hard.c"
#undef main
#define main host_ends
int host_ends(void);
#include "tests/unit/gpu/host/ism/test_ism_ends.c"
#undef main

/* Every kind and variant once for each order and rank up to n = 32; orders of every size of a team,
 * and one more. */
static void test_every_kind_here(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 8, 9, 17, 33, 65};
    failures = 0;
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i], ranks[] = {0, 1, 3, n / 4, n / 2, n, n + 3};
        for (size_t r = 0; r < COUNT(ranks); r++) {
            for (int k = 0; k < ISMTEST_KINDS; k++) {
                if (n > 32 && (r + (size_t)k) % (n > 64 ? 6 : 2))
                    continue; /* enough of the slow ones */
                enum precision precision =
                    (i + r + (size_t)k) % 3 ? PRECISION_FP64 : PRECISION_FP32;
                struct ismtest_problem problem = ismtest_problem(
                    precision, (enum ismtest_kind)k, n, ranks[r], (uint64_t)(n * 64 + ranks[r]));
                problem.variant = (int64_t)(i + r + (size_t)k) % 4;
                problem.block_size = r % 2 ? 3 : 0;
                struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
                check_good(&problem, &answer);
                check_algorithm(&problem, &answer);
                ismtest_forget(&answer);
                ismtest_free(&problem);
            }
        }
    }
    assert_int_equal(failures, 0);
}

/* A number that a pivot comes from, and that equilibrated lines would lose: the pivot would be
 * zero, and DET_RATIO. It is 1. */
static void test_det_ratio_of_a_lost_pivot(void **state)
{
    (void)state;
    static const double scales[PRECISION_COUNT] = {0x1p60, 0x1p500};
    static const double lost[PRECISION_COUNT] = {0x1p-91, 0x1p-600};
    for (int precision = 0; precision < PRECISION_COUNT; precision++) {
        const double s = scales[precision], root = sqrt(s);
        const double a[9] = {root, root, 0, 0, 1 / s, 1 / s, s, s, lost[precision]};
        check_det_ratio_of((enum precision)precision, 3, a, NAN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_here),
        cmocka_unit_test(test_ill_conditioned),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_nearly_singular),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_cancellation),
        cmocka_unit_test(test_a_stiff_spring),
        cmocka_unit_test(test_opposite_columns),
        cmocka_unit_test(test_a_large_inverse),
        cmocka_unit_test(test_a_doubled_row),
        cmocka_unit_test(test_a_long_column),
        cmocka_unit_test(test_sparse_columns),
        cmocka_unit_test(test_without_inverse),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_no_inverse),
        cmocka_unit_test(test_det_ratio_of_denormal_lines),
        cmocka_unit_test(test_det_ratio_of_vanished_pivots),
        cmocka_unit_test(test_det_ratio_of_lost_numbers),
        cmocka_unit_test(test_det_ratio_of_scaled_lines),
        cmocka_unit_test(test_det_ratio_of_lines_that_cannot_be_equilibrated),
        cmocka_unit_test(test_det_ratio_of_a_lost_pivot),
        cmocka_unit_test(test_det_ratio_of_the_least_number),
        cmocka_unit_test(test_column_sum_beyond_the_range),
        cmocka_unit_test(test_solution_beyond_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
