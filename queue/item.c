/* queue/item.c: the life of an item.
 *
 *   NEW -> QUEUED -> RUNNING -> DONE
 *          QUEUED -> DONE             cancelled before any of it started
 *          RUNNING -> SUSPECT         it was running when its engine died
 *          SUSPECT -> RUNNING         it was acquitted and more of it waits
 *          SUSPECT -> DONE            answered alone, or found to kill engines
 * A RUNNING item may still have matrices in its waiting list. One that is dropped is DONE when the
 * engines have let go of its slots, which they do soon where the whole batch is of such items.
 * Threads: under the queue's lock, except queue__unlock_and_report's second half.
 */
#include "queue/queue_private.h"

#include <assert.h>

#include "base/clock.h"

#define OWNERS_MAX 32 /* owners that one pass collects; more take more calls */

static const bool allowed[QUEUE_STATES][QUEUE_STATES] = {
    [QUEUE_NEW] = {[QUEUE_QUEUED] = true},
    [QUEUE_QUEUED] = {[QUEUE_RUNNING] = true, [QUEUE_DONE] = true},
    [QUEUE_RUNNING] = {[QUEUE_SUSPECT] = true, [QUEUE_DONE] = true},
    [QUEUE_SUSPECT] = {[QUEUE_RUNNING] = true, [QUEUE_DONE] = true},
};

static void count_move(struct queue_method_series *series, const struct queue_item *item,
                       enum queue_item_state to)
{
    if (to == QUEUE_QUEUED)
        metric_add(series->depth, 1);
    if (item->state == QUEUE_QUEUED)
        metric_add(series->depth, UINT64_MAX); /* minus one */
    if (to != QUEUE_DONE)
        return;
    uint64_t until_ns = item->started_ns != 0 ? item->started_ns : item->finished_ns;
    metric_observe(series->duration, until_ns > item->queued_ns ? until_ns - item->queued_ns : 0);
}

void queue__item_move(struct queue *queue, struct queue_item *item, enum queue_item_state to)
{
    assert(allowed[item->state][to]);
    if (to == QUEUE_DONE)
        item->finished_ns = clock_now_ns();
    if (!item->uncounted)
        count_move(&queue->series[method_index(item->method)], item, to);
    item->state = to;
}

void queue__item_end_if_idle(struct queue *queue, struct queue_item *item)
{
    if (item->running > 0 || (item->finished < item->batch && !item->dropped))
        return;
    queue__item_move(queue, item, QUEUE_DONE);
    item->next = queue->done;
    queue->done = item;
}

/* A dropped item stays so: nothing is looked at twice but the first fragment that is wanted. */
static bool is_unwanted(struct queue_slot *slot)
{
    while (slot->dropped < slot->count && slot->fragments[slot->dropped].item->dropped)
        slot->dropped++;
    return slot->dropped >= slot->count;
}

static void stop_unwanted(struct queue_ring *ring)
{
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct queue_slot *slot = &ring->slots[i];
        if (slot->used && is_unwanted(slot))
            atomic_store_explicit(&ring->shared->batches[i].unwanted, 1, memory_order_relaxed);
    }
}

/* Marks batches that no client waits for any more, for their engines. */
static void mark_unwanted(struct queue *queue)
{
    for (struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            stop_unwanted(&lane->rings[kind]);
}

void queue__item_drop(struct queue *queue, struct queue_item *item, enum error status)
{
    assert(status != ERROR_NONE && item->state != QUEUE_DONE);
    if (item->dropped)
        return;
    item->dropped = true;
    item->status = status;
    queue__waiting_remove(queue, item);
    queue__retry_forget(queue, item);
    if (item->running > 0)
        mark_unwanted(queue);
    queue__item_end_if_idle(queue, item);
}

/* It ran alone and nothing died: the rest of it may share batches again. */
static void acquit(struct queue *queue, struct queue_item *item)
{
    queue__item_move(queue, item, QUEUE_RUNNING);
    item->strikes = 0;
    if (item->dropped || item->taken == item->batch)
        return;
    if (queue__waiting_add(queue, item) != ERROR_NONE) {
        item->dropped = true;
        item->status = ERROR_FULL;
    }
}

void queue__item_give_up(struct queue *queue, const struct queue_fragment *fragment,
                         enum error status)
{
    struct queue_item *item = fragment->item;
    assert(item->running > 0 && status != ERROR_NONE);
    item->running--;
    if (item->dropped)
        queue__item_end_if_idle(queue, item);
    else
        queue__item_drop(queue, item, status);
}

void queue__item_finish(struct queue *queue, const struct queue_fragment *fragment, bool alone)
{
    struct queue_item *item = fragment->item;
    assert(item->running > 0 && item->finished + fragment->count <= item->batch);
    assert(!alone || item->suspected > 0);
    item->running--;
    item->finished += fragment->count;
    if (alone && --item->suspected == 0 && item->state == QUEUE_SUSPECT)
        acquit(queue, item);
    queue__item_end_if_idle(queue, item);
}

/* Items of one owner, to be reported in one call. */
struct owner_group {
    void *owner;
    struct queue_item *first, *last;
};

static void report_groups(const struct owner_group *groups, int count)
{
    for (int i = 0; i < count; i++)
        groups[i].first->on_done(groups[i].first);
}

static void report(struct queue_item *done)
{
    struct owner_group groups[OWNERS_MAX];
    int count = 0;
    while (done != NULL) {
        struct queue_item *item = done;
        done = item->next;
        item->next = NULL;
        int at = 0;
        while (item->owner != NULL && at < count && groups[at].owner != item->owner)
            at++;
        if (item->owner == NULL) {
            item->on_done(item);
        } else if (at < count) {
            groups[at].last->next = item;
            groups[at].last = item;
        } else {
            if (count == OWNERS_MAX) {
                report_groups(groups, count);
                count = 0;
            }
            groups[count++] = (struct owner_group){item->owner, item, item};
        }
    }
    report_groups(groups, count);
}

void queue__unlock_and_report(struct queue *queue)
{
    struct queue_item *done = queue->done;
    struct queue_observed observed[sizeof queue->observed / sizeof queue->observed[0]];
    int observed_count = queue->observed_count;
    for (int i = 0; i < observed_count; i++)
        observed[i] = queue->observed[i];
    struct queue_observer observer = queue->observer;
    queue->done = NULL;
    queue->observed_count = 0;
    pthread_mutex_unlock(&queue->lock);

    for (int i = 0; i < observed_count && observer.on_batch != NULL; i++)
        observer.on_batch(observer.context, observed[i].method, observed[i].matrices,
                          observed[i].compute_ns);
    report(done);
}
