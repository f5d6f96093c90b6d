/* handlers/inference/memory.c: see memory.h.
 *
 * Slots are limited in number, not in size: the first half are as long as what is asked for, later
 * ones at least double what is held, so that a codec that grows a buffer step by step does not run
 * out of them.
 * Cost: a take that fits is a few instructions; one that does not costs an arena_alloc and the
 * queue's lock.
 */
#include "handlers/inference/memory.h"

#include <assert.h>
#include <stddef.h>

#include "base/checked.h"

#define SLOT_MIN 4096 /* small takes share a slot */

static void *take_for_codec(struct proto_space *space, int64_t bytes)
{
    return handlers__memory_take(
        (struct item_memory *)((char *)space - offsetof(struct item_memory, space)), bytes);
}

void handlers__memory_init(struct item_memory *memory, struct arena *arena, struct queue *queue,
                           uint32_t client, int64_t reserved_bytes)
{
    assert(reserved_bytes >= 0 && memory->count == 0);
    memory->space.take = take_for_codec;
    memory->arena = arena;
    memory->queue = queue;
    memory->client = client;
    memory->reserved_bytes = reserved_bytes;
}

int64_t handlers__memory_free(struct item_memory *memory)
{
    assert(memory->held_bytes <= memory->reserved_bytes);
    int64_t reserved_bytes = memory->reserved_bytes;
    for (int i = 0; i < memory->count; i++)
        arena_free(memory->arena, &memory->slots[i]);
    memory->count = 0;
    memory->held_bytes = memory->reserved_bytes = 0;
    memory->next = memory->end = NULL;
    return reserved_bytes;
}

static enum error refuse_full(struct failure *failure)
{
    return failure_set(failure, ERROR_FULL,
                       "The service's memory is taken by other requests; try again later.");
}

static enum error reserve_more(struct item_memory *memory, int64_t bytes)
{
    enum error error = queue_reserve(memory->queue, memory->client, bytes, &memory->refusal);
    if (error == ERROR_NONE)
        memory->reserved_bytes += bytes;
    return error;
}

/* Counts the bytes of a slot and takes it. */
static enum error take_slot(struct item_memory *memory, int64_t bytes, struct arena_slot *slot)
{
    int64_t granted, held = INT64_MAX;
    uint64_t max = arena_bytes(memory->arena);
    if (!checked_round_up(bytes, ARENA_GRANULE, &granted) ||
        !checked_add(memory->held_bytes, granted, &held) || (uint64_t)held > max) {
        memory->wanted_bytes = held;
        return failure_set(&memory->refusal, ERROR_TOO_LARGE,
                           "The request and its answer need at least %lld bytes, the whole arena "
                           "has %llu; send fewer matrices at once, or start invertd with a larger "
                           "--arena-size.",
                           (long long)held, (unsigned long long)max);
    }
    if (memory->count == HANDLERS_MEMORY_SLOTS)
        return refuse_full(&memory->refusal);
    if (held > memory->reserved_bytes) {
        enum error error = reserve_more(memory, held - memory->reserved_bytes);
        if (error != ERROR_NONE)
            return error;
    }
    if (arena_alloc(memory->arena, granted, slot) == ERROR_NONE)
        return ERROR_NONE;
    return refuse_full(&memory->refusal);
}

/* Adds a slot and makes it the one that takes come from. bytes is more than 0. */
static bool add_slot(struct item_memory *memory, int64_t bytes)
{
    assert(bytes > 0);
    struct arena_slot *slot = &memory->slots[memory->count];
    if (take_slot(memory, bytes, slot) != ERROR_NONE)
        return false;
    memory->count++;
    memory->held_bytes += (int64_t)slot->bytes;
    memory->next = region_at(arena_map(memory->arena), slot->offset_bytes, (int64_t)slot->bytes);
    assert(memory->next != NULL);
    memory->end = memory->next + slot->bytes;
    return true;
}

/* What stands before a body, so that its byte `lead` lies right. */
static int64_t bytes_before(int64_t lead)
{
    return (-lead) & (HANDLERS_MEMORY_ALIGN - 1);
}

int64_t handlers__memory_body_bytes(const struct arena *arena, int64_t length, int64_t lead,
                                    int64_t more_bytes)
{
    int64_t max = (int64_t)arena_bytes(arena), bytes;
    if (!checked_add(length, bytes_before(lead), &bytes) ||
        !checked_add(bytes, more_bytes, &bytes) ||
        !checked_round_up(bytes > 0 ? bytes : 1, ARENA_GRANULE, &bytes))
        return max;
    return bytes < max ? bytes : max;
}

unsigned char *handlers__memory_body(struct item_memory *memory, int64_t length, int64_t lead,
                                     int64_t more_bytes)
{
    assert(memory->count == 0);
    int64_t before = bytes_before(lead);
    int64_t bytes;
    if (!checked_add(length, before, &bytes) || !checked_add(bytes, more_bytes, &bytes) ||
        !add_slot(memory, bytes > 0 ? bytes : 1))
        return NULL;
    unsigned char *body = memory->next + before;
    memory->next = body + length;
    memory->body_alone = more_bytes == 0;
    if (memory->body_alone)
        memory->end = memory->next;
    return body;
}

void handlers__memory_drop_body(struct item_memory *memory)
{
    if (!memory->body_alone)
        return;
    memory->body_alone = false;
    memory->held_bytes -= (int64_t)memory->slots[0].bytes;
    arena_free(memory->arena, &memory->slots[0]);
    if (memory->count == 1)
        memory->next = memory->end = NULL;
}

/* Where the next take of so many bytes would start; NULL when it does not fit. */
static unsigned char *room_for(const struct item_memory *memory, int64_t bytes)
{
    if (memory->next == NULL)
        return NULL;
    /* The arena's base is aligned to a page, so addresses align as offsets do. */
    uintptr_t before = -(uintptr_t)memory->next & (HANDLERS_MEMORY_ALIGN - 1);
    ptrdiff_t left = memory->end - memory->next;
    if (left < (ptrdiff_t)before || bytes > left - (ptrdiff_t)before)
        return NULL;
    return memory->next + before;
}

bool handlers__memory_reserve(struct item_memory *memory, int64_t bytes)
{
    if (bytes < 0)
        return false;
    if (room_for(memory, bytes) != NULL)
        return true;
    int64_t min = bytes > SLOT_MIN ? bytes : SLOT_MIN;
    if (memory->count >= HANDLERS_MEMORY_SLOTS / 2 && memory->held_bytes > min &&
        add_slot(memory, memory->held_bytes))
        return true;
    return add_slot(memory, min);
}

void *handlers__memory_take(struct item_memory *memory, int64_t bytes)
{
    if (!handlers__memory_reserve(memory, bytes))
        return NULL;
    unsigned char *start = room_for(memory, bytes);
    assert(start != NULL);
    memory->next = start + bytes;
    return start;
}

enum error handlers__memory_failure(const struct item_memory *memory, struct failure *failure)
{
    if (memory->refusal.code == ERROR_NONE)
        return refuse_full(failure); /* a codec's own, without an arena */
    *failure = memory->refusal;
    return failure->code;
}
