/* What metrics say of batches under way: how old the oldest is, and how far; whatever its engine
 * writes. */
#include <unistd.h>

#include "queue/queue_private.h"
#include "tests/unit/queue/bed.h"

/* As shown, in nanoseconds and in thousandths. */
static int64_t running_ns(struct bench *bench, const char *method)
{
    return (int64_t)metric_value(metric_series(bench->metrics, METRIC_BATCH_RUNNING, method));
}

static int64_t progress(struct bench *bench, const char *method)
{
    return (int64_t)metric_value(metric_series(bench->metrics, METRIC_BATCH_PROGRESS, method));
}

static void assert_nothing_runs(struct bench *bench, const char *method)
{
    queue_show_running(bench->queue);
    assert_int_equal(running_ns(bench, method), 0);
    assert_int_equal(progress(bench, method), 0);
}

/* The method's oldest batch began then, and so much of it is done. */
static void assert_shown(struct bench *bench, const char *method, uint64_t since_ns, int64_t parts)
{
    uint64_t before_ns = clock_now_ns();
    queue_show_running(bench->queue);
    uint64_t after_ns = clock_now_ns();
    int64_t shown_ns = running_ns(bench, method);
    assert_true(shown_ns >= (int64_t)(before_ns - since_ns));
    assert_true(shown_ns <= (int64_t)(after_ns - since_ns));
    assert_int_equal(progress(bench, method), parts);
}

static void test_from_start_to_end(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    assert_nothing_runs(&bench, "lu");
    submit(&bench, 0, 8, 4);
    assert_nothing_runs(&bench, "lu");
    queue_flush(bench.queue);
    assert_nothing_runs(&bench, "lu"); /* it waits for its engine */
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_int_equal(batch->progress, 0);
    assert_shown(&bench, "lu", batch->started_ns, 0);
    batch->progress = METHOD_PROGRESS_WHOLE;
    assert_shown(&bench, "lu", batch->started_ns, METHOD_PROGRESS_WHOLE / 4);
    batch->progress = 4 * METHOD_PROGRESS_WHOLE - 1;
    assert_shown(&bench, "lu", batch->started_ns, METHOD_PROGRESS_WHOLE - 1);
    assert_nothing_runs(&bench, "auto");
    finish(batch, ENGINE_OK);
    assert_nothing_runs(&bench, "lu"); /* and may not have been reaped yet */
    queue_reap(bench.queue);
    assert_nothing_runs(&bench, "lu");
    /* The slots come around again: none has kept its old figure. */
    for (int i = 1; i <= 2 * ENGINE_BATCH_SLOTS; i++) {
        submit(&bench, i, 8, 1);
        queue_flush(bench.queue);
        batch = start(bench.shared, ENGINE_LANE_SHORT);
        assert_shown(&bench, "lu", batch->started_ns, 0);
        batch->progress = METHOD_PROGRESS_WHOLE;
        finish(batch, ENGINE_OK);
        queue_reap(bench.queue);
    }
    bench_close(&bench);
}

/* Of several batches the oldest is shown, each method by itself. */
static void test_oldest(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    submit(&bench, 1, 9, 1);
    submit(&bench, 2, 32, 100000);
    queue_flush(bench.queue);
    struct engine_batch *first = start(bench.shared, ENGINE_LANE_SHORT);
    struct engine_batch *second = start(bench.shared, ENGINE_LANE_SHORT);
    struct engine_batch *slice = start(bench.shared, ENGINE_LANE_LONG);
    first->progress = 500;
    second->progress = 600;
    slice->progress = (uint64_t)slice->matrices * 700;
    uint64_t started_ns = first->started_ns;
    assert_shown(&bench, "lu", started_ns, 500);
    finish(first, ENGINE_OK);
    queue_reap(bench.queue);
    assert_shown(&bench, "lu", second->started_ns, 600);
    finish(second, ENGINE_OK);
    queue_reap(bench.queue);
    assert_shown(&bench, "lu", slice->started_ns, 700);
    submit_by(&bench, 3, "auto", 8, 1);
    queue_flush(bench.queue);
    struct engine_batch *other = start(bench.shared, ENGINE_LANE_SHORT);
    other->progress = 1;
    assert_shown(&bench, "lu", slice->started_ns, 700);
    assert_shown(&bench, "auto", other->started_ns, 1);
    finish(other, ENGINE_OK);
    finish(slice, ENGINE_OK);
    queue_reap(bench.queue);
    serve(&bench, bench.shared);
    assert_nothing_runs(&bench, "lu");
    assert_nothing_runs(&bench, "auto");
    bench_close(&bench);
}

/* What an engine writes never leads beyond what can be. */
static void test_engine_is_not_trusted(void **state)
{
    (void)state;
    static const uint64_t odd[] = {0, 1, UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX};
    struct bench bench = bench_open(&limits);
    uint64_t sent_ns = clock_now_ns();
    submit(&bench, 0, 8, 3);
    queue_flush(bench.queue);
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
            batch->started_ns = odd[i];
            batch->progress = odd[k];
            batch->matrices = 0;
            queue_show_running(bench.queue);
            assert_in_range(running_ns(&bench, "lu"), 0, clock_now_ns() - sent_ns);
            assert_int_equal(progress(&bench, "lu"), k < 2 ? 0 : METHOD_PROGRESS_WHOLE);
        }
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    assert_nothing_runs(&bench, "lu");
    bench_close(&bench);
}

/* What ran in an engine that is dead runs no more; the service's own batches are not shown. */
static void test_what_is_not_shown(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
    batch->progress = 900;
    assert_shown(&bench, "lu", batch->started_ns, 900);
    replace_lane(&bench, true);
    assert_nothing_runs(&bench, "lu");
    bring_spare(&bench);
    queue_flush(bench.queue);
    queue_tick(bench.queue, clock_now_ns());
    batch = start(bench.spare_shared, ENGINE_LANE_SHORT);
    assert_non_null(batch);
    batch->progress = 100; /* anew */
    assert_shown(&bench, "lu", batch->started_ns, 100);
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    bench.orders[1].item.uncounted = true;
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    batch = start(bench.shared, ENGINE_LANE_SHORT);
    assert_nothing_runs(&bench, "lu");
    finish(batch, ENGINE_OK);
    queue_reap(bench.queue);
    bench_close(&bench);
}

/* A device works while any batch runs: a long one loses no time to short ones next to it. */
static void test_device_at_work(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 32, 100000);
    queue_flush(bench.queue);
    struct engine_batch *slice = start(bench.shared, ENGINE_LANE_LONG);
    uint64_t since_ns = slice->started_ns, before_ns = metric_value(bench.lane->busy);
    for (int i = 1; i < 5; i++) {
        usleep(2000);
        submit(&bench, i, 8, 1);
        queue_flush(bench.queue);
        struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
        finish(batch, ENGINE_OK);
        uint64_t until_ns = batch->finished_ns = clock_now_ns();
        queue_reap(bench.queue);
        assert_int_equal(metric_value(bench.lane->busy) - before_ns, until_ns - since_ns);
    }
    usleep(2000);
    finish(slice, ENGINE_OK);
    uint64_t end_ns = slice->finished_ns = clock_now_ns();
    queue_reap(bench.queue);
    assert_int_equal(metric_value(bench.lane->busy) - before_ns, end_ns - since_ns);
    serve(&bench, bench.shared);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_start_to_end),     cmocka_unit_test(test_oldest),
        cmocka_unit_test(test_engine_is_not_trusted), cmocka_unit_test(test_what_is_not_shown),
        cmocka_unit_test(test_device_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
