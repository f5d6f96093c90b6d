/* tests/unit/server/test_notify.c: what a fake service manager hears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/notify.h"

struct bed {
    uv_loop_t loop;
    _Atomic bool ready;
    int socket; /* the manager's */
    char name[sizeof((struct sockaddr_un *)0)->sun_path];
    struct notify_options options;
    struct notify *notify;
};

/* A name in no file system, or a path. */
static void make_bed(struct bed *bed, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(bed, 0, sizeof *bed);
    snprintf(bed->name, sizeof bed->name, "%s-%d", name, (int)getpid());
    memcpy(address.sun_path, bed->name, strlen(bed->name));
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(bed->name));
    if (*name == '@')
        address.sun_path[0] = '\0';
    bed->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(bed->socket, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    bed->options =
        (struct notify_options){.socket = bed->name, .loop = &bed->loop, .ready = &bed->ready};
}

static void open_notify(struct bed *bed)
{
    struct failure failure;
    assert_int_equal(notify_create(&bed->options, &bed->notify, &failure), ERROR_NONE);
    assert_non_null(bed->notify);
}

static void free_bed(struct bed *bed)
{
    notify_close(bed->notify);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
    notify_free(&bed->notify);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
    close(bed->socket);
    if (*bed->name != '@')
        unlink(bed->name);
}

/* The next message, while the loop turns; "" when none comes in time. */
static const char *next(struct bed *bed, int within_ms)
{
    static char text[128];
    struct pollfd polled = {.fd = bed->socket, .events = POLLIN};
    for (int ms = 0; poll(&polled, 1, 1) == 0; ms++) {
        uv_run(&bed->loop, UV_RUN_NOWAIT);
        if (ms > within_ms)
            return "";
    }
    ssize_t bytes = recv(bed->socket, text, sizeof text - 1, 0);
    assert_true(bytes > 0);
    text[bytes] = '\0';
    return text;
}

static void test_life(void **state)
{
    (void)state;
    static const char *const names[] = {"@invertd-notify", "/tmp/invertd-notify"};
    for (int i = 0; i < 2; i++) {
        struct bed bed;
        make_bed(&bed, names[i]);
        open_notify(&bed);
        assert_string_equal(next(&bed, 120), ""); /* not ready yet */
        atomic_store(&bed.ready, true);
        assert_string_equal(next(&bed, 5000), "READY=1");
        assert_string_equal(next(&bed, 120), ""); /* once */
        notify_reloading(bed.notify);
        assert_memory_equal(next(&bed, 0), "RELOADING=1\nMONOTONIC_USEC=", 27);
        notify_reloaded(bed.notify);
        assert_string_equal(next(&bed, 0), "READY=1");
        notify_stopping(bed.notify);
        assert_string_equal(next(&bed, 0), "STOPPING=1");
        free_bed(&bed);
    }
}

static void test_stopped_before_ready(void **state)
{
    (void)state;
    struct bed bed;
    make_bed(&bed, "@invertd-notify");
    open_notify(&bed);
    notify_stopping(bed.notify);
    assert_string_equal(next(&bed, 0), "STOPPING=1");
    atomic_store(&bed.ready, true);
    assert_string_equal(next(&bed, 120), "");
    free_bed(&bed);
}

static void assert_silent_reload(struct bed *bed)
{
    notify_reloading(bed->notify);
    notify_reloaded(bed->notify);
    assert_string_equal(next(bed, 60), "");
}

/* A reload says nothing about readiness: not before the service is ready, nor once it ends. */
static void test_reload_at_another_time(void **state)
{
    (void)state;
    struct bed bed;
    make_bed(&bed, "@invertd-notify");
    open_notify(&bed);
    assert_silent_reload(&bed);
    atomic_store(&bed.ready, true);
    assert_string_equal(next(&bed, 5000), "READY=1");
    notify_stopping(bed.notify);
    assert_string_equal(next(&bed, 0), "STOPPING=1");
    assert_silent_reload(&bed);
    free_bed(&bed);
}

static void test_watchdog(void **state)
{
    (void)state;
    struct bed bed;
    char pid[16];
    make_bed(&bed, "@invertd-notify");
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    bed.options.watchdog_us = "60000";
    bed.options.watchdog_pid = pid;
    atomic_store(&bed.ready, true);
    open_notify(&bed);
    assert_string_equal(next(&bed, 5000), "READY=1");
    for (int i = 0; i < 5; i++)
        assert_string_equal(next(&bed, 5000), "WATCHDOG=1");
    free_bed(&bed);
    /* Another process is watched. */
    make_bed(&bed, "@invertd-notify");
    bed.options.watchdog_us = "60000";
    bed.options.watchdog_pid = "1";
    open_notify(&bed);
    assert_string_equal(next(&bed, 120), "");
    free_bed(&bed);
}

/* No manager, one that has gone, and words that make no sense. */
static void test_none_and_bad(void **state)
{
    (void)state;
    struct bed bed;
    struct failure failure;
    make_bed(&bed, "@invertd-notify");
    bed.options.socket = NULL;
    assert_int_equal(notify_create(&bed.options, &bed.notify, &failure), ERROR_NONE);
    assert_null(bed.notify);
    notify_reloading(bed.notify);
    notify_reloaded(bed.notify);
    notify_stopping(bed.notify);
    static const char *const bad[] = {"", "@", "relative", "x"};
    for (int i = 0; i < 4; i++) {
        bed.options.socket = bad[i];
        assert_int_equal(notify_create(&bed.options, &bed.notify, &failure), ERROR_BAD_OPTION);
    }
    bed.options.socket = bed.name;
    bed.options.watchdog_us = "soon";
    assert_int_equal(notify_create(&bed.options, &bed.notify, &failure), ERROR_BAD_OPTION);
    bed.options.watchdog_us = NULL;
    bed.options.socket = "@invertd-no-manager";
    open_notify(&bed);
    notify_stopping(bed.notify);
    free_bed(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_stopped_before_ready),
        cmocka_unit_test(test_reload_at_another_time),
        cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_none_and_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
