/* tests/unit/queue/test_serve.c: many threads submit and serve at once, and items of one owner are
 * reported together. */
#include "queue/account.h"
#include "tests/unit/queue/bed.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SUBMITTERS 4
#define ROUNDS 300
#define ROUND_ITEMS 5
#define WAIT_NS (60 * CLOCK_S)

/* ---- Owners ---- */

static int calls, strangers;

static void on_company(struct queue_item *item)
{
    const void *owner = item->owner;
    calls++;
    while (item != NULL) {
        struct queue_item *next = item->next;
        strangers += item->owner != owner;
        on_done(item);
        item = next;
    }
}

static void test_owners_get_one_call(void **state)
{
    (void)state;
    static char owners[2];
    static const struct {
        int owners[8]; /* 0: none */
        int items, calls;
    } rows[] = {
        {{0}, 1, 1},
        {{0, 0, 0}, 3, 3},
        {{1}, 1, 1},
        {{1, 1, 1, 1}, 4, 1},
        {{1, 2, 1, 0, 2, 1, 0}, 7, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open(&limits);
        calls = strangers = 0;
        for (int item = 0; item < rows[i].items; item++) {
            int owner = rows[i].owners[item];
            bench.orders[item].item.owner = owner == 0 ? NULL : &owners[owner - 1];
            submit(&bench, item, 8, 1);
            bench.orders[item].item.on_done = on_company; /* nothing is reported before the flush */
        }
        queue_flush(bench.queue);
        assert_int_equal(serve(&bench, bench.shared), 1);
        assert_int_equal(calls, rows[i].calls);
        assert_int_equal(strangers, 0);
        for (int item = 0; item < rows[i].items; item++)
            assert_int_equal(bench.orders[item].done, 1);
        bench_close(&bench);
    }
}

/* More owners than are reported at once. */
static void test_many_owners(void **state)
{
    (void)state;
    static char owners[100];
    struct bench bench = bench_open(&limits);
    calls = strangers = 0;
    for (int item = 0; item < 1000; item++) {
        bench.orders[item].item.owner = &owners[item % 100];
        submit(&bench, item, 8, 1);
        bench.orders[item].item.on_done = on_company;
    }
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    assert_int_equal(strangers, 0);
    assert_true(calls >= 100 && calls <= 1000);
    for (int item = 0; item < 1000; item++)
        assert_int_equal(bench.orders[item].done, 1);
    bench_close(&bench);
}

/* What a cancellation takes in with it is sent as well. */
static void test_cancel_sends_the_others(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    submit(&bench, 1, 8, 1);
    queue_cancel(bench.queue, &bench.orders[0].item);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_CANCELLED);
    assert_int_equal(bench.orders[1].item.status, ERROR_NONE);
    bench_close(&bench);
}

/* A tick between an item's submission and its flush leaves nothing lying: the flush finds nothing
 * new and does nothing. */
static void test_tick_sends_what_it_takes_in(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_tick(bench.queue, clock_now_ns());
    assert_false(queue_flush(bench.queue));
    assert_int_equal(serve(&bench, bench.shared), 1);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

static struct bench *busy; /* of on_done_more, which knows the item alone */
static int next_order;

/* The engine ends a batch, and somebody submits, while this thread says. */
static void on_done_more(struct queue_item *item)
{
    on_done(item);
    struct engine_batch *batch = start(busy->shared, ENGINE_LANE_SHORT);
    if (batch != NULL)
        finish(batch, ENGINE_OK);
    if (next_order == 100)
        return;
    submit(busy, next_order, 8, 1);
    busy->orders[next_order++].item.on_done = on_done_more;
}

/* A thread that serves for others comes back to its own affairs, and says that there is more. */
static void test_no_thread_serves_for_ever(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    busy = &bench;
    next_order = 2;
    for (int i = 0; i < 2; i++) {
        submit(&bench, i, 8, 1);
        bench.orders[i].item.on_done = on_done_more;
        assert_false(queue_flush(bench.queue));
    }
    finish(start(bench.shared, ENGINE_LANE_SHORT), ENGINE_OK);
    assert_true(queue_reap(bench.queue));
    assert_true(completed > 1 && completed < 50);
    while (queue_reap(bench.queue))
        continue;
    serve(&bench, bench.shared);
    queue_reap(bench.queue); /* what on_done_more has ended meanwhile */
    assert_int_equal(completed, 100);
    bench_close(&bench);
}

/* A flush takes in what is finished. */
static void test_flush_reaps(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    finish(start(bench.shared, ENGINE_LANE_SHORT), ENGINE_OK);
    queue_flush(bench.queue); /* nothing new: nothing to do */
    assert_int_equal(bench.orders[0].done, 0);
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(serve(&bench, bench.shared), 1);
    bench_close(&bench);
}

/* ---- Threads ---- */

struct parcel {
    struct queue_item item; /* first */
    _Atomic int done;
};

struct crowd {
    struct bench bench;
    struct parcel *parcels;            /* [SUBMITTERS][ROUNDS * ROUND_ITEMS] */
    struct queue_account *accounts[3]; /* the last is NULL */
    _Atomic int done;
    _Atomic int strangers;
    _Atomic bool stop;
};

static struct crowd *crowd; /* on_done knows the item alone */

static void on_parcels(struct queue_item *item)
{
    const void *owner = item->owner;
    int count = 0;
    while (item != NULL) {
        struct queue_item *next = item->next; /* the item is its submitter's once it is done */
        if (item->owner != owner)
            atomic_fetch_add(&crowd->strangers, 1);
        atomic_fetch_add(&((struct parcel *)item)->done, 1);
        item = next;
        count++;
    }
    atomic_fetch_add(&crowd->done, count);
}

static void *run_engine(void *context)
{
    (void)context;
    while (!atomic_load(&crowd->stop)) {
        struct engine_batch *batch = start(crowd->bench.shared, ENGINE_LANE_SHORT);
        if (batch != NULL)
            finish(batch, ENGINE_OK);
        else
            sched_yield();
    }
    return NULL;
}

static const struct client_limits none = {0};

static void fill(struct queue_item *item, void *owner, int number)
{
    item->method = method_find("lu");
    item->precision = PRECISION_FP64;
    item->n = 2 + number % 3;
    item->batch = 1;
    item->client = (uint32_t)number % 2;
    item->account = crowd->accounts[number % 3];
    item->owner = owner;
    item->on_done = on_parcels;
}

static void quota_anew(int round)
{
    struct client_limits client = {.rate = 1 + round % 7, .device_ns = 1000 * (1 + round % 3)};
    struct queue_account *found =
        queue_account_by_token(crowd->bench.queue, "lab", round % 2 == 0 ? &client : &none);
    if (found != crowd->accounts[0])
        atomic_fetch_add(&crowd->strangers, 1);
    queue_accounts_show(crowd->bench.queue);
}

/* Submits and flushes, and goes through the door as a request does. */
static void *run_submitter(void *context)
{
    struct parcel *parcels = context;
    struct queue *queue = crowd->bench.queue;
    struct failure failure;
    for (int round = 0; round < ROUNDS; round++) {
        struct queue_reservation reservation = {.client = 7,
                                                .account = crowd->accounts[round % 3],
                                                .arrived_ns = clock_now_ns(),
                                                .need_bytes = 512};
        if (round % 5 == 0) /* the file is read anew */
            quota_anew(round);
        bool entered = queue_enter(queue, &reservation, &failure) == ERROR_NONE;
        for (int i = 0; i < ROUND_ITEMS; i++) {
            int number = round * ROUND_ITEMS + i;
            fill(&parcels[number].item, parcels, number);
            queue_submit(queue, &parcels[number].item);
        }
        queue_flush(queue);
        if (round % 7 == 0)
            queue_cancel(queue, &parcels[round * ROUND_ITEMS].item);
        if (entered)
            queue_leave(queue, &reservation);
    }
    return NULL;
}

/* No one's item is left lying, although only the submitters flush until the last has come. */
static void test_crowd(void **state)
{
    (void)state;
    const int all = SUBMITTERS * ROUNDS * ROUND_ITEMS;
    struct crowd own = {.bench = bench_open(&limits)};
    own.parcels = calloc((size_t)all, sizeof *own.parcels);
    assert_non_null(own.parcels);
    crowd = &own;
    own.accounts[0] = queue_account_by_token(own.bench.queue, "lab", &none);
    own.accounts[1] = queue_account_by_certificate(own.bench.queue, "other-lab");
    pthread_t engine, submitters[SUBMITTERS];
    assert_int_equal(pthread_create(&engine, NULL, run_engine, NULL), 0);
    for (int i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_create(&submitters[i], NULL, run_submitter,
                                        own.parcels + (size_t)i * ROUNDS * ROUND_ITEMS),
                         0);
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(submitters[i], NULL);
    uint64_t until_ns = clock_now_ns() + WAIT_NS;
    while (atomic_load(&own.done) < all && clock_now_ns() < until_ns)
        queue_reap(own.bench.queue);
    atomic_store(&own.stop, true);
    pthread_join(engine, NULL);
    assert_int_equal(own.done, all);
    assert_int_equal(own.strangers, 0);
    assert_int_equal(queue_pending(own.bench.queue), 0);
    /* A microsecond a matrix at most: engines here say that they need one, and take less. */
    struct metric_series *device =
        metric_series(own.bench.metrics, METRIC_CLIENT_DEVICE, "other-lab");
    assert_in_range(metric_value(device), 1, 1000 * all / 3);
    for (int i = 0; i < all; i++)
        assert_int_equal(own.parcels[i].done, 1);
    bench_close(&own.bench);
    free(own.parcels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owners_get_one_call),
        cmocka_unit_test(test_many_owners),
        cmocka_unit_test(test_cancel_sends_the_others),
        cmocka_unit_test(test_tick_sends_what_it_takes_in),
        cmocka_unit_test(test_no_thread_serves_for_ever),
        cmocka_unit_test(test_flush_reaps),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
