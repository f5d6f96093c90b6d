/* tests/unit/server/test_probe.c: the known-answer probe against an engine played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/engines/probe.h"

#define ENGINE 3

struct bench {
    struct metric_registry *metrics;
    struct arena *arena;
    struct queue *queue;
    struct engine_shared *shared;
    struct queue_lane *lane;
    struct probe *probe;
};

static const struct queue_limits limits = {
    .requests_max = 8,
    .batch_matrices_max = {4096, 4096},
    .batch_bytes_max = 1 << 20,
    .batch_cost_ns = 5000000,
    .long_cost_ns = 20000000,
    .batch_deadline_ns = 2000000000,
    .in_flight = 2,
};

static struct bench bench_open(void)
{
    static const struct queue_engine engine = {QUEUE_HOST, false, ENGINE, "test"};
    struct bench bench = {.metrics = metric_registry_create()};
    assert_int_equal(arena_create(1 << 21, &bench.arena, NULL), ERROR_NONE);
    assert_int_equal(queue_create(&limits, bench.metrics, &bench.queue, NULL), ERROR_NONE);
    bench.shared = calloc(1, sizeof *bench.shared);
    assert_non_null(bench.shared);
    assert_int_equal(queue_lane_create(bench.queue, bench.shared, &engine, &bench.lane),
                     ERROR_NONE);
    queue_lane_up(bench.lane);
    assert_int_equal(probe_create(bench.queue, bench.arena, "lu", &bench.probe, NULL), ERROR_NONE);
    return bench;
}

static void bench_close(struct bench *bench)
{
    queue_lane_down(bench->lane, false);
    queue_lane_destroy(&bench->lane);
    probe_destroy(&bench->probe);
    queue_destroy(&bench->queue);
    arena_destroy(&bench->arena);
    metric_registry_destroy(&bench->metrics);
    free(bench->shared);
}

/* Answers the probe's batch with the inverse times factor, or with a status. */
static void answer(struct bench *bench, double factor, int32_t info, enum engine_status status)
{
    static const double inverse[4] = {0.6, -0.7, -0.2, 0.4};
    struct engine_batch *batch = &bench->shared->lanes[ENGINE_LANE_SHORT].batches[0];
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
        if (bench->shared->lanes[ENGINE_LANE_SHORT].batches[i].state == ENGINE_BATCH_SUBMITTED)
            batch = &bench->shared->lanes[ENGINE_LANE_SHORT].batches[i];
    assert_int_equal(batch->state, ENGINE_BATCH_SUBMITTED);
    unsigned char *base = arena_base(bench->arena);
    const struct engine_item *item = &batch->items[0];
    double a[4];
    memcpy(a, base + item->inputs[0].offset_bytes, sizeof a);
    assert_true(a[0] == 4 && a[1] == 7 && a[2] == 2 && a[3] == 6);
    double *x = (double *)(void *)(base + item->outputs[0].offset_bytes);
    for (int i = 0; i < 4; i++)
        x[i] = factor * inverse[i];
    memcpy(base + item->outputs[1].offset_bytes, &info, sizeof info);
    batch->status = status;
    batch->state = ENGINE_BATCH_DONE;
    queue_reap(bench->queue);
}

static void test_verdicts_are_given_once(void **state)
{
    static const struct {
        double factor;
        int32_t info;
        enum engine_status status;
        enum probe_state verdict;
    } rows[] = {
        {1, 0, ENGINE_OK, PROBE_RIGHT},           {1 + 1e-12, 0, ENGINE_OK, PROBE_WRONG},
        {1, 1, ENGINE_OK, PROBE_WRONG},           {0.0 / 0.0, 0, ENGINE_OK, PROBE_WRONG},
        {1, 0, ENGINE_UNSUPPORTED, PROBE_FAILED}, {1, 0, ENGINE_OK, PROBE_RIGHT},
    };
    (void)state;
    struct bench bench = bench_open();
    assert_int_equal(probe_take(bench.probe), PROBE_IDLE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        probe_start(bench.probe, ENGINE);
        assert_true(probe_is_running(bench.probe));
        assert_int_equal(probe_take(bench.probe), PROBE_IDLE);
        answer(&bench, rows[i].factor, rows[i].info, rows[i].status);
        assert_false(probe_is_running(bench.probe));
        assert_int_equal(probe_take(bench.probe), rows[i].verdict);
        assert_int_equal(probe_engine(bench.probe), rows[i].status == ENGINE_OK ? 3 : 0);
        assert_int_equal(probe_take(bench.probe), PROBE_IDLE);
    }
    bench_close(&bench);
}

static void test_a_cancelled_probe_has_failed(void **state)
{
    (void)state;
    struct bench bench = bench_open();
    probe_cancel(bench.probe); /* none runs */
    probe_start(bench.probe, ENGINE);
    probe_cancel(bench.probe);
    assert_true(probe_is_running(bench.probe)); /* the engine still has it */
    answer(&bench, 1, 0, ENGINE_OK);
    assert_int_equal(probe_take(bench.probe), PROBE_FAILED);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_are_given_once),
        cmocka_unit_test(test_a_cancelled_probe_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
