/* tests/unit/server/test_http.c: the door itself: requests, answers, refusals, its end. */
#include "tests/unit/server/http_bed.h"

static void test_answers(void **state)
{
    (void)state;
    set_up(generous);
    int client = call();
    say(client, "POST /a%20c?x=1&y&z=%20+ HTTP/1.1\r\nHost: h\r\nX-Test: yes\r\n"
                "Content-Length: 5\r\n\r\nhello");
    const char *heard = hear(client, "AAAAA");
    assert_non_null(strstr(heard, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(heard, "Content-Length: 5\r\n"));
    assert_string_equal(fake.path, "/a c");
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
        set_up(generous);
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
    set_up(generous);
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

    /* A third leaves: its exchange ends when that shows. */
    struct exchange *half = fake.waiting;
    int third = call();
    say(third, "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 3)
        turn();
    close(third);
    while (fake.ended < 1)
        turn();
    assert_int_equal(http_busy(bed.http), 2);
    assert_int_equal(counted(METRIC_CANCELLED, "client_left", NULL), 1);

    /* The second closes its sending side alone, and is answered as the first is. */
    shutdown(second, SHUT_WR);
    turn();
    answer(half, 200);
    answer(waiting, 200);
    assert_true(http_stirred(bed.http));
    assert_non_null(strstr(hear(second, "AAAAA"), "200 OK"));
    assert_non_null(strstr(hear(first, "AAAAA"), "200 OK"));
    assert_string_equal(hear(second, "<end>"), "<end>");
    close(first);
    close(second);
    tear_down();
}

static void test_left_in_body(void **state)
{
    (void)state;
    set_up(generous);
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
    set_up(generous);
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
    set_up(generous);
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
    struct http_limits limits = generous;
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
    set_up(generous);
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
    set_up(generous);
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
    http_quiesce(bed.http, UINT64_C(2000000000));
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
    set_up(generous);
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
    return cmocka_run_group_tests(tests, make_answer_body, free_answer_body);
}
