/* queue/progress.c: how far the batches are that engines run now. Metrics say of each method's
 * oldest one for how long it has run and how much of it is done; for jobs, an item's matrices are
 * counted.
 *
 * Both figures are the engine's, written while it runs: they are kept within what can be, and
 * nothing else is made of them. A batch that is sent again begins anew. Both are of one batch, but
 * on a page that is written while another one is asked for.
 *
 * What runs counts for its device's working time as far as it has come: else a long batch would
 * count all at once, at its end.
 *
 * Threads: any. Cost: a look at every slot of every lane, under the queue's lock.
 */
#include "base/clock.h"

#include <assert.h>
#include "queue/queue_private.h"

/* The oldest batch of a method. */
struct oldest {
    bool found;
    uint64_t started_ns;
    int64_t progress; /* METHOD_PROGRESS_WHOLE: all of it */
};

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* When the batch began; the engine may not have said it yet. */
static uint64_t begun_ns(const struct queue_ring *ring, int index, uint64_t now_ns)
{
    const struct engine_batch *batch = &ring->shared->batches[index];
    return within(atomic_load_explicit(&batch->started_ns, memory_order_relaxed),
                  ring->slots[index].submitted_ns, now_ns);
}

/* A short batch that has ended may have run next to a long one, which is not to lose its time. */
void queue__note_busy(struct queue_lane *lane, uint64_t started_ns, uint64_t until_ns)
{
    uint64_t from_ns = started_ns;
    for (int i = 0; i < ENGINE_LANES * ENGINE_BATCH_SLOTS; i++) {
        const struct queue_ring *ring = &lane->rings[i / ENGINE_BATCH_SLOTS];
        int index = i % ENGINE_BATCH_SLOTS;
        bool runs = ring->slots[index].used && queue__has_started(ring, index) &&
                    queue__has_client(&ring->slots[index]);
        uint64_t other_ns = runs ? begun_ns(ring, index, until_ns) : from_ns;
        from_ns = other_ns < from_ns ? other_ns : from_ns;
    }
    if (from_ns < lane->busy_until_ns)
        from_ns = lane->busy_until_ns;
    if (until_ns <= from_ns || lane->busy == NULL)
        return;
    metric_add(lane->busy, until_ns - from_ns);
    lane->busy_until_ns = until_ns;
}

static void look_at(struct queue_lane *lane, const struct queue_ring *ring, int index,
                    uint64_t now_ns, struct oldest *oldest)
{
    const struct queue_slot *slot = &ring->slots[index];
    const struct engine_batch *batch = &ring->shared->batches[index];
    if (!slot->used || !queue__has_started(ring, index) || !queue__has_client(slot))
        return;
    assert(slot->matrices > 0);
    uint64_t started_ns = begun_ns(ring, index, now_ns);
    queue__note_busy(lane, started_ns, now_ns);
    uint64_t parts = atomic_load_explicit(&batch->progress, memory_order_relaxed);
    oldest += method_index(slot->key.method);
    if (oldest->found && oldest->started_ns <= started_ns)
        return;
    *oldest = (struct oldest){
        .found = true,
        .started_ns = started_ns,
        .progress = (int64_t)within(parts / (uint64_t)slot->matrices, 0, METHOD_PROGRESS_WHOLE)};
}

void queue_show_running(struct queue *queue)
{
    struct oldest oldest[ENGINE_METHODS_MAX] = {{.found = false}};
    pthread_mutex_lock(&queue->lock);
    uint64_t now_ns = clock_now_ns(); /* no batch was sent later */
    for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
                look_at(lane, &lane->rings[kind], i, now_ns, oldest);
    for (int i = 0; i < method_count(); i++) {
        const struct oldest *of = &oldest[i];
        metric_set(queue->series[i].running, of->found ? (int64_t)(now_ns - of->started_ns) : 0);
        metric_set(queue->series[i].progress, of->progress);
    }
    pthread_mutex_unlock(&queue->lock);
}

/* What is done of a batch, as a share of it. */
static double share_done(const struct queue_ring *ring, int index)
{
    const struct queue_slot *slot = &ring->slots[index];
    if (!queue__has_started(ring, index))
        return 0;
    uint64_t parts =
        atomic_load_explicit(&ring->shared->batches[index].progress, memory_order_relaxed);
    double share = (double)parts / ((double)slot->matrices * METHOD_PROGRESS_WHOLE);
    return share < 1 ? share : 1;
}

static double item_share(const struct queue_ring *ring, int index, const struct queue_item *item)
{
    const struct queue_slot *slot = &ring->slots[index];
    int64_t matrices = 0;
    for (int i = 0; slot->used && i < slot->count; i++)
        if (slot->fragments[i].item == item)
            matrices += slot->fragments[i].count;
    return matrices > 0 ? (double)matrices * share_done(ring, index) : 0;
}

double queue_matrices_done(struct queue *queue, const struct queue_item *item)
{
    pthread_mutex_lock(&queue->lock);
    double done = (double)item->finished;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        for (int kind = 0; kind < ENGINE_LANES && item->running > 0; kind++)
            for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
                done += item_share(&lane->rings[kind], i, item);
    pthread_mutex_unlock(&queue->lock);
    return done;
}
