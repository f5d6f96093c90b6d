/* tests/unit/queue/test_background.c: items that no client waits for have a lane of their own. */
#include "tests/unit/queue/bed.h"

static void submit_behind(struct bench *bench, int index, int64_t n, int64_t batch)
{
    bench->orders[index].item.priority = QUEUE_PRIORITY_BACKGROUND;
    submit(bench, index, n, batch);
}

static int submitted(const struct bench *bench, enum engine_lane_id lane)
{
    int count = 0;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
        count += bench->shared->lanes[lane].batches[i].state == ENGINE_BATCH_SUBMITTED;
    return count;
}

/* Whatever it costs; and theirs stay where they were. */
static void test_a_lane_of_its_own(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 3, 200000};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct bench bench = bench_open(&limits);
        submit_behind(&bench, 0, 8, batches[i]);
        submit(&bench, 1, 8, 1);
        submit(&bench, 2, 8, 200000);
        queue_flush(bench.queue);
        struct engine_batch *behind = start(bench.shared, ENGINE_LANE_BACKGROUND);
        assert_non_null(behind);
        assert_true(behind->matrices >= 1 && behind->matrices <= batches[i]);
        struct engine_batch *small = start(bench.shared, ENGINE_LANE_SHORT);
        assert_non_null(small);
        assert_true(small->matrices == 1); /* no one's batch is longer for them */
        assert_non_null(start(bench.shared, ENGINE_LANE_LONG));
        finish(behind, ENGINE_OK);
        finish(small, ENGINE_OK);
        finish(oldest(bench.shared, ENGINE_LANE_LONG, ENGINE_BATCH_RUNNING), ENGINE_OK);
        queue_reap(bench.queue);
        serve(&bench, bench.shared);
        bench_close(&bench);
    }
}

/* Clients that come have every place of their lanes, and take none of theirs. */
static void test_places(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 8; i++)
        submit_behind(&bench, i, 4 + i, 1); /* each of a key of its own */
    queue_flush(bench.queue);
    assert_int_equal(submitted(&bench, ENGINE_LANE_BACKGROUND), limits.in_flight);
    for (int i = 8; i < 16; i++)
        submit(&bench, i, 4 + i, 1);
    queue_flush(bench.queue);
    assert_int_equal(submitted(&bench, ENGINE_LANE_SHORT), limits.in_flight);
    assert_int_equal(submitted(&bench, ENGINE_LANE_BACKGROUND), limits.in_flight);
    serve(&bench, bench.shared);
    assert_int_equal(completed, 16);
    bench_close(&bench);
}

/* What would fill a long batch is cut as a short one is: on a GPU a kernel is not interrupted. */
static void test_batches_are_short(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit_behind(&bench, 0, 32, 20000);
    submit(&bench, 1, 32, 20000);
    queue_flush(bench.queue);
    struct engine_batch *behind = start(bench.shared, ENGINE_LANE_BACKGROUND);
    struct engine_batch *slice = start(bench.shared, ENGINE_LANE_LONG);
    assert_true(behind->matrices < slice->matrices);
    finish(behind, ENGINE_OK);
    finish(slice, ENGINE_OK);
    queue_reap(bench.queue);
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
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_BACKGROUND);
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
        cmocka_unit_test(test_a_lane_of_its_own),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_batches_are_short),
        cmocka_unit_test(test_matrices_done_and_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
