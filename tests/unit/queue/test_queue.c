/* tests/unit/queue/test_queue.c: admission, batching, fairness, cancellation. */
#include "tests/unit/queue/bed.h"

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

/* Two batches of one item at the same time. */
static void test_time_in_two_batches_counts_once(void **state)
{
    (void)state;
    static const struct {
        uint64_t started_ns[2], finished_ns[2], expected_ns;
    } rows[] = {
        {{1000, 5000}, {5000, 7000}, 6000}, /* one after the other */
        {{1000, 4000}, {5000, 7000}, 6000}, /* overlapping */
        {{1000, 1000}, {5000, 5000}, 4000}, /* all the time */
        {{1000, 8000}, {5000, 9000}, 5000}, /* a gap between them */
        {{1000, 2000}, {5000, 3000}, 4000}, /* one within the other */
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        struct queue_limits halves = limits;
        halves.batch_matrices_max[ENGINE_LANE_SHORT] = 50;
        struct bench bench = bench_open(&halves);
        submit(&bench, 0, 8, 100);
        queue_flush(bench.queue);
        for (int i = 0; i < 2; i++) {
            struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
            assert_non_null(batch);
            finish(batch, ENGINE_OK);
            batch->started_ns = rows[row].started_ns[i];
            batch->finished_ns = rows[row].finished_ns[i];
        }
        queue_reap(bench.queue);
        assert_int_equal(bench.orders[0].done, 1);
        assert_int_equal(bench.orders[0].item.compute_ns, rows[row].expected_ns);
        bench_close(&bench);
    }
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

static double batches_closed_by(struct bench *bench, const char *reason)
{
    return (double)metric_value(metric_series(bench->metrics, METRIC_BATCHES, reason));
}

/* What a batch may hold, in matrices of 64 bytes (2x2 with inverses), and why it then closes. */
static void test_batches_close_at_their_bounds(void **state)
{
    (void)state;
    static const struct {
        int64_t matrices_max, bytes_max;
        int64_t counts[3]; /* of the batches that 20 matrices and 5 make */
        const char *reason;
    } cases[] = {
        {1000, 1 << 20, {25}, "gathered"},        {1000, 64 * 10, {10, 10, 5}, "bytes"},
        {10, 1 << 20, {10, 10, 5}, "matrices"},   {10, 64 * 12 + 63, {10, 10, 5}, "matrices"},
        {12, 64 * 10 + 63, {10, 10, 5}, "bytes"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct queue_limits bounded = limits;
        bounded.batch_matrices_max[QUEUE_HOST] = cases[k].matrices_max;
        bounded.batch_matrices_max[QUEUE_CUDA] = 1; /* another device class's */
        bounded.batch_bytes_max = cases[k].bytes_max;
        bounded.in_flight = 1;
        struct bench bench = bench_open(&bounded);
        submit(&bench, 0, 2, 20);
        submit(&bench, 1, 2, 5);
        queue_flush(bench.queue);
        int64_t matrices = 25;
        for (int i = 0; i < 3 && matrices > 0; i++) {
            struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
            assert_non_null(batch);
            assert_int_equal(batch->matrices, cases[k].counts[i]);
            matrices -= batch->matrices;
            finish(batch, ENGINE_OK);
            queue_reap(bench.queue);
        }
        assert_true(batches_closed_by(&bench, cases[k].reason) >= 1);
        assert_true(bench.orders[0].done && bench.orders[1].done);
        bench_close(&bench);
    }
}

/* One matrix goes, however large it is. */
static void test_one_matrix_exceeds_the_bytes(void **state)
{
    (void)state;
    struct queue_limits bounded = limits;
    bounded.batch_bytes_max = 100;
    struct bench bench = bench_open(&bounded);
    submit(&bench, 0, 8, 3);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 3);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

/* An item for one engine waits for that one, and nothing waits for the item. */
static void test_an_item_for_one_engine(void **state)
{
    (void)state;
    static const struct queue_engine other_engine = {QUEUE_HOST, false, 7, "other"};
    struct engine_shared *other = calloc(1, sizeof *other);
    assert_non_null(other);
    struct bench bench = bench_open(&limits);
    bench.orders[0].item.only_engine = 8;
    bench.orders[1].item.only_engine = 9; /* never there */
    bench.orders[2].item.only_engine = 1;
    for (int i = 0; i < 4; i++)
        submit(&bench, i, 8, 1);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 2); /* alone: another key */
    assert_true(bench.orders[2].done && bench.orders[3].done);
    assert_true(!bench.orders[0].done && !bench.orders[1].done);
    assert_int_equal(bench.orders[2].item.engine, 0);

    struct queue_lane *lane = bring(bench.queue, other, &other_engine);
    assert_true(queue_lane_last_batch_ns(lane) == 0);
    queue_tick(bench.queue, clock_now_ns());
    assert_int_equal(serve(&bench, bench.shared), 0);
    assert_int_equal(serve(&bench, other), 1);
    assert_true(bench.orders[0].done && bench.orders[0].item.engine == 7);
    assert_true(queue_lane_last_batch_ns(lane) > queue_lane_last_batch_ns(bench.lane));

    queue_cancel(bench.queue, &bench.orders[1].item);
    assert_true(bench.orders[1].done && bench.orders[1].item.status == ERROR_CANCELLED);
    take_down(&lane, false);
    bench_close(&bench);
    free(other);
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

/* An engine is reported when the last request of its batch is gone, and not before; what it leaves
 * counts for nothing, and the slot's next batch is wanted again. */
static void test_unwanted_batch(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct metric_series *stopped =
        metric_series(bench.metrics, METRIC_DEVICE_STOPPED, main_engine.device);
    struct metric_series *batches =
        metric_series(bench.metrics, METRIC_DEVICE_BATCHES, main_engine.device);
    for (int round = 0; round < 2 * ENGINE_BATCH_SLOTS; round++) {
        struct order *orders = &bench.orders[3 * round];
        for (int i = 0; i < 3; i++)
            submit(&bench, 3 * round + i, 8, 2);
        queue_flush(bench.queue);
        struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
        assert_int_equal(batch->item_count, 3);
        assert_int_equal(atomic_load(&batch->unwanted), 0);
        for (int i = 0; i < 3; i++) {
            queue_cancel(bench.queue, &orders[(i + round) % 3].item);
            assert_int_equal(atomic_load(&batch->unwanted), i == 2);
        }
        assert_int_equal(orders[0].done + orders[1].done + orders[2].done, 0);
        finish(batch, round % 2 ? ENGINE_OK : ENGINE_STOPPED); /* it may have been done already */
        queue_reap(bench.queue);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(orders[i].done, 1);
            assert_int_equal(orders[i].item.status, ERROR_CANCELLED);
        }
    }
    assert_int_equal(metric_value(stopped), ENGINE_BATCH_SLOTS);
    assert_int_equal(metric_value(batches), ENGINE_BATCH_SLOTS);
    bench_close(&bench);
}

/* Each of an item's batches that it does not share. */
static void test_unwanted_slices(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 32, 20000);
    queue_flush(bench.queue);
    struct engine_batch *first = start(bench.shared, ENGINE_LANE_LONG);
    struct engine_batch *second = oldest(bench.shared, ENGINE_LANE_LONG, ENGINE_BATCH_SUBMITTED);
    assert_true(first != NULL && second != NULL);
    queue_cancel(bench.queue, &bench.orders[0].item);
    assert_true(atomic_load(&first->unwanted) && atomic_load(&second->unwanted));
    finish(first, ENGINE_STOPPED);
    queue_reap(bench.queue);
    assert_int_equal(bench.orders[0].done, 0);
    finish(start(bench.shared, ENGINE_LANE_LONG), ENGINE_STOPPED);
    queue_reap(bench.queue);
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_CANCELLED);
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
    assert_true(queue_lane_close(bench.spare, true)); /* it had nothing to do */
    assert_false(queue_lane_worked(bench.spare));
    replace_lane(&bench, false);
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    assert_false(queue_lane_close(bench.lane, false)); /* it had, and did not begin */
    assert_false(queue_lane_worked(bench.lane));
    replace_lane(&bench, false);
    serve(&bench, bench.shared);
    bench_close(&bench);
}

/* A waiting list deep in debt is served as soon as it is alone, whatever the debt: no counting
 * down. */
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
    assert_true(clock_now_ns() - before_ns < 2 * CLOCK_S);
    for (int i = 0; i < 64; i++)
        assert_int_equal(bench.orders[i].done, 1);
    bench_close(&bench);
}

static void test_admission(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct failure failure;
    for (int i = 0; i < 3; i++)
        assert_int_equal(enter(&bench, 1, &failure), ERROR_NONE);
    assert_int_equal(enter(&bench, 1, &failure), ERROR_CLIENT_QUOTA);
    for (int i = 0; i < 5; i++)
        assert_int_equal(enter(&bench, 2 + (uint32_t)i, &failure), ERROR_NONE);
    assert_int_equal(enter(&bench, 9, &failure), ERROR_FULL);
    assert_int_equal(queue_pending(bench.queue), 8);
    leave(&bench, 1);
    assert_int_equal(enter(&bench, 1, &failure), ERROR_NONE);
    assert_int_equal(enter(&bench, 9, &failure), ERROR_FULL);
    queue_drain(bench.queue);
    leave(&bench, 1);
    assert_int_equal(enter(&bench, 1, &failure), ERROR_DRAINING);
    for (int i = 0; i < 2; i++)
        leave(&bench, 1);
    for (int i = 0; i < 5; i++)
        leave(&bench, 2 + (uint32_t)i);
    assert_int_equal(queue_pending(bench.queue), 0);
    assert_true(queue_retry_after_s(bench.queue) >= 1);
    bench_close(&bench);
}

static void fill(struct bench *bench)
{
    struct failure failure;
    for (uint32_t client = 1; client <= limits.requests_max; client++)
        assert_int_equal(enter(bench, client, &failure), ERROR_NONE);
    assert_int_equal(enter(bench, 100, &failure), ERROR_FULL);
}

static void test_computed_requests_keep_no_place(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct failure failure;
    fill(&bench);
    for (int i = 0; i < 2; i++)
        bench.reservations[i].computed = true;
    queue_computed(bench.queue, 2);
    for (uint32_t client = 101; client <= 102; client++)
        assert_int_equal(enter(&bench, client, &failure), ERROR_NONE);
    assert_int_equal(enter(&bench, 103, &failure), ERROR_FULL);
    assert_int_equal(queue_pending(bench.queue), limits.requests_max + 2);
    for (uint32_t client = 101; client <= 102; client++)
        leave(&bench, client);
    for (uint32_t client = 1; client <= limits.requests_max; client++)
        leave(&bench, client);
    fill(&bench);
    for (uint32_t client = 1; client <= limits.requests_max; client++)
        leave(&bench, client);
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

static void test_batches_wait_with_batch_wait_us(void **state)
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

    waiting.batch_bytes_max = 2 * 8 * 8 * 8; /* one matrix fills a batch */
    bench = bench_open(&waiting);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 1);
    bench_close(&bench);
}

/* What waits for a lane does not wait for the clock: it asks for no wake, which would come at once,
 * again and again. */
static void test_no_wake_for_what_waits_for_a_lane(void **state)
{
    (void)state;
    struct queue_limits waiting = limits;
    waiting.batch_wait_ns = 1000;
    waiting.in_flight = 1;
    struct bench bench = bench_open(&waiting);
    for (int i = 0; i < 2; i++) {
        submit(&bench, i, 8 + i, 1);
        while (clock_now_ns() <= bench.orders[i].item.queued_ns + 1000)
            continue;
        assert_true(queue_next_wake_ns(bench.queue) == 0); /* the first goes, the second waits */
    }
    assert_non_null(oldest(bench.shared, ENGINE_LANE_SHORT, ENGINE_BATCH_SUBMITTED));
    assert_int_equal(serve(&bench, bench.shared), 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gathers_one_key),
        cmocka_unit_test(test_time_in_two_batches_counts_once),
        cmocka_unit_test(test_keys_do_not_mix_and_flight_is_bounded),
        cmocka_unit_test(test_long_items_run_in_slices),
        cmocka_unit_test(test_batches_close_at_their_bounds),
        cmocka_unit_test(test_one_matrix_exceeds_the_bytes),
        cmocka_unit_test(test_an_item_for_one_engine),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_unwanted_batch),
        cmocka_unit_test(test_unwanted_slices),
        cmocka_unit_test(test_out_of_memory_halves),
        cmocka_unit_test(test_each_lane_knows_its_own_work),
        cmocka_unit_test(test_great_debts_cost_nothing_to_forgive),
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_computed_requests_keep_no_place),
        cmocka_unit_test(test_a_crowd_does_not_starve_one),
        cmocka_unit_test(test_priority_goes_first),
        cmocka_unit_test(test_batches_wait_with_batch_wait_us),
        cmocka_unit_test(test_no_wake_for_what_waits_for_a_lane),
        cmocka_unit_test(test_waiting_handshake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
