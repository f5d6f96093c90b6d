/* tests/unit/server/test_accept.c: connections as they are taken in: how many in a turn, from which
 * socket, without room, without descriptors, and at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http/accept.h"
#include "server/listen.h"

#define ROOM 1000

static int ports[2], taken_count, taken[ROOM];
static struct sockaddr_storage last;
static struct proxy_list proxies;
static const _Atomic int64_t header_timeout_ns = 1000;

static void take(void *context, int fd, const struct sockaddr *address, socklen_t length)
{
    assert_ptr_equal(context, &taken_count);
    assert_true(length >= sizeof(struct sockaddr_in));
    memcpy(&last, address, length);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    taken[taken_count++] = fd;
}

static struct accept *open_two(void)
{
    int fds[2];
    struct accept *accept = NULL;
    for (int i = 0; i < 2; i++) {
        struct listen_address address;
        struct listen sockets;
        assert_int_equal(listen_parse("127.0.0.1:0", &address, NULL), ERROR_NONE);
        assert_int_equal(listen_open(&address, 1, &sockets, NULL), ERROR_NONE);
        ports[i] = sockets.port;
        fds[i] = listen_take(&sockets, 0);
    }
    taken_count = 0;
    struct accept_options options = {.fds = fds,
                                     .count = 2,
                                     .proxies = &proxies,
                                     .header_timeout_ns = &header_timeout_ns,
                                     .taker = take,
                                     .context = &taken_count};
    assert_int_equal(accept_create(&options, &accept, NULL), ERROR_NONE);
    return accept;
}

/* Runs it; how many connections it has taken. */
static int run(struct accept *accept, int64_t room)
{
    int before = taken_count;
    accept_run(accept, room, 1);
    return taken_count - before;
}

static int call(int socket_number)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)ports[socket_number]),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool is_ready(const struct accept *accept)
{
    struct pollfd ready = {.fd = accept_fd(accept), .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

static void hang_up(const int *clients, int count)
{
    for (int i = 0; i < count; i++)
        close(clients[i]);
    while (taken_count > 0)
        close(taken[--taken_count]);
}

static void test_turns(void **state)
{
    int clients[ACCEPT_MAX + 10];
    (void)state;
    struct accept *accept = open_two();
    assert_false(is_ready(accept));
    assert_int_equal(run(accept, ROOM), 0);
    for (int i = 0; i < ACCEPT_MAX + 10; i++)
        clients[i] = call(i % 2);
    assert_true(is_ready(accept));
    assert_int_equal(run(accept, ROOM), ACCEPT_MAX);
    assert_int_equal(run(accept, ROOM), 10);
    assert_false(is_ready(accept));
    assert_int_equal(taken_count, ACCEPT_MAX + 10);
    hang_up(clients, ACCEPT_MAX + 10);

    /* A socket that is always busy does not keep the other waiting. */
    int late = 0;
    for (int turn = 0; turn < 2; turn++) {
        clients[0] = call(0);
        clients[1] = call(1);
        assert_int_equal(run(accept, 1), 1);
        struct sockaddr_in name;
        socklen_t length = sizeof name;
        assert_int_equal(getsockname(taken[0], (struct sockaddr *)&name, &length), 0);
        late += ntohs(name.sin_port) == ports[1];
        assert_int_equal(run(accept, ROOM), 1);
        hang_up(clients, 2);
    }
    assert_int_equal(late, 1);
    accept_destroy(&accept);
    assert_null(accept);
    assert_int_equal(call(0), -1);
}

static void test_no_room(void **state)
{
    (void)state;
    struct accept *accept = open_two();
    int client = call(1);
    assert_int_equal(run(accept, 0), 0);
    assert_false(is_ready(accept)); /* the loop does not spin */
    accept_tick(accept, 10 * ACCEPT_PAUSE_NS);
    assert_false(is_ready(accept));
    accept_resume(accept);
    assert_true(is_ready(accept));
    assert_int_equal(run(accept, 1), 1);
    hang_up(&client, 1);
    accept_destroy(&accept);
}

static void test_no_descriptors(void **state)
{
    struct rlimit before, none;
    (void)state;
    struct accept *accept = open_two();
    int client = call(0), first_free = fcntl(client, F_DUPFD_CLOEXEC, 0);
    close(first_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)first_free, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(run(accept, ROOM), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(is_ready(accept));
    accept_resume(accept); /* that is for the other kind of pause */
    assert_false(is_ready(accept));
    accept_tick(accept, ACCEPT_PAUSE_NS);
    assert_false(is_ready(accept));
    accept_tick(accept, 1 + ACCEPT_PAUSE_NS);
    assert_int_equal(run(accept, ROOM), 1);
    hang_up(&client, 1);
    accept_destroy(&accept);
}

/* Who has connected before the end is taken in; who comes after it is refused. */
static void test_close(void **state)
{
    int clients[5];
    (void)state;
    struct accept *accept = open_two();
    for (int i = 0; i < 5; i++)
        clients[i] = call(i % 2);
    assert_int_equal(run(accept, 0), 0);
    accept_close(accept, ROOM, 1);
    assert_int_equal(taken_count, 5);
    assert_int_equal(call(0), -1);
    assert_int_equal(call(1), -1);
    assert_int_equal(run(accept, ROOM), 0);
    accept_resume(accept);
    hang_up(clients, 5);
    accept_destroy(&accept);
}

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define FOR_4 SIGNATURE "\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x12\x34\x1f\x40"

/* A client of a proxy at our own address. */
static void test_proxied(void **state)
{
    char byte, heard[8] = {0};
    static const char *const text = "127.0.0.1";
    struct option_list list = {(char **)&text, 1};
    (void)state;
    assert_int_equal(proxy_list_read(&list, &proxies, NULL), ERROR_NONE);
    struct accept *accept = open_two();

    /* In pieces, with what follows it. */
    int client = call(0);
    assert_int_equal(run(accept, 1), 0);
    assert_int_equal(send(client, FOR_4, 20, 0), 20);
    assert_true(is_ready(accept));
    assert_int_equal(run(accept, 1), 0);
    assert_false(is_ready(accept));
    assert_int_equal(send(client, &(FOR_4 "GET")[20], sizeof FOR_4 - 18, 0), sizeof FOR_4 - 18);
    assert_int_equal(run(accept, 1), 1);
    const struct sockaddr_in *named = (const struct sockaddr_in *)&last;
    assert_int_equal(named->sin_family, AF_INET);
    assert_int_equal(ntohl(named->sin_addr.s_addr), 0xc0000207);
    assert_int_equal(recv(taken[0], heard, sizeof heard, 0), 3);
    assert_string_equal(heard, "GET");
    hang_up(&client, 1);

    /* Without one it is closed: at once when something else comes, else after a while. */
    client = call(1);
    assert_int_equal(send(client, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    assert_int_equal(run(accept, 1), 0);
    assert_true(recv(client, &byte, 1, 0) <= 0);
    hang_up(&client, 1);
    client = call(1);
    assert_int_equal(run(accept, 1), 0);
    assert_int_equal(run(accept, 1), 0);
    accept_tick(accept, 1000);
    assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), -1);
    accept_tick(accept, 1001);
    assert_int_equal(recv(client, &byte, 1, 0), 0);
    hang_up(&client, 1);

    /* One that owes a header has a place. */
    int clients[2] = {call(0), call(0)};
    assert_int_equal(run(accept, 1), 0);
    assert_int_equal(run(accept, 1), 0);
    assert_int_equal(send(clients[1], FOR_4, sizeof FOR_4 - 1, 0), (ssize_t)sizeof FOR_4 - 1);
    assert_false(is_ready(accept));
    assert_int_equal(send(clients[0], FOR_4, sizeof FOR_4 - 1, 0), (ssize_t)sizeof FOR_4 - 1);
    assert_int_equal(run(accept, 1), 1);
    accept_resume(accept);
    assert_int_equal(run(accept, 1), 1);
    hang_up(clients, 2);
    accept_destroy(&accept);
    proxies.count = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),          cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_close),
        cmocka_unit_test(test_proxied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
