/* tests/unit/server/test_http_parts.c: the small parts of the door: peers' numbers, answers past
 * the library, counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/count.h"
#include "server/http/peer.h"
#include "server/http/raw.h"

static struct http_peer_key key = {{1, 2}};

static struct http_peer peer_of(int family, const char *address, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    void *bytes = family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr;
    struct http_peer peer;
    assert_int_equal(inet_pton(family, address, bytes), 1);
    http_peer_read(family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, -1, &key,
                   &peer);
    return peer;
}

static uint32_t number(int family, const char *address, uint16_t port)
{
    return peer_of(family, address, port).number;
}

static void test_peers(void **state)
{
    char text[HTTP_PEER_TEXT], expected[HTTP_PEER_TEXT];
    struct http_peer peer;
    int pair[2];
    (void)state;
    uint32_t one = number(AF_INET, "192.0.2.1", 1000);
    assert_int_equal(one, number(AF_INET, "192.0.2.1", 2000));
    assert_int_not_equal(one, number(AF_INET, "192.0.2.2", 1000));
    assert_int_equal(one, number(AF_INET6, "::ffff:192.0.2.1", 5));
    /* A host has as many addresses of its network as it likes. */
    assert_int_equal(number(AF_INET6, "2001:db8::1", 1), number(AF_INET6, "2001:db8::2:3", 2));
    assert_int_not_equal(number(AF_INET6, "2001:db8::1", 1),
                         number(AF_INET6, "2001:db8:0:1::1", 1));

    peer = peer_of(AF_INET6, "::ffff:192.0.2.1", 5);
    http_peer_show(&peer, text);
    assert_string_equal(text, "192.0.2.1");
    peer = peer_of(AF_INET6, "2001:db8::2:3", 5);
    http_peer_show(&peer, text);
    assert_string_equal(text, "2001:db8::2:3");

    struct sockaddr unix_name = {.sa_family = AF_UNIX};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    http_peer_read(&unix_name, pair[0], &key, &peer);
    one = peer.number;
    http_peer_read(&unix_name, pair[1], &key, &peer);
    assert_int_equal(one, peer.number); /* the same user */
    http_peer_show(&peer, text);
    snprintf(expected, sizeof expected, "uid %lu", (unsigned long)getuid());
    assert_string_equal(text, expected);
    close(pair[0]);
    close(pair[1]);
    http_peer_read(&unix_name, -1, &key, &peer);
    assert_int_equal(peer.number, 0);
    http_peer_show(&peer, text);
    assert_string_equal(text, "unknown");
}

/* The numbers depend on all of the key, which is random. */
static void test_peer_key(void **state)
{
    (void)state;
    uint32_t before = number(AF_INET, "192.0.2.1", 1);
    for (int word = 0; word < 2; word++) {
        key.words[word] ^= UINT64_C(1) << 40;
        assert_int_not_equal(before, number(AF_INET, "192.0.2.1", 1));
        key.words[word] ^= UINT64_C(1) << 40;
    }
    struct http_peer_key first = {0}, second = {0};
    http_peer_key_make(&first);
    http_peer_key_make(&second);
    assert_memory_not_equal(&first, &second, sizeof first);
}

static void test_raw(void **state)
{
    static char one[] = "{\"a\"", two[] = ":1}";
    struct exchange_reply reply = {.status = 408,
                                   .fields = {{"Content-Type", "application/json"}},
                                   .field_count = 1,
                                   .segments = {{one, 4}, {two, 3}},
                                   .segment_count = 2};
    struct text text;
    int pair[2];
    char heard[512] = {0};
    (void)state;
    text_init(&text, HTTP_RAW_MAX);
    http_raw_compose(&text, &reply, "an-id", "http://a.example", false);
    assert_non_null(strstr(text.data, "HTTP/1.1 408 \r\n"));
    assert_non_null(strstr(text.data, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(text.data, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(text.data, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(text.data, "\r\nAccess-Control-Allow-Origin: http://a.example\r\n"));
    assert_non_null(strstr(text.data, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_non_null(strstr(text.data, "\r\nDate: "));
    assert_string_equal(strstr(text.data, "\r\n\r\n"), "\r\n\r\n{\"a\":1}");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(http_raw_send(pair[0], &text));
    assert_int_equal(read(pair[1], heard, sizeof heard - 1), (ssize_t)text.length);
    assert_string_equal(heard, text.data);
    close(pair[1]);
    assert_false(http_raw_send(pair[0], &text));
    close(pair[0]);
    text_free(&text);

    http_raw_compose(&text, &reply, "an-id", NULL, true); /* HEAD: the length, not the body */
    assert_non_null(strstr(text.data, "\r\nContent-Length: 7\r\n"));
    assert_string_equal(strstr(text.data, "\r\n\r\n"), "\r\n\r\n");
    text_free(&text);

    text_init(&text, 64); /* too long: nothing is sent */
    http_raw_compose(&text, &reply, "an-id", NULL, false);
    assert_false(http_raw_send(-1, &text));
    text_free(&text);
}

static void test_count(void **state)
{
    static const char routes[HTTP_COUNT_CELLS][8] = {"/a", "/b"};
    static struct http_count count;
    struct metric_registry *metrics = metric_registry_create();
    (void)state;
    http_count_init(&count, metrics);
    /* More series than cells: those without a cell are counted all the same. */
    for (int round = 0; round < 2; round++)
        for (int status = 200; status < 200 + 2 * HTTP_COUNT_CELLS; status++)
            http_count_request(&count, routes[0], status, 1000, 3, 5);
    http_count_request(&count, routes[1], 200, 1000, 0, 0);
    assert_int_equal(metric_value(metric_series(metrics, METRIC_REQUESTS, "/a", "200")), 2);
    assert_int_equal(metric_value(metric_series(metrics, METRIC_REQUESTS, "/a", "711")), 2);
    assert_int_equal(metric_value(metric_series(metrics, METRIC_REQUESTS, "/b", "200")), 1);
    assert_int_equal(metric_value(count.bytes_in), 2 * 2 * HTTP_COUNT_CELLS * 3);
    assert_int_equal(metric_value(count.bytes_out), 2 * 2 * HTTP_COUNT_CELLS * 5);
    metric_registry_destroy(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_peer_key),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
