/* tests/unit/server/test_put_off.c: who is taken for a client that comes again too soon, and when
 * such a client hears that it is refused.
 */
#include "tests/unit/server/http_bed.h"

#include <sys/resource.h>

/* ---- Clients ---- */

static void test_clients(void **state)
{
    (void)state;
    static struct put_off_clients clients;
    const uint32_t client = 0xfedcba98, alike = client ^ 0x80000000;
    /* The clock's lowest 32 bits in milliseconds begin anew in between. */
    const uint64_t now_ns = (UINT64_C(1) << 32) * CLOCK_MS - CLOCK_S / 2,
                   until_ns = now_ns + CLOCK_S;
    assert_int_equal(put_off_take(&clients, client, now_ns), 0);
    assert_int_equal(put_off_take(&clients, 0, now_ns), 0);
    put_off_owe(&clients, client, until_ns, now_ns);
    put_off_owe(&clients, client, until_ns, now_ns);
    assert_int_equal(put_off_take(&clients, client + 1, now_ns), 0);
    assert_int_equal(put_off_take(&clients, alike, now_ns), 0);
    assert_true(put_off_owes(&clients, client, now_ns));
    assert_false(put_off_owes(&clients, client, until_ns));
    assert_false(put_off_owes(&clients, client + 1, now_ns));
    assert_false(put_off_owes(&clients, alike, now_ns));
    assert_int_equal(put_off_take(&clients, client, now_ns), until_ns);
    assert_int_equal(put_off_take(&clients, client, until_ns - CLOCK_MS), until_ns);
    assert_int_equal(put_off_take(&clients, client, now_ns), 0); /* there were two */
    put_off_owe(&clients, client, until_ns, now_ns);
    assert_int_equal(put_off_take(&clients, client, until_ns), 0); /* its second is over */
    put_off_owe(&clients, client, until_ns + CLOCK_S, until_ns);   /* and does not count any more */
    assert_int_equal(put_off_take(&clients, client, until_ns), until_ns + CLOCK_S);
    assert_int_equal(put_off_take(&clients, client, until_ns), 0);
    /* One whose number ends alike takes the place. */
    put_off_owe(&clients, client, until_ns, now_ns);
    put_off_owe(&clients, alike, until_ns, now_ns);
    assert_int_equal(put_off_take(&clients, client, now_ns), 0);
    assert_int_equal(put_off_take(&clients, alike, now_ns), until_ns);
    for (int i = 0; i < 5000; i++)
        put_off_owe(&clients, client, until_ns, now_ns);
    int taken = 0;
    while (put_off_take(&clients, client, now_ns) != 0)
        taken++;
    assert_in_range(taken, 1, 4999);
}

/* Who did not come again then, and comes weeks later, is not taken for one that did. */
static void test_clients_of_long_ago(void **state)
{
    (void)state;
    static struct put_off_clients clients;
    const uint64_t day_ns = 86400 * CLOCK_S;
    put_off_owe(&clients, 7, day_ns + CLOCK_S, day_ns);
    for (uint64_t day = 2; day < 100; day++)
        assert_int_equal(put_off_take(&clients, 7, day * day_ns), 0);
}

/* Those who are refused within a moment come back at all times of a second. */
static void test_spread(void **state)
{
    (void)state;
    int tenths[10] = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t spread_ns = put_off_spread_ns(i % 100, UINT64_C(1) << 50 | i * 1000);
        assert_in_range(spread_ns, 0, PUT_OFF_NS - 1);
        tenths[spread_ns * 10 / PUT_OFF_NS]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], 60, 140);
}

/* ---- Connections ---- */

static const char request[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
static const char without_body[] = "POST / HTTP/1.1\r\nHost: h\r\n\r\n";
/* Of a body that does not come, and is not waited for. */
static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n";

static void begin(int status)
{
    set_up(generous);
    fake.manner = AT_BEGIN;
    fake.status_at_begin = status;
}

/* Hears a refusal; how long it took, in nanoseconds. */
static uint64_t refused(int client, const char *text, const char *status)
{
    uint64_t start_ns = clock_now_ns();
    say(client, text);
    const char *heard = "";
    for (int i = 0; i < 3 && strstr(heard, "AAAAA") == NULL; i++)
        heard = hear(client, "AAAAA");
    assert_non_null(strstr(heard, status));
    assert_int_equal(times(heard, "HTTP/1.1 "), 1);
    return clock_now_ns() - start_ns;
}

static bool at_once(uint64_t took_ns)
{
    return took_ns < 400 * CLOCK_MS;
}

static void test_kept_connection(void **state)
{
    (void)state;
    begin(503);
    int client = call(), other = call();
    assert_true(at_once(refused(client, request, "HTTP/1.1 503 ")));
    uint64_t start_ns = clock_now_ns();
    say(client, head);
    /* Another one of the same address hears of it at once meanwhile, and again when it has waited.
     */
    assert_true(at_once(refused(other, without_body, "HTTP/1.1 503 ")));
    assert_true(times(hear(client, "<end>"), "HTTP/1.1 503 ") == 1);
    assert_in_range(clock_now_ns() - start_ns, 900 * CLOCK_MS, 3 * CLOCK_S);
    for (uint64_t end_ns = clock_now_ns() + 1100 * CLOCK_MS; clock_now_ns() < end_ns;)
        turn();
    assert_int_equal(bed.connections, 1);
    assert_true(at_once(refused(other, without_body, "HTTP/1.1 503 ")));
    assert_false(at_once(refused(other, without_body, "HTTP/1.1 503 ")));
    close(client);
    close(other);
    tear_down();
}

static void test_new_connections(void **state)
{
    (void)state;
    begin(429);
    int clients[3] = {call(), call(), call()};
    assert_true(at_once(refused(clients[0], request, "HTTP/1.1 429 ")));
    close(clients[0]);
    for (int i = 0; i < 1000 && bed.connections > 2; i++)
        turn();
    /* One connection was closed, one is put off. */
    say(clients[1], head);
    turn();
    assert_true(at_once(refused(clients[2], request, "HTTP/1.1 429 ")));
    assert_int_equal(bed.connections, 2);
    assert_int_equal(times(hear(clients[1], "<end>"), "HTTP/1.1 429 "), 1);
    close(clients[1]);
    close(clients[2]);
    tear_down();
}

/* A newcomer comes in while those who are put off hold all connections; one of them hears early,
 * and is taken for one that comes too early when it comes again. */
static void test_giving_way(void **state)
{
    (void)state;
    int clients[8];
    char text[16];
    begin(503);
    for (int i = 0; i < 8; i++)
        clients[i] = call();
    for (int i = 0; i < 8; i++)
        assert_true(at_once(refused(clients[i], request, "HTTP/1.1 503 ")));
    for (int i = 0; i < 8; i++)
        say(clients[i], request);
    for (int i = 0; i < 20; i++)
        turn();
    fake.status_at_begin = 404;
    assert_int_equal(bed.connections, 8);
    assert_int_equal(bed.put_off_clients.waiting, 8);
    int newcomer = call();
    assert_true(at_once(refused(newcomer, request, "HTTP/1.1 404 ")));
    for (int i = 0; i < 200 && bed.connections > 8; i++)
        turn();
    assert_int_equal(bed.put_off_clients.waiting, 7);
    int heard = 0;
    for (int i = 0; i < 8; i++)
        heard += recv(clients[i], text, sizeof text, MSG_DONTWAIT) > 0;
    assert_int_equal(heard, 1);
    int again = call();
    assert_true(at_once(refused(again, request, "HTTP/1.1 503 ")));
    for (int i = 0; i < 8; i++)
        close(clients[i]);
    close(newcomer);
    close(again);
    tear_down();
    assert_int_equal(bed.put_off_clients.waiting, 0);
}

/* Who is refused at once, as no descriptor is left, does not add up seconds. */
static void test_without_descriptors(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    begin(503);
    int client = call();
    assert_true(at_once(refused(client, request, "HTTP/1.1 503 ")));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, limit.rlim_max}), 0);
    for (int i = 0; i < 5; i++)
        assert_true(at_once(refused(client, request, "HTTP/1.1 503 ")));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_in_range(refused(client, request, "HTTP/1.1 503 "), 900 * CLOCK_MS, 4 * CLOCK_S);
    close(client);
    tear_down();
}

/* What is asked for with another verb, what is refused for another reason, and what is answered, is
 * answered at once, and so is all that is put off when the service ends. */
static void test_others(void **state)
{
    (void)state;
    begin(503);
    int client = call();
    assert_true(at_once(refused(client, request, "HTTP/1.1 503 ")));
    assert_true(at_once(refused(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 503 ")));
    fake.status_at_begin = 404;
    assert_true(at_once(refused(client, request, "HTTP/1.1 404 ")));
    fake.status_at_begin = 503;
    say(client, request);
    for (int i = 0; i < 20; i++)
        turn();
    uint64_t start_ns = clock_now_ns();
    http_drain(bed.http);
    assert_non_null(strstr(hear(client, "AAAAA"), "HTTP/1.1 503 "));
    assert_true(at_once(clock_now_ns() - start_ns));
    close(client);
    tear_down();
}

/* A client that leaves while it is put off, and a door that ends before it is answered. */
static void test_ends(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        begin(503);
        int client = call();
        assert_true(at_once(refused(client, request, "HTTP/1.1 503 ")));
        say(client, head);
        for (int i = 0; i < 20; i++)
            turn();
        assert_int_equal(bed.connections, 1);
        if (leaves) {
            close(client);
            for (int i = 0; i < 3000 && bed.connections > 0; i++)
                turn();
            assert_int_equal(bed.connections, 0);
        }
        tear_down();
        if (!leaves)
            close(client);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_clients_of_long_ago),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_kept_connection),
        cmocka_unit_test(test_new_connections),
        cmocka_unit_test(test_without_descriptors),
        cmocka_unit_test(test_giving_way),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, make_answer_body, free_answer_body);
}
