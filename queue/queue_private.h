/* queue/queue_private.h: what the files of this folder share.
 *
 * Everything below is guarded by queue->lock. Functions with two underscores expect it held, and
 * never call on_done: a finished item goes to the `done` list, whose items queue__unlock_and_tell
 * answers.
 */
#ifndef QUEUE_QUEUE_PRIVATE_H
#define QUEUE_QUEUE_PRIVATE_H

#include <pthread.h>
#include <stddef.h>

#include "queue/queue.h"

#define QUEUE_PRIORITY_NORMAL 2
#define QUEUE_PRIORITIES 4 /* 1..3 */
#define QUEUE_HASH_SIZE 1024
#define QUEUE_SIZE_CLASSES 24 /* of n, by its binary logarithm, for measured rates */
#define QUEUE_POISON_STRIKES 2

/* What the items of a batch have in common. Zeroed before it is filled, so that memcmp serves. */
struct queue_key {
    const struct method *method;
    int64_t precision, lane; /* lane: enum engine_lane_id */
    int64_t n, m;
    int64_t options[METHOD_OPTIONS_MAX];
};

/* All waiting items of a key. */
struct queue_group {
    struct queue_key key;
    struct queue_group *hash_next;
    struct queue_flow *flows; /* one of a circular list by group_next; the next to serve */
    double cost_ns;           /* predicted, of what waits */
    int64_t matrices;
};

/* The waiting items of one client, at one priority, for one key, oldest first. */
struct queue_flow {
    struct queue_group *group;
    int priority;
    uint32_t client;
    struct queue_item *first, *last;
    double deficit_ns; /* what it may still use before others come */
    struct queue_flow *group_next, *group_previous;
    struct queue_flow *ring_next, *ring_previous; /* of one lane kind and priority */
    struct queue_flow *hash_next;
};

/* A slice of an item: matrices first .. first + count - 1. */
struct queue_fragment {
    struct queue_item *item;
    int64_t first, count;
};

/* A batch to be sent again as it is. */
struct queue_retry {
    struct queue_retry *next;
    struct queue_key key;
    int count;
    struct queue_fragment fragments[];
};

struct queue_retries {
    struct queue_retry *first, **last;
};

/* The front's own record of a batch that an engine has: nothing here is read from the engine. */
struct queue_slot {
    bool used;
    struct queue_key key;
    uint64_t submitted_ns;
    double predicted_ns;
    int64_t matrices;
    int count;
    struct queue_fragment fragments[ENGINE_BATCH_ITEMS];
};

struct queue_ring {
    struct engine_lane *shared;
    uint64_t submissions;
    int in_flight;
    uint64_t last_reap_ns;
    struct queue_slot slots[ENGINE_BATCH_SLOTS];
};

struct queue_lane {
    struct queue *queue;
    struct queue_lane *next;
    struct engine_shared *shared;
    char device[ENGINE_NAME_MAX];
    bool spare, up;
    bool worked; /* see queue_lane_worked */
    struct queue_ring rings[ENGINE_LANES];
};

struct queue_client {
    struct queue_client *next;
    uint32_t client;
    int64_t count; /* requests under way */
    int64_t bytes; /* of the arena, that they hold */
};

struct queue_method_series {
    struct metric_series *depth, *duration, *batch_size, *batch_requests, *batch_duration;
};

/* Why a batch closed; label of invertd_batches_total. */
enum queue_reason {
    QUEUE_REASON_GATHERED, /* nothing more waits for this key */
    QUEUE_REASON_WAITED,   /* the same, after a wait for company */
    QUEUE_REASON_ITEMS,
    QUEUE_REASON_MATRICES,
    QUEUE_REASON_COST,
    QUEUE_REASON_RETRY,
    QUEUE_REASON_SUSPECT,
    QUEUE_REASON_COUNT
};

struct queue {
    pthread_mutex_t lock;
    struct queue_limits limits;
    struct queue_observer observer;

    /* admission */
    bool draining;
    int64_t entered;
    int64_t reserved_bytes;
    struct queue_client *clients[QUEUE_HASH_SIZE];
    uint64_t down_since_ns;     /* no engine is up since; 0: one is */
    uint64_t suspects_since_ns; /* suspects wait and no spare engine is up since; 0: not so */

    /* what waits */
    struct queue_group *groups[QUEUE_HASH_SIZE];
    struct queue_flow *flows[QUEUE_HASH_SIZE];
    struct queue_flow *rings[ENGINE_LANES][QUEUE_PRIORITIES]; /* the next flow to look at */
    struct queue_retries retries[ENGINE_LANES];
    struct queue_retries suspects; /* one fragment each */
    double waiting_cost_ns, running_cost_ns;

    /* engines */
    bool waiting; /* queue_wait_begin is in force */
    struct queue_lane *lanes;
    uint64_t sequence, last_batch_ns;
    double scale[PRECISION_COUNT][QUEUE_SIZE_CLASSES]; /* measured over modelled time */

    /* finished, to be told */
    struct queue_item *done;
    struct queue_told {
        const struct method *method;
        int64_t matrices;
        uint64_t compute_ns;
    } told[8 * ENGINE_LANES * ENGINE_BATCH_SLOTS];
    int told_count;

    struct queue_method_series *series; /* by method index */
    struct metric_series *reasons[QUEUE_REASON_COUNT];
    struct metric_series *retried_died, *retried_memory;
};

/* item.c: the one place where an item's state changes. */
void queue__item_move(struct queue *queue, struct queue_item *item, enum queue_item_state to);
/* Ends an item with status when nothing of it is with an engine or listed for a retry. */
void queue__item_end_if_idle(struct queue *queue, struct queue_item *item);
/* From now on nothing of the item starts; status is what on_done will say. */
void queue__item_drop(struct queue *queue, struct queue_item *item, enum error status);
/* A fragment's result is in. alone: it ran as a suspect. */
void queue__item_finish(struct queue *queue, const struct queue_fragment *fragment, bool alone);
void queue__unlock_and_tell(struct queue *queue);

/* flow.c: what waits, and whose turn it is. */
ERROR_MUST_CHECK enum error queue__flow_add(struct queue *queue, struct queue_item *item);
void queue__flow_remove(struct queue *queue,
                        struct queue_item *item); /* does nothing to one not in a flow */
/* The flow whose turn it is on a lane kind; NULL when none is ripe. */
struct queue_flow *queue__flow_choose(struct queue *queue, enum engine_lane_id lane,
                                      uint64_t now_ns);
/* When the first waiting batch has waited long enough; 0: nothing waits. */
uint64_t queue__flow_ripe_ns(const struct queue *queue);
/* Ends everything that waits in a flow. */
void queue__flow_drop_all(struct queue *queue, enum error status);
/* Takes matrices of the chosen flow's group into fragments; returns the count, says why it stopped.
 */
int queue__flow_take(struct queue *queue, struct queue_flow *flow, struct queue_fragment *fragments,
                     enum queue_reason *reason);

/* batch.c: from queue to lane and back. */
void queue__dispatch(struct queue *queue, uint64_t now_ns);
void queue__reap_lane(struct queue *queue, struct queue_lane *lane, uint64_t now_ns);
void queue__retry_add(struct queue *queue, struct queue_retries *list, const struct queue_key *key,
                      const struct queue_fragment *fragments, int count);
/* Ends the items of every batch in the list. */
void queue__retry_drop_all(struct queue *queue, struct queue_retries *list, enum error status);
/* Takes the item's fragments out of all retry lists. */
void queue__retry_forget(struct queue *queue, struct queue_item *item);

/* queue.c: remembers since when no engine is up. */
void queue__note_down(struct queue *queue, uint64_t now_ns);

/* cost.c: predicted time. */
double queue__cost_ns(const struct queue *queue, const struct method *method,
                      enum precision precision, int64_t n, int64_t m);
void queue__cost_learn(struct queue *queue, const struct queue_key *key, int64_t matrices,
                       uint64_t measured_ns);

#endif
