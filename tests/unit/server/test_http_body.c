/* How bodies arrive at the door: in steps, with pauses, at their pace. */
#include "tests/unit/server/http_bed.h"

#define POST "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: "

static void turns(int64_t ns)
{
    for (uint64_t end_ns = clock_now_ns() + (uint64_t)ns; clock_now_ns() < end_ns;)
        turn();
}

/* The sink grows as pieces come, and all of them are in it. */
static void test_in_steps(void **state)
{
    (void)state;
    static char text[100000];
    set_up(generous);
    fake.in_steps = true;
    int client = call();
    say(client, POST "100000\r\n\r\n");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    for (size_t at = 0; at < sizeof text; at += 20000) {
        assert_int_equal(send(client, text + at, 20000, MSG_NOSIGNAL), 20000);
        turns(2 * MS);
    }
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 200 "));
    assert_int_equal(fake.body_bytes, sizeof text);
    assert_memory_equal(fake.body, text, sizeof text);
    close(client);
    tear_down();
}

/* Nothing is read while there is no memory, and that time is not the client's. */
static void test_pause(void **state)
{
    (void)state;
    struct http_limits limits = generous;
    limits.body_timeout_ns = 60 * MS;
    limits.body_rate_min = 1;
    set_up(limits);
    fake.in_steps = fake.is_full = true;
    int client = call();
    say(client, POST "10\r\n\r\n01234");
    turns(100 * MS);
    assert_ptr_equal(fake.waiting, fake.last_begun);
    assert_int_equal(fake.asked_bytes, 5);
    assert_int_equal(fake.expired, 0);
    fake.is_full = false;
    fake.waiting->sink_bytes = 5;
    fake.waiting->door->room_made(fake.waiting);
    turns(2 * MS);
    say(client, "56789");
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 200 "));
    assert_memory_equal(fake.body, "0123456789", 10);
    /* The next on the same connection has its whole time. */
    say(client, POST "5\r\n\r\nabcde");
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 200 "));
    assert_memory_equal(fake.body, "abcde", 5);
    close(client);
    tear_down();
}

/* The wait ends with an answer, whether the client reads it or has gone; or with the door. */
static void test_end_of_a_pause(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct http_limits limits = generous;
        limits.request_timeout_ns = 50 * MS;
        set_up(limits);
        fake.in_steps = fake.is_full = true;
        int client = call();
        say(client, POST "10\r\n\r\n01234");
        turns(5 * MS);
        assert_non_null(fake.waiting);
        if (i == 0)
            assert_non_null(strstr(hear(client, "<end>"), "HTTP/1.1 503 "));
        close(client);
        if (i < 2)
            turns(80 * MS);
        assert_int_equal(fake.expired_in_pause, i < 2);
        tear_down();
    }
}

/* A client that has sent all and closed its side is answered after the pause. */
static void test_half_closed_in_a_pause(void **state)
{
    (void)state;
    set_up(generous);
    fake.in_steps = fake.is_full = true;
    int client = call();
    say(client, POST "5\r\n\r\n01234");
    shutdown(client, SHUT_WR);
    turns(50 * MS);
    assert_non_null(fake.waiting);
    fake.is_full = false;
    fake.waiting->sink_bytes = 5;
    fake.waiting->door->room_made(fake.waiting);
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 200 "));
    close(client);
    tear_down();
}

/* A client that sends ten bytes of a body, with a least rate of a MiB a second. */
static int call_and_crawl(void)
{
    struct http_limits limits = generous;
    limits.body_timeout_ns = 600000 * MS;
    limits.body_rate_min = 1 << 20;
    set_up(limits);
    int client = call();
    say(client, POST "100000\r\n\r\n0123456789");
    turns(20 * MS);
    return client;
}

/* Bytes buy time, ten seconds at most. */
static void test_least_rate(void **state)
{
    (void)state;
    int client = call_and_crawl();
    uint64_t start_ns = clock_now_ns();
    const char *heard = "";
    while (*heard == '\0' && clock_now_ns() < start_ns + 12 * CLOCK_S)
        heard = hear(client, "<end>");
    uint64_t took_ns = clock_now_ns() - start_ns;
    assert_non_null(strstr(heard, "HTTP/1.1 408 "));
    assert_true(took_ns > 9 * CLOCK_S && took_ns < 11 * CLOCK_S);
    close(client);
    tear_down();
}

/* A least rate that is set, or lifted, while a body comes holds from its next byte on. */
static void test_rate_changes(void **state)
{
    (void)state;
    struct http_limits limits = generous;
    limits.body_timeout_ns = 600000 * MS;
    set_up(limits);
    int client = call();
    say(client, POST "100\r\n\r\n0123456789");
    turns(20 * MS);
    limits.body_rate_min = 4096;
    http_set_limits(bed.http, &limits);
    say(client, "0123456789");
    turns(50 * MS);
    assert_int_equal(fake.expired, 0);
    limits.body_rate_min = 0;
    http_set_limits(bed.http, &limits);
    say(client, "0");
    turns(20 * MS);
    usleep(10100000); /* longer than a rate would allow */
    turns(20 * MS);
    assert_int_equal(fake.expired, 0);
    close(client);
    tear_down();
}

/* A byte that comes when the time is over, and before the door has seen that, buys nothing. */
static void test_late_byte(void **state)
{
    (void)state;
    int client = call_and_crawl();
    usleep(10100000);
    say(client, "0");
    (void)http_drive(bed.http); /* the byte first, then the tick */
    turns(20 * MS);
    assert_int_equal(fake.expired_in_body, 1);
    close(client);
    tear_down();
}

/* Others wait for memory: who holds some and crawls is ended, who keeps its pace is not. */
static void test_crawling(void **state)
{
    (void)state;
    struct http_limits limits = generous;
    limits.body_timeout_ns = 20000 * MS;
    set_up(limits);
    int crawling = call(), steady = call();
    say(crawling, POST "100000\r\n\r\n0123456789");
    say(steady, POST "100000\r\n\r\n");
    static char half[50000];
    memset(half, 'x', sizeof half);
    assert_int_equal(send(steady, half, sizeof half, MSG_NOSIGNAL), sizeof half);
    turns(2300 * MS);
    assert_int_equal(fake.expired, 0); /* none waits */
    bed.short_since_ns = clock_now_ns();
    turns(1200 * MS);
    assert_int_equal(fake.expired_in_body, 1);
    assert_non_null(strstr(hear(crawling, "<end>"), "HTTP/1.1 408 "));
    assert_int_equal(send(steady, half, sizeof half, MSG_NOSIGNAL), sizeof half);
    assert_non_null(strstr(hear(steady, "AAAAA"), "HTTP/1.1 200 "));
    close(crawling);
    close(steady);
    tear_down();
}

/* The same of a client that does not take its answer. */
static void test_crawling_reader(void **state)
{
    (void)state;
    set_up(generous);
    fake.answer_bytes = 6 << 20; /* more than the sockets take */
    int small = 4096, client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    connect_to_bed(client);
    say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    turns(100 * MS);
    bed.short_since_ns = clock_now_ns() - 2 * CLOCK_S;
    turns(7000 * MS);
    assert_int_equal(fake.released, 0); /* a second a MiB, and two */
    turns(1500 * MS);
    assert_int_equal(fake.released, 1);
    close(client);
    tear_down();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_steps),       cmocka_unit_test(test_pause),
        cmocka_unit_test(test_end_of_a_pause), cmocka_unit_test(test_half_closed_in_a_pause),
        cmocka_unit_test(test_least_rate),     cmocka_unit_test(test_late_byte),
        cmocka_unit_test(test_crawling),       cmocka_unit_test(test_crawling_reader),
        cmocka_unit_test(test_rate_changes),
    };
    return cmocka_run_group_tests(tests, make_answer_body, free_answer_body);
}
