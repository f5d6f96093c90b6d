/* tests/unit/queue/test_suspects.c: engines that die, hang, run out, and what becomes of their
 * batches. */
#include "tests/unit/queue/bed.h"

static void test_death_before_start_is_only_a_retry(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 5; i++)
        submit(&bench, i, 8, 1);
    queue_flush(bench.queue);
    replace_lane(&bench, true);
    assert_false(queue_has_suspects(bench.queue, QUEUE_HOST));
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
    assert_true(queue_has_suspects(bench.queue, QUEUE_HOST));
    assert_null(start(bench.shared, ENGINE_LANE_SHORT)); /* suspects never run in company */
    int deaths = 0;
    bring_spare(&bench);
    while (queue_has_suspects(bench.queue, QUEUE_HOST)) {
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

/* Whichever lanes they are of: else one dies for the other. */
static void test_suspects_of_all_lanes_run_alone(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    static const enum engine_lane_id lanes[] = {ENGINE_LANE_BACKGROUND, ENGINE_LANE_SHORT,
                                                ENGINE_LANE_BACKGROUND};
    for (int i = 0; i < 3; i++) {
        bench.orders[i].item.priority =
            lanes[i] == ENGINE_LANE_BACKGROUND ? QUEUE_PRIORITY_BACKGROUND : 2;
        submit(&bench, i, 8 + i, 1);
    }
    queue_flush(bench.queue);
    for (int i = 0; i < 3; i++)
        assert_non_null(start(bench.shared, lanes[i]));
    replace_lane(&bench, true);
    bring_spare(&bench);
    for (int left = 3; left > 0; left--) {
        struct engine_batch *batches[ENGINE_LANES];
        int found = -1, count = 0;
        queue_flush(bench.queue);
        for (int kind = 0; kind < ENGINE_LANES; kind++) {
            batches[kind] = start(bench.spare_shared, kind);
            count += batches[kind] != NULL;
            assert_null(start(bench.spare_shared, kind));
            found = batches[kind] != NULL ? kind : found;
        }
        assert_int_equal(count, 1);
        finish(batches[found], ENGINE_OK);
        queue_reap(bench.queue);
    }
    assert_int_equal(completed, 3);
    bench_close(&bench);
}

/* While an engine ends, what it has not begun goes to another one, and what it has begun stays. */
static void test_an_ending_engine_gets_nothing_more(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct engine_shared *next_shared = calloc(1, sizeof *next_shared);
    assert_non_null(next_shared);
    for (int i = 0; i < 2; i++) { /* a batch each */
        submit(&bench, i, 8 + i, 1);
        queue_flush(bench.queue);
    }
    assert_non_null(start(bench.shared, ENGINE_LANE_SHORT));
    assert_false(queue_lane_close(bench.lane, true));
    assert_null(start(bench.shared, ENGINE_LANE_SHORT));
    assert_true(queue_has_suspects(bench.queue, QUEUE_HOST)); /* soon */
    bring_spare(&bench);
    assert_null(start(bench.spare_shared, ENGINE_LANE_SHORT));
    struct queue_lane *next = bring(bench.queue, next_shared, &main_engine);
    submit(&bench, 2, 8, 1);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, next_shared), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench.orders[i].done, i > 0);
    take_down(&bench.lane, true);
    assert_null(start(next_shared, ENGINE_LANE_SHORT));
    assert_int_equal(serve(&bench, bench.spare_shared), 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_NONE);
    take_down(&next, false);
    bench_close(&bench);
    free(next_shared);
}

/* What an ending engine ends well after all needs no other one. Nothing more of it starts before,
 * and what found no memory runs again, an item at a time. */
static void test_an_ending_engine_may_end_its_work(void **state)
{
    static const struct {
        enum engine_status how;
        int64_t batch; /* more than one: slices */
        int items;
    } rows[] = {{ENGINE_OK, 100000, 1},
                {ENGINE_OUT_OF_MEMORY, 100000, 1},
                {ENGINE_OK, 1, 5},
                {ENGINE_OUT_OF_MEMORY, 1, 5}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct bench bench = bench_open(&limits);
        for (int i = 0; i < rows[k].items; i++)
            submit(&bench, i, 32, rows[k].batch);
        queue_flush(bench.queue);
        int kind = rows[k].batch > 1 ? ENGINE_LANE_LONG : ENGINE_LANE_SHORT;
        struct engine_batch *batch = start(bench.shared, kind);
        assert_int_equal(batch->item_count, rows[k].items);
        assert_false(queue_lane_close(bench.lane, true));
        struct engine_shared *next_shared = calloc(1, sizeof *next_shared);
        assert_non_null(next_shared);
        struct queue_lane *next = bring(bench.queue, next_shared, &main_engine);
        assert_null(start(next_shared, kind)); /* the verdict is not known */
        finish(batch, rows[k].how);
        queue_reap(bench.queue);
        take_down(&bench.lane, true);
        bring_spare(&bench);
        int alone = 0;
        while ((batch = start(bench.spare_shared, kind)) != NULL) {
            assert_int_equal(batch->item_count, 1);
            finish(batch, ENGINE_OK);
            queue_reap(bench.queue);
            alone++;
        }
        if (rows[k].items > 1)
            assert_int_equal(alone, rows[k].how == ENGINE_OK ? 0 : rows[k].items);
        while (serve(&bench, next_shared) + serve(&bench, bench.spare_shared) > 0) {
        }
        for (int i = 0; i < rows[k].items; i++) {
            assert_int_equal(bench.orders[i].done, 1);
            assert_int_equal(bench.orders[i].item.status, ERROR_NONE);
        }
        take_down(&next, false);
        bench_close(&bench);
        free(next_shared);
    }
}

/* What is left of suspects, in batches that the engine had not begun, waits with what it had: a
 * spare engine is not to be busy before it could take over. Others go on at once. */
static void test_suspects_wait_until_their_engine_is_reaped(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct engine_shared *next_shared = calloc(1, sizeof *next_shared);
    assert_non_null(next_shared);
    bring_spare(&bench);
    submit(&bench, 0, 32, 100000); /* slices: one begun, one not */
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    assert_non_null(start(bench.shared, ENGINE_LANE_LONG));
    assert_non_null(oldest(bench.shared, ENGINE_LANE_LONG, ENGINE_BATCH_SUBMITTED));
    assert_false(queue_lane_close(bench.lane, true));
    assert_null(oldest(bench.shared, ENGINE_LANE_LONG, ENGINE_BATCH_SUBMITTED));
    assert_null(oldest(bench.spare_shared, ENGINE_LANE_LONG, ENGINE_BATCH_SUBMITTED));
    assert_true(queue_lane_appoint(bench.spare, &main_engine));
    assert_int_equal(serve(&bench, bench.spare_shared), 1);
    assert_int_equal(bench.orders[1].done, 1);
    assert_true(queue_has_suspects(bench.queue, QUEUE_HOST));
    take_down(&bench.lane, true);
    assert_null(start(bench.spare_shared, ENGINE_LANE_LONG));
    struct queue_lane *next = bring(bench.queue, next_shared, &spare_engine);
    for (int i = 0; i < 2; i++) { /* one by one */
        struct engine_batch *batch = start(next_shared, ENGINE_LANE_LONG);
        assert_non_null(batch);
        assert_null(start(next_shared, ENGINE_LANE_LONG));
        finish(batch, ENGINE_OK);
        queue_reap(bench.queue);
    }
    assert_false(queue_has_suspects(bench.queue, QUEUE_HOST));
    serve(&bench, bench.spare_shared);
    assert_int_equal(bench.orders[0].done, 1);
    assert_int_equal(bench.orders[0].item.status, ERROR_NONE);
    take_down(&next, false);
    bench_close(&bench);
    free(next_shared);
}

/* An engine that the front ends without blame has no suspects, whatever it has begun. */
static void test_an_ending_engine_without_blame_has_no_suspects(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    assert_non_null(start(bench.shared, ENGINE_LANE_SHORT));
    assert_false(queue_lane_close(bench.lane, false));
    assert_false(queue_has_suspects(bench.queue, QUEUE_HOST));
    replace_lane(&bench, false);
    assert_int_equal(serve(&bench, bench.shared), 1);
    assert_int_equal(bench.orders[0].done, 1);
    bench_close(&bench);
}

/* A spare engine becomes the main one, and takes what waits; not while it has a suspect. */
static void test_a_spare_engine_is_appointed(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    bring_spare(&bench);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    start(bench.shared, ENGINE_LANE_SHORT);
    take_down(&bench.lane, true);
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    assert_false(queue_lane_appoint(bench.spare, &main_engine));
    assert_int_equal(serve(&bench, bench.spare_shared), 1);
    assert_true(queue_lane_worked(bench.spare));
    assert_true(queue_lane_appoint(bench.spare, &main_engine));
    assert_false(queue_lane_worked(bench.spare)); /* as the main one */
    assert_int_equal(serve(&bench, bench.spare_shared), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bench.orders[i].item.status, ERROR_NONE);
        assert_int_equal(bench.orders[i].item.engine, i == 0 ? spare_engine.number : 0);
    }
    assert_int_equal(metric_value(metric_series(bench.metrics, METRIC_DEVICE_BATCHES, "spare")), 1);
    assert_int_equal(metric_value(metric_series(bench.metrics, METRIC_DEVICE_BATCHES, "test")), 1);
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
    assert_int_equal(enter(&bench, 1, &failure), ERROR_NO_ENGINE);
    queue_lane_up(bench.lane);
    assert_int_equal(enter(&bench, 1, &failure), ERROR_NONE);
    leave(&bench, 1);
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
    assert_false(queue_has_suspects(bench.queue, QUEUE_HOST));
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

static void test_a_stopped_engine_blames_no_item(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    start(bench.shared, ENGINE_LANE_SHORT);
    replace_lane(&bench, false);
    assert_false(queue_has_suspects(bench.queue, QUEUE_HOST));
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

/* What an engine has not begun may wait for what the other ring's batch holds, as long as that is
 * allowed to. */
static void test_overdue_next_to_a_long_batch(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 4096, 1);
    submit(&bench, 1, 8, 1);
    queue_flush(bench.queue);
    uint64_t now_ns = clock_now_ns();
    struct engine_batch *large = start(bench.shared, ENGINE_LANE_LONG);
    const uint64_t long_ns = now_ns + 1000 * CLOCK_S;
    assert_non_null(oldest(bench.shared, ENGINE_LANE_SHORT, ENGINE_BATCH_SUBMITTED));
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 3 * CLOCK_S) == 0);
    assert_true(queue_lane_overdue_ns(bench.lane, long_ns) > 0);
    struct engine_batch *small = start(bench.shared, ENGINE_LANE_SHORT);
    now_ns += 3 * CLOCK_S;
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns) == 0);
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 3 * CLOCK_S) > 2 * CLOCK_S);
    finish(large, ENGINE_OK);
    finish(small, ENGINE_OK);
    queue_reap(bench.queue);
    bench_close(&bench);
}

/* The time of the next one counts from when the one before it was done. */
static void test_overdue_behind_another(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct engine_batch *batches[2];
    for (int i = 0; i < 2; i++) {
        submit(&bench, i, 8 + i, 1);
        queue_flush(bench.queue);
        batches[i] = start(bench.shared, ENGINE_LANE_SHORT);
    }
    uint64_t now_ns = clock_now_ns();
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns) == 0);
    while (clock_now_ns() < now_ns + CLOCK_MS)
        continue;
    finish(batches[0], ENGINE_OK);
    queue_reap(bench.queue);
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 2 * CLOCK_S + 1) == 0);
    assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 3 * CLOCK_S) > 0);
    finish(batches[1], ENGINE_OK);
    queue_reap(bench.queue);
    bench_close(&bench);
}

/* One that waits, in the middle or passed by others, may do so as long as one may run that was sent
 * after it. */
static void test_overdue_before_a_long_batch(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        struct bench bench = bench_open(&limits);
        struct engine_batch *batches[2];
        for (int i = 0; i < 2; i++) {
            submit(&bench, i, i ? 4096 : 512, 1);
            queue_flush(bench.queue);
            batches[i] = start(bench.shared, ENGINE_LANE_LONG);
        }
        uint64_t now_ns = clock_now_ns();
        batches[0]->waits = (uint32_t)begun;
        batches[0]->state = begun ? ENGINE_BATCH_RUNNING : ENGINE_BATCH_SUBMITTED;
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns) == 0);
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 100 * CLOCK_S) == 0);
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 1000 * CLOCK_S) > 0);
        for (int i = 0; i < 2; i++)
            finish(batches[i], ENGINE_OK);
        queue_reap(bench.queue);
        bench_close(&bench);
    }
}

/* One that waits for what another lane's batch holds: when that is done its own time is not up. */
static void test_overdue_behind_another_lane(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        struct bench bench = bench_open(&limits);
        submit(&bench, 0, 4096, 1);
        queue_flush(bench.queue);
        struct engine_batch *large = start(bench.shared, ENGINE_LANE_LONG);
        submit(&bench, 1, 8, 1);
        queue_flush(bench.queue);
        struct engine_batch *small = start(bench.shared, ENGINE_LANE_SHORT);
        uint64_t now_ns = clock_now_ns();
        small->waits = (uint32_t)begun;
        small->state = begun ? ENGINE_BATCH_RUNNING : ENGINE_BATCH_SUBMITTED;
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 60 * CLOCK_S) == 0);
        finish(large, ENGINE_OK);
        queue_reap(bench.queue);
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 60 * CLOCK_S + 1) == 0);
        assert_true(queue_lane_overdue_ns(bench.lane, now_ns + 1000 * CLOCK_S) > 0);
        finish(small, ENGINE_OK);
        queue_reap(bench.queue);
        bench_close(&bench);
    }
}

/* Random orders, cancels, deaths and shortages: each item is done exactly once, nothing is left. */
static void storm(unsigned seed)
{
    srand(seed);
    struct queue_limits wild = limits;
    wild.in_flight = 1 + (int)seed % 3;
    struct bench bench = bench_open(&wild);
    int submitted = 0;
    bool ending = false, blamed = false;
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
            if (!ending)
                blamed = rand() % 2;
            ending = !ending && rand() % 2;
            if (ending)
                (void)queue_lane_close(bench.lane, blamed);
            else
                replace_lane(&bench, blamed);
        } else if (dice < 42) {
            bring_spare(&bench);
        } else {
            struct engine_shared *shared = rand() % 2 ? bench.shared : bench.spare_shared;
            int kind = rand() % 2;
            struct engine_batch *batch =
                rand() % 2 ? start(shared, kind) : oldest(shared, kind, ENGINE_BATCH_RUNNING);
            if (batch != NULL && rand() % 3 != 0)
                finish_somehow(batch);
            if (rand() % 2)
                queue_reap(bench.queue);
            else
                queue_flush(bench.queue);
        }
    }
    replace_lane(&bench, ending && blamed);
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
        cmocka_unit_test(test_death_before_start_is_only_a_retry),
        cmocka_unit_test(test_poison_is_found_and_the_others_answered),
        cmocka_unit_test(test_suspects_of_all_lanes_run_alone),
        cmocka_unit_test(test_an_ending_engine_gets_nothing_more),
        cmocka_unit_test(test_an_ending_engine_may_end_its_work),
        cmocka_unit_test(test_suspects_wait_until_their_engine_is_reaped),
        cmocka_unit_test(test_an_ending_engine_without_blame_has_no_suspects),
        cmocka_unit_test(test_a_spare_engine_is_appointed),
        cmocka_unit_test(test_an_outage_ends_what_waits),
        cmocka_unit_test(test_suspects_without_a_spare_engine_end),
        cmocka_unit_test(test_strikes_are_forgiven),
        cmocka_unit_test(test_a_stopped_engine_blames_no_item),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_overdue_next_to_a_long_batch),
        cmocka_unit_test(test_overdue_behind_another),
        cmocka_unit_test(test_overdue_before_a_long_batch),
        cmocka_unit_test(test_overdue_behind_another_lane),
        cmocka_unit_test(test_storms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
