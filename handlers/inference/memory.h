/* handlers/inference/memory.h: the arena slots of one item, and the codecs' space over them.
 *
 * A body is given memory by what has come of it, never by what was announced. Its first part lies
 * in staging memory, from malloc, which grows with it; then it gets its slot, all of it, and the
 * first part is copied there. A small body gets its slot at once. Later takes come from the front
 * of the newest slot; a slot too short is followed by another. All slots go back together, but the
 * body's may go before. The queue counts what requests hold (struct queue_reservation).
 *
 * Threads: the item's.
 */
#ifndef HANDLERS_INFERENCE_MEMORY_H
#define HANDLERS_INFERENCE_MEMORY_H

#include "base/arena.h"
#include "base/error.h"
#include "proto/proto.h"
#include "queue/queue.h"

#define HANDLERS_MEMORY_SLOTS 16
#define HANDLERS_MEMORY_ALIGN 64

struct item_memory {
    struct proto_space space;
    struct arena *arena;                  /* borrowed, as the queue is */
    struct queue *queue;                  /* which counts for the client */
    unsigned char *next, *end;            /* what is left of the newest slot */
    struct queue_reservation reservation; /* all slots together hold no more than it */
    int64_t held_bytes;                   /* by the slots */
    int count;
    bool body_alone;                                /* nothing else lies in the body's slot */
    int64_t body_before, body_bytes, body_whole;    /* of its slot: unused, body, all of it */
    unsigned char *staging;                         /* [staging_bytes], or NULL */
    int64_t staging_bytes;                          /* it may lag behind the reservation's */
    struct arena_slot slots[HANDLERS_MEMORY_SLOTS]; /* the body's first */
    int64_t wanted_bytes;   /* of all slots, when one was refused for being too large */
    struct failure refusal; /* why no slot was added when one was last asked for */
};

/* The memory is zeroed. */
void handlers__memory_init(struct item_memory *memory, struct arena *arena, struct queue *queue);
/* Gives the slots back. What is reserved is for queue_leave to give back. */
void handlers__memory_free(struct item_memory *memory);

/* Plans the slot of a body of length bytes, whose byte `lead` is to lie on 64 bytes, with room for
 * more_bytes behind it (0: nothing else is taken from this slot). TOO_LARGE, with words: no arena
 * of this size has it. Before queue_enter: body_whole is the slot's length. */
ERROR_MUST_CHECK enum error handlers__memory_plan(struct item_memory *memory, int64_t length,
                                                  int64_t lead, int64_t more_bytes,
                                                  struct failure *failure);
/* Makes room for the body's first so many bytes; it may move them. false: the reservation waits,
 * and once on_room has come this is called again. */
ERROR_MUST_CHECK bool handlers__memory_grow(struct item_memory *memory, int64_t bytes);
/* The same, for all of the body and what else the request is likely to need: the body is in its
 * slot then. */
ERROR_MUST_CHECK bool handlers__memory_settle(struct item_memory *memory);
/* Where the body is, and how many of its bytes there is room for. */
unsigned char *handlers__memory_body(const struct item_memory *memory, int64_t *room_bytes);
/* Nothing refers to the body any more. Does nothing when its slot has room for more. */
void handlers__memory_drop_body(struct item_memory *memory);

/* Makes sure that the next takes, each rounded up to 64 bytes, come from one slot without fail. */
ERROR_MUST_CHECK bool handlers__memory_reserve(struct item_memory *memory, int64_t bytes);
void *handlers__memory_take(struct item_memory *memory, int64_t bytes);

/* FULL, CLIENT_QUOTA, or TOO_LARGE when waiting would not help; with words. */
enum error handlers__memory_failure(const struct item_memory *memory, struct failure *failure);

#endif
