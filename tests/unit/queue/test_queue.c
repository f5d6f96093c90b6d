/* test_queue.c: the queue against an engine played by the test.
 *
 * The test moves batches through the lane's states as an engine would, in the same thread, so that
 * every order of events can be tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/queue.h"

#define ITEMS_MAX 4096

struct order {
    struct queue_item item; /* first */
    int done;               /* how often on_done came */
    int place;              /* in the order of completion */
};

struct bench {
    struct metric_registry *metrics;
    struct queue *queue;
    struct engine_shared *shared, *spare_shared;
    struct queue_lane *lane, *spare;
    struct order *orders;
};

static int completed;

static const struct queue_limits limits = {
    .requests_max = 8,
    .client_requests_max = 3,
    .batch_matrices_max = 4096,
    .batch_cost_ns = 5000000,
    .long_cost_ns = 20000000,
    .batch_deadline_ns = 2000000000,
    .in_flight = 2,
};

static void on_done(struct queue_item *item)
{
    struct order *order = (struct order *)item;
    order->done++;
    order->place = ++completed;
}

static struct bench bench_open(const struct queue_limits *use)
{
    struct bench bench = {.metrics = metric_registry_create()};
    assert_int_equal(queue_create(use, bench.metrics, &bench.queue, NULL), ERROR_NONE);
    bench.shared = calloc(1, sizeof *bench.shared);
    bench.spare_shared = calloc(1, sizeof *bench.spare_shared);
    bench.orders = calloc(ITEMS_MAX, sizeof *bench.orders);
    assert_non_null(bench.orders);
    assert_int_equal(queue_lane_create(bench.queue, bench.shared, "test", false, &bench.lane),
                     ERROR_NONE);
    queue_lane_up(bench.lane);
    completed = 0;
    return bench;
}

static void bench_close(struct bench *bench)
{
    queue_lane_down(bench->lane, false);
    queue_lane_destroy(&bench->lane);
    if (bench->spare != NULL) {
        queue_lane_down(bench->spare, false);
        queue_lane_destroy(&bench->spare);
    }
    queue_destroy(&bench->queue);
    metric_registry_destroy(&bench->metrics);
    free(bench->shared);
    free(bench->spare_shared);
    free(bench->orders);
}

static void submit(struct bench *bench, int index, int64_t n, int64_t batch)
{
    struct queue_item *item = &bench->orders[index].item;
    item->method = method_find("lu");
    item->precision = PRECISION_FP64;
    item->n = n;
    item->batch = batch;
    item->on_done = on_done;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        item->inputs[i].region = ENGINE_REGION_NONE;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        item->outputs[i].region = ENGINE_REGION_NONE;
    item->inputs[0] = (struct engine_tensor){.offset_bytes = (uint64_t)index << 32};
    item->outputs[0] = (struct engine_tensor){.offset_bytes = (uint64_t)index << 32 | 1 << 20};
    queue_submit(bench->queue, item);
}

/* The oldest batch in the given state on a lane kind, or NULL. */
static struct engine_batch *oldest(struct engine_shared *shared, int kind, uint32_t state)
{
    struct engine_batch *found = NULL;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct engine_batch *batch = &shared->lanes[kind].batches[i];
        if (batch->state == state && (found == NULL || batch->sequence < found->sequence))
            found = batch;
    }
    return found;
}

static struct engine_batch *start(struct engine_shared *shared, int kind)
{
    struct engine_batch *batch = oldest(shared, kind, ENGINE_BATCH_SUBMITTED);
    if (batch != NULL) {
        batch->started_ns = clock_now_ns();
        batch->state = ENGINE_BATCH_RUNNING;
    }
    return batch;
}

static void finish(struct engine_batch *batch, enum engine_status status)
{
    batch->status = status;
    batch->finished_ns = batch->started_ns + 1000 * (uint64_t)batch->matrices;
    strcpy(batch->kernel, "test kernel");
    batch->state = ENGINE_BATCH_DONE;
}

/* Runs whatever is submitted until nothing is; returns the count of batches. */
static int serve(struct bench *bench, struct engine_shared *shared)
{
    int batches = 0;
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        struct engine_batch *batch;
        while ((batch = start(shared, kind)) != NULL) {
            finish(batch, ENGINE_OK);
            queue_reap(bench->queue);
            batches++;
            kind = 0;
        }
    }
    return batches;
}

static void test_gathers_one_key(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 10; i++)
        submit(&bench, i, 8, 1 + i);
    queue_flush(bench.queue);
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_non_null(batch);
    assert_int_equal(batch->item_count, 10);
    assert_int_equal(batch->matrices, 55);
    for (int i = 0; i < 10; i++) { /* oldest first, where the submitter said */
        assert_int_equal(batch->items[i].count, 1 + i);
        assert_true(batch->items[i].inputs[0].offset_bytes == (uint64_t)i << 32);
        assert_int_equal(batch->items[i].outputs[1].region, ENGINE_REGION_NONE);
    }
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(bench.orders[i].done, 1);
        assert_int_equal(bench.orders[i].item.status, ERROR_NONE);
        assert_string_equal(bench.orders[i].item.kernel, "test kernel");
        assert_true(bench.orders[i].item.compute_ns == 55000);
    }
    bench_close(&bench);
}

static void test_keys_do_not_mix_and_flight_is_bounded(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 9; i++)
        submit(&bench, i, 4 + i % 3, 1);
    queue_flush(bench.queue);
    struct engine_batch *a = start(bench.shared, ENGINE_LANE_SHORT);
    struct engine_batch *b = start(bench.shared, ENGINE_LANE_SHORT);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(start(bench.shared, ENGINE_LANE_SHORT)); /* in_flight is 2 */
    assert_int_equal(a->item_count, 3);
    assert_true(a->n != b->n);
    submit(&bench, 9, a->n, 1); /* comes too late for its batch */
    queue_flush(bench.queue);
    finish(b, ENGINE_OK);
    queue_reap(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 2); /* the third key, and the late one */
    finish(a, ENGINE_OK);
    queue_reap(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(bench.orders[i].done, 1);
    bench_close(&bench);
}

static void test_long_items_run_in_slices(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 32, 100000);
    submit(&bench, 1, 32, 1);
    queue_flush(bench.queue);
    struct engine_batch *slice = start(bench.shared, ENGINE_LANE_LONG);
    struct engine_batch *small = start(bench.shared, ENGINE_LANE_SHORT);
    assert_non_null(slice);
    assert_non_null(small); /* passes the long one on its own lane */
    assert_int_equal(small->matrices, 1);
    assert_true(slice->matrices < 100000);
    int64_t next = slice->matrices;
    finish(slice, ENGINE_OK);
    queue_reap(bench.queue);
    slice = start(bench.shared, ENGINE_LANE_LONG);
    assert_non_null(slice);
    slice->state = ENGINE_BATCH_RUNNING;
    /* The second slice in order starts where the first ended. */
    assert_true(slice->items[0].inputs[0].offset_bytes == (uint64_t)(next * 32 * 32 * 8));
    finish(slice, ENGINE_OK);
    finish(small, ENGINE_OK);
    queue_reap(bench.queue);
    assert_int_equal(bench.orders[1].done, 1);
    assert_int_equal(bench.orders[0].done, 0);
    assert_true(serve(&bench, bench.shared) > 1);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

static void test_cancel(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    submit(&bench, 1, 8, 1);
    queue_cancel(bench.queue, &bench.orders[0].item); /* waiting: at once */
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_CANCELLED);
    queue_flush(bench.queue);
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_int_equal(batch->item_count, 1);
    queue_cancel(bench.queue, &bench.orders[1].item); /* running: when the engine lets go */
    queue_cancel(bench.queue, &bench.orders[1].item); /* twice is harmless */
    assert_int_equal(bench.orders[1].done, 0);
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    assert_int_equal(bench.orders[1].done, 1);
    assert_int_equal(bench.orders[1].item.status, ERROR_CANCELLED);
    bench_close(&bench);
}

static void test_out_of_memory_halves(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 7; i++)
        submit(&bench, i, 8, 1 + i);
    queue_flush(bench.queue);
    struct engine_batch *batch;
    int refused = 0;
    while ((batch = start(bench.shared, ENGINE_LANE_SHORT)) != NULL) {
        bool fits = batch->matrices <= 2;
        refused += !fits;
        finish(batch, fits ? ENGINE_OK : ENGINE_OUT_OF_MEMORY);
        queue_reap(bench.queue);
    }
    assert_true(refused > 3);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(bench.orders[i].done, 1);
        assert_int_equal(bench.orders[i].item.status, ERROR_NONE);
    }
    submit(&bench, 7, 9, 1); /* one that never fits */
    queue_flush(bench.queue);
    finish(start(bench.shared, ENGINE_LANE_SHORT), ENGINE_OUT_OF_MEMORY);
    queue_reap(bench.queue);
    assert_int_equal(bench.orders[7].done, 1);
    assert_int_equal(bench.orders[7].item.status, ERROR_TOO_LARGE);
    bench_close(&bench);
}

/* A new engine in the same seat. */
static void replace_lane(struct bench *bench, bool blame)
{
    queue_lane_down(bench->lane, blame);
    queue_lane_destroy(&bench->lane);
    memset(bench->shared, 0, sizeof *bench->shared);
    assert_int_equal(queue_lane_create(bench->queue, bench->shared, "test", false, &bench->lane),
                     ERROR_NONE);
    queue_lane_up(bench->lane);
}

static void bring_spare(struct bench *bench)
{
    if (bench->spare != NULL) {
        queue_lane_down(bench->spare, true);
        queue_lane_destroy(&bench->spare);
    }
    memset(bench->spare_shared, 0, sizeof *bench->spare_shared);
    assert_int_equal(
        queue_lane_create(bench->queue, bench->spare_shared, "spare", true, &bench->spare),
        ERROR_NONE);
    queue_lane_up(bench->spare);
}

static void test_death_before_start_is_only_a_retry(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 5; i++)
        submit(&bench, i, 8, 1);
    queue_flush(bench.queue);
    replace_lane(&bench, true);
    assert_false(queue_has_suspects(bench.queue));
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_int_equal(batch->item_count, 5);
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    for (int i = 0; i < 5; i++)
        assert_int_equal(bench.orders[i].done, 1);
    bench_close(&bench);
}

static void test_poison_is_found_and_the_others_answered(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 5; i++)
        submit(&bench, i, 8, 1);
    queue_flush(bench.queue);
    start(bench.shared, ENGINE_LANE_SHORT);
    replace_lane(&bench, true);
    assert_true(queue_has_suspects(bench.queue));
    assert_null(start(bench.shared, ENGINE_LANE_SHORT)); /* suspects never run in company */
    int deaths = 0;
    bring_spare(&bench);
    while (queue_has_suspects(bench.queue)) {
        struct engine_batch *batch = start(bench.spare_shared, ENGINE_LANE_SHORT);
        assert_non_null(batch);
        assert_int_equal(batch->item_count, 1);
        assert_null(start(bench.spare_shared, ENGINE_LANE_SHORT)); /* alone */
        if (batch->items[0].inputs[0].offset_bytes >> 32 == 2) {
            deaths++;
            bring_spare(&bench);
        } else {
            finish(batch, ENGINE_OK);
            queue_reap(bench.queue);
        }
    }
    assert_int_equal(deaths, 2);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(bench.orders[i].done, 1);
        assert_int_equal(bench.orders[i].item.status, i == 2 ? ERROR_POISON : ERROR_NONE);
    }
    bench_close(&bench);
}

static void test_an_outage_ends_what_waits(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct failure failure;
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    queue_lane_down(bench.lane, true); /* item 0 is a retry now */
    submit(&bench, 1, 9, 1);
    uint64_t down_ns = clock_now_ns();
    for (int i = 0; i < 9; i++) { /* engines that never come up do not make the outage younger */
        queue_lane_down(bench.lane, false);
        queue_tick(bench.queue, down_ns + (uint64_t)i * CLOCK_S / 2);
        assert_int_equal(bench.orders[1].done, 0);
    }
    queue_tick(bench.queue, down_ns + 6 * CLOCK_S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bench.orders[i].done, 1);
        assert_int_equal(bench.orders[i].item.status, ERROR_NO_ENGINE);
    }
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_NONE);
    queue_leave(bench.queue, 1);
    bench_close(&bench);
}

static void test_suspects_without_a_spare_engine_end(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    start(bench.shared, ENGINE_LANE_SHORT);
    replace_lane(&bench, true);
    uint64_t now_ns = clock_now_ns();
    queue_tick(bench.queue, now_ns);
    assert_int_equal(bench.orders[0].done, 0);
    queue_tick(bench.queue, now_ns + 6 * CLOCK_S);
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_NO_ENGINE);
    assert_false(queue_has_suspects(bench.queue));
    bench_close(&bench);
}

/* An acquitted item starts anew: two deaths in two of its slices are not two strikes. */
static void test_strikes_are_forgiven(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 32, 100000);
    queue_flush(bench.queue);
    for (int slice = 0; slice < 3; slice++) {
        assert_non_null(start(bench.shared, ENGINE_LANE_LONG));
        replace_lane(&bench, true);
        bring_spare(&bench);
        assert_non_null(start(bench.spare_shared, ENGINE_LANE_LONG));
        bring_spare(&bench); /* one strike */
        struct engine_batch *batch;
        while ((batch = start(bench.spare_shared, ENGINE_LANE_LONG)) != NULL) {
            finish(batch, ENGINE_OK);
            queue_reap(bench.queue);
        }
        assert_int_equal(bench.orders[0].done, 0);
    }
    serve(&bench, bench.shared);
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_NONE);
    bench_close(&bench);
}

static void test_each_lane_knows_its_own_work(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    bring_spare(&bench);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    assert_true(queue_lane_worked(bench.lane));
    assert_false(queue_lane_worked(bench.spare));
    bench_close(&bench);
}

static void test_bytes_of_a_client(void **state)
{
    (void)state;
    struct queue_limits bounded = limits;
    bounded.client_requests_max = 0;
    bounded.client_bytes_max = 1000;
    struct bench bench = bench_open(&bounded);
    struct failure failure;
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_NONE);
    assert_int_equal(queue_reserve(bench.queue, 1, 5000, &failure), ERROR_NONE); /* its only one */
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_NONE);
    assert_int_equal(queue_reserve(bench.queue, 1, 1, &failure), ERROR_CLIENT_QUOTA);
    assert_int_equal(queue_enter(bench.queue, 2, &failure), ERROR_NONE); /* others are free */
    assert_int_equal(queue_reserve(bench.queue, 2, 900, &failure), ERROR_NONE);
    queue_unreserve(bench.queue, 1, 5000);
    assert_int_equal(queue_reserve(bench.queue, 1, 1000, &failure), ERROR_NONE);
    assert_int_equal(queue_reserve(bench.queue, 1, 1, &failure), ERROR_CLIENT_QUOTA);
    queue_unreserve(bench.queue, 1, 1000);
    queue_unreserve(bench.queue, 2, 900);
    queue_leave(bench.queue, 1);
    queue_leave(bench.queue, 1);
    queue_leave(bench.queue, 2);
    bench_close(&bench);
}

/* A flow deep in debt is served as soon as it is alone, whatever the debt: no counting down. */
static void test_great_debts_cost_nothing_to_forgive(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 64; i++) {
        bench.orders[i].item.client = (uint32_t)i % 16;
        bench.orders[i].item.priority = 1 + i % 3;
        submit(&bench, i, 16384, 1);
    }
    uint64_t before_ns = clock_now_ns();
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    assert_true(clock_now_ns() - before_ns < CLOCK_S / 4);
    for (int i = 0; i < 64; i++)
        assert_int_equal(bench.orders[i].done, 1);
    bench_close(&bench);
}

static void test_a_stopped_engine_blames_nobody(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    start(bench.shared, ENGINE_LANE_SHORT);
    replace_lane(&bench, false);
    assert_false(queue_has_suspects(bench.queue));
    assert_int_equal(serve(&bench, bench.shared), 1);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

static void test_admission(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct failure failure;
    for (int i = 0; i < 3; i++)
        assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_NONE);
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_CLIENT_QUOTA);
    for (int i = 0; i < 5; i++)
        assert_int_equal(queue_enter(bench.queue, 2 + (uint32_t)i, &failure), ERROR_NONE);
    assert_int_equal(queue_enter(bench.queue, 9, &failure), ERROR_FULL);
    assert_int_equal(queue_pending(bench.queue), 8);
    queue_leave(bench.queue, 1);
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_NONE);
    queue_drain(bench.queue);
    queue_leave(bench.queue, 1);
    assert_int_equal(queue_enter(bench.queue, 1, &failure), ERROR_DRAINING);
    for (int i = 0; i < 2; i++)
        queue_leave(bench.queue, 1);
    for (int i = 0; i < 5; i++)
        queue_leave(bench.queue, 2 + (uint32_t)i);
    assert_int_equal(queue_pending(bench.queue), 0);
    assert_true(queue_retry_after_s(bench.queue) >= 1);
    bench_close(&bench);
}

static void test_a_crowd_does_not_starve_one(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 3000; i++) { /* one client's crowd: 30 ms of work by prediction */
        bench.orders[i].item.client = 1;
        submit(&bench, i, 32, 1);
    }
    bench.orders[3000].item.client = 2; /* same key, other client */
    submit(&bench, 3000, 32, 1);
    bench.orders[3001].item.client = 3; /* other key */
    submit(&bench, 3001, 16, 1);
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    for (int i = 0; i < 3002; i++)
        assert_int_equal(bench.orders[i].done, 1);
    assert_true(bench.orders[3000].place < 1000);
    assert_true(bench.orders[3001].place < 1200);
    bench_close(&bench);
}

static void test_priority_goes_first(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    /* Two low-priority batches' worth waits; then an urgent key comes. */
    for (int i = 0; i < 2000; i++) {
        bench.orders[i].item.priority = 3;
        submit(&bench, i, 32 + i % 8, 1);
    }
    bench.orders[2000].item.priority = 1;
    submit(&bench, 2000, 5, 1);
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    assert_true(bench.orders[2000].place < 600);
    bench_close(&bench);
}

static void test_batches_wait_for_company_when_told(void **state)
{
    (void)state;
    struct queue_limits waiting = limits;
    waiting.batch_wait_ns = 20000000;
    struct bench bench = bench_open(&waiting);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    assert_null(start(bench.shared, ENGINE_LANE_SHORT));
    assert_true(queue_next_wake_ns(bench.queue) == bench.orders[0].item.queued_ns + 20000000);
    queue_tick(bench.queue, clock_now_ns() + 20000000);
    assert_true(queue_next_wake_ns(bench.queue) == 0);
    assert_int_equal(serve(&bench, bench.shared), 1);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

static void test_overdue(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    uint64_t now_ns = clock_now_ns();
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns) == 0);
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 3 * CLOCK_S) > 2 * CLOCK_S);
    serve(&bench, bench.shared);
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 3 * CLOCK_S) == 0);
    bench_close(&bench);
}

static void test_waiting_handshake(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    assert_false(queue_wait_begin(bench.queue));
    assert_int_equal(bench.shared->lanes[ENGINE_LANE_SHORT].front_waits, 1);
    bring_spare(&bench); /* a lane that comes while the front sleeps must wake it too */
    assert_int_equal(bench.spare_shared->lanes[ENGINE_LANE_LONG].front_waits, 1);
    queue_wait_end(bench.queue);
    assert_int_equal(bench.shared->lanes[ENGINE_LANE_SHORT].front_waits, 0);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    finish(start(bench.shared, ENGINE_LANE_SHORT), ENGINE_OK);
    assert_true(queue_wait_begin(bench.queue));
    queue_wait_end(bench.queue);
    queue_reap(bench.queue);
    bench_close(&bench);
}

/* Random orders, cancels, deaths and shortages: each item is done exactly once, nothing is left. */
static void storm(unsigned seed)
{
    srand(seed);
    struct queue_limits wild = limits;
    wild.in_flight = 1 + (int)seed % 3;
    struct bench bench = bench_open(&wild);
    int submitted = 0;
    for (int step = 0; step < 6000; step++) {
        int dice = rand() % 100;
        if (dice < 35 && submitted < 1000) {
            struct queue_item *item = &bench.orders[submitted].item;
            item->client = (uint32_t)(rand() % 4);
            item->priority = rand() % 4;
            submit(&bench, submitted++, 1 + rand() % 3, 1 + (rand() % 20 == 0) * 200000);
        } else if (dice < 40 && submitted > 0) {
            struct order *order = &bench.orders[rand() % submitted];
            if (!order->done)
                queue_cancel(bench.queue, &order->item);
        } else if (dice < 41) {
            replace_lane(&bench, rand() % 2);
        } else if (dice < 42) {
            bring_spare(&bench);
        } else {
            struct engine_shared *shared = rand() % 2 ? bench.shared : bench.spare_shared;
            int kind = rand() % 2;
            struct engine_batch *batch =
                rand() % 2 ? start(shared, kind) : oldest(shared, kind, ENGINE_BATCH_RUNNING);
            if (batch != NULL && rand() % 3 != 0)
                finish(batch, rand() % 10 ? ENGINE_OK : ENGINE_OUT_OF_MEMORY);
            if (rand() % 2)
                queue_reap(bench.queue);
            else
                queue_flush(bench.queue);
        }
    }
    replace_lane(&bench, false);
    bring_spare(&bench);
    while (serve(&bench, bench.shared) + serve(&bench, bench.spare_shared) > 0) {
    }
    for (int i = 0; i < submitted; i++) {
        assert_int_equal(bench.orders[i].done, 1);
        assert_int_equal(bench.orders[i].item.state, QUEUE_DONE);
    }
    bench_close(&bench);
}

static void test_storms(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++)
        storm(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gathers_one_key),
        cmocka_unit_test(test_keys_do_not_mix_and_flight_is_bounded),
        cmocka_unit_test(test_long_items_run_in_slices),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_out_of_memory_halves),
        cmocka_unit_test(test_death_before_start_is_only_a_retry),
        cmocka_unit_test(test_poison_is_found_and_the_others_answered),
        cmocka_unit_test(test_an_outage_ends_what_waits),
        cmocka_unit_test(test_suspects_without_a_spare_engine_end),
        cmocka_unit_test(test_strikes_are_forgiven),
        cmocka_unit_test(test_each_lane_knows_its_own_work),
        cmocka_unit_test(test_bytes_of_a_client),
        cmocka_unit_test(test_great_debts_cost_nothing_to_forgive),
        cmocka_unit_test(test_a_stopped_engine_blames_nobody),
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_a_crowd_does_not_starve_one),
        cmocka_unit_test(test_priority_goes_first),
        cmocka_unit_test(test_batches_wait_for_company_when_told),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_waiting_handshake),
        cmocka_unit_test(test_storms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
