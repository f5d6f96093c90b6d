/* tests/unit/server/test_loop.c: an event loop that descriptors fail; what else it does is tried
 * end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/loop.h"

/* The first descriptor that is free. */
static int first_free(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return fd;
}

/* With ever more descriptors: an error until there are enough, never an end. (libuv keeps some of
 * those that it had when it failed.) */
static void test_too_few_descriptors(void **state)
{
    struct loop *loop = NULL;
    struct failure failure;
    struct rlimit before;
    (void)state;
    assert_int_equal(loop_create(NULL, 0, &loop, &failure), ERROR_NONE); /* libuv's own pipes */
    loop_destroy(&loop);
    int failures = 0;
    bool good = false;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int count = 0; !good && count < 32; count++) {
        struct rlimit limit = {.rlim_cur = (rlim_t)(first_free() + count),
                               .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        enum error error = loop_create(NULL, 0, &loop, &failure);
        if (error == ERROR_NONE) {
            good = loop_watch_batches(loop, &failure) == ERROR_NONE;
            loop_destroy(&loop);
        }
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(error == ERROR_NONE || failure.detail[0] != '\0');
        assert_null(loop);
        failures += !good;
    }
    assert_true(good);
    assert_true(failures >= 3); /* the loop's epoll set, its eventfd, the timer */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_too_few_descriptors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
