/* tests/unit/server/test_listen.c: addresses, shared ports, ports in use, unix sockets, the port
 * file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/listen.h"

static const struct {
    const char *text, *host, *port, *path; /* host and path NULL: refused */
} addresses[] = {
    {"127.0.0.1:8000", "127.0.0.1", "8000", NULL},
    {"localhost:0", "localhost", "0", NULL},
    {"[::1]:8000", "::1", "8000", NULL},
    {"0.0.0.0:65535", "0.0.0.0", "65535", NULL},
    {"unix:/run/invertd.sock", NULL, NULL, "/run/invertd.sock"},
    {"unix:relative", NULL, NULL, "relative"},
    {"unix:", NULL, NULL, NULL},
    {"", NULL, NULL, NULL},
    {":8000", NULL, NULL, NULL},
    {"8000", NULL, NULL, NULL},
    {"localhost", NULL, NULL, NULL},
    {"localhost:", NULL, NULL, NULL},
    {"localhost:65536", NULL, NULL, NULL},
    {"localhost:-1", NULL, NULL, NULL},
    {"localhost:80x", NULL, NULL, NULL},
    {"localhost:000080", NULL, NULL, NULL},
    {"::1:8000", NULL, NULL, NULL},
    {"[::1]", NULL, NULL, NULL},
    {"[::1]8000", NULL, NULL, NULL},
    {"[::1:8000", NULL, NULL, NULL},
    {"[]:8000", NULL, NULL, NULL},
};

static void test_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct listen_address address;
        struct failure failure = {0};
        enum error error = listen_parse(addresses[i].text, &address, &failure);
        bool good = addresses[i].host != NULL || addresses[i].path != NULL;
        if ((error == ERROR_NONE) != good)
            fail_msg("'%s': %d", addresses[i].text, error);
        if (!good) {
            assert_int_equal(error, ERROR_BAD_OPTION);
            assert_true(failure.detail[0] != '\0');
            continue;
        }
        assert_int_equal(address.is_unix, addresses[i].path != NULL);
        assert_string_equal(address.host, addresses[i].host != NULL ? addresses[i].host : "");
        assert_string_equal(address.port, addresses[i].port != NULL ? addresses[i].port : "");
        assert_string_equal(address.path, addresses[i].path != NULL ? addresses[i].path : "");
    }
    char text[LISTEN_PATH_MAX + 6] = "unix:";
    struct listen_address address;
    memset(text + 5, 'a', LISTEN_PATH_MAX - 1);
    assert_int_equal(listen_parse(text, &address, NULL), ERROR_NONE);
    text[5 + LISTEN_PATH_MAX - 1] = 'a';
    assert_int_equal(listen_parse(text, &address, NULL), ERROR_BAD_OPTION);
}

static int connect_to(int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

static void test_shared_port(void **state)
{
    struct listen_address address;
    struct listen first = {0}, second = {0};
    struct failure failure = {0};
    (void)state;
    assert_int_equal(listen_parse("127.0.0.1:0", &address, NULL), ERROR_NONE);
    assert_int_equal(listen_open(&address, 3, &first, &failure), ERROR_NONE);
    assert_int_equal(first.count, 3);
    assert_true(first.port > 0);
    int client = connect_to(first.port);
    assert_true(client >= 0);
    close(client);

    /* Another daemon of the same user, alone or with several loops, is reported. */
    snprintf(address.port, sizeof address.port, "%d", first.port);
    for (int count = 1; count <= 3; count += 2) {
        assert_int_equal(listen_open(&address, count, &second, &failure), ERROR_INTERNAL);
        assert_non_null(strstr(failure.detail, "in use"));
        assert_non_null(strstr(failure.detail, address.port));
        assert_int_equal(second.count, 0);
    }
    listen_close(&first);
    assert_int_equal(connect_to(first.port), -1);
    assert_int_equal(listen_open(&address, 2, &second, &failure), ERROR_NONE);
    int taken = listen_take(&second, 1);
    listen_close(&second);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    close(taken);
    assert_int_equal(listen_open(&address, LISTEN_MAX + 1, &second, &failure), ERROR_INTERNAL);
}

static void test_unix(void **state)
{
    char folder[] = "/tmp/invertd-listen-XXXXXX", text[128];
    struct listen_address address;
    struct listen first = {0}, second = {0};
    struct failure failure = {0};
    struct stat file;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof text, "unix:%s/socket", folder);
    assert_int_equal(listen_parse(text, &address, NULL), ERROR_NONE);
    umask(077);
    assert_int_equal(listen_open(&address, 2, &first, &failure), ERROR_NONE);
    assert_int_equal(first.port, 0);
    assert_int_equal(lstat(address.path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0666);
    assert_int_equal(umask(077), 077); /* as it was */

    /* Somebody answers: the file is left alone. */
    assert_int_equal(listen_open(&address, 1, &second, &failure), ERROR_INTERNAL);
    assert_int_equal(lstat(address.path, &file), 0);

    /* No one does any more: it is replaced. */
    close(listen_take(&first, 0));
    close(listen_take(&first, 1));
    assert_int_equal(listen_open(&address, 1, &second, &failure), ERROR_NONE);
    listen_close(&second);
    assert_int_equal(lstat(address.path, &file), -1);

    /* Who ends late leaves alone what a successor has put there; and who is first closes nothing.
     */
    assert_int_equal(listen_open(&address, 1, &first, &failure), ERROR_NONE);
    close(listen_take(&first, 0));
    assert_int_equal(listen_open(&address, 2, &second, &failure), ERROR_NONE);
    assert_true((fcntl(second.fds[1], F_GETFD) & FD_CLOEXEC) != 0);
    listen_close(&first);
    assert_int_equal(lstat(address.path, &file), 0);
    listen_close(&second);
    assert_int_equal(lstat(address.path, &file), -1);

    /* A file that is no socket is never replaced. */
    fclose(fopen(address.path, "w"));
    assert_int_equal(listen_open(&address, 1, &second, &failure), ERROR_INTERNAL);
    assert_int_equal(lstat(address.path, &file), 0);
    unlink(address.path);
    rmdir(folder);
}

/* [::] is of both families, another IPv6 address of one. Skipped where there is no IPv6. */
static void test_families(void **state)
{
    struct listen_address address;
    struct listen both = {0}, six = {0};
    struct failure failure = {0};
    (void)state;
    assert_int_equal(listen_parse("[::1]:0", &address, NULL), ERROR_NONE);
    if (listen_open(&address, 1, &six, &failure) != ERROR_NONE)
        skip();
    assert_int_equal(connect_to(six.port), -1);
    listen_close(&six);
    assert_int_equal(listen_parse("[::]:0", &address, NULL), ERROR_NONE);
    assert_int_equal(listen_open(&address, 2, &both, &failure), ERROR_NONE);
    int client = connect_to(both.port);
    assert_true(client >= 0);
    close(client);
    listen_close(&both);
}

static void test_port_file(void **state)
{
    char path[] = "/tmp/invertd-port-XXXXXX", text[64], read_back[16] = {0};
    struct listen_file first = {0}, second = {0};
    struct failure failure = {0};
    (void)state;
    close(mkstemp(path));
    assert_int_equal(listen_write_port(4711, path, &first, NULL), ERROR_NONE);
    FILE *file = fopen(path, "r");
    assert_non_null(fgets(read_back, sizeof read_back, file));
    fclose(file);
    assert_string_equal(read_back, "4711\n");
    assert_int_equal(listen_write_port(4711, "/nowhere/port", &second, NULL), ERROR_INTERNAL);

    /* Another daemon's file stays, though it says the same. */
    assert_int_equal(listen_write_port(4711, path, &second, NULL), ERROR_NONE);
    listen_remove(&first, path);
    assert_int_equal(access(path, F_OK), 0);
    listen_remove(&second, path);
    assert_int_equal(access(path, F_OK), -1);

    /* Links are not followed: neither one at the path, nor one where the new file is made. */
    assert_int_equal(symlink("/tmp/nothing-of-invertd", path), 0);
    assert_int_equal(listen_write_port(4711, path, &first, &failure), ERROR_INTERNAL);
    assert_non_null(strstr(failure.detail, "symbolic link"));
    unlink(path);
    snprintf(text, sizeof text, "%s.new", path);
    assert_int_equal(symlink("/tmp/nothing-of-invertd", text), 0);
    assert_int_equal(listen_write_port(4711, path, &first, &failure), ERROR_NONE);
    assert_int_equal(access("/tmp/nothing-of-invertd", F_OK), -1);
    listen_remove(&first, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_shared_port),
        cmocka_unit_test(test_unix),      cmocka_unit_test(test_families),
        cmocka_unit_test(test_port_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
