/* tests/unit/queue/bed.h: a queue, and an engine for it that is played by the test.
 *
 * The test moves batches through the lane's states as an engine would, in the same thread, so that
 * every order of events can be tried.
 */
#ifndef TESTS_UNIT_QUEUE_BED_H
#define TESTS_UNIT_QUEUE_BED_H

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
    struct queue_reservation
        reservations[16]; /* of those who entered; a free one's entry is NULL */
};

static int completed;

static const struct queue_limits limits = {
    .requests_max = 8,
    .client_requests_max = 3,
    .batch_matrices_max = {4096, 4096},
    .batch_bytes_max = 1 << 28,
    .batch_cost_ns = 5000000,
    .long_cost_ns = 20000000,
    .batch_deadline_ns = 2000000000,
    .in_flight = 2,
};

static inline void on_done(struct queue_item *item)
{
    struct order *order = (struct order *)item;
    order->done++;
    order->place = ++completed;
}

static const struct queue_engine main_engine = {QUEUE_HOST, false, 0, "test"};
static const struct queue_engine spare_engine = {QUEUE_HOST, true, 1, "spare"};

/* A new engine comes up in the given memory, which says what it takes. */
static inline struct queue_lane *bring(struct queue *queue, struct engine_shared *shared,
                                       const struct queue_engine *engine)
{
    struct queue_lane *lane = NULL;
    memset(shared->lanes, 0, sizeof shared->lanes);
    assert_int_equal(queue_lane_create(queue, shared, engine, &lane), ERROR_NONE);
    queue_lane_up(lane);
    return lane;
}

static inline void take_down(struct queue_lane **lane, bool blame)
{
    if (*lane == NULL)
        return;
    queue_lane_down(*lane, blame);
    queue_lane_destroy(lane);
}

static inline struct bench bench_open(const struct queue_limits *use)
{
    struct bench bench = {.metrics = metric_registry_create()};
    assert_int_equal(queue_create(use, bench.metrics, &bench.queue, NULL), ERROR_NONE);
    bench.shared = calloc(1, sizeof *bench.shared);
    bench.spare_shared = calloc(1, sizeof *bench.spare_shared);
    bench.orders = calloc(ITEMS_MAX, sizeof *bench.orders);
    assert_non_null(bench.orders);
    bench.lane = bring(bench.queue, bench.shared, &main_engine);
    completed = 0;
    return bench;
}

static inline void bench_close(struct bench *bench)
{
    take_down(&bench->lane, false);
    take_down(&bench->spare, false);
    queue_destroy(&bench->queue);
    metric_registry_destroy(&bench->metrics);
    free(bench->shared);
    free(bench->spare_shared);
    free(bench->orders);
}

static inline void submit_by(struct bench *bench, int index, const char *method, int64_t n,
                             int64_t batch)
{
    struct queue_item *item = &bench->orders[index].item;
    item->method = method_find(method);
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

static inline void submit(struct bench *bench, int index, int64_t n, int64_t batch)
{
    submit_by(bench, index, "lu", n, batch);
}

/* By some reservation of the bed's. */
static inline enum error enter(struct bench *bench, uint32_t client, struct failure *failure)
{
    int i = 0;
    while (bench->reservations[i].entry != NULL)
        i++;
    assert_true(i < 16);
    bench->reservations[i] = (struct queue_reservation){.client = client};
    return queue_enter(bench->queue, &bench->reservations[i], failure);
}

static inline void leave(struct bench *bench, uint32_t client)
{
    int i = 0;
    while (bench->reservations[i].entry == NULL || bench->reservations[i].client != client)
        i++;
    queue_leave(bench->queue, &bench->reservations[i]);
}

/* The oldest batch in the given state on a lane kind, or NULL. */
static inline struct engine_batch *oldest(struct engine_shared *shared, int kind, uint32_t state)
{
    struct engine_batch *found = NULL;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct engine_batch *batch = &shared->lanes[kind].batches[i];
        if (batch->state == state && (found == NULL || batch->sequence < found->sequence))
            found = batch;
    }
    return found;
}

static inline struct engine_batch *start(struct engine_shared *shared, int kind)
{
    struct engine_batch *batch = oldest(shared, kind, ENGINE_BATCH_SUBMITTED);
    if (batch != NULL) {
        batch->started_ns = clock_now_ns();
        batch->state = ENGINE_BATCH_RUNNING;
    }
    return batch;
}

static inline void finish(struct engine_batch *batch, enum engine_status status)
{
    batch->status = status;
    batch->finished_ns = batch->started_ns + 1000 * (uint64_t)batch->matrices;
    strcpy(batch->kernel, "test kernel");
    batch->state = ENGINE_BATCH_DONE;
}

/* Now and then it finds no memory, or leaves what is unwanted. */
static inline void finish_somehow(struct engine_batch *batch)
{
    bool left = batch->unwanted && rand() % 2;
    finish(batch, left ? ENGINE_STOPPED : rand() % 10 ? ENGINE_OK : ENGINE_OUT_OF_MEMORY);
}

/* Runs whatever is submitted until nothing is; returns the count of batches. */
static inline int serve(struct bench *bench, struct engine_shared *shared)
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

/* A new engine in the same role. */
static inline void replace_lane(struct bench *bench, bool blame)
{
    take_down(&bench->lane, blame);
    bench->lane = bring(bench->queue, bench->shared, &main_engine);
}

static inline void bring_spare(struct bench *bench)
{
    take_down(&bench->spare, true);
    bench->spare = bring(bench->queue, bench->spare_shared, &spare_engine);
}

#endif
