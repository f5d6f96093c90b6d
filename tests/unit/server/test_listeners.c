/* tests/unit/server/test_listeners.c: the table of listeners: what is refused, which loop and which
 * door gets which sockets, the port file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/listeners.h"

static struct listeners listeners;

static enum error read_texts(int count, const char *const *texts, const char *metrics,
                             const char *port_file, struct failure *failure)
{
    struct option_list list = {(char **)texts, count};
    return listeners_read(&list, metrics, port_file, &listeners, failure);
}

static void test_refused(void **state)
{
    const char *many[LISTENERS_MAX];
    const char *const good = "127.0.0.1:0", *const bad[] = {good, "127.0.0.1"};
    struct failure failure = {0};
    (void)state;
    assert_int_equal(read_texts(2, bad, NULL, NULL, &failure), ERROR_BAD_OPTION);
    assert_string_equal(failure.detail, "--listen \"127.0.0.1\" is not allowed; give HOST:PORT, "
                                        "[IPV6]:PORT or unix:PATH.");
    assert_int_equal(read_texts(1, &good, "nonsense", NULL, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "--metrics-listen \"nonsense\""));
    for (int i = 0; i < LISTENERS_MAX; i++)
        many[i] = good;
    assert_int_equal(read_texts(LISTENERS_MAX, many, NULL, NULL, &failure), ERROR_BAD_OPTION);
    assert_int_equal(read_texts(LISTENERS_MAX - 1, many, good, NULL, &failure), ERROR_NONE);
    assert_int_equal(listeners.count, LISTENERS_MAX);

    char path[] = "/tmp/invertd-port-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(read_texts(1, &good, NULL, path, &failure), ERROR_NONE);
    unlink(path);
    assert_int_equal(read_texts(1, &good, NULL, path, &failure), ERROR_NONE);
    assert_int_equal(symlink("/nowhere", path), 0);
    assert_int_equal(read_texts(1, &good, NULL, path, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "symbolic link"));
    unlink(path);
    assert_int_equal(read_texts(1, &good, NULL, "/tmp", &failure), ERROR_BAD_OPTION);
}

static int take(int loop, enum exchange_listener place, enum listen_reach reach)
{
    int fds[LISTENERS_MAX];
    int count = listeners_take(&listeners, loop, place, reach, fds);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return count;
}

static void test_sockets(void **state)
{
    char folder[] = "/tmp/invertd-listen-XXXXXX", unix_text[64], port_path[64], read_back[16];
    struct failure failure = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(unix_text, sizeof unix_text, "unix:%s/socket", folder);
    snprintf(port_path, sizeof port_path, "%s/port", folder);
    const char *const texts[] = {unix_text, "127.0.0.1:0", "127.0.0.2:0"};
    assert_int_equal(read_texts(3, texts, "127.0.0.1:0", port_path, &failure), ERROR_NONE);
    assert_int_equal(listeners_open(&listeners, 2, &failure), ERROR_NONE);
    int port = listeners_port(&listeners, false);
    assert_int_equal(port, listeners.rows[1].sockets.port);
    assert_int_equal(listeners_port(&listeners, true), listeners.rows[3].sockets.port);
    assert_int_equal(listeners_write_port(&listeners, &failure), ERROR_NONE);
    FILE *file = fopen(port_path, "r");
    assert_non_null(fgets(read_back, sizeof read_back, file));
    fclose(file);
    assert_int_equal(atoi(read_back), port);

    for (int loop = 0; loop < 2; loop++) {
        assert_int_equal(take(loop, EXCHANGE_LISTENER_WORK, LISTEN_REACH_LOOPBACK), 2);
        assert_int_equal(take(loop, EXCHANGE_LISTENER_WORK, LISTEN_REACH_UNIX), 1);
        assert_int_equal(take(loop, EXCHANGE_LISTENER_ALL, LISTEN_REACH_LOOPBACK), 0);
        assert_int_equal(take(loop, EXCHANGE_LISTENER_OPERATIONS, LISTEN_REACH_UNIX), 0);
        assert_int_equal(take(loop, EXCHANGE_LISTENER_OPERATIONS, LISTEN_REACH_LOOPBACK),
                         loop == 0);
    }
    listeners_close(&listeners);
    assert_int_equal(rmdir(folder), 0); /* no file is left behind */

    /* One that cannot be had is an error, and none is left. */
    const char *const wrong[] = {"127.0.0.1:0", "192.0.2.1:1"};
    assert_int_equal(read_texts(2, wrong, NULL, NULL, &failure), ERROR_NONE);
    assert_int_equal(listeners_open(&listeners, 2, &failure), ERROR_INTERNAL);
    assert_non_null(strstr(failure.detail, "192.0.2.1:1"));
    listeners_close(&listeners);
    assert_int_equal(take(0, EXCHANGE_LISTENER_ALL, LISTEN_REACH_LOOPBACK), 0);
}

static const struct {
    const char *text;
    enum listen_reach reach;
} reaches[] = {
    {"127.0.0.1:0", LISTEN_REACH_LOOPBACK},   {"127.255.0.9:0", LISTEN_REACH_LOOPBACK},
    {"LocalHost:0", LISTEN_REACH_LOOPBACK},   {"[::1]:0", LISTEN_REACH_LOOPBACK},
    {"unix:/run/x", LISTEN_REACH_UNIX},       {"[::]:0", LISTEN_REACH_NETWORK},
    {"0.0.0.0:0", LISTEN_REACH_NETWORK},      {"128.0.0.1:0", LISTEN_REACH_NETWORK},
    {"host.example:0", LISTEN_REACH_NETWORK},
};

/* A listener of any reach but the network's is closed to strangers, on either option. */
static void test_reaches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof reaches / sizeof reaches[0]; i++) {
        const char *const one[] = {reaches[i].text};
        struct failure failure = {0};
        bool open = reaches[i].reach == LISTEN_REACH_NETWORK;
        enum error wanted = open ? ERROR_BAD_OPTION : ERROR_NONE;
        assert_int_equal(read_texts(1, one, NULL, NULL, &failure), ERROR_NONE);
        assert_int_equal(listen_reach_of(&listeners.rows[0].address), reaches[i].reach);
        assert_int_equal(listeners_check_closed(&listeners, &failure), wanted);
        const char *const good[] = {"127.0.0.1:0"};
        assert_int_equal(read_texts(1, good, reaches[i].text, NULL, &failure), ERROR_NONE);
        assert_int_equal(listeners_check_closed(&listeners, &failure), wanted);
        if (open)
            assert_non_null(strstr(failure.detail, "--metrics-listen"));
    }
    struct failure failure = {0};
    const char *const longest[] = {
        "a-name-that-is-longer-than-most.in-a-domain-that-is-longer-than-most.example:12345"};
    assert_int_equal(read_texts(1, longest, NULL, NULL, &failure), ERROR_NONE);
    assert_int_equal(listeners_check_closed(&listeners, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "--token-file FILE"));
    assert_non_null(strstr(failure.detail, "or a unix socket.")); /* it is whole */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_reaches),
        cmocka_unit_test(test_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
