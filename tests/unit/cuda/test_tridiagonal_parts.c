/* The host's cases of blocks and generators, through the CUDA engine's kernels: see as_host.h. The
 * blocks are fewer here: the stand-in takes its time. */
#define main host_cases
int host_cases(void);
#include "tests/unit/gpu/test_host_tri_parts.c"
#undef main

static void test_some_blocks(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 5, 65, 131, 530};
    for (size_t i = 0; i < COUNT(orders); i++)
        for (int kind = (int)i; kind < BANDS_KINDS; kind += i < 3 ? 1 : 5)
            check_blocks((enum gputest_bands_kind)kind, (enum precision)(kind % 2), orders[i],
                         (kind / 2 + (int)i) % VARIANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_some_blocks),
        cmocka_unit_test(test_blocks_without_inverse),
        cmocka_unit_test(test_generators),
        cmocka_unit_test(test_generators_alone),
        cmocka_unit_test(test_falling_entries),
        cmocka_unit_test(test_huge_entries),
        cmocka_unit_test(test_threads_make_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
