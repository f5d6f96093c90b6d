/* queue/suspects.c: batches that run again, and which of them an engine died of.
 *
 * A batch that an engine did not begin, or that did not fit its memory, is kept whole as a retry.
 * What an engine had begun when it died is suspected: each fragment runs alone in a spare engine,
 * and until it has, nothing else of its item starts. A fragment that is done is acquitted; one that
 * killed QUEUE_POISON_STRIKES spare engines is poison, and its item fails.
 *
 * Threads: under the queue's lock.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Retries ---- */

void queue__retry_add(struct queue *queue, struct queue_retries *list, const struct queue_key *key,
                      const struct queue_fragment *fragments, int count)
{
    assert(count >= 1 && count <= ENGINE_BATCH_ITEMS);
    struct queue_retry *retry = malloc(sizeof *retry + (size_t)count * sizeof *retry->fragments);
    if (retry == NULL) {
        for (int i = 0; i < count; i++)
            queue__item_give_up(queue, &fragments[i], ERROR_FULL);
        return;
    }
    retry->next = NULL;
    retry->key = *key;
    retry->count = 0;
    for (int i = 0; i < count; i++) {
        if (fragments[i].item->dropped)
            queue__item_give_up(queue, &fragments[i], ERROR_CANCELLED);
        else
            retry->fragments[retry->count++] = fragments[i];
    }
    if (retry->count == 0) {
        free(retry);
        return;
    }
    *list->last = retry;
    list->last = &retry->next;
}

static void forget_in(struct queue_retries *list, struct queue_item *item)
{
    struct queue_retry **link = &list->first;
    while (*link != NULL) {
        struct queue_retry *retry = *link;
        int kept = 0;
        for (int i = 0; i < retry->count; i++) {
            if (retry->fragments[i].item == item)
                item->running--;
            else
                retry->fragments[kept++] = retry->fragments[i];
        }
        retry->count = kept;
        if (kept == 0) {
            *link = retry->next;
            free(retry);
        } else {
            link = &retry->next;
        }
    }
    list->last = link;
}

void queue__retry_forget(struct queue *queue, struct queue_item *item)
{
    if (item->running == 0)
        return;
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            forget_in(&queue->classes[p].retries[kind], item);
        forget_in(&queue->classes[p].suspects, item);
    }
}

void queue__retry_drop_all(struct queue *queue, struct queue_retries *list, enum error status)
{
    while (list->first != NULL) /* dropping an item takes its fragments out of the list */
        queue__item_drop(queue, list->first->fragments[0].item, status);
}

/* ---- An engine's death ---- */

/* A fragment of the item is suspected. */
static void count_suspected(struct queue *queue, struct queue_item *item)
{
    if (item->state == QUEUE_RUNNING && !item->dropped) {
        queue__item_move(queue, item, QUEUE_SUSPECT);
        queue__waiting_remove(queue, item); /* the rest waits for the verdict */
    }
    item->suspected++;
}

/* All fragments of a batch that an ending engine has started are suspected. */
static void suspect_started(struct queue *queue, struct queue_slot *slot)
{
    slot->suspected = true;
    for (int i = 0; i < slot->count; i++)
        count_suspected(queue, slot->fragments[i].item);
}

/* The fragment runs alone from now on. */
static void run_alone(struct queue *queue, const struct queue_key *key,
                      const struct queue_fragment *fragment)
{
    count_suspected(queue, fragment->item);
    queue__retry_add(queue, &queue->classes[key->device_class].suspects, key, fragment, 1);
}

/* A dead engine had started the batch. alone: in a spare engine, so that it must be the reason. */
static void blame(struct queue *queue, struct queue_slot *slot, bool alone)
{
    for (int i = 0; i < slot->count; i++) {
        struct queue_fragment *fragment = &slot->fragments[i];
        if (alone || slot->suspected) {
            assert(fragment->item->suspected > 0);
            fragment->item->suspected--; /* it is counted anew */
        }
        if (alone && ++fragment->item->strikes >= QUEUE_POISON_STRIKES)
            queue__item_give_up(queue, fragment, ERROR_POISON);
        else
            run_alone(queue, &slot->key, fragment);
    }
}

void queue__suspects_add(struct queue *queue, const struct queue_slot *slot)
{
    for (int i = 0; i < slot->count; i++)
        queue__retry_add(queue, &queue->classes[slot->key.device_class].suspects, &slot->key,
                         &slot->fragments[i], 1);
}

/* What an engine had not started, or did not die of: the same batch again, less the items that are
 * suspects by now. */
static void send_again(struct queue *queue, struct queue_slot *slot, bool spare)
{
    struct queue_class *device_class = &queue->classes[slot->key.device_class];
    int kept = 0;
    if (spare) {
        queue__suspects_add(queue, slot);
        return;
    }
    for (int i = 0; i < slot->count; i++) {
        const struct queue_fragment *fragment = &slot->fragments[i];
        if (fragment->item->state == QUEUE_SUSPECT)
            run_alone(queue, &slot->key, fragment);
        else
            slot->fragments[kept++] = *fragment;
    }
    if (kept > 0)
        queue__retry_add(queue, &device_class->retries[slot->key.lane], &slot->key, slot->fragments,
                         kept);
}

/* The batch is no longer the engine's. */
static void take_back(struct queue_lane *lane, struct queue_ring *ring, struct queue_slot *slot,
                      bool blamed, uint64_t now_ns)
{
    assert(slot->used && (!lane->spare || slot->count == 1));
    queue__slot_release(lane->queue, ring, slot, now_ns);
    metric_add(lane->queue->retried_died, 1);
    if (blamed || slot->suspected)
        blame(lane->queue, slot, lane->spare);
    else
        send_again(lane->queue, slot, lane->spare);
}

/* The same of one that the engine has not begun and is not going to. What is left of suspects stays
 * until the engine is reaped, with what it has begun of them: nothing of them starts before. */
static void take_back_waiting(struct queue_lane *lane, struct queue_ring *ring,
                              struct queue_slot *slot, uint64_t now_ns)
{
    struct queue_retries *list =
        &lane->queue->classes[slot->key.device_class].retries[slot->key.lane];
    int innocent = 0;
    for (int i = 0; i < slot->count && !lane->spare; i++) {
        struct queue_fragment fragment = slot->fragments[i];
        if (fragment.item->state == QUEUE_SUSPECT)
            continue;
        slot->fragments[i] = slot->fragments[innocent];
        slot->fragments[innocent++] = fragment;
    }
    if (lane->spare || innocent == slot->count) {
        take_back(lane, ring, slot, false, now_ns);
        return;
    }
    if (innocent > 0)
        queue__retry_add(lane->queue, list, &slot->key, slot->fragments, innocent);
    slot->count -= innocent;
    memmove(slot->fragments, slot->fragments + innocent,
            (size_t)slot->count * sizeof *slot->fragments);
    suspect_started(lane->queue, slot);
}

void queue__take_back_waiting(struct queue_lane *lane, bool blamed, uint64_t now_ns)
{
    bool waits[ENGINE_LANES][ENGINE_BATCH_SLOTS] = {{false}};
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        struct queue_ring *ring = &lane->rings[kind];
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
            uint32_t state = ENGINE_BATCH_SUBMITTED;
            waits[kind][i] = ring->slots[i].used && !ring->slots[i].suspected &&
                             atomic_compare_exchange_strong(&ring->shared->batches[i].state, &state,
                                                            ENGINE_BATCH_FREE);
        }
    }
    /* From here on the engine begins nothing: all suspects are known before others are sent. */
    for (int kind = 0; kind < ENGINE_LANES && blamed && !lane->spare; kind++)
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
            struct queue_slot *slot = &lane->rings[kind].slots[i];
            if (slot->used && !slot->suspected && !waits[kind][i])
                suspect_started(lane->queue, slot);
        }
    for (int kind = 0; kind < ENGINE_LANES; kind++)
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
            if (waits[kind][i])
                take_back_waiting(lane, &lane->rings[kind], &lane->rings[kind].slots[i], now_ns);
}

void queue__take_back_rest(struct queue_lane *lane, bool blamed, uint64_t now_ns)
{
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        struct queue_ring *ring = &lane->rings[kind];
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
            if (ring->slots[i].used)
                take_back(lane, ring, &ring->slots[i], blamed, now_ns);
    }
}
