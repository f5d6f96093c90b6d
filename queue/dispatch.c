/* queue/dispatch.c: batches on their way to engines, and their results on the way back.
 *
 * A batch is a list of fragments (slices of items). While an engine has it, its record stands in
 * the lane's `struct queue_slot`, in the front's own memory. What has to run again goes before
 * everything else: the waiting of its items is over. Which batch an engine died of: suspects.c.
 *
 * Threads: under the queue's lock.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Sending ---- */

static void refer(struct engine_tensor *to, const struct engine_tensor *from, int64_t first,
                  int64_t each_bytes)
{
    *to = *from;
    if (from->region != ENGINE_REGION_NONE)
        to->offset_bytes += (uint64_t)(first * each_bytes);
}

static void describe(const struct queue_slot *slot, struct engine_batch *batch)
{
    const struct queue_key *key = &slot->key;
    const struct method *method = key->method;
    int inputs = method_input_count(method), outputs = method_output_count(method);
    int64_t input_bytes[METHOD_INPUTS_MAX], output_bytes[METHOD_OUTPUTS_MAX];
    enum precision precision = (enum precision)key->precision;
    for (int i = 0; i < inputs; i++)
        input_bytes[i] =
            method_tensor_bytes(&method->inputs[i], precision, key->n, key->m, key->options);
    for (int i = 0; i < outputs; i++)
        output_bytes[i] =
            method_tensor_bytes(&method->outputs[i], precision, key->n, key->m, key->options);

    batch->method = (uint32_t)method_index(method);
    batch->precision = (uint32_t)precision;
    batch->item_count = (uint32_t)slot->count;
    batch->n = key->n;
    batch->m = key->m;
    batch->matrices = slot->matrices;
    memcpy(batch->options, key->options, sizeof batch->options);
    for (int f = 0; f < slot->count; f++) {
        const struct queue_fragment *fragment = &slot->fragments[f];
        struct engine_item *item = &batch->items[f];
        item->count = fragment->count;
        for (int i = 0; i < inputs; i++)
            refer(&item->inputs[i], &fragment->item->inputs[i], fragment->first, input_bytes[i]);
        for (int i = 0; i < outputs; i++)
            refer(&item->outputs[i], &fragment->item->outputs[i], fragment->first, output_bytes[i]);
    }
}

static struct queue_slot *free_slot(const struct queue *queue, struct queue_lane *lane, int kind)
{
    struct queue_ring *ring = &lane->rings[kind];
    struct queue_slot *slot = &ring->slots[ring->submissions % ENGINE_BATCH_SLOTS];
    if (!lane->up || slot->used || ring->in_flight >= queue->limits.in_flight)
        return NULL;
    return slot;
}

bool queue__has_client(const struct queue_slot *slot)
{
    for (int i = 0; i < slot->count; i++)
        if (!slot->fragments[i].item->uncounted)
            return true;
    return false;
}

/* Matrices of the batch that clients asked for, and in how many requests; the service's own left
 * out. */
static int64_t clients_matrices(const struct queue_slot *slot, int *requests)
{
    int64_t matrices = 0;
    *requests = 0;
    for (int i = 0; i < slot->count; i++) {
        bool counts = !slot->fragments[i].item->uncounted;
        matrices += counts ? slot->fragments[i].count : 0;
        *requests += counts;
    }
    return matrices;
}

static struct queue_work work_of(const struct queue_slot *slot)
{
    return (struct queue_work){.method = slot->key.method,
                               .precision = (enum precision)slot->key.precision,
                               .n = slot->key.n,
                               .m = slot->key.m,
                               .matrices = slot->matrices,
                               .bytes = slot->bytes};
}

/* The slot's key, count and fragments are set. */
static void submit(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot,
                   uint64_t now_ns, enum queue_reason reason)
{
    struct queue_ring *ring = &lane->rings[slot->key.lane];
    struct engine_batch *batch = &ring->shared->batches[ring->submissions % ENGINE_BATCH_SLOTS];
    assert(!slot->used && slot->count >= 1 && slot->count <= ENGINE_BATCH_ITEMS);
    assert(lane->up && ring->in_flight < queue->limits.in_flight);
    slot->used = true;
    slot->suspected = false;
    slot->dropped = 0;
    slot->stage = QUEUE_STAGE_SENT;
    slot->submitted_ns = slot->since_ns = now_ns;
    slot->until_ns = 0;
    slot->matrices = slot->bytes = 0;
    for (int i = 0; i < slot->count; i++) {
        assert(slot->fragments[i].count >= 1 && slot->fragments[i].item->running > 0);
        slot->matrices += slot->fragments[i].count;
        slot->bytes += slot->fragments[i].count * slot->fragments[i].item->matrix_bytes;
    }
    struct queue_work work = work_of(slot);
    slot->predicted_ns = queue__cost_batch_ns(queue, lane->device_class, &work);
    slot->max_ns = queue__cost_max_ns(queue, lane->device_class, &work);
    queue->running_cost_ns += slot->predicted_ns;
    describe(slot, batch);
    batch->sequence = ++queue->sequence;
    atomic_store_explicit(&batch->unwanted, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->progress, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->waits, 0, memory_order_relaxed);
    ring->submissions++;
    ring->in_flight++;
    atomic_store_explicit(&batch->state, ENGINE_BATCH_SUBMITTED, memory_order_release);
    atomic_fetch_add_explicit(&ring->shared->submitted, 1, memory_order_seq_cst);
    syscall(SYS_futex, &ring->shared->submitted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (queue__has_client(slot))
        metric_add(queue->reasons[reason], 1);
}

static void submit_retry(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot,
                         struct queue_retries *list, uint64_t now_ns, enum queue_reason reason)
{
    struct queue_retry *retry = list->first;
    list->first = retry->next;
    if (list->first == NULL)
        list->last = &list->first;
    slot->key = retry->key;
    slot->count = retry->count;
    memcpy(slot->fragments, retry->fragments, (size_t)retry->count * sizeof *retry->fragments);
    free(retry);
    submit(queue, lane, slot, now_ns, reason);
}

/* Fills the slot from what waits for a device class; false when nothing does. */
static bool feed_from(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot,
                      enum queue_class_id device_class, enum engine_lane_id kind, uint64_t now_ns)
{
    struct queue_retries *retries = &queue->classes[device_class].retries[kind];
    if (retries->first != NULL) {
        submit_retry(queue, lane, slot, retries, now_ns, QUEUE_REASON_RETRY);
        return true;
    }
    struct queue_waiting *list = queue__waiting_pick(lane, device_class, kind, now_ns);
    if (list == NULL)
        return false;
    enum queue_reason reason;
    slot->key = list->group->key;
    slot->count = queue__waiting_take(queue, list, slot->fragments, &reason);
    if (reason == QUEUE_REASON_GATHERED && queue->limits.batch_wait_ns > 0)
        reason = QUEUE_REASON_WAITED;
    submit(queue, lane, slot, now_ns, reason);
    return true;
}

/* The same from the other device classes that the lane serves: those out of service, or those that
 * are not.
 */
static bool feed_from_others(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot,
                             bool out, enum engine_lane_id kind, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        enum queue_class_id device_class = (enum queue_class_id)p;
        if (device_class != lane->device_class && queue->classes[p].out == out &&
            queue__class_serves(queue, lane, device_class) &&
            feed_from(queue, lane, slot, device_class, kind, now_ns))
            return true;
    }
    return false;
}

/* Sends one batch to the lane if it has room and there is one to send. First comes what a device
 * class out of service has left: it has waited longest and nothing is added to it, while the lane's
 * own work may never end. Where the lane only helps, its own work comes first. */
static bool feed(struct queue *queue, struct queue_lane *lane, enum engine_lane_id kind,
                 uint64_t now_ns)
{
    struct queue_slot *slot = free_slot(queue, lane, kind);
    return slot != NULL && (feed_from_others(queue, lane, slot, true, kind, now_ns) ||
                            feed_from(queue, lane, slot, lane->device_class, kind, now_ns) ||
                            feed_from_others(queue, lane, slot, false, kind, now_ns));
}

/* Suspects run alone: one batch of one fragment in the whole engine. */
static void feed_spare(struct queue *queue, struct queue_lane *lane, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        struct queue_retries *suspects = &queue->classes[p].suspects;
        if (suspects->first == NULL || !queue__class_serves(queue, lane, (enum queue_class_id)p) ||
            queue__in_flight(lane) > 0)
            continue;
        struct queue_slot *slot = free_slot(queue, lane, (int)suspects->first->key.lane);
        if (slot != NULL)
            submit_retry(queue, lane, slot, suspects, now_ns, QUEUE_REASON_SUSPECT);
    }
}

void queue__dispatch(struct queue *queue, uint64_t now_ns)
{
    queue__take_in(queue);
    /* One batch a lane a round, so that several engines share evenly. */
    bool sent = true;
    while (sent) {
        sent = false;
        for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
            for (int kind = 0; kind < ENGINE_LANES && !lane->spare; kind++)
                sent |= feed(queue, lane, (enum engine_lane_id)kind, now_ns);
    }
    for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        if (lane->spare)
            feed_spare(queue, lane, now_ns);
}

/* ---- Coming back ---- */

/* An engine opens a batch while another's last chunks are under way: what lies before the end of
 * one that has been counted is not counted again. */
static void note_computed(struct queue_item *item, uint64_t started_ns, uint64_t finished_ns)
{
    uint64_t from_ns = started_ns > item->computed_ns ? started_ns : item->computed_ns;
    if (finished_ns <= from_ns)
        return;
    item->compute_ns += finished_ns - from_ns;
    item->computed_ns = finished_ns;
}

/* Copies what a finished batch says of itself to its items. */
static void note_times(const struct queue_lane *lane, const struct queue_slot *slot,
                       const struct engine_batch *batch)
{
    char kernel[ENGINE_KERNEL_NAME_MAX];
    memcpy(kernel, batch->kernel, sizeof kernel);
    kernel[sizeof kernel - 1] = '\0';
    for (int i = 0; i < slot->count; i++) {
        struct queue_item *item = slot->fragments[i].item;
        if (item->started_ns == 0)
            item->started_ns = batch->started_ns;
        note_computed(item, batch->started_ns, batch->finished_ns);
        item->engine = lane->number;
        memcpy(item->kernel, kernel, sizeof kernel);
    }
}

static void count_batch(struct queue *queue, const struct queue_lane *lane,
                        const struct queue_slot *slot, uint64_t duration_ns)
{
    const struct method *method = slot->key.method;
    struct queue_method_series *series = &queue->series[method_index(method)];
    int requests;
    int64_t matrices = clients_matrices(slot, &requests);
    if (matrices == 0)
        return;
    metric_observe(series->batch_size, (uint64_t)matrices);
    metric_observe(series->batch_requests, (uint64_t)requests);
    metric_observe(series->batch_duration, duration_ns);
    metric_add(lane->batches, 1);
    metric_add(lane->matrices, (uint64_t)matrices);
    assert(queue->observed_count < (int)(sizeof queue->observed / sizeof queue->observed[0]));
    queue->observed[queue->observed_count++] =
        (struct queue_observed){method, matrices, duration_ns};
}

/* Whether its fragments count as suspected. */
static bool is_alone(const struct queue_lane *lane, const struct queue_slot *slot)
{
    return lane->spare || slot->suspected;
}

static void batch_succeeded(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot,
                            const struct engine_batch *batch, uint64_t now_ns)
{
    uint64_t started_ns = batch->started_ns, finished_ns = batch->finished_ns;
    uint64_t duration_ns = finished_ns > started_ns ? finished_ns - started_ns : 0;
    note_times(lane, slot, batch);
    struct queue_work work = work_of(slot);
    queue__cost_learn(queue, lane->device_class, &work, duration_ns);
    queue->classes[lane->device_class].last_batch_ns = lane->last_batch_ns = now_ns;
    count_batch(queue, lane, slot, duration_ns);
    queue__note_busy(lane, started_ns, finished_ns < now_ns ? finished_ns : now_ns);
    for (int i = 0; i < slot->count; i++)
        queue__item_finish(queue, &slot->fragments[i], is_alone(lane, slot));
}

/* The engine left it: all of its items are dropped. */
static void batch_stopped(struct queue *queue, struct queue_lane *lane, struct queue_slot *slot)
{
    if (queue__has_client(slot))
        metric_add(lane->stopped, 1);
    for (int i = 0; i < slot->count; i++)
        queue__item_give_up(queue, &slot->fragments[i], ERROR_INTERNAL);
}

/* The batch did not fit the device's memory: two batches of half the size, down to one matrix. */
static void batch_too_big(struct queue *queue, struct queue_slot *slot, bool alone)
{
    struct queue_class *device_class = &queue->classes[slot->key.device_class];
    struct queue_retries *list =
        alone ? &device_class->suspects : &device_class->retries[slot->key.lane];
    struct queue_fragment halves[2];
    metric_add(queue->retried_memory, 1);
    if (slot->count > 1 && alone) {
        queue__suspects_add(queue, slot);
        return;
    }
    if (slot->count > 1) {
        int half = slot->count / 2;
        queue__retry_add(queue, list, &slot->key, slot->fragments, half);
        queue__retry_add(queue, list, &slot->key, slot->fragments + half, slot->count - half);
        return;
    }
    halves[0] = halves[1] = slot->fragments[0];
    if (halves[0].count == 1) {
        queue__item_give_up(queue, &halves[0], ERROR_TOO_LARGE);
        return;
    }
    halves[0].count /= 2;
    halves[1].first += halves[0].count;
    halves[1].count -= halves[0].count;
    halves[1].item->running++;
    halves[1].item->suspected += alone;
    queue__retry_add(queue, list, &slot->key, &halves[0], 1);
    queue__retry_add(queue, list, &slot->key, &halves[1], 1);
}

/* How long the engine worked on it: no longer than it has had it, whatever the engine says. */
static uint64_t duration_of(const struct queue_slot *slot, const struct engine_batch *batch,
                            uint64_t now_ns)
{
    uint64_t started_ns = batch->started_ns, finished_ns = batch->finished_ns;
    if (started_ns < slot->submitted_ns)
        started_ns = slot->submitted_ns;
    if (finished_ns > now_ns)
        finished_ns = now_ns;
    return finished_ns > started_ns ? finished_ns - started_ns : 0;
}

void queue__slot_release(struct queue *queue, struct queue_ring *ring, struct queue_slot *slot,
                         uint64_t now_ns)
{
    assert(slot->used && ring->in_flight > 0);
    queue->running_cost_ns -= slot->predicted_ns;
    slot->used = false;
    ring->in_flight--;
    ring->last_reap_ns = now_ns;
}

void queue__reap_lane(struct queue *queue, struct queue_lane *lane, uint64_t now_ns)
{
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        struct queue_ring *ring = &lane->rings[kind];
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
            struct queue_slot *slot = &ring->slots[i];
            struct engine_batch *batch = &ring->shared->batches[i];
            if (!slot->used ||
                atomic_load_explicit(&batch->state, memory_order_acquire) != ENGINE_BATCH_DONE)
                continue;
            queue__slot_release(queue, ring, slot, now_ns);
            uint32_t status = batch->status;
            lane->worked |= status == ENGINE_OK;
            if (status == ENGINE_OK || status == ENGINE_STOPPED)
                queue__accounts_charge(slot, duration_of(slot, batch, now_ns), now_ns);
            if (status == ENGINE_OK)
                batch_succeeded(queue, lane, slot, batch, now_ns);
            else if (status == ENGINE_OUT_OF_MEMORY)
                batch_too_big(queue, slot, is_alone(lane, slot));
            else if (status == ENGINE_STOPPED)
                batch_stopped(queue, lane, slot);
            else
                for (int f = 0; f < slot->count; f++)
                    queue__item_give_up(queue, &slot->fragments[f], ERROR_INTERNAL);
            atomic_store_explicit(&batch->state, ENGINE_BATCH_FREE, memory_order_release);
        }
    }
}

bool queue__has_started(const struct queue_ring *ring, int slot)
{
    return atomic_load_explicit(&ring->shared->batches[slot].state, memory_order_acquire) ==
           ENGINE_BATCH_RUNNING;
}
