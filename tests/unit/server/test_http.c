/* test_http.c: the door itself, over loopback, driven by hand in one thread, with handlers of the
 * test's own that answer at once, in time, later, or never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/handlers.h"
#include "server/http.h"
#include "server/listen.h"

#define MS INT64_C(1000000)
#define ANSWER_MAX (8 << 20)

/* ---- Handlers ---- */

enum manner {
    AT_RUN,   /* answered in handlers_run */
    AT_BEGIN, /* refused in handlers_begin */
    LATER,    /* answered by the test */
};

static struct {
    enum manner manner;
    int begun, run, expired, expired_in_body, ended, refused, released;
    enum error refusal;
    struct exchange *waiting;
    int64_t body_bytes;
    size_t answer_bytes; /* 0: a short text */
    int segments;
    char path[64], query[64], header[64];
    unsigned char body[1 << 20];
} fake;

static char *answer_body; /* [ANSWER_MAX] */

static void on_release(void *context)
{
    (void)context;
    fake.released++;
}

static void answer(struct exchange *x, int status)
{
    struct exchange_reply reply = {.status = status, .release = on_release, .field_count = 1};
    reply.fields[0] = (struct exchange_field){"Content-Type", "text/plain"};
    size_t bytes = fake.answer_bytes != 0 ? fake.answer_bytes : 5;
    int segments = fake.segments != 0 ? fake.segments : 1;
    for (int i = 0; i < segments; i++)
        reply.segments[i] = (struct iovec){answer_body + (size_t)i * (bytes / (size_t)segments),
                                           bytes / (size_t)segments};
    reply.segment_count = segments;
    exchange_answer(x, &reply);
}

static bool on_parameter(void *context, const char *name, const char *value)
{
    char *query = context;
    size_t length = strlen(query);
    snprintf(query + length, sizeof fake.query - length, "%s=%s;", name, value);
    return true;
}

void handlers_begin(struct exchange *x)
{
    fake.begun++;
    snprintf(fake.path, sizeof fake.path, "%s", x->path);
    fake.query[0] = '\0';
    x->door->query(x, on_parameter, fake.query);
    const char *header = exchange_header(x, "x-test");
    snprintf(fake.header, sizeof fake.header, "%s", header != NULL ? header : "");
    if (fake.manner == AT_BEGIN)
        answer(x, 404);
    else if (x->content_length > 0) {
        assert_true(x->content_length <= (int64_t)sizeof fake.body);
        x->sink = fake.body;
        x->sink_bytes = x->content_length;
    }
}

void handlers_run(struct exchange *x)
{
    fake.run++;
    fake.body_bytes = x->body_bytes;
    if (fake.manner == LATER)
        fake.waiting = x;
    else
        answer(x, 200);
}

void handlers_expired(struct exchange *x, bool body_arriving)
{
    fake.expired++;
    fake.expired_in_body += body_arriving;
    answer(x, body_arriving ? 408 : 504);
}

void handlers_end(struct exchange *x)
{
    fake.ended++;
    if (fake.waiting == x)
        fake.waiting = NULL;
}

void handlers_refuse(struct exchange *x, enum error code, const char *detail)
{
    fake.refused++;
    fake.refusal = code;
    assert_non_null(detail);
    answer(x, error_http_status(code));
}

const char *handlers_route_label(const struct exchange *x)
{
    (void)x;
    return "test";
}

/* ---- A door and its clients ---- */

static struct {
    struct http *http;
    struct metric_registry *metrics;
    struct mailbox box;
    _Atomic int64_t connections;
    int port;
} bed;

static void no_wake(void *context)
{
    (void)context;
}

static void set_up(struct http_limits limits)
{
    struct listen_address address;
    struct listen sockets;
    assert_int_equal(listen_parse("127.0.0.1:0", &address, NULL), ERROR_NONE);
    assert_int_equal(listen_open(&address, 1, &sockets, NULL), ERROR_NONE);
    bed.port = sockets.port;
    bed.metrics = metric_registry_create();
    bed.connections = 0;
    mailbox_init(&bed.box, no_wake, NULL);
    struct http_options options = {.listen_fd = listen_take(&sockets, 0),
                                   .metrics = bed.metrics,
                                   .home = &bed.box,
                                   .connections = &bed.connections,
                                   .limits = limits};
    assert_int_equal(http_create(&options, &bed.http, NULL), ERROR_NONE);
    memset(&fake, 0, sizeof fake);
}

static void tear_down(void)
{
    http_destroy(&bed.http);
    mailbox_fini(&bed.box);
    metric_registry_destroy(&bed.metrics);
    assert_int_equal(fake.ended, fake.begun + fake.refused);
    assert_int_equal(bed.connections, 0);
}

static const struct http_limits patient = {.connections_max = 8,
                                           .header_timeout_ns = 10000 * MS,
                                           .body_timeout_ns = 10000 * MS,
                                           .request_timeout_ns = 10000 * MS,
                                           .idle_timeout_ns = 10000 * MS};

static int call(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)bed.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void turn(void)
{
    struct pollfd ready[] = {{.fd = http_fd(bed.http), .events = POLLIN},
                             {.fd = http_watch_fd(bed.http), .events = POLLIN}};
    poll(ready, 2, 1);
    http_watch(bed.http);
    http_tick(bed.http);
    (void)http_drive(bed.http);
}

/* What a client hears until `until` is in it, or the connection ends, or a second passed. The end
 * is shown as "<end>", a reset as "<reset>". */
static const char *hear(int fd, const char *until)
{
    static char heard[ANSWER_MAX + 4096];
    size_t length = 0;
    heard[0] = '\0';
    for (int i = 0; i < 2000; i++) {
        turn();
        ssize_t count = recv(fd, heard + length, sizeof heard - length - 16, MSG_DONTWAIT);
        if (count > 0) {
            length += (size_t)count;
            heard[length] = '\0';
            i = 0;
        } else if (count == 0 || errno != EAGAIN) {
            strcpy(heard + length, count == 0 ? "<end>" : "<reset>");
            return heard;
        }
        if (strstr(heard, until) != NULL)
            return heard;
    }
    return heard;
}

static int times(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* ---- Tests ---- */

static void test_answers(void **state)
{
    (void)state;
    set_up(patient);
    int client = call();
    say(client, "POST /a%62c?x=1&y&z=%20+ HTTP/1.1\r\nHost: h\r\nX-Test: yes\r\n"
                "Content-Length: 5\r\n\r\nhello");
    const char *heard = hear(client, "AAAAA");
    assert_non_null(strstr(heard, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(heard, "Content-Length: 5\r\n"));
    assert_string_equal(fake.path, "/abc");
    assert_string_equal(fake.query, "x=1;y=;z=  ;");
    assert_string_equal(fake.header, "yes");
    assert_int_equal(fake.body_bytes, 5);
    assert_memory_equal(fake.body, "hello", 5);
    assert_int_equal(fake.released, 1);

    /* Pipelined, HEAD, and the absolute form, on the same connection. */
    say(client, "GET http://h/p HTTP/1.1\r\nHost: h\r\n\r\nHEAD /q HTTP/1.1\r\nHost: h\r\n\r\n"
                "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    heard = hear(client, "<end>");
    assert_int_equal(times(heard, "HTTP/1.1 200"), 3);
    assert_int_equal(times(heard, "AAAAA"), 2);
    assert_string_equal(fake.path, "/last");
    close(client);
    assert_int_equal(metric_value(metric_series(bed.metrics, METRIC_REQUESTS, "test", "200")), 4);
    assert_int_equal(metric_value(metric_series(bed.metrics, METRIC_BYTES, "in")), 5);
    tear_down();
}

static void test_sizes(void **state)
{
    static const struct {
        size_t bytes;
        int segments;
    } answers[] = {{4096, 1}, {4096, 4}, {16384, 8}, {16400, 8}, {1 << 20, 1}, {4 << 20, 32}};
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        set_up(patient);
        fake.answer_bytes = answers[i].bytes;
        fake.segments = answers[i].segments;
        int client = call();
        say(client, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        const char *heard = hear(client, "<end>");
        const char *body = strstr(heard, "\r\n\r\n");
        assert_non_null(body);
        assert_int_equal(strlen(body + 4), answers[i].bytes + strlen("<end>"));
        assert_int_equal(fake.released, 1);
        close(client);
        tear_down();
    }
}

static void test_later(void **state)
{
    (void)state;
    set_up(patient);
    fake.manner = LATER;
    int first = call(), second = call();
    say(first, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 1)
        turn();
    struct exchange *waiting = fake.waiting;
    say(second, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 2)
        turn();
    assert_int_equal(http_busy(bed.http), 2);
    assert_int_equal(http_open(bed.http), 2);

    /* The second leaves: its exchange ends, the first is answered all the same. */
    shutdown(second, SHUT_WR);
    while (fake.ended < 1)
        turn();
    assert_int_equal(http_busy(bed.http), 1);
    answer(waiting, 200);
    assert_true(http_stirred(bed.http));
    assert_non_null(strstr(hear(first, "AAAAA"), "200 OK"));
    assert_string_equal(hear(second, "<end>"), "<end>");
    close(first);
    close(second);
    tear_down();
}

static void test_left_in_body(void **state)
{
    (void)state;
    set_up(patient);
    int client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nhello");
    shutdown(client, SHUT_WR);
    assert_string_equal(hear(client, "<end>"), "<end>");
    assert_int_equal(fake.run, 0);
    assert_int_equal(fake.ended, 1);
    close(client);
    tear_down();
}

static void test_guard(void **state)
{
    (void)state;
    set_up(patient);
    int client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\n"
                "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n");
    const char *heard = hear(client, "<end>");
    assert_int_equal(times(heard, "HTTP/1.1 "), 1);
    assert_non_null(strstr(heard, "HTTP/1.1 400 "));
    assert_non_null(strstr(heard, "Connection: close\r\n"));
    assert_null(strstr(heard, "<reset>"));
    assert_int_equal(fake.begun, 0);
    assert_int_equal(fake.refused, 1);
    assert_int_equal(fake.refusal, ERROR_MALFORMED);
    close(client);
    tear_down();
}

static void test_refusals(void **state)
{
    (void)state;
    set_up(patient);
    fake.manner = AT_BEGIN;
    int client = call();
    /* A short body is read, and the connection goes on. */
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    for (int i = 0; i < 20; i++)
        turn();
    say(client, "lohelloGET / HTTP/1.1\r\nHost: h\r\nX-Test: second\r\n\r\n");
    const char *heard = hear(client, "AAAAA");
    if (times(heard, "404") == 1)
        heard = hear(client, "AAAAA");
    assert_int_equal(fake.begun, 2);
    assert_string_equal(fake.header, "second");

    /* With Expect the answer comes before the body. */
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
    heard = hear(client, "<end>");
    assert_non_null(strstr(heard, "404"));
    assert_null(strstr(heard, "100 Continue"));
    close(client);

    /* A long body is answered at once, and read on for as long as the client sends. */
    client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n");
    for (int i = 0; i < 50; i++) {
        assert_int_equal(send(client, fake.body, 100000, MSG_NOSIGNAL), 100000);
        turn();
    }
    heard = hear(client, "<end>");
    assert_non_null(strstr(heard, "404"));
    assert_null(strstr(heard, "<reset>"));
    close(client);
    tear_down();
}

static void test_deadlines(void **state)
{
    struct http_limits limits = patient;
    (void)state;
    limits.header_timeout_ns = limits.body_timeout_ns = 50 * MS;
    limits.request_timeout_ns = 50 * MS;
    set_up(limits);

    int client = call();
    assert_string_equal(hear(client, "<end>"), "<end>"); /* nothing said */
    close(client);

    client = call();
    say(client, "GET / HTTP/1.1\r\nHost");
    assert_string_equal(hear(client, "<end>"), "<end>");
    close(client);

    client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    const char *heard = hear(client, "<end>");
    assert_non_null(strstr(heard, "HTTP/1.1 408 "));
    assert_non_null(strstr(heard, "Connection: close\r\n"));
    assert_non_null(strstr(heard, "AAAAA"));
    assert_int_equal(fake.expired_in_body, 1);
    close(client);

    fake.manner = AT_BEGIN; /* a refusal whose body never comes */
    client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    assert_non_null(strstr(hear(client, "<end>"), "HTTP/1.1 404 "));
    close(client);

    fake.manner = LATER;
    client = call();
    say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 504 "));
    assert_int_equal(fake.expired, 2);
    close(client);
    tear_down();
}

static void test_limit(void **state)
{
    int clients[9];
    (void)state;
    set_up(patient);
    for (int i = 0; i < 9; i++) {
        clients[i] = call();
        say(clients[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        const char *heard = hear(clients[i], i < 8 ? "AAAAA" : "<end>");
        assert_non_null(strstr(heard, i < 8 ? "200 OK" : "HTTP/1.1 503 "));
    }
    assert_int_equal(fake.refusal, ERROR_FULL);
    for (int i = 0; i < 9; i++)
        close(clients[i]);
    for (int i = 0; i < 100 && http_open(bed.http) > 0; i++)
        turn();
    assert_int_equal(http_open(bed.http), 0);
    tear_down();
}

static void test_drain(void **state)
{
    (void)state;
    set_up(patient);
    fake.manner = LATER;
    int idle = call(), busy = call();
    say(busy, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 1 || http_open(bed.http) < 2)
        turn();
    http_drain(bed.http);
    answer(fake.waiting, 200);
    const char *heard = hear(busy, "<end>");
    assert_non_null(strstr(heard, "200 OK"));
    assert_non_null(strstr(heard, "Connection: close\r\n"));

    /* An idle connection may still ask. */
    fake.manner = AT_RUN;
    say(idle, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    heard = hear(idle, "<end>");
    assert_non_null(strstr(heard, "200 OK"));
    assert_non_null(strstr(heard, "Connection: close\r\n"));

    /* So may one that was not accepted yet when listening ends. */
    int late = call();
    say(late, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    http_quiesce(bed.http);
    assert_non_null(strstr(hear(late, "<end>"), "200 OK"));
    close(idle);
    close(busy);
    close(late);
    tear_down();
}

/* The door goes while requests wait: their exchanges end. */
static void test_destroy(void **state)
{
    (void)state;
    set_up(patient);
    fake.manner = LATER;
    int waiting = call(), sending = call();
    say(waiting, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    say(sending, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    while (fake.begun < 2 || fake.run < 1)
        turn();
    tear_down();
    assert_int_equal(fake.ended, 2);
    close(waiting);
    close(sending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),   cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_later),     cmocka_unit_test(test_left_in_body),
        cmocka_unit_test(test_guard),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_deadlines), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_drain),     cmocka_unit_test(test_destroy),
    };
    answer_body = malloc(ANSWER_MAX);
    memset(answer_body, 'A', ANSWER_MAX);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    free(answer_body);
    return failures;
}
