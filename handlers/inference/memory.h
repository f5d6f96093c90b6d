/* handlers/inference/memory.h: the arena slots of one item, and the codecs' space over them.
 *
 * Memory is taken from the front of the newest slot; a slot too short is followed by another. All
 * slots go back together, but the body's may go before. The queue counts what a client's requests
 * hold together, so that one client cannot fill the arena: what the body's slot takes when the
 * request enters, and more when it is asked for.
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
    struct arena *arena;                /* borrowed, as the queue is */
    struct queue *queue;                /* which counts for the client */
    unsigned char *next, *end;          /* what is left of the newest slot */
    int64_t held_bytes, reserved_bytes; /* held <= reserved, which the queue counts */
    uint32_t client;
    int count;
    bool body_alone;                                /* nothing else lies in the body's slot */
    struct arena_slot slots[HANDLERS_MEMORY_SLOTS]; /* the body's first */
    int64_t wanted_bytes;   /* of all slots, when one was refused for being too large */
    struct failure refusal; /* why no slot was added when one was last asked for */
};

/* What memory_body will take for these, at most all of the arena: for queue_enter. */
int64_t handlers__memory_body_bytes(const struct arena *arena, int64_t length, int64_t lead,
                                    int64_t more_bytes);
/* The memory is zeroed. The client has entered the queue with so many bytes. */
void handlers__memory_init(struct item_memory *memory, struct arena *arena, struct queue *queue,
                           uint32_t client, int64_t reserved_bytes);
/* Returns what is still counted for the client: for queue_leave. */
int64_t handlers__memory_free(struct item_memory *memory);

/* Takes the slot for a body of length bytes whose byte `lead` is to lie on 64 bytes, with room
 * for more_bytes behind it (0: nothing else is taken from this slot). NULL: there is no room. */
unsigned char *handlers__memory_body(struct item_memory *memory, int64_t length, int64_t lead,
                                     int64_t more_bytes);
/* Nothing refers to the body any more. Does nothing when its slot has room for more. */
void handlers__memory_drop_body(struct item_memory *memory);

/* Makes sure that the next takes, each rounded up to 64 bytes, come from one slot without fail. */
ERROR_MUST_CHECK bool handlers__memory_reserve(struct item_memory *memory, int64_t bytes);
void *handlers__memory_take(struct item_memory *memory, int64_t bytes);

/* FULL, CLIENT_QUOTA, or TOO_LARGE when waiting would not help; with words. */
enum error handlers__memory_failure(const struct item_memory *memory, struct failure *failure);

#endif
