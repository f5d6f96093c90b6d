/* queue/queue.c: the public face: admission, submission, cancellation, engines coming and going.
 *
 * Threads: any; each function takes the one lock, and answers finished items after letting it go.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DOWN_TOLERATED_NS (5 * CLOCK_S) /* without an engine, before requests are refused */
#define DEADLINE_FACTOR 20.0
#define RETRY_AFTER_MOST_S 60

/* ---- Life ---- */

static const char *const reason_names[QUEUE_REASON_COUNT] = {
    [QUEUE_REASON_GATHERED] = "gathered", [QUEUE_REASON_WAITED] = "waited",
    [QUEUE_REASON_ITEMS] = "items",       [QUEUE_REASON_MATRICES] = "matrices",
    [QUEUE_REASON_COST] = "cost",         [QUEUE_REASON_RETRY] = "retry",
    [QUEUE_REASON_SUSPECT] = "suspect",
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
    assert(limits->batch_matrices_max >= 1 && limits->batch_cost_ns > 0);
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL || !make_series(queue, metrics)) {
        free(queue);
        return failure_set(failure, ERROR_FULL, "out of memory for the queue");
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue->limits = *limits;
    queue->down_since_ns = clock_now_ns();
    for (int i = 0; i < ENGINE_LANES; i++)
        queue->retries[i].last = &queue->retries[i].first;
    queue->suspects.last = &queue->suspects.first;
    for (int p = 0; p < PRECISION_COUNT; p++)
        for (int i = 0; i < QUEUE_SIZE_CLASSES; i++)
            queue->scale[p][i] = 1.0;
    *result = queue;
    return ERROR_NONE;
}

void queue_destroy(struct queue **queue_pointer)
{
    struct queue *queue = *queue_pointer;
    if (queue == NULL)
        return;
    assert(queue->lanes == NULL && queue->suspects.first == NULL);
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        assert(queue->flows[i] == NULL && queue->groups[i] == NULL);
    for (int i = 0; i < ENGINE_LANES; i++)
        assert(queue->retries[i].first == NULL);
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        while (queue->clients[i] != NULL) {
            struct queue_client *client = queue->clients[i];
            queue->clients[i] = client->next;
            free(client);
        }
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

/* ---- Admission ---- */

static struct queue_client **find_client(struct queue *queue, uint32_t number)
{
    struct queue_client **link = &queue->clients[number % QUEUE_HASH_SIZE];
    while (*link != NULL && (*link)->client != number)
        link = &(*link)->next;
    return link;
}

static bool counts_clients(const struct queue *queue)
{
    return queue->limits.client_requests_max > 0 || queue->limits.client_bytes_max > 0;
}

static enum error enter_client(struct queue *queue, uint32_t number, struct failure *failure)
{
    int64_t most = queue->limits.client_requests_max;
    if (!counts_clients(queue))
        return ERROR_NONE;
    struct queue_client **link = find_client(queue, number);
    if (*link == NULL)
        *link = calloc(1, sizeof **link);
    struct queue_client *client = *link;
    if (client == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    client->client = number;
    if (most > 0 && client->count >= most)
        return failure_set(failure, ERROR_CLIENT_QUOTA,
                           "This client has %lld requests under way, which is its limit; wait "
                           "for an answer before sending the next.",
                           (long long)most);
    client->count++;
    return ERROR_NONE;
}

static void leave_client(struct queue *queue, uint32_t number)
{
    if (!counts_clients(queue))
        return;
    struct queue_client **link = find_client(queue, number), *client = *link;
    assert(client != NULL && client->count > 0);
    if (--client->count == 0) {
        assert(client->bytes == 0);
        *link = client->next;
        free(client);
    }
}

/* The only request, of all or of a client's, is never refused: what is possible at all is possible
 * for everyone. */
static enum error reserve(struct queue *queue, uint32_t number, int64_t bytes,
                          struct failure *failure)
{
    int64_t most = queue->limits.bytes_max, client_most = queue->limits.client_bytes_max;
    assert(bytes >= 0);
    if (most > 0 && queue->entered > 1 && queue->reserved_bytes + bytes > most)
        return failure_set(failure, ERROR_FULL,
                           "The service's memory is taken by other requests; try again later.");
    if (counts_clients(queue)) {
        struct queue_client *client = *find_client(queue, number);
        assert(client != NULL);
        if (client_most > 0 && client->count > 1 && client->bytes + bytes > client_most)
            return failure_set(failure, ERROR_CLIENT_QUOTA,
                               "This client's requests hold %lld bytes of the service's memory, "
                               "and may hold %lld; wait for an answer before sending the next.",
                               (long long)client->bytes, (long long)client_most);
        client->bytes += bytes;
    }
    queue->reserved_bytes += bytes;
    return ERROR_NONE;
}

enum error queue_reserve(struct queue *queue, uint32_t client, int64_t bytes,
                         struct failure *failure)
{
    pthread_mutex_lock(&queue->lock);
    enum error error = reserve(queue, client, bytes, failure);
    pthread_mutex_unlock(&queue->lock);
    return error;
}

void queue_unreserve(struct queue *queue, uint32_t number, int64_t bytes)
{
    pthread_mutex_lock(&queue->lock);
    assert(queue->reserved_bytes >= bytes);
    queue->reserved_bytes -= bytes;
    if (counts_clients(queue)) {
        struct queue_client *client = *find_client(queue, number);
        assert(client != NULL && client->bytes >= bytes);
        client->bytes -= bytes;
    }
    pthread_mutex_unlock(&queue->lock);
}

static enum error enter(struct queue *queue, uint32_t client, struct failure *failure)
{
    if (queue->draining)
        return failure_set(failure, ERROR_DRAINING,
                           "The service is shutting down; send the request to another instance.");
    if (queue->entered >= queue->limits.requests_max)
        return failure_set(failure, ERROR_FULL,
                           "The service has %lld requests under way, which is its limit; try "
                           "again later.",
                           (long long)queue->entered);
    if (queue->down_since_ns != 0 && clock_now_ns() - queue->down_since_ns > DOWN_TOLERATED_NS)
        return failure_set(failure, ERROR_NO_ENGINE,
                           "No computing engine is running at the moment; try again later.");
    enum error error = enter_client(queue, client, failure);
    if (error == ERROR_NONE)
        queue->entered++;
    return error;
}

enum error queue_enter(struct queue *queue, uint32_t client, struct failure *failure)
{
    pthread_mutex_lock(&queue->lock);
    enum error error = enter(queue, client, failure);
    pthread_mutex_unlock(&queue->lock);
    return error;
}

void queue_leave(struct queue *queue, uint32_t client)
{
    pthread_mutex_lock(&queue->lock);
    assert(queue->entered > 0);
    queue->entered--;
    leave_client(queue, client);
    pthread_mutex_unlock(&queue->lock);
}

void queue_drain(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->draining = true;
    pthread_mutex_unlock(&queue->lock);
}

int64_t queue_pending(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int64_t pending = queue->entered;
    pthread_mutex_unlock(&queue->lock);
    return pending;
}

int queue_retry_after_s(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    double work_ns = queue->waiting_cost_ns + queue->running_cost_ns;
    pthread_mutex_unlock(&queue->lock);
    if (work_ns >= (double)RETRY_AFTER_MOST_S * (double)CLOCK_S)
        return RETRY_AFTER_MOST_S;
    return 1 + (work_ns > 0 ? (int)(work_ns / (double)CLOCK_S) : 0);
}

/* ---- Items ---- */

void queue_submit(struct queue *queue, struct queue_item *item)
{
    assert(item->batch >= 1 && item->n >= 1 && item->on_done != NULL);
    assert(item->priority >= 0 && item->priority < QUEUE_PRIORITIES);
    pthread_mutex_lock(&queue->lock);
    queue__item_move(queue, item, QUEUE_QUEUED);
    if (queue__flow_add(queue, item) != ERROR_NONE)
        queue__item_drop(queue, item, ERROR_FULL);
    pthread_mutex_unlock(&queue->lock); /* a dropped item is told at the next flush */
}

void queue_flush(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue__dispatch(queue, clock_now_ns());
    queue__unlock_and_tell(queue);
}

void queue_cancel(struct queue *queue, struct queue_item *item)
{
    pthread_mutex_lock(&queue->lock);
    if (item->state != QUEUE_DONE)
        queue__item_drop(queue, item, ERROR_CANCELLED);
    queue__unlock_and_tell(queue);
}

/* ---- Engines ---- */

enum error queue_lane_create(struct queue *queue, struct engine_shared *shared, const char *device,
                             bool spare, struct queue_lane **result)
{
    struct queue_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return ERROR_FULL;
    lane->queue = queue;
    lane->shared = shared;
    lane->spare = spare;
    snprintf(lane->device, sizeof lane->device, "%s", device);
    pthread_mutex_lock(&queue->lock);
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        lane->rings[kind].shared = &shared->lanes[kind];
        atomic_store(&shared->lanes[kind].front_waits, queue->waiting);
    }
    lane->next = queue->lanes;
    queue->lanes = lane;
    pthread_mutex_unlock(&queue->lock);
    *result = lane;
    return ERROR_NONE;
}

void queue_lane_destroy(struct queue_lane **lane_pointer)
{
    struct queue_lane *lane = *lane_pointer;
    if (lane == NULL)
        return;
    struct queue *queue = lane->queue;
    pthread_mutex_lock(&queue->lock);
    assert(!lane->up && lane->rings[0].in_flight + lane->rings[1].in_flight == 0);
    struct queue_lane **link = &queue->lanes;
    while (*link != lane)
        link = &(*link)->next;
    *link = lane->next;
    pthread_mutex_unlock(&queue->lock);
    free(lane);
    *lane_pointer = NULL;
}

void queue_lane_up(struct queue_lane *lane)
{
    struct queue *queue = lane->queue;
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&queue->lock);
    lane->up = true;
    lane->rings[ENGINE_LANE_SHORT].last_reap_ns = now_ns;
    lane->rings[ENGINE_LANE_LONG].last_reap_ns = now_ns;
    if (lane->spare)
        queue->suspects_since_ns = 0;
    else
        queue->down_since_ns = 0;
    queue__dispatch(queue, now_ns);
    queue__unlock_and_tell(queue);
}

void queue__note_down(struct queue *queue, uint64_t now_ns)
{
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        if (lane->up && !lane->spare)
            return;
    if (queue->down_since_ns == 0)
        queue->down_since_ns = now_ns;
}

static uint64_t ring_overdue_ns(const struct queue *queue, const struct queue_ring *ring,
                                uint64_t now_ns)
{
    const struct queue_slot *oldest = NULL;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        const struct queue_slot *slot = &ring->slots[i];
        if (slot->used && (oldest == NULL || slot->submitted_ns < oldest->submitted_ns))
            oldest = slot;
    }
    if (oldest == NULL)
        return 0;
    /* Its turn came when it was sent or when the batch before it was done, whichever was later. */
    uint64_t since_ns =
        oldest->submitted_ns > ring->last_reap_ns ? oldest->submitted_ns : ring->last_reap_ns;
    uint64_t allowed_ns = (uint64_t)(DEADLINE_FACTOR * oldest->predicted_ns);
    if (allowed_ns < (uint64_t)queue->limits.batch_deadline_ns)
        allowed_ns = (uint64_t)queue->limits.batch_deadline_ns;
    uint64_t running_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    return running_ns > allowed_ns ? running_ns : 0;
}

uint64_t queue_lane_overdue_ns(struct queue_lane *lane, uint64_t now_ns)
{
    struct queue *queue = lane->queue;
    uint64_t most_ns = 0;
    pthread_mutex_lock(&queue->lock);
    for (int kind = 0; kind < ENGINE_LANES && lane->up; kind++) {
        uint64_t overdue_ns = ring_overdue_ns(queue, &lane->rings[kind], now_ns);
        most_ns = overdue_ns > most_ns ? overdue_ns : most_ns;
    }
    pthread_mutex_unlock(&queue->lock);
    return most_ns;
}

bool queue_lane_worked(struct queue_lane *lane)
{
    pthread_mutex_lock(&lane->queue->lock);
    bool worked = lane->worked;
    pthread_mutex_unlock(&lane->queue->lock);
    return worked;
}

bool queue_has_suspects(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool suspects = queue->suspects.first != NULL;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        if (lane->spare && lane->rings[0].in_flight + lane->rings[1].in_flight > 0)
            suspects = true;
    pthread_mutex_unlock(&queue->lock);
    return suspects;
}

uint64_t queue_last_batch_ns(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t last_ns = queue->last_batch_ns;
    pthread_mutex_unlock(&queue->lock);
    return last_ns;
}

/* ---- Finished batches ---- */

/* How many batches one lane can bring in at once. */
#define LANE_BATCHES (ENGINE_LANES * ENGINE_BATCH_SLOTS)

void queue_reap(struct queue *queue)
{
    const int told_max = (int)(sizeof queue->told / sizeof queue->told[0]);
    bool more = true;
    while (more) {
        uint64_t now_ns = clock_now_ns();
        more = false;
        pthread_mutex_lock(&queue->lock);
        for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next) {
            more = queue->told_count + LANE_BATCHES > told_max;
            if (more)
                break;
            queue__reap_lane(queue, lane, now_ns);
        }
        queue__dispatch(queue, now_ns);
        queue__unlock_and_tell(queue);
    }
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

/* An outage that lasts is told to those who wait: they may be luckier elsewhere. */
static void end_outages(struct queue *queue, uint64_t now_ns)
{
    if (queue->down_since_ns != 0 && now_ns > queue->down_since_ns + DOWN_TOLERATED_NS) {
        queue__flow_drop_all(queue, ERROR_NO_ENGINE);
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            queue__retry_drop_all(queue, &queue->retries[kind], ERROR_NO_ENGINE);
    }
    bool spare_up = false;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        spare_up |= lane->spare && lane->up;
    if (queue->suspects.first == NULL || spare_up)
        queue->suspects_since_ns = 0;
    else if (queue->suspects_since_ns == 0)
        queue->suspects_since_ns = now_ns;
    else if (now_ns > queue->suspects_since_ns + DOWN_TOLERATED_NS)
        queue__retry_drop_all(queue, &queue->suspects, ERROR_NO_ENGINE);
}

void queue_tick(struct queue *queue, uint64_t now_ns)
{
    pthread_mutex_lock(&queue->lock);
    end_outages(queue, now_ns);
    if (queue->limits.batch_wait_ns > 0)
        queue__dispatch(queue, now_ns);
    queue__unlock_and_tell(queue);
}

uint64_t queue_next_wake_ns(struct queue *queue)
{
    if (queue->limits.batch_wait_ns == 0)
        return 0;
    pthread_mutex_lock(&queue->lock);
    uint64_t wake_ns = queue__flow_ripe_ns(queue);
    pthread_mutex_unlock(&queue->lock);
    return wake_ns;
}
