/* The host's cases of blocks and generators, through the CUDA engine's kernels: see as_host.h. The
 * blocks are fewer here: the stand-in takes its time. */
#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/host/test_tri_parts.c"
#undef main

static void test_some_blocks(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 5, 65, 131, 530, 548};
    for (size_t i = 0; i < COUNT(orders); i++)
        for (int kind = (int)i; kind < BANDS_KINDS; kind += i < 3 ? 1 : 5)
            check_blocks((enum gputest_bands_kind)kind, (enum precision)(kind % 2), orders[i],
                         (kind / 2 + (int)i) % VARIANTS);
}

/* Rows and columns far apart, of which a warp's last columns reach beyond the block's: what it
 * fetched for those that are wanted is all that it may use. */
static void test_blocks_next_to_the_diagonal(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        struct method_range rows, columns;
    } some[] = {
        {136, {130, 131}, {2, 100}}, {100, {70, 71}, {10, 50}}, {144, {139, 140}, {74, 117}}};
    for (size_t i = 0; i < 30; i++) {
        uint64_t seed = i;
        double at = fabs(gputest_random(&seed)), place = fabs(gputest_random(&seed));
        int64_t n = i < COUNT(some) ? some[i].n : 66 + (int64_t)(fabs(gputest_random(&seed)) * 400);
        struct method_range rows = {(int64_t)(at * (double)n), 0};
        struct method_range columns = {(int64_t)(place * (double)(n - 1)), 0};
        rows.end = rows.first + 1;
        columns.end = columns.first + 1 + (n - 1 - columns.first) / 2;
        if (i < COUNT(some)) {
            rows = some[i].rows;
            columns = some[i].columns;
        }
        struct gputest_bands a = gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, n, i);
        struct gputest_band_answer whole = run(&a, MERGED, everything, everything);
        check_block(&a, MERGED, &whole, rows, columns);
        gputest_band_free(&whole);
        gputest_bands_free(&a);
    }
}

/* More levels of merging than a tile keeps: blocks around the split of the last one. */
static void test_blocks_of_many_levels(void **state)
{
    (void)state;
    struct gputest_bands a = gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, 40000, 9);
    const struct method_range rows = {32760, 32776}, columns = {32763, 32780};
    struct gputest_band_answer merged = run(&a, MERGED, rows, columns);
    struct gputest_band_answer swept = run(&a, SWEPT, rows, columns);
    assert_int_equal(merged.algorithm, METHOD_ALGORITHM_SHERMAN_MORRISON);
    for (int64_t i = 0; i < (rows.end - rows.first) * (columns.end - columns.first); i++)
        assert_true(fabs(merged.x[i] - swept.x[i]) <= 1e-13);
    gputest_band_free(&merged);
    gputest_band_free(&swept);
    gputest_bands_free(&a);
}

/* Orders whose rows begin alike, and others: the entries are the same in whichever way they are
 * written, and those that fall fast are no exception. */
static void test_strips_and_tiles(void **state)
{
    (void)state;
    static const double falls[] = {1e-4, 1e-30, 1e-300, 0x1p-40};
    enum {
        N = 516
    };
    const struct method_range even = {4, 512}, odd = {3, 512};
    for (size_t k = 0; k < COUNT(falls) * 2; k++) {
        int variant = k % 2 ? SWEPT : PIVOTED;
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, N, 1);
        make_falling(&a, falls[k / 2], k % 3);
        struct gputest_band_answer strips = run(&a, variant, everything, even);
        struct gputest_band_answer tiles = run(&a, variant, everything, odd);
        assert_int_equal(strips.info, 0);
        for (int64_t i = 0; i < N; i++) {
            const double *strip = strips.x + i * (even.end - even.first);
            const double *tile = tiles.x + i * (odd.end - odd.first) + 1;
            double right = 1;
            assert_memory_equal(strip, tile, (size_t)(even.end - even.first) * sizeof *strip);
            for (int64_t j = i; j < even.end; j++) {
                if (j >= even.first)
                    assert_true(fabs(strip[j - even.first] - right) <= 1e-4 * right + 0x1p-1074);
                right *= -a.du[j];
            }
        }
        gputest_band_free(&strips);
        gputest_band_free(&tiles);
        gputest_bands_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_some_blocks),
        cmocka_unit_test(test_blocks_next_to_the_diagonal),
        cmocka_unit_test(test_blocks_of_many_levels),
        cmocka_unit_test(test_strips_and_tiles),
        cmocka_unit_test(test_blocks_without_inverse),
        cmocka_unit_test(test_generators),
        cmocka_unit_test(test_generators_alone),
        cmocka_unit_test(test_falling_entries),
        cmocka_unit_test(test_huge_entries),
        cmocka_unit_test(test_threads_make_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
