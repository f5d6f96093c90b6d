/* tests/unit/queue/test_background.c: items that no client waits for use what others leave. */
#include "tests/unit/queue/bed.h"

static void submit_behind(struct bench *bench, int index, int64_t n, int64_t batch)
{
    bench->orders[index].item.priority = QUEUE_PRIORITY_BACKGROUND;
    submit(bench, index, n, batch);
}

static int submitted(const struct bench *bench)
{
    int count = 0;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
        count += bench->shared->lanes[ENGINE_LANE_SHORT].batches[i].state == ENGINE_BATCH_SUBMITTED;
    return count;
}

static void test_an_idle_lane_is_theirs(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 4; i++)
        submit_behind(&bench, i, 4 + i, 1); /* each of a key of its own */
    queue_flush(bench.queue);
    assert_int_equal(submitted(&bench), limits.in_flight);
    serve(&bench, bench.shared);
    assert_int_equal(completed, 4);
    bench_close(&bench);
}

/* One batch at most is in a lane while clients come, and theirs goes before what waits. */
static void test_clients_go_first(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    serve(&bench, bench.shared);
    for (int i = 1; i < 5; i++)
        submit_behind(&bench, i, 4 + i, 1);
    queue_flush(bench.queue);
    assert_int_equal(submitted(&bench), 1);
    submit(&bench, 5, 16, 1);
    queue_flush(bench.queue);
    assert_int_equal(submitted(&bench), 2); /* the place that was left */
    serve(&bench, bench.shared);
    assert_int_equal(bench.orders[5].place, 3); /* after the first client and one of them */
    assert_int_equal(completed, 6);
    bench_close(&bench);
}

/* A client's batch is not longer for others of its key; theirs takes clients' along. */
static void test_batches_are_not_shared_with_clients(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit_behind(&bench, 0, 8, 3);
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    struct engine_batch *first = start(bench.shared, ENGINE_LANE_SHORT);
    assert_non_null(first);
    assert_int_equal(first->matrices, 1);
    finish(first, ENGINE_OK);
    queue_reap(bench.queue);
    serve(&bench, bench.shared);
    assert_int_equal(completed, 2);
    bench_close(&bench);
}

/* Who comes next waits for a short batch. */
static void test_batches_are_short_while_clients_come(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct bench bench = bench_open(&limits);
        if (comes) {
            submit(&bench, 0, 8, 1);
            queue_flush(bench.queue);
            serve(&bench, bench.shared);
        }
        submit_behind(&bench, 1, 16, 2000);
        queue_flush(bench.queue);
        struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
        assert_non_null(batch);
        assert_true(comes ? batch->matrices < 100 : batch->matrices > 500);
        finish(batch, ENGINE_OK);
        queue_reap(bench.queue);
        serve(&bench, bench.shared);
        bench_close(&bench);
    }
}

/* Clients that never pause leave them a share. */
static void test_none_is_starved(void **state)
{
    (void)state;
    struct queue_limits use = limits;
    use.in_flight = 1;
    struct bench bench = bench_open(&use);
    submit_behind(&bench, 0, 100, 1);
    int batches = 0;
    for (int i = 1; bench.orders[0].done == 0; i++, batches++) {
        assert_true(i < 2000);
        submit(&bench, i, 101, 10);
        queue_flush(bench.queue);
        struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
        assert_non_null(batch);
        finish(batch, ENGINE_OK);
        queue_reap(bench.queue);
    }
    assert_true(batches >= 1);
    serve(&bench, bench.shared);
    bench_close(&bench);
}

static void test_matrices_done_and_predicted(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_item *item = &bench.orders[0].item;
    submit_behind(&bench, 0, 32, 10);
    assert_true(queue_predict_ns(bench.queue, item) > 0);
    assert_true(queue_matrices_done(bench.queue, item) == 0);
    queue_flush(bench.queue);
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_non_null(batch);
    batch->progress = 4 * METHOD_PROGRESS_WHOLE;
    assert_true(queue_matrices_done(bench.queue, item) == 4);
    batch->progress = UINT64_MAX;
    assert_true(queue_matrices_done(bench.queue, item) == 10);
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    assert_true(queue_matrices_done(bench.queue, item) == 10);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_lane_is_theirs),
        cmocka_unit_test(test_clients_go_first),
        cmocka_unit_test(test_batches_are_not_shared_with_clients),
        cmocka_unit_test(test_batches_are_short_while_clients_come),
        cmocka_unit_test(test_none_is_starved),
        cmocka_unit_test(test_matrices_done_and_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
