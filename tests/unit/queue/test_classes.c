/* tests/unit/queue/test_classes.c: which engines serve what, and who takes over. */
#include "queue/queue_private.h"
#include "tests/unit/queue/bed.h"

#define CUDA_ORDERS 32

static const struct queue_engine cuda_engines[2] = {{QUEUE_CUDA, false, 10, "cuda:0"},
                                                    {QUEUE_CUDA, false, 11, "cuda:1"}};
static const struct queue_engine cuda_spare_engine = {QUEUE_CUDA, true, 12, "cuda-spare"};

/* Next to the host engine of the bed: CUDA engines that take lu up to CUDA_ORDERS. */
struct site {
    struct bench bench;
    struct engine_shared *shared[2], *spare_shared;
    struct queue_lane *lanes[2], *spare;
};

static struct engine_shared *cuda_shared(int64_t n_max)
{
    struct engine_shared *shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    for (int p = 0; p < PRECISION_COUNT; p++)
        shared->n_max[method_index(method_find("lu"))][p] = n_max;
    return shared;
}

static void bring_cuda(struct site *site, int device)
{
    site->lanes[device] = bring(site->bench.queue, site->shared[device], &cuda_engines[device]);
}

static struct site site_open(const struct queue_limits *use)
{
    struct site site = {.bench = bench_open(use)};
    for (int i = 0; i < 2; i++)
        site.shared[i] = cuda_shared(CUDA_ORDERS);
    site.spare_shared = cuda_shared(CUDA_ORDERS);
    bring_cuda(&site, 0);
    return site;
}

static void site_close(struct site *site)
{
    for (int i = 0; i < 2; i++)
        take_down(&site->lanes[i], false);
    take_down(&site->spare, false);
    bench_close(&site->bench);
    for (int i = 0; i < 2; i++)
        free(site->shared[i]);
    free(site->spare_shared);
}

static void end_one(struct site *site, struct engine_shared *shared)
{
    struct engine_batch *batch = start(shared, ENGINE_LANE_SHORT);
    assert_non_null(batch);
    finish(batch, ENGINE_OK);
    queue_reap(site->bench.queue);
}

static void assert_done(const struct site *site, int order, int engine)
{
    assert_int_equal(site->bench.orders[order].done, 1);
    assert_int_equal(site->bench.orders[order].item.status, ERROR_NONE);
    assert_int_equal(site->bench.orders[order].item.engine, engine);
}

static void test_items_go_where_they_are_taken(void **state)
{
    static const struct {
        const char *method;
        int64_t n;
        int engine;
    } rows[] = {
        {"lu", 1, 10},  {"lu", CUDA_ORDERS, 10}, {"lu", CUDA_ORDERS + 1, 0},
        {"auto", 8, 0}, {"gauss_jordan", 8, 0},  {"lu_factor", 8, 0},
    };
    (void)state;
    struct site site = site_open(&limits);
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        submit_by(&site.bench, i, rows[i].method, rows[i].n, 1);
        queue_flush(site.bench.queue);
        end_one(&site, rows[i].engine == 0 ? site.bench.shared : site.shared[0]);
        assert_done(&site, i, rows[i].engine);
    }
    site_close(&site);
}

/* A probe of the host's engine is not kept by a device class whose engines never look at it. */
static void test_an_item_for_one_engine_waits_where_it_looks(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    site.bench.orders[0].item.only_engine = 1;
    site.bench.orders[1].item.only_engine = 1 + cuda_engines[0].number;
    submit(&site.bench, 0, 8, 1);
    submit(&site.bench, 1, CUDA_ORDERS + 1, 1);
    queue_flush(site.bench.queue);
    assert_int_equal(serve(&site.bench, site.bench.shared), 1);
    assert_int_equal(serve(&site.bench, site.shared[0]), 1);
    assert_done(&site, 0, 0);
    assert_done(&site, 1, cuda_engines[0].number);
    site_close(&site);
}

/* Before a CUDA engine was ever up, and what the weakest of several takes. */
static void test_a_place_takes_what_all_its_engines_take(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    free(site.shared[1]);
    site.shared[1] = cuda_shared(16);
    submit(&site.bench, 0, 20, 1);
    queue_flush(site.bench.queue);
    end_one(&site, site.shared[0]);
    bring_cuda(&site, 1);
    submit(&site.bench, 1, 20, 1);
    queue_flush(site.bench.queue);
    end_one(&site, site.bench.shared);
    take_down(&site.lanes[1], true); /* it has been up, and may come again */
    submit(&site.bench, 2, 20, 1);
    queue_flush(site.bench.queue);
    end_one(&site, site.bench.shared);
    site_close(&site);

    struct bench bench = bench_open(&limits);
    submit(&bench, 0, 8, 1);
    queue_flush(bench.queue);
    assert_int_equal(serve(&bench, bench.shared), 1);
    bench_close(&bench);
}

static void test_engines_of_a_place_share(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    bring_cuda(&site, 1);
    for (int i = 0; i < 4; i++)
        submit(&site.bench, i, 2 + i, 1); /* four keys, two lanes of two slots */
    queue_flush(site.bench.queue);
    for (int device = 0; device < 2; device++)
        for (int i = 0; i < 2; i++)
            end_one(&site, site.shared[device]);
    assert_null(start(site.bench.shared, ENGINE_LANE_SHORT));
    int by_second = 0;
    for (int i = 0; i < 4; i++)
        by_second += site.bench.orders[i].item.engine == 11;
    assert_int_equal(by_second, 2);
    site_close(&site);
}

/* A batch that an engine of a device has not begun may wait for memory that another engine has. */
static void test_a_device_may_be_full_for_a_while(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 1);
    queue_flush(site.bench.queue);
    uint64_t now_ns = clock_now_ns();
    const uint64_t late_ns = now_ns + 3 * CLOCK_S; /* the deadline is 2 s */
    struct queue_lane *lane = site.lanes[0];
    assert_true(queue_lane_overdue_ns(lane, late_ns) == 0);
    assert_true(queue_lane_overdue_ns(lane, late_ns + ENGINE_MEMORY_WAIT_NS) > 0);
    struct engine_batch *batch = start(site.shared[0], ENGINE_LANE_SHORT);
    assert_true(queue_lane_overdue_ns(lane, late_ns) == 0); /* it has all of its time before it */
    assert_true(queue_lane_overdue_ns(lane, late_ns + CLOCK_S) == 0);
    assert_true(queue_lane_overdue_ns(lane, late_ns + 3 * CLOCK_S) > 2 * CLOCK_S);
    finish(batch, ENGINE_OK);
    queue_reap(site.bench.queue);
    site_close(&site);
}

/* One that has begun may wait too, but once; the time that it has counts from when it goes on. */
static void test_a_batch_may_wait_in_the_middle(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const bool ends = kind > 0, begins_again = kind > 1;
        struct site site = site_open(&limits);
        struct queue_lane *lane = site.lanes[0];
        submit(&site.bench, 0, 8, 1);
        queue_flush(site.bench.queue);
        uint64_t now_ns = clock_now_ns();
        struct engine_batch *batch = start(site.shared[0], ENGINE_LANE_SHORT);
        assert_int_equal(batch->waits, 0);
        assert_true(queue_lane_overdue_ns(lane, now_ns) == 0);
        batch->waits = 1;
        now_ns += CLOCK_S;
        assert_true(queue_lane_overdue_ns(lane, now_ns) == 0);
        now_ns += 3 * CLOCK_S;
        batch->waits = !ends;
        assert_true(queue_lane_overdue_ns(lane, now_ns) == 0);
        batch->waits = !ends || begins_again;
        assert_true(queue_lane_overdue_ns(lane, now_ns + CLOCK_S) == 0);
        assert_int_equal(queue_lane_overdue_ns(lane, now_ns + 3 * CLOCK_S) > 2 * CLOCK_S, ends);
        assert_true(queue_lane_overdue_ns(lane, now_ns + 8 * CLOCK_S) > 7 * CLOCK_S);
        finish(batch, ENGINE_OK);
        queue_reap(site.bench.queue);
        for (int i = 1; i <= ENGINE_BATCH_SLOTS; i++) { /* the slot's next batch begins anew */
            submit(&site.bench, i, 8, 1);
            queue_flush(site.bench.queue);
            assert_true(queue_lane_overdue_ns(lane, clock_now_ns() + 3 * CLOCK_S) == 0);
            batch = start(site.shared[0], ENGINE_LANE_SHORT);
            assert_int_equal(batch->waits, 0);
            finish(batch, ENGINE_OK);
            queue_reap(site.bench.queue);
        }
        site_close(&site);
    }
}

/* A restart is waited for: the same matrix keeps its bits. */
static void test_a_short_absence_is_waited_for(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 1);
    queue_flush(site.bench.queue);
    take_down(&site.lanes[0], true);
    submit(&site.bench, 1, 8, 1);
    submit(&site.bench, 2, 40, 1);
    queue_flush(site.bench.queue);
    queue_tick(site.bench.queue, clock_now_ns() + 4 * CLOCK_S);
    assert_int_equal(serve(&site.bench, site.bench.shared), 1); /* the host's own */
    bring_cuda(&site, 0);
    end_one(&site, site.shared[0]);
    end_one(&site, site.shared[0]);
    for (int i = 0; i < 2; i++)
        assert_done(&site, i, 10);
    site_close(&site);
}

static void come_to_an_end(struct site *site, bool given_up)
{
    if (given_up)
        queue_give_up(site->bench.queue, QUEUE_CUDA, true);
    else
        queue_tick(site->bench.queue, clock_now_ns() + 6 * CLOCK_S);
}

/* Reported by the supervisor or noticed after 5 s: the host takes what waits, and what comes. */
static void test_the_host_takes_over(void **state)
{
    (void)state;
    for (int given_up = 0; given_up < 2; given_up++) {
        struct site site = site_open(&limits);
        submit(&site.bench, 0, 8, 1);
        queue_flush(site.bench.queue);
        take_down(&site.lanes[0], true); /* 0 is a retry now */
        submit(&site.bench, 1, 8, 1);
        queue_flush(site.bench.queue);
        assert_null(oldest(site.bench.shared, ENGINE_LANE_SHORT, ENGINE_BATCH_SUBMITTED));
        assert_false(queue_is_out(site.bench.queue, QUEUE_CUDA));
        come_to_an_end(&site, given_up);
        assert_true(queue_is_out(site.bench.queue, QUEUE_CUDA));
        submit(&site.bench, 2, 8, 1);
        queue_flush(site.bench.queue);
        serve(&site.bench, site.bench.shared);
        for (int i = 0; i < 3; i++)
            assert_done(&site, i, 0);
        queue_give_up(site.bench.queue, QUEUE_CUDA, false);
        bring_cuda(&site, 0); /* and gives it back */
        submit(&site.bench, 3, 8, 1);
        queue_flush(site.bench.queue);
        end_one(&site, site.shared[0]);
        assert_done(&site, 3, 10);
        site_close(&site);
    }
}

/* What an outage has left behind does not wait until the host has nothing else to do. */
static void test_what_an_outage_left_goes_first(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    take_down(&site.lanes[0], true);
    submit(&site.bench, 0, 8, 1);
    for (int i = 1; i < 6; i++)
        submit(&site.bench, i, 40 + i, 1); /* more than the host takes at once */
    queue_flush(site.bench.queue);
    queue_give_up(site.bench.queue, QUEUE_CUDA, true);
    for (int i = 0; i < 3; i++)
        end_one(&site, site.bench.shared); /* two of the host's were under way */
    assert_done(&site, 0, 0);
    assert_int_equal(serve(&site.bench, site.bench.shared), 3);
    site_close(&site);
}

static void test_without_any_engine_what_waits_is_ended(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    struct failure failure;
    take_down(&site.lanes[0], true);
    queue_lane_down(site.bench.lane, true);
    submit(&site.bench, 0, 8, 1);
    submit(&site.bench, 1, 40, 1);
    queue_flush(site.bench.queue);
    queue_tick(site.bench.queue, clock_now_ns() + 6 * CLOCK_S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(site.bench.orders[i].done, 1);
        assert_int_equal(site.bench.orders[i].item.status, ERROR_NO_ENGINE);
    }
    assert_int_equal(enter(&site.bench, 1, &failure), ERROR_NO_ENGINE);
    queue_lane_up(site.bench.lane);
    assert_int_equal(enter(&site.bench, 1, &failure), ERROR_NONE);
    leave(&site.bench, 1);
    site_close(&site);
}

/* The host gone, CUDA there: CUDA's work goes on, the host's ends. */
static void test_cuda_goes_on_alone(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    struct failure failure;
    queue_lane_down(site.bench.lane, true);
    submit(&site.bench, 0, 40, 1);
    queue_flush(site.bench.queue);
    queue_tick(site.bench.queue, clock_now_ns() + 6 * CLOCK_S);
    assert_int_equal(site.bench.orders[0].item.status, ERROR_NO_ENGINE);
    assert_int_equal(enter(&site.bench, 1, &failure), ERROR_NONE);
    leave(&site.bench, 1);
    submit(&site.bench, 1, 8, 1);
    queue_flush(site.bench.queue);
    end_one(&site, site.shared[0]);
    assert_done(&site, 1, 10);
    site_close(&site);
}

static void test_shared_the_host_helps(void **state)
{
    (void)state;
    struct queue_limits helping = limits;
    helping.shared = true;
    struct site site = site_open(&helping);
    for (int i = 0; i < 4; i++)
        submit(&site.bench, i, 2 + i, 1);
    queue_flush(site.bench.queue);
    for (int i = 0; i < 2; i++) {
        end_one(&site, site.shared[0]);
        end_one(&site, site.bench.shared);
    }
    submit(&site.bench, 4, 40, 1); /* but CUDA never helps the host */
    submit(&site.bench, 5, 41, 1);
    submit(&site.bench, 6, 42, 1);
    queue_flush(site.bench.queue);
    assert_null(start(site.shared[0], ENGINE_LANE_SHORT));
    assert_int_equal(serve(&site.bench, site.bench.shared), 3);
    site_close(&site);
}

static void test_suspects_run_where_they_belong(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 1);
    submit(&site.bench, 1, 40, 1);
    queue_flush(site.bench.queue);
    assert_non_null(start(site.shared[0], ENGINE_LANE_SHORT));
    assert_non_null(start(site.bench.shared, ENGINE_LANE_SHORT));
    take_down(&site.lanes[0], true);
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_CUDA));
    assert_false(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    bring_spare(&site.bench);
    assert_null(start(site.bench.spare_shared, ENGINE_LANE_SHORT)); /* not the host's */
    replace_lane(&site.bench, true);
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    end_one(&site, site.bench.spare_shared);
    assert_done(&site, 1, 1);
    assert_int_equal(site.bench.orders[0].done, 0);
    site.spare = bring(site.bench.queue, site.spare_shared, &cuda_spare_engine);
    end_one(&site, site.spare_shared);
    assert_done(&site, 0, 12);
    assert_false(queue_has_suspects(site.bench.queue, QUEUE_CUDA));
    site_close(&site);
}

static void test_suspects_of_a_place_that_is_out(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 1);
    queue_flush(site.bench.queue);
    assert_non_null(start(site.shared[0], ENGINE_LANE_SHORT));
    take_down(&site.lanes[0], true);
    queue_give_up(site.bench.queue, QUEUE_CUDA, true);
    assert_false(queue_has_suspects(site.bench.queue, QUEUE_CUDA));
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    bring_spare(&site.bench);
    assert_non_null(start(site.bench.spare_shared, ENGINE_LANE_SHORT));
    take_down(&site.bench.spare, true); /* one strike, and alone again */
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    bring_spare(&site.bench);
    end_one(&site, site.bench.spare_shared);
    assert_done(&site, 0, 1);
    site_close(&site);
}

/* An order whose engine died; the engine is back, its spare one is not. now_ns: the clock's. */
static struct site site_with_a_suspect(uint64_t *now_ns)
{
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 1);
    queue_flush(site.bench.queue);
    assert_non_null(start(site.shared[0], ENGINE_LANE_SHORT));
    take_down(&site.lanes[0], true);
    bring_cuda(&site, 0);
    *now_ns = clock_now_ns();
    queue_tick(site.bench.queue, *now_ns);
    queue_tick(site.bench.queue, *now_ns + 4 * CLOCK_S);
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_CUDA));
    assert_int_equal(site.bench.orders[0].done, 0);
    return site;
}

static void test_suspects_left_alone_are_the_hosts(void **state)
{
    (void)state;
    uint64_t now_ns;
    struct site site = site_with_a_suspect(&now_ns);
    bring_spare(&site.bench);
    assert_null(start(site.bench.spare_shared, ENGINE_LANE_SHORT)); /* not yet */
    queue_tick(site.bench.queue, now_ns + 6 * CLOCK_S);
    assert_true(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    assert_false(queue_has_suspects(site.bench.queue, QUEUE_CUDA));
    queue_tick(site.bench.queue, now_ns + 6 * CLOCK_S);
    end_one(&site, site.bench.spare_shared);
    assert_done(&site, 0, 1);
    queue_tick(site.bench.queue, now_ns + 7 * CLOCK_S);
    assert_false(queue_has_suspects(site.bench.queue, QUEUE_HOST));
    site_close(&site);
}

static void test_suspects_wait_for_any_spare_engine_in_vain(void **state)
{
    (void)state;
    uint64_t now_ns;
    struct site site = site_with_a_suspect(&now_ns);
    queue_tick(site.bench.queue, now_ns + 6 * CLOCK_S);
    queue_tick(site.bench.queue, now_ns + 10 * CLOCK_S);
    assert_int_equal(site.bench.orders[0].done, 0);
    queue_tick(site.bench.queue, now_ns + 12 * CLOCK_S);
    assert_int_equal(site.bench.orders[0].item.status, ERROR_NO_ENGINE);
    site_close(&site);
}

static void test_each_place_counts_its_own(void **state)
{
    (void)state;
    struct site site = site_open(&limits);
    submit(&site.bench, 0, 8, 7);
    queue_flush(site.bench.queue);
    end_one(&site, site.shared[0]);
    assert_true(queue_last_batch_ns(site.bench.queue, QUEUE_CUDA) != 0);
    assert_true(queue_last_batch_ns(site.bench.queue, QUEUE_HOST) == 0);
    struct metric_registry *metrics = site.bench.metrics;
    assert_true(metric_value(metric_series(metrics, METRIC_DEVICE_BATCHES, "cuda:0")) == 1);
    assert_true(metric_value(metric_series(metrics, METRIC_DEVICE_MATRICES, "cuda:0")) == 7);
    assert_true(metric_value(metric_series(metrics, METRIC_DEVICE_BATCHES, "test")) == 0);
    site_close(&site);
}

/* ---- Storms ---- */

static struct engine_shared *any_shared(struct site *site)
{
    struct engine_shared *const all[] = {site->bench.shared, site->bench.spare_shared,
                                         site->shared[0], site->shared[1], site->spare_shared};
    return all[rand() % 5];
}

/* An engine of any kind dies, and another may come. */
static void disturb(struct site *site)
{
    int device = rand() % 2;
    switch (rand() % 5) {
    case 0:
        replace_lane(&site->bench, rand() % 2);
        break;
    case 1:
        bring_spare(&site->bench);
        break;
    case 2:
        take_down(&site->spare, true);
        site->spare = bring(site->bench.queue, site->spare_shared, &cuda_spare_engine);
        break;
    case 3:
        take_down(&site->lanes[device], rand() % 2);
        if (rand() % 2)
            bring_cuda(site, device);
        break;
    default:
        queue_give_up(site->bench.queue, QUEUE_CUDA, rand() % 2);
    }
}

static void engine_step(struct site *site)
{
    struct engine_shared *shared = any_shared(site);
    int kind = rand() % 2;
    struct engine_batch *batch =
        rand() % 2 ? start(shared, kind) : oldest(shared, kind, ENGINE_BATCH_RUNNING);
    if (batch != NULL && rand() % 3 != 0)
        finish_somehow(batch);
    if (rand() % 2)
        queue_reap(site->bench.queue);
    else
        queue_flush(site->bench.queue);
}

static int serve_all(struct site *site)
{
    struct bench *bench = &site->bench;
    return serve(bench, bench->shared) + serve(bench, bench->spare_shared) +
           serve(bench, site->shared[0]) + serve(bench, site->shared[1]) +
           serve(bench, site->spare_shared);
}

/* Random orders, cancels, deaths and outages: each item is done exactly once, nothing is left. */
static void storm(unsigned seed)
{
    srand(seed);
    struct queue_limits wild = limits;
    wild.shared = seed % 2;
    struct site site = site_open(&wild);
    int submitted = 0;
    for (int step = 0; step < 5000; step++) {
        int dice = rand() % 100;
        if (dice < 35 && submitted < 1000) {
            site.bench.orders[submitted].item.client = (uint32_t)(rand() % 4);
            submit(&site.bench, submitted++, rand() % 3 ? 1 + rand() % 3 : 40,
                   1 + (rand() % 20 == 0) * 200000);
        } else if (dice < 38 && submitted > 0) {
            struct order *order = &site.bench.orders[rand() % submitted];
            if (!order->done)
                queue_cancel(site.bench.queue, &order->item);
        } else if (dice < 40) {
            disturb(&site);
        } else {
            engine_step(&site);
        }
    }
    queue_give_up(site.bench.queue, QUEUE_CUDA, false);
    replace_lane(&site.bench, false);
    bring_spare(&site.bench);
    for (int device = 0; device < 2; device++) {
        take_down(&site.lanes[device], false);
        bring_cuda(&site, device);
    }
    take_down(&site.spare, false);
    site.spare = bring(site.bench.queue, site.spare_shared, &cuda_spare_engine);
    while (serve_all(&site) > 0) {
    }
    for (int i = 0; i < submitted; i++) {
        assert_int_equal(site.bench.orders[i].done, 1);
        assert_int_equal(site.bench.orders[i].item.state, QUEUE_DONE);
    }
    site_close(&site);
}

static void test_storms(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++)
        storm(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_go_where_they_are_taken),
        cmocka_unit_test(test_an_item_for_one_engine_waits_where_it_looks),
        cmocka_unit_test(test_a_place_takes_what_all_its_engines_take),
        cmocka_unit_test(test_engines_of_a_place_share),
        cmocka_unit_test(test_a_device_may_be_full_for_a_while),
        cmocka_unit_test(test_a_batch_may_wait_in_the_middle),
        cmocka_unit_test(test_a_short_absence_is_waited_for),
        cmocka_unit_test(test_the_host_takes_over),
        cmocka_unit_test(test_what_an_outage_left_goes_first),
        cmocka_unit_test(test_without_any_engine_what_waits_is_ended),
        cmocka_unit_test(test_cuda_goes_on_alone),
        cmocka_unit_test(test_shared_the_host_helps),
        cmocka_unit_test(test_suspects_run_where_they_belong),
        cmocka_unit_test(test_suspects_of_a_place_that_is_out),
        cmocka_unit_test(test_suspects_left_alone_are_the_hosts),
        cmocka_unit_test(test_suspects_wait_for_any_spare_engine_in_vain),
        cmocka_unit_test(test_each_place_counts_its_own),
        cmocka_unit_test(test_storms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
