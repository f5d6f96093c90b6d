/* tests/unit/server/test_http_limits.c: what the door does about bodies that no one wants, clients
 * that leave or do not read, deadlines that move, and what the library refuses by itself.
 */
#include "tests/unit/server/http_bed.h"

/* What the library refuses by itself is counted, once it has read a request line. */
static void test_library_refusals(void **state)
{
    static char big[100000];
    static const struct {
        const char *start, *end, *answer;
        const char *status, *reason; /* NULL: not counted */
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nX: ", "\r\n\r\n", "HTTP/1.1 431 ", "431",
         "headers-too-large"},
        {"GET / HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n", NULL, "HTTP/1.1 400 ", "400",
         "malformed-request"},
        {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5x\r\n\r\nhello", NULL, "HTTP/1.1 400 ",
         "400", "malformed-request"},
        {"GET /", " HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 414 ", NULL, NULL},
        {"GET / HTTP/3.0\r\nHost: h\r\n\r\n", NULL, "HTTP/1.1 505 ", NULL, NULL},
    };
    (void)state;
    memset(big, 'a', sizeof big - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(generous);
        int client = call();
        say(client, rows[i].start);
        if (rows[i].end != NULL) {
            say(client, big);
            say(client, rows[i].end);
        }
        const char *heard = hear(client, "<end>");
        assert_non_null(strstr(heard, rows[i].answer));
        assert_int_equal(times(heard, "HTTP/1.1 "), 1);
        for (int k = 0; k < 100 && http_open(bed.http) > 0; k++)
            turn();
        assert_int_equal(counted(METRIC_CANCELLED, "client_left", NULL), 0);
        if (rows[i].status != NULL) {
            assert_int_equal(counted(METRIC_REQUESTS, "other", rows[i].status), 1);
            assert_int_equal(counted(METRIC_REJECTED, rows[i].reason, NULL), 1);
        }
        close(client);
        tear_down();
    }
}

/* A body that no handler wants: read if it is short, and soon there; refused if it is long. */
static void test_unwanted_body(void **state)
{
    static const struct {
        const char *length, *status;
    } rows[] = {
        {"1048577", "413"}, {"1000000000000", "413"}, {"999999999999999999", "413"}, {"5", "200"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(generous);
        fake.without_sink = true;
        int client = call();
        char text[128], answer[32];
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: %s\r\n\r\nhello",
                 rows[i].length);
        snprintf(answer, sizeof answer, "HTTP/1.1 %s ", rows[i].status);
        say(client, text);
        assert_non_null(strstr(hear(client, "AAAAA"), answer));
        assert_int_equal(fake.refused, rows[i].status[0] == '4');
        close(client);
        tear_down();
    }
    struct http_limits limits = generous;
    limits.body_timeout_ns = 50 * MS; /* 1 MiB has no second of its own */
    set_up(limits);
    fake.without_sink = true;
    int client = call();
    say(client, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\nhello");
    uint64_t start_ns = clock_now_ns();
    assert_non_null(strstr(hear(client, "<end>"), "HTTP/1.1 408 "));
    assert_true(clock_now_ns() - start_ns < 500 * CLOCK_MS);
    close(client);
    tear_down();
}

/* Handlers move the deadline of a request that waits already. */
static void test_deadline_moved(void **state)
{
    (void)state;
    set_up(generous);
    fake.manner = LATER;
    int client = call();
    say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 1)
        turn();
    turn();
    fake.waiting->deadline_ns = clock_now_ns() + 20 * CLOCK_MS;
    fake.waiting->door->deadline_moved(fake.waiting);
    uint64_t start_ns = clock_now_ns();
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 504 "));
    assert_true(clock_now_ns() - start_ns < 500 * CLOCK_MS);
    close(client);
    tear_down();
}

static void test_server_options(void **state)
{
    (void)state;
    set_up(generous);
    int client = call();
    say(client, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    const char *heard = hear(client, "\r\n\r\n");
    assert_non_null(strstr(heard, "HTTP/1.1 204 "));
    assert_non_null(strstr(heard, "Allow: GET, HEAD, POST, OPTIONS\r\n"));
    assert_int_equal(fake.begun, 0);
    assert_int_equal(fake.ended, 1);
    fake.ended = 0; /* no handler had begun it */
    close(client);
    tear_down();
}

static void test_expectation(void **state)
{
    (void)state;
    set_up(generous);
    int client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: a-cake\r\n\r\n");
    assert_non_null(strstr(hear(client, "<end>"), "HTTP/1.1 417 "));
    assert_int_equal(fake.refusal, ERROR_EXPECTATION_FAILED);
    close(client);
    tear_down();
}

/* Who left unanswered is counted; who is shut out is not. */
static void test_client_left_is_counted(void **state)
{
    (void)state;
    set_up(generous);
    fake.manner = LATER;
    int client = call();
    say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 1)
        turn();
    close(client);
    while (fake.ended < 1)
        turn();
    client = call();
    say(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    while (fake.begun < 2)
        turn();
    close(client);
    while (fake.ended < 2)
        turn();
    assert_int_equal(counted(METRIC_CANCELLED, "client_left", NULL), 2);
    int waiting = call(), sending = call();
    say(waiting, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    say(sending, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    while (fake.begun < 4 || fake.run < 2)
        turn();
    http_destroy(&bed.http);
    assert_int_equal(fake.ended, 4);
    assert_int_equal(counted(METRIC_CANCELLED, "client_left", NULL), 2);
    close(waiting);
    close(sending);
    tear_down();
}

/* What the end of the service waits for, and what it does not. */
static void test_owed(void **state)
{
    (void)state;
    set_up(generous);
    fake.manner = LATER;
    int idle = call(), sending = call(), waiting = call(), unread = call();
    say(sending, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel");
    say(waiting, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.begun < 2 || fake.run < 1 || http_open(bed.http) < 4)
        turn();
    struct exchange *held = fake.waiting;
    fake.manner = AT_RUN;
    fake.answer_bytes = ANSWER_MAX; /* more than the sockets take */
    int few = 4096;
    setsockopt(unread, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    say(unread, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (fake.run < 2)
        turn();
    assert_int_equal(http_busy(bed.http), 3);
    assert_int_equal(http_held(bed.http), 1);
    assert_int_equal(http_arriving(bed.http), 1);

    http_quiesce(bed.http, 100 * CLOCK_MS);
    fake.answer_bytes = 0;
    uint64_t start_ns = clock_now_ns();
    assert_non_null(strstr(hear(sending, "<end>"), "HTTP/1.1 408 "));
    while (http_busy(bed.http) > 1 && clock_now_ns() - start_ns < 5 * CLOCK_S)
        turn();
    assert_true(clock_now_ns() - start_ns < 4 * CLOCK_S);
    assert_int_equal(http_busy(bed.http), 1);
    assert_int_equal(http_held(bed.http), 1);
    assert_int_equal(http_arriving(bed.http), 0);
    answer(held, 200);
    assert_non_null(strstr(hear(waiting, "AAAAA"), "200 OK"));
    assert_int_equal(http_held(bed.http), 0);
    close(idle);
    close(sending);
    close(waiting);
    close(unread);
    tear_down();
}

/* A client that does not read its answer is cut off. */
static void test_send_timeout(void **state)
{
    struct http_limits limits = generous;
    (void)state;
    limits.send_timeout_ns = 50 * MS;
    set_up(limits);
    fake.segments = 1;
    fake.answer_bytes = 1 << 20;
    int client = socket(AF_INET, SOCK_STREAM, 0), few = 4096;
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    connect_to_bed(client);
    for (int i = 0; i < 8; i++)
        say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    uint64_t start_ns = clock_now_ns();
    for (bool begun = false; !begun || http_open(bed.http) > 0; begun |= http_open(bed.http) > 0) {
        turn();
        assert_true(clock_now_ns() - start_ns < 4 * CLOCK_S);
    }
    close(client);
    tear_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_refusals),
        cmocka_unit_test(test_unwanted_body),
        cmocka_unit_test(test_deadline_moved),
        cmocka_unit_test(test_server_options),
        cmocka_unit_test(test_expectation),
        cmocka_unit_test(test_client_left_is_counted),
        cmocka_unit_test(test_owed),
        cmocka_unit_test(test_send_timeout),
    };
    return cmocka_run_group_tests(tests, make_answer_body, free_answer_body);
}
