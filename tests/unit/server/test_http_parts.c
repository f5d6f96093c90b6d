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
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/count.h"
#include "server/http/peer.h"
#include "server/http/raw.h"

static uint32_t number(int family, const char *address, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    void *bytes = family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr;
    assert_int_equal(inet_pton(family, address, bytes), 1);
    return http_peer_hash(family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6);
}

static void test_peers(void **state)
{
    int pair[2];
    (void)state;
    uint32_t one = number(AF_INET, "192.0.2.1", 1000);
    assert_int_equal(one, number(AF_INET, "192.0.2.1", 2000));
    assert_int_not_equal(one, number(AF_INET, "192.0.2.2", 1000));
    assert_int_equal(one, number(AF_INET6, "::ffff:192.0.2.1", 5));
    assert_int_equal(number(AF_INET6, "2001:db8::1", 1), number(AF_INET6, "2001:db8::1", 2));
    assert_int_not_equal(number(AF_INET6, "2001:db8::1", 1), number(AF_INET6, "2001:db8::2", 1));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(http_peer_number(pair[0]), http_peer_number(pair[1])); /* the same user */
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(http_peer_number(-1), 0);
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
    http_raw_compose(&text, &reply, false);
    assert_non_null(strstr(text.data, "HTTP/1.1 408 \r\n"));
    assert_non_null(strstr(text.data, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(text.data, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(text.data, "\r\nConnection: close\r\n"));
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

    http_raw_compose(&text, &reply, true); /* HEAD: the length, not the body */
    assert_non_null(strstr(text.data, "\r\nContent-Length: 7\r\n"));
    assert_string_equal(strstr(text.data, "\r\n\r\n"), "\r\n\r\n");
    text_free(&text);

    text_init(&text, 64); /* too long: nothing is sent */
    http_raw_compose(&text, &reply, false);
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
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
