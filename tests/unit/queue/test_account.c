/* tests/unit/queue/test_account.c: quotas of clients that have a name, by a clock of the test's;
 * what they are charged, and what is shown of them. */
#include "queue/queue_private.h"
#include "tests/unit/queue/bed.h"

#include <stdio.h>

#define YEAR (UINT64_C(31536000) * CLOCK_S)

struct site {
    struct bench bench;
    struct queue_account *account;
    uint64_t start_ns, now_ns; /* the test moves the latter on */
    struct failure failure;    /* of the last refusal */
};

static struct site open_site(struct client_limits client)
{
    struct queue_limits wide = limits;
    wide.requests_max = 1 << 20;
    wide.client_requests_max = 0;
    wide.bytes_max = 1 << 30;
    struct site site = {.bench = bench_open(&wide)};
    site.account = queue_account_by_token(site.bench.queue, "lab", &client);
    site.start_ns = site.now_ns = clock_now_ns();
    assert_non_null(site.account);
    return site;
}

static void close_site(struct site *site)
{
    bench_close(&site->bench);
}

static enum error come(struct site *site, struct queue_reservation *reservation, int64_t need_bytes,
                       int64_t sure_bytes)
{
    static uint32_t address; /* a new one each time */
    *reservation = (struct queue_reservation){.client = ++address,
                                              .account = site->account,
                                              .arrived_ns = site->now_ns,
                                              .need_bytes = need_bytes,
                                              .sure_bytes = sure_bytes};
    return queue_enter(site->bench.queue, reservation, &site->failure);
}

static void go(struct site *site, struct queue_reservation *reservation)
{
    queue_leave(site->bench.queue, reservation);
}

/* Comes and goes at once; the quota of requests is not touched. */
static enum error pass(struct site *site)
{
    struct queue_reservation reservation;
    enum error error = come(site, &reservation, 0, 0);
    if (error == ERROR_NONE)
        go(site, &reservation);
    return error;
}

static void assert_says(const struct site *site, const char *words)
{
    if (strstr(site->failure.detail, words) == NULL)
        print_error("\"%s\" lacks \"%s\"\n", site->failure.detail, words);
    assert_non_null(strstr(site->failure.detail, words));
}

struct search {
    const char *name;
    struct queue_account_use use;
};

static void keep_use(void *context, const struct queue_account_use *use)
{
    struct search *search = context;
    if (strcmp(use->name, search->name) == 0)
        search->use = *use;
}

static struct queue_account_use use_of(struct site *site, const char *name)
{
    struct search search = {.name = name};
    queue_accounts_each(site->bench.queue, keep_use, &search);
    assert_non_null(search.use.name);
    return search.use;
}

/* ---- Quotas ---- */

/* By name, from whatever address; an address of its own has other limits. */
static void test_requests(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.requests = 2});
    struct queue_reservation a, b, c, stranger = {.client = 1};
    assert_int_equal(come(&site, &a, 0, 0), ERROR_NONE);
    assert_int_equal(come(&site, &b, 0, 0), ERROR_NONE);
    assert_int_equal(a.client, b.client);
    assert_int_equal(come(&site, &c, 0, 0), ERROR_CLIENT_QUOTA);
    assert_says(&site, "requests=2, and 2 are under way");
    assert_int_equal(site.failure.retry_after_s, 0); /* no one knows */
    assert_int_equal(queue_enter(site.bench.queue, &stranger, NULL), ERROR_NONE);
    assert_int_equal(use_of(&site, "lab").requests, 2);
    go(&site, &a);
    assert_int_equal(come(&site, &c, 0, 0), ERROR_NONE);
    go(&site, &b);
    go(&site, &c);
    queue_leave(site.bench.queue, &stranger);
    assert_int_equal(use_of(&site, "lab").requests, 0);
    close_site(&site);
}

/* The general limit holds for those whose token names none. */
static void test_requests_by_default(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){0});
    struct queue_limits changed = limits;
    changed.client_requests_max = 1;
    queue_set_limits(site.bench.queue, &changed);
    struct queue_reservation a, b;
    assert_int_equal(come(&site, &a, 0, 0), ERROR_NONE);
    assert_int_equal(come(&site, &b, 0, 0), ERROR_CLIENT_QUOTA);
    queue_account_by_token(site.bench.queue, "lab", &(struct client_limits){.requests = 2});
    assert_int_equal(come(&site, &b, 0, 0), ERROR_NONE);
    go(&site, &a);
    go(&site, &b);
    close_site(&site);
}

static void test_rate(void **state)
{
    (void)state;
    static const int64_t rates[] = {1, 3, 10, 1000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct site site = open_site((struct client_limits){.rate = rates[i]});
        for (int64_t k = 0; k < rates[i]; k++)
            assert_int_equal(pass(&site), ERROR_NONE);
        for (int k = 0; k < 100; k++) /* which take nothing */
            assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
        assert_int_equal(site.failure.retry_after_s, 1);
        assert_says(&site, "came within the last second");
        site.now_ns += CLOCK_S / (uint64_t)rates[i]; /* one has leaked out */
        assert_int_equal(pass(&site), ERROR_NONE);
        assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
        site.now_ns += 3600 * CLOCK_S; /* no more than a second's worth is saved */
        for (int64_t k = 0; k < rates[i]; k++)
            assert_int_equal(pass(&site), ERROR_NONE);
        assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
        close_site(&site);
    }
}

/* Over ten minutes, at ten times the rate and at uneven moments: the rate, and one second's worth.
 */
static void test_rate_in_the_long_run(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.rate = 7});
    int64_t passed = 0;
    srand(1);
    while (site.now_ns < site.start_ns + 600 * CLOCK_S) {
        passed += pass(&site) == ERROR_NONE;
        site.now_ns += (uint64_t)(rand() % 29) * CLOCK_MS;
    }
    assert_in_range(passed, 600 * 7 + 6, 600 * 7 + 7);
    close_site(&site);
}

/* Threads read the clock each for itself: a request may be older than the one before. */
static void test_rate_out_of_order(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.rate = 10});
    int passed = 0;
    for (int i = 0; i < 40; i++) {
        site.now_ns = site.start_ns + (i % 2 == 0 ? CLOCK_MS : 0);
        passed += pass(&site) == ERROR_NONE;
    }
    assert_int_equal(passed, 10);
    close_site(&site);
}

static void test_bytes(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.bytes = 1000});
    struct queue_reservation a, b, c;
    assert_int_equal(come(&site, &a, 2000, 1001), ERROR_TOO_LARGE);
    assert_says(&site, "needs at least 1001 bytes");
    assert_int_equal(come(&site, &a, 600, 500), ERROR_NONE);
    assert_int_equal(come(&site, &b, 500, 500), ERROR_CLIENT_QUOTA);
    assert_says(&site, "bytes=1000, of which its requests under way need 600 and this one 500");
    assert_int_equal(come(&site, &b, 400, 400), ERROR_NONE);
    assert_int_equal(use_of(&site, "lab").bytes, 1000);
    assert_int_equal(come(&site, &c, 0, 0), ERROR_NONE); /* which needs nothing */
    go(&site, &a);
    go(&site, &b);
    go(&site, &c);

    assert_int_equal(come(&site, &a, 5000, 300), ERROR_NONE); /* a guess claims all at most */
    assert_int_equal(a.need_bytes, 1000);
    assert_int_equal(come(&site, &b, 1, 1), ERROR_CLIENT_QUOTA);
    go(&site, &a);
    assert_int_equal(use_of(&site, "lab").bytes, 0);
    close_site(&site);
}

/* A request that turns out to need more than it was let in with. */
static void test_bytes_grow(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.bytes = 1000});
    struct queue *queue = site.bench.queue;
    struct queue_reservation a, b;
    assert_int_equal(come(&site, &a, 600, 600), ERROR_NONE); /* and it has them */
    assert_int_equal(come(&site, &b, 300, 300), ERROR_NONE);
    assert_int_equal(queue_reserve(queue, &a, 100, &site.failure), ERROR_NONE);
    assert_int_equal(use_of(&site, "lab").bytes, 1000);
    assert_int_equal(queue_reserve(queue, &a, 1, &site.failure), ERROR_CLIENT_QUOTA);
    assert_int_equal(queue_reserve(queue, &a, 301, &site.failure), ERROR_TOO_LARGE);
    queue_unreserve(queue, &a, 50);
    assert_int_equal(queue_reserve(queue, &b, 50, &site.failure), ERROR_NONE);
    go(&site, &b);
    assert_int_equal(queue_reserve(queue, &a, 350, &site.failure), ERROR_NONE);
    go(&site, &a);
    assert_int_equal(use_of(&site, "lab").bytes, 0);
    close_site(&site);
}

/* ---- Device time ---- */

static void charge(struct site *site, double device_s)
{
    queue__quota_charge(site->account, site->now_ns, device_s * (double)CLOCK_S);
}

static void test_device(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.device_ns = CLOCK_S / 2});
    charge(&site, 0.5); /* one second's worth */
    assert_int_equal(pass(&site), ERROR_NONE);
    charge(&site, 2.05); /* which takes 4.1 s */
    assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
    assert_int_equal(site.failure.retry_after_s, 5);
    assert_says(&site, "device=0.5s a second, and it has used 2.55 s");
    site.now_ns += 4 * CLOCK_S;
    assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
    assert_int_equal(site.failure.retry_after_s, 1);
    site.now_ns += CLOCK_S;
    assert_int_equal(pass(&site), ERROR_NONE);
    site.now_ns += 3600 * CLOCK_S;
    charge(&site, 0.51);
    assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
    close_site(&site);
}

/* A device's time of years, against a quota of microseconds: refused for long, and no overflow. */
static void test_device_overflow(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.device_ns = 1000});
    for (int i = 0; i < 100; i++)
        charge(&site, 1e9);
    assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
    assert_true(site.failure.retry_after_s > 1000000000);
    site.now_ns += 100 * YEAR;
    assert_int_equal(pass(&site), ERROR_CLIENT_QUOTA);
    site.now_ns += 50 * YEAR;
    assert_int_equal(pass(&site), ERROR_NONE);
    close_site(&site);
}

/* Each client pays for its part of a batch, by matrices; those without an account pay nothing. */
static void test_batches_are_charged(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.device_ns = CLOCK_S});
    struct bench *bench = &site.bench;
    struct client_limits other = {.device_ns = CLOCK_S};
    struct queue_account *accounts[4] = {
        site.account, queue_account_by_token(bench->queue, "other-lab", &other), NULL, NULL};
    static const int64_t batches[4] = {10, 20, 30, 40};
    for (int i = 0; i < 4; i++) {
        bench->orders[i].item.account = accounts[i];
        submit(bench, i, 8, batches[i]);
    }
    queue_flush(bench->queue);
    struct engine_batch *batch = start(bench->shared, ENGINE_LANE_SHORT);
    assert_int_equal(batch->matrices, 100);
    finish(batch, ENGINE_OK);
    bench->lane->rings[ENGINE_LANE_SHORT].slots[0].submitted_ns -= CLOCK_S;
    batch->finished_ns = batch->started_ns;
    batch->started_ns -= CLOCK_S;
    queue_reap(bench->queue);
    assert_int_equal(metric_value(accounts[0]->series.device), CLOCK_S / 10);
    assert_int_equal(metric_value(accounts[1]->series.device), CLOCK_S / 5);
    int64_t used_ns = use_of(&site, "other-lab").device_ns;
    assert_in_range(used_ns, CLOCK_S / 10, CLOCK_S / 5); /* it leaks meanwhile */
    close_site(&site);
}

/* A batch that its client left costs what it took; what an engine says is believed within reason.
 */
static void test_stopped_batches_are_charged(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){.device_ns = CLOCK_S});
    struct bench *bench = &site.bench;
    bench->orders[0].item.account = site.account;
    submit(bench, 0, 8, 1);
    queue_flush(bench->queue);
    struct engine_batch *batch = start(bench->shared, ENGINE_LANE_SHORT);
    queue_cancel(bench->queue, &bench->orders[0].item);
    finish(batch, ENGINE_STOPPED);
    batch->started_ns = 0; /* longer than it has had it, at both ends */
    batch->finished_ns = UINT64_MAX;
    queue_reap(bench->queue);
    assert_int_equal(bench->orders[0].done, 1);
    uint64_t charged_ns = metric_value(site.account->series.device);
    assert_in_range(charged_ns, 1, clock_now_ns() - site.start_ns);
    close_site(&site);
}

/* ---- Names ---- */

/* What was used stays, in the unit of the quota. */
static void test_limits_change(void **state)
{
    (void)state;
    struct client_limits changed = {
        .requests = 3, .rate = 20, .bytes = 2000, .device_ns = 2 * (int64_t)CLOCK_S};
    struct site site = open_site((struct client_limits){
        .requests = 1, .rate = 10, .bytes = 1000, .device_ns = (int64_t)CLOCK_S});
    struct queue_reservation a, b;
    site.now_ns = clock_now_ns();
    assert_int_equal(come(&site, &a, 900, 900), ERROR_NONE);
    queue__bucket_change(&site.account->rate, site.now_ns, 1, 0.8 * (double)CLOCK_S);
    charge(&site, 5);
    assert_int_equal(come(&site, &b, 0, 0), ERROR_CLIENT_QUOTA);
    assert_ptr_equal(queue_account_by_token(site.bench.queue, "lab", &changed), site.account);
    struct queue_account_use use = use_of(&site, "lab");
    assert_int_equal(use.requests, 1);
    assert_int_equal(use.bytes, 900);
    assert_in_range(use.rate, 7, 9); /* of 9, some milliseconds ago */
    assert_in_range(use.device_ns, 4.5 * (double)CLOCK_S, 5 * (double)CLOCK_S);
    assert_int_equal(use.limits.rate, 20);
    site.now_ns = clock_now_ns();
    assert_int_equal(come(&site, &b, 0, 0), ERROR_CLIENT_QUOTA); /* 5 s used, 2 s a second */
    assert_int_equal(site.failure.retry_after_s, 2);

    changed = (struct client_limits){0};
    queue_account_by_token(site.bench.queue, "lab", &changed);
    assert_int_equal(come(&site, &b, 1 << 20, 1 << 20), ERROR_NONE);
    go(&site, &a);
    go(&site, &b);
    changed.rate = 1; /* nothing is kept from when there was no quota */
    changed.device_ns = 1000;
    queue_account_by_token(site.bench.queue, "lab", &changed);
    assert_int_equal(pass(&site), ERROR_NONE);
    close_site(&site);
}

/* Turns between named clients and others: each is one client, whatever its addresses. */
static void test_one_client(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){0});
    struct queue_reservation a, b;
    struct queue_account *other =
        queue_account_by_certificate(site.bench.queue, "a name by a certificate");
    assert_ptr_equal(queue_account_by_certificate(site.bench.queue, "a name by a certificate"),
                     other);
    assert_int_equal(come(&site, &a, 100, 100), ERROR_NONE);
    site.account = other;
    assert_int_equal(come(&site, &b, 100, 100), ERROR_NONE);
    assert_int_not_equal(a.client, b.client);
    assert_ptr_not_equal(a.entry, b.entry);
    go(&site, &a);
    go(&site, &b);
    close_site(&site);
}

/* Certificates may name any number of clients: those past the limit share an account, and are known
 * by their addresses. Tokens have quotas whatever their number. */
static void test_names_are_bounded(void **state)
{
    (void)state;
    struct site site = open_site((struct client_limits){0});
    struct queue *queue = site.bench.queue;
    struct queue_account *shared = NULL;
    for (int i = 0; i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "certificate %d", i);
        shared = queue_account_by_certificate(queue, name);
        assert_non_null(shared);
    }
    assert_true(shared->is_shared);
    struct queue_account *late =
        queue_account_by_token(queue, "late", &(struct client_limits){.requests = 1});
    assert_false(late->is_shared);
    assert_ptr_equal(late->series.inversions, shared->series.inversions); /* "other" */

    struct queue_reservation a, b;
    site.account = shared;
    assert_int_equal(come(&site, &a, 0, 0), ERROR_NONE);
    assert_int_equal(come(&site, &b, 0, 0), ERROR_NONE);
    assert_int_not_equal(a.client, b.client);
    go(&site, &a);
    go(&site, &b);

    struct text page;
    text_init(&page, 16 << 20);
    queue_account_answered(late, 200, 3, 4);
    queue_account_answered(shared, 200, 30, 40);
    queue_accounts_show(queue);
    metric_render(site.bench.metrics, &page);
    assert_false(page.failed);
    int rows = 0;
    for (const char *at = page.data;
         (at = strstr(at, "\ninvertd_client_inversions_total{")) != NULL; at++)
        rows++;
    assert_int_equal(rows, QUEUE_ACCOUNTS_SHOWN + 1);
    assert_non_null(
        strstr(page.data, "\ninvertd_client_bytes_total{client=\"other\",direction=\"in\"} 33\n"));
    assert_null(strstr(page.data, "invertd_client_quota{client=\"other\""));
    text_free(&page);
    close_site(&site);
}

static void test_metrics(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "invertd_client_requests_total{client=\"a\\\\b\\\"\",code=\"2xx\"} 1",
        "invertd_client_requests_total{client=\"a\\\\b\\\"\",code=\"4xx\"} 2",
        "invertd_client_requests_total{client=\"a\\\\b\\\"\",code=\"5xx\"} 0",
        "invertd_client_inversions_total{client=\"a\\\\b\\\"\"} 7",
        "invertd_client_bytes_total{client=\"a\\\\b\\\"\",direction=\"in\"} 111",
        "invertd_client_bytes_total{client=\"a\\\\b\\\"\",direction=\"out\"} 222",
        "invertd_client_quota{client=\"lab\",quota=\"requests\"} 5",
        "invertd_client_quota{client=\"lab\",quota=\"rate\"} 6",
        "invertd_client_quota{client=\"lab\",quota=\"bytes\"} 1125899906842624",
        "invertd_client_quota{client=\"lab\",quota=\"device\"} 0.25",
        "invertd_client_quota_used{client=\"lab\",quota=\"requests\"} 1",
        "invertd_client_quota_used{client=\"lab\",quota=\"bytes\"} 10",
        "invertd_client_quota{client=\"a\\\\b\\\"\",quota=\"rate\"} 0",
    };
    struct site site = open_site((struct client_limits){
        .requests = 5, .rate = 6, .bytes = INT64_C(1) << 50, .device_ns = CLOCK_S / 4});
    struct queue_account *odd = queue_account_by_certificate(site.bench.queue, "a\\b\"");
    queue_account_answered(odd, 200, 100, 200);
    queue_account_answered(odd, 429, 10, 20);
    queue_account_answered(odd, 413, 1, 2);
    queue_account_inverted(odd, 7);
    struct queue_reservation reservation;
    assert_int_equal(come(&site, &reservation, 10, 10), ERROR_NONE);
    queue_accounts_show(site.bench.queue);
    struct text page;
    text_init(&page, 1 << 20);
    metric_render(site.bench.metrics, &page);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *at = strstr(page.data, lines[i]);
        if (at == NULL || at[strlen(lines[i])] != '\n')
            print_error("no line \"%s\"\n", lines[i]);
        assert_non_null(at);
        assert_int_equal(at[strlen(lines[i])], '\n');
    }
    text_free(&page);
    go(&site, &reservation);
    close_site(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_requests_by_default),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_rate_in_the_long_run),
        cmocka_unit_test(test_rate_out_of_order),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_grow),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_device_overflow),
        cmocka_unit_test(test_batches_are_charged),
        cmocka_unit_test(test_stopped_batches_are_charged),
        cmocka_unit_test(test_limits_change),
        cmocka_unit_test(test_one_client),
        cmocka_unit_test(test_names_are_bounded),
        cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
