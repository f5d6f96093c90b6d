/* queue/queue.c: the public face: submission, cancellation, what is finished. Engines
 * come and go in queue/lane.c.
 *
 * Threads: any; each function takes the one lock, and answers finished items after letting it go.
 * Submitted items wait in a list without a lock until the next thread that serves the queue takes
 * them in, so that event loops do not wait for one another.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define RETRY_AFTER_MAX_S 60
#define SERVE_ROUNDS_MAX 8 /* of one thread in a row */

/* ---- Life ---- */

static const char *const reason_names[QUEUE_REASON_COUNT] = {
#define QUEUE_REASON_LABEL(id, label, help) [QUEUE_REASON_##id] = (label),
    QUEUE_REASON_TABLE(QUEUE_REASON_LABEL)
#undef QUEUE_REASON_LABEL
};

static bool make_series(struct queue *queue, struct metric_registry *metrics)
{
    queue->series = calloc((size_t)method_count(), sizeof *queue->series);
    if (queue->series == NULL)
        return false;
    for (int i = 0; i < method_count(); i++) {
        const char *name = method_at(i)->name;
        queue->series[i] = (struct queue_method_series){
            .depth = metric_series(metrics, METRIC_QUEUE_DEPTH, name),
            .duration = metric_series(metrics, METRIC_QUEUE_DURATION, name),
            .batch_size = metric_series(metrics, METRIC_BATCH_SIZE, name),
            .batch_requests = metric_series(metrics, METRIC_BATCH_REQUESTS, name),
            .batch_duration = metric_series(metrics, METRIC_BATCH_DURATION, name),
            .running = metric_series(metrics, METRIC_BATCH_RUNNING, name),
            .progress = metric_series(metrics, METRIC_BATCH_PROGRESS, name),
        };
    }
    for (int i = 0; i < QUEUE_REASON_COUNT; i++)
        queue->reasons[i] = metric_series(metrics, METRIC_BATCHES, reason_names[i]);
    queue->retried_died = metric_series(metrics, METRIC_BATCH_RETRIES, "engine_died");
    queue->retried_memory = metric_series(metrics, METRIC_BATCH_RETRIES, "out_of_memory");
    return true;
}

enum error queue_create(const struct queue_limits *limits, struct metric_registry *metrics,
                        struct queue **result, struct failure *failure)
{
    assert(limits->in_flight >= 1 && limits->in_flight <= ENGINE_BATCH_SLOTS);
    assert(limits->batch_bytes_max >= 1 && limits->batch_cost_ns > 0);
    for (int p = 0; p < QUEUE_CLASSES; p++)
        assert(limits->batch_matrices_max[p] >= 1);
    struct queue *queue = aligned_alloc(_Alignof(struct queue), sizeof *queue);
    if (queue != NULL)
        memset(queue, 0, sizeof *queue);
    if (queue == NULL || !make_series(queue, metrics)) {
        free(queue);
        return failure_set(failure, ERROR_FULL, "out of memory for the queue");
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue__admission_init(&queue->admission);
    queue__accounts_init(&queue->accounts);
    queue->limits = *limits;
    queue->metrics = metrics;
    queue__classes_init(queue, clock_now_ns());
    *result = queue;
    return ERROR_NONE;
}

void queue_destroy(struct queue **queue_pointer)
{
    struct queue *queue = *queue_pointer;
    if (queue == NULL)
        return;
    assert(queue->lanes == NULL);
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        assert(queue->lists[i] == NULL && queue->groups[i] == NULL);
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        assert(queue->classes[p].suspects.first == NULL);
        for (int i = 0; i < ENGINE_LANES; i++)
            assert(queue->classes[p].retries[i].first == NULL);
    }
    assert(atomic_load(&queue->inbox) == NULL);
    queue__admission_fini(&queue->admission);
    queue__accounts_fini(&queue->accounts);
    pthread_mutex_destroy(&queue->lock);
    free(queue->series);
    free(queue);
    *queue_pointer = NULL;
}

void queue_observe(struct queue *queue, struct queue_observer observer)
{
    pthread_mutex_lock(&queue->lock);
    queue->observer = observer;
    pthread_mutex_unlock(&queue->lock);
}

int queue_retry_after_s(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    double work_ns = queue->waiting_cost_ns + queue->running_cost_ns;
    pthread_mutex_unlock(&queue->lock);
    if (work_ns >= (double)RETRY_AFTER_MAX_S * (double)CLOCK_S)
        return RETRY_AFTER_MAX_S;
    return 1 + (work_ns > 0 ? (int)(work_ns / (double)CLOCK_S) : 0);
}

/* ---- Items ---- */

void queue_submit(struct queue *queue, struct queue_item *item)
{
    assert(item->state == QUEUE_NEW && item->method != NULL && item->list == NULL);
    assert(item->batch >= 1 && item->n >= 1 && item->on_done != NULL);
    assert(item->priority >= 0 && item->priority < QUEUE_PRIORITIES);
    item->queued_ns = clock_now_ns();
    /* Nothing of the item is touched once it is in: it may be done by then. */
    struct queue_item *before = atomic_load_explicit(&queue->inbox, memory_order_relaxed);
    do
        item->next = before;
    while (!atomic_compare_exchange_weak(&queue->inbox, &before, item));
}

double queue_predict_ns(struct queue *queue, const struct queue_item *item)
{
    struct queue_work work = {.method = item->method,
                              .precision = item->precision,
                              .n = item->n,
                              .m = item->m,
                              .matrices = item->batch,
                              .bytes = item->batch * queue__matrix_bytes(item)};
    pthread_mutex_lock(&queue->lock);
    double cost_ns = queue__cost_ns(queue, queue__class_route(queue, item), &work);
    pthread_mutex_unlock(&queue->lock);
    return cost_ns;
}

void queue__take_in(struct queue *queue)
{
    if (atomic_load(&queue->inbox) == NULL)
        return;
    struct queue_item *newest = atomic_exchange(&queue->inbox, NULL), *oldest = NULL;
    while (newest != NULL) {
        struct queue_item *before = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = before;
    }
    while (oldest != NULL) {
        struct queue_item *item = oldest;
        oldest = item->next;
        queue__item_move(queue, item, QUEUE_QUEUED);
        if (queue__waiting_add(queue, item) != ERROR_NONE)
            queue__item_drop(queue, item, ERROR_FULL);
    }
}

void queue_cancel(struct queue *queue, struct queue_item *item)
{
    pthread_mutex_lock(&queue->lock);
    queue__take_in(queue);
    assert(item->state != QUEUE_NEW); /* it was submitted */
    if (item->state != QUEUE_DONE)
        queue__item_drop(queue, item, ERROR_CANCELLED);
    queue__dispatch(queue, clock_now_ns()); /* what came in with it is not looked for again */
    queue__unlock_and_report(queue);
}

uint64_t queue_last_batch_ns(struct queue *queue, enum queue_class_id device_class)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t last_ns = queue->classes[device_class].last_batch_ns;
    pthread_mutex_unlock(&queue->lock);
    return last_ns;
}

/* ---- Finished batches, and the next ones ---- */

/* How many batches one lane can bring in at once. */
#define LANE_BATCHES (ENGINE_LANES * ENGINE_BATCH_SLOTS)

/* Whether lanes are left that found no room for what they may bring. */
static bool reap_lanes(struct queue *queue, uint64_t now_ns)
{
    const int observed_max = (int)(sizeof queue->observed / sizeof queue->observed[0]);
    for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next) {
        if (queue->observed_count + LANE_BATCHES > observed_max)
            return true;
        queue__reap_lane(queue, lane, now_ns);
    }
    return false;
}

/* Takes in what was submitted and what is finished, and sends what may go. Returns whether there is
 * more, for a thread does not serve the others for ever. One thread at a time does this for all;
 * another one leaves it to that one. The serving thread clears `serving` and then looks for items
 * that it has not seen. A submitting thread pushes its item and then reads `serving`. All four are
 * sequentially consistent: either the one sees the item, or the other sees that no thread serves.
 */
static bool serve(struct queue *queue)
{
    bool more = true;
    for (int round = 0; round < SERVE_ROUNDS_MAX && more; round++) {
        if (pthread_mutex_trylock(&queue->lock) != 0) {
            if (atomic_load(&queue->serving))
                return false;
            pthread_mutex_lock(&queue->lock);
        }
        atomic_store(&queue->serving, true);
        uint64_t now_ns = clock_now_ns();
        more = reap_lanes(queue, now_ns);
        queue__dispatch(queue, now_ns);
        atomic_store(&queue->serving, false);
        queue__unlock_and_report(queue);
        more = more || atomic_load(&queue->inbox) != NULL;
    }
    return more;
}

bool queue_flush(struct queue *queue)
{
    /* What waits already goes when a batch comes back, or when its wait for more items is over. */
    if (atomic_load(&queue->inbox) == NULL && queue->limits.batch_wait_ns == 0)
        return false;
    return serve(queue);
}

bool queue_reap(struct queue *queue)
{
    return serve(queue);
}

/* Both walk the lanes under the lock: the supervisor may be adding or removing one. */
static bool set_front_waits(struct queue *queue, uint32_t waits)
{
    bool finished = false;
    pthread_mutex_lock(&queue->lock);
    queue->waiting = waits != 0;
    for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        for (int kind = 0; kind < ENGINE_LANES; kind++) {
            struct queue_ring *ring = &lane->rings[kind];
            atomic_store_explicit(&ring->shared->front_waits, waits, memory_order_seq_cst);
            for (int i = 0; i < ENGINE_BATCH_SLOTS && waits; i++)
                if (ring->slots[i].used &&
                    atomic_load_explicit(&ring->shared->batches[i].state, memory_order_seq_cst) ==
                        ENGINE_BATCH_DONE)
                    finished = true;
        }
    pthread_mutex_unlock(&queue->lock);
    return finished;
}

bool queue_wait_begin(struct queue *queue)
{
    return set_front_waits(queue, 1);
}

void queue_wait_end(struct queue *queue)
{
    (void)set_front_waits(queue, 0);
}

void queue_tick(struct queue *queue, uint64_t now_ns)
{
    pthread_mutex_lock(&queue->lock);
    queue__take_in(queue);
    queue__classes_end_outages(queue, now_ns);
    queue__dispatch(queue, now_ns); /* what was taken in here no flush looks for */
    queue__unlock_and_report(queue);
}

uint64_t queue_next_wake_ns(struct queue *queue)
{
    if (queue->limits.batch_wait_ns == 0)
        return 0;
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&queue->lock);
    queue__dispatch(queue, now_ns);
    uint64_t wake_ns = queue__waiting_ripe_ns(queue, now_ns);
    queue__unlock_and_report(queue);
    return wake_ns;
}
