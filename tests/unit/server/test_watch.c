/* tests/unit/server/test_watch.c: clients that leave, and connections that linger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http/watch.h"

#define CROWD 200

static uint64_t left_keys[CROWD];
static int left_count;

static enum watch_event last_event;

static void on_left(void *context, uint64_t key, enum watch_event event)
{
    assert_int_not_equal(event, WATCH_READABLE);
    last_event = event;
    assert_ptr_equal(context, &left_count);
    left_keys[left_count++] = key;
}

/* Runs the watch until it has nothing to do. */
static void run(struct watch *watch)
{
    struct pollfd ready = {.fd = watch_fd(watch), .events = POLLIN};
    left_count = 0;
    while (poll(&ready, 1, 0) == 1)
        watch_run(watch, on_left, &left_count);
}

static void test_leaving(void **state)
{
    struct watch *watch;
    int pair[2];
    (void)state;
    assert_int_equal(watch_create(4, &watch, NULL), ERROR_NONE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    watch_add(watch, pair[0], 42);
    run(watch);
    assert_int_equal(left_count, 0);
    assert_int_equal(write(pair[1], "x", 1), 1); /* speaking is not leaving */
    run(watch);
    assert_int_equal(left_count, 0);
    shutdown(pair[1], SHUT_WR);
    run(watch);
    assert_int_equal(left_count, 1); /* once */
    assert_int_equal(left_keys[0], 42);
    assert_int_equal(last_event, WATCH_HALF_CLOSED);
    shutdown(pair[1], SHUT_RD);
    close(pair[1]);
    run(watch);
    assert_int_equal(left_count, 1);
    assert_int_equal(last_event, WATCH_GONE);
    watch_forget(watch, pair[0]);
    run(watch);
    assert_int_equal(left_count, 0);
    close(pair[0]);
    watch_destroy(&watch);
    assert_null(watch);
}

/* Clients that leave together are all reported of at once: more come before the next run. */
static void test_a_crowd_leaving(void **state)
{
    struct watch *watch;
    int pairs[CROWD][2];
    (void)state;
    assert_int_equal(watch_create(4, &watch, NULL), ERROR_NONE);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        watch_add(watch, pairs[i][0], (uint64_t)i);
        shutdown(pairs[i][1], SHUT_WR);
    }
    left_count = 0;
    watch_run(watch, on_left, &left_count);
    assert_int_equal(left_count, CROWD);
    for (int i = 0; i < CROWD; i++) {
        watch_forget(watch, pairs[i][0]);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    watch_destroy(&watch);
}

/* Is the other end still open? */
static bool lingers(int fd)
{
    return send(fd, "", 1, MSG_NOSIGNAL) == 1;
}

static void test_lingering(void **state)
{
    static char bytes[100000];
    struct watch *watch;
    int pair[2];
    char byte;
    (void)state;
    assert_int_equal(watch_create(1, &watch, NULL), ERROR_NONE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    watch_linger(watch, pair[0], 0);
    close(pair[0]);
    assert_int_equal(read(pair[1], &byte, 1), 0); /* the sending side is shut */

    /* What is sent is read and dropped: sending never blocks for long. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(send(pair[1], bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
        run(watch);
    }

    /* A second one has no room, and is not kept. */
    int other[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    watch_linger(watch, other[0], 0);
    close(other[0]);
    assert_false(lingers(other[1]));
    assert_true(lingers(pair[1]));
    close(other[1]);

    /* Once the first has gone there is room again. One that stays open ends with the time. */
    close(pair[1]);
    run(watch);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    watch_linger(watch, pair[0], CLOCK_S);
    close(pair[0]);
    watch_tick(watch, CLOCK_S + WATCH_LINGER_NS - 1);
    assert_true(lingers(pair[1]));
    watch_tick(watch, CLOCK_S + WATCH_LINGER_NS);
    assert_false(lingers(pair[1]));
    close(pair[1]);
    watch_destroy(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_a_crowd_leaving),
        cmocka_unit_test(test_lingering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
