/* tests/unit/server/test_descriptors.c: what file descriptors are for, at every limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "server/descriptors.h"

static const struct descriptors_use uses[] = {
    {.loops = 1, .doors = 1, .sockets = 1, .connections = 4096},
    {.loops = 1, .doors = 3, .sockets = 17, .connections = 1},
    {.loops = 8, .doors = 17, .sockets = 130, .connections = 1 << 20},
};

/* Nothing is given out twice, engines keep theirs, and more descriptors hardly ever mean less. */
static void test_shares(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        const struct descriptors_use *use = &uses[i];
        int64_t min = descriptors_min(use), max = descriptors_max(use);
        struct descriptors_share before = {0};
        assert_true(min < max);
        for (int64_t limit = min; limit < max + 1000; limit += limit < 10000 ? 1 : 9973) {
            struct descriptors_share share = descriptors_share_out(use, limit);
            int64_t clients = share.connections + share.spare + (int64_t)share.linger * use->doors;
            assert_true(share.connections >= 1 && share.connections <= use->connections);
            assert_true(share.spare >= 1 && share.spare <= DESCRIPTORS_SPARE);
            assert_true(share.linger >= 1 && share.linger <= DESCRIPTORS_LINGER);
            assert_true(clients + min - 16 - 2 * use->doors <= limit); /* that are for clients */
            assert_true(share.connections >= before.connections - use->doors - 2);
            before = share;
        }
        struct descriptors_share all = descriptors_share_out(use, max);
        assert_int_equal(all.connections, use->connections);
        assert_int_equal(all.spare, DESCRIPTORS_SPARE);
    }
    assert_int_equal(descriptors_min(&uses[0]), 64);
    assert_true(descriptors_share_out(&uses[0], 64).connections >= 10);
}

static void test_raise(void **state)
{
    struct rlimit before, now;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit low = {.rlim_cur = 50, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(descriptors_raise(40), 40);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 50);
    assert_int_equal(descriptors_raise(60), 60);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 60);
    if (before.rlim_max != RLIM_INFINITY)
        assert_int_equal(descriptors_raise((int64_t)before.rlim_max + 1), before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_raise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
