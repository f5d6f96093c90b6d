/* tests/unit/server/test_proxy.c: the PROXY protocol: which addresses are proxies', what a header
 * says, which headers are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/proxy.h"

static const struct {
    const char *network, *address;
    int has; /* -1: the network is none */
} rows[] = {
    {"192.0.2.1", "192.0.2.1", 1},
    {"192.0.2.1", "192.0.2.2", 0},
    {"192.0.2.1", "::ffff:192.0.2.1", 1},
    {"10.0.0.0/8", "10.255.1.1", 1},
    {"10.0.0.0/8", "11.0.0.0", 0},
    {"10.0.0.0/9", "10.127.0.0", 1},
    {"10.0.0.0/9", "10.128.0.0", 0},
    {"0.0.0.0/0", "198.51.100.7", 1},
    {"0.0.0.0/0", "2001:db8::1", 0},
    {"2001:db8::/32", "2001:db8:ffff::1", 1},
    {"2001:db8::/32", "2001:db9::1", 0},
    {"::1", "::1", 1},
    {"::1/128", "::2", 0},
    {"::ffff:192.0.2.1", "192.0.2.1", 1},
    {"::ffff:10.0.0.0/104", "10.255.1.1", 1},
    {"::ffff:10.0.0.0/104", "::ffff:11.0.0.0", 0},
    {"::fffe:10.0.0.0/104", "10.255.1.1", 0},
    {"10.0.0.0/33", NULL, -1},
    {"::/129", NULL, -1},
    {"10.0.0.0/", NULL, -1},
    {"10.0.0.0/8x", NULL, -1},
    {"10.0.0.0/-8", NULL, -1},
    {"10.0.0/8", NULL, -1},
    {"localhost", NULL, -1},
    {"", NULL, -1},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct option_list texts = {(char **)&rows[i].network, 1};
        struct failure failure = {0};
        struct proxy_list list;
        enum error error = proxy_list_read(&texts, &list, &failure);
        assert_int_equal(error, rows[i].has < 0 ? ERROR_BAD_OPTION : ERROR_NONE);
        if (error != ERROR_NONE) {
            assert_non_null(strstr(failure.detail, "--proxy-protocol"));
            continue;
        }
        struct sockaddr_storage address = {0};
        struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
        address.ss_family = AF_INET;
        if (inet_pton(AF_INET, rows[i].address, &v4->sin_addr) != 1) {
            address.ss_family = AF_INET6;
            assert_int_equal(inet_pton(AF_INET6, rows[i].address, &v6->sin6_addr), 1);
        }
        if (proxy_list_has(&list, (struct sockaddr *)&address) != rows[i].has)
            fail_msg("%s in %s", rows[i].address, rows[i].network);
    }
    struct sockaddr nowhere = {.sa_family = AF_UNIX};
    struct proxy_list none = {0};
    assert_false(proxy_list_has(&none, &nowhere));
}

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\0\x02\x07\x7f\0\0\x01\x12\x34\x1f\x40"
#define V6                                                                                         \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x34\x1f\x40"
#define H(text) text, sizeof text - 1

static const struct {
    const char *bytes;
    size_t length;
    enum proxy_state state;
    const char *client; /* NULL: none is named */
} headers[] = {
    {H(SIGNATURE "\x21\x11\0\x0c" V4), PROXY_DONE, "192.0.2.7"},
    {H(SIGNATURE "\x21\x21\0\x24" V6), PROXY_DONE, "2001:db8::9"},
    {H(SIGNATURE "\x21\x11\0\x13" V4 "\x03\0\x04\1\2\3\4"), PROXY_DONE, "192.0.2.7"},
    {H(SIGNATURE "\x20\0\0\0"), PROXY_DONE, NULL},
    {H(SIGNATURE "\x20\x11\0\x0c" V4), PROXY_DONE, NULL},
    {H(SIGNATURE "\x20\xff\0\x02zz"), PROXY_DONE, NULL},
    {H(SIGNATURE "\x21\0\0\x03zzz"), PROXY_DONE, NULL},
    {H(SIGNATURE "\x21\x11\0\x0b"
                 "\xc0\0\x02\x07\x7f\0\0\x01\x12\x34\x1f"),
     PROXY_BAD, NULL},
    {H(SIGNATURE "\x21\x21\0\x0c" V4), PROXY_BAD, NULL},
    {H(SIGNATURE "\x21\x12\0\x0c" V4), PROXY_BAD, NULL},
    {H(SIGNATURE "\x21\x31\0\x0c" V4), PROXY_BAD, NULL},
    {H(SIGNATURE "\x22\x11\0\x0c" V4), PROXY_BAD, NULL},
    {H(SIGNATURE "\x11\x11\0\x0c" V4), PROXY_BAD, NULL},
    {H("PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n"), PROXY_BAD, NULL},
    {H("GET / HTTP/1.1\r\n\r\n"), PROXY_BAD, NULL},
    {H(SIGNATURE), PROXY_MORE, NULL},
    {H(SIGNATURE "\x21\x11\0\x0c"
                 "\xc0\0\x02"),
     PROXY_MORE, NULL},
    {H(""), PROXY_MORE, NULL},
};

/* Whole and byte by byte; nothing after the header is read. */
static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof headers / sizeof headers[0]; i++) {
        size_t row = i / 2, piece = i % 2 == 0 ? 1 : 512;
        enum proxy_state expected = headers[row].state, got = PROXY_MORE;
        struct proxy_header header = {0};
        char rest[8] = {0};
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        for (size_t at = 0; at < headers[row].length && got == PROXY_MORE; at += piece) {
            size_t left = headers[row].length - at, bytes = left < piece ? left : piece;
            assert_int_equal(send(pair[0], headers[row].bytes + at, bytes, 0), (ssize_t)bytes);
            if (at + bytes == headers[row].length)
                assert_int_equal(send(pair[0], "next", 4, 0), 4);
            if (expected != PROXY_MORE || at + bytes < headers[row].length)
                got = proxy_header_read(&header, pair[1]);
        }
        if (got != expected)
            fail_msg("header %zu, in pieces of %zu: %d", row, piece, got);
        if (got == PROXY_DONE) {
            struct sockaddr_storage client;
            socklen_t length;
            char text[64];
            assert_int_equal(recv(pair[1], rest, 4, 0), 4);
            assert_string_equal(rest, "next");
            bool named = proxy_header_client(&header, &client, &length);
            assert_int_equal(named, headers[row].client != NULL);
            if (named) {
                const void *bytes = client.ss_family == AF_INET
                                        ? (void *)&((struct sockaddr_in *)&client)->sin_addr
                                        : (void *)&((struct sockaddr_in6 *)&client)->sin6_addr;
                inet_ntop(client.ss_family, bytes, text, sizeof text);
                assert_string_equal(text, headers[row].client);
            }
        }
        close(pair[0]);
        close(pair[1]);
    }
}

/* Further fields, 65535 bytes with the addresses, are read past. */
static void test_long_header(void **state)
{
    static unsigned char bytes[PROXY_FIXED + 65535 + 1];
    struct proxy_header header = {0};
    int pair[2];
    (void)state;
    memcpy(bytes, SIGNATURE "\x21\x11\xff\xff" V4, PROXY_FIXED + 12);
    bytes[sizeof bytes - 1] = 'n';
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    enum proxy_state got = PROXY_MORE;
    for (size_t at = 0; at < sizeof bytes; at += 4096) {
        size_t left = sizeof bytes - at;
        assert_int_equal(got, PROXY_MORE);
        assert_true(send(pair[0], bytes + at, left < 4096 ? left : 4096, 0) > 0);
        got = proxy_header_read(&header, pair[1]);
    }
    assert_int_equal(got, PROXY_DONE);
    assert_int_equal(recv(pair[1], bytes, 2, 0), 1);
    assert_int_equal(bytes[0], 'n');
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_long_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
