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
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define SLOT_MIN 4096 /* small takes share a slot */
/* Staging memory: a part of the slot that the body is going to have, within limits, in steps. */
#define STAGING_SHARE 32
#define STAGING_MIN (INT64_C(32) << 10)
#define STAGING_MAX (INT64_C(8) << 20)
#define STAGING_FACTOR 4

static void *take_for_codec(struct proto_space *space, int64_t bytes)
{
    return handlers__memory_take(
        (struct item_memory *)((char *)space - offsetof(struct item_memory, space)), bytes);
}

void handlers__memory_init(struct item_memory *memory, struct arena *arena, struct queue *queue)
{
    assert(memory->count == 0);
    memory->space.take = take_for_codec;
    memory->arena = arena;
    memory->queue = queue;
}

static void free_staging(struct item_memory *memory)
{
    free(memory->staging);
    memory->staging = NULL;
    memory->staging_bytes = 0;
}

void handlers__memory_free(struct item_memory *memory)
{
    assert(memory->held_bytes <= memory->reservation.held_bytes);
    free_staging(memory);
    for (int i = 0; i < memory->count; i++)
        arena_free(memory->arena, &memory->slots[i]);
    memory->count = 0;
    memory->held_bytes = 0;
    memory->next = memory->end = NULL;
}

static enum error refuse_full(struct failure *failure)
{
    return failure_set(failure, ERROR_FULL,
                       "The service's memory is taken by other requests; try again later.");
}

static enum error refuse_large(struct item_memory *memory, int64_t bytes, struct failure *failure)
{
    memory->wanted_bytes = bytes;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "The request and its answer need at least %lld bytes, the whole arena "
                       "has %llu; send fewer matrices at once, or start invertd with a larger "
                       "--arena-size.",
                       (long long)bytes, (unsigned long long)arena_bytes(memory->arena));
}

/* Counts the bytes of a slot and takes it. */
static enum error take_slot(struct item_memory *memory, int64_t bytes, struct arena_slot *slot)
{
    int64_t granted, held = INT64_MAX;
    uint64_t max = arena_bytes(memory->arena);
    memory->wanted_bytes = 0;
    if (!checked_round_up(bytes, ARENA_GRANULE, &granted) ||
        !checked_add(memory->held_bytes, granted, &held) || (uint64_t)held > max)
        return refuse_large(memory, held, &memory->refusal);
    if (memory->count == HANDLERS_MEMORY_SLOTS)
        return refuse_full(&memory->refusal);
    if (held > memory->reservation.held_bytes) {
        enum error error = queue_reserve(memory->queue, &memory->reservation,
                                         held - memory->reservation.held_bytes, &memory->refusal);
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

enum error handlers__memory_plan(struct item_memory *memory, int64_t length, int64_t lead,
                                 int64_t more_bytes, struct failure *failure)
{
    int64_t before = bytes_before(lead), bytes = INT64_MAX;
    assert(memory->count == 0);
    if (!checked_add(length, before, &bytes) || !checked_add(bytes, more_bytes, &bytes) ||
        !checked_round_up(bytes > 0 ? bytes : 1, ARENA_GRANULE, &bytes) ||
        (uint64_t)bytes > arena_bytes(memory->arena))
        return refuse_large(memory, bytes, failure);
    memory->body_before = before;
    memory->body_bytes = length;
    memory->body_whole = bytes;
    memory->body_alone = more_bytes == 0;
    return ERROR_NONE;
}

/* How much of the body staging memory may have. */
static int64_t staging_max(const struct item_memory *memory)
{
    int64_t part = memory->body_whole / STAGING_SHARE;
    part = part > STAGING_MIN ? part : STAGING_MIN;
    return part < STAGING_MAX ? part : STAGING_MAX;
}

static bool has_slot(const struct item_memory *memory)
{
    return memory->count > 0;
}

/* Takes the body's slot, which is counted, and moves there what has come; false when there is no
 * such piece of memory. */
static bool place_body(struct item_memory *memory)
{
    assert(!has_slot(memory) && memory->reservation.held_bytes >= memory->body_whole);
    struct arena_slot *slot = &memory->slots[0];
    if (arena_alloc(memory->arena, memory->body_whole, slot) != ERROR_NONE)
        return false;
    unsigned char *start = arena_base(memory->arena) + slot->offset_bytes;
    unsigned char *body = start + memory->body_before;
    memory->count = 1;
    memory->held_bytes = (int64_t)slot->bytes;
    memory->next = body + memory->body_bytes;
    memory->end = memory->body_alone ? memory->next : start + slot->bytes;
    if (memory->staging == NULL)
        return true;
    int64_t came = memory->staging_bytes;
    memcpy(body, memory->staging, (size_t)(came < memory->body_bytes ? came : memory->body_bytes));
    free_staging(memory);
    queue_leave_staging(memory->queue, &memory->reservation);
    return true;
}

bool handlers__memory_settle(struct item_memory *memory)
{
    struct queue_reservation *reservation = &memory->reservation;
    if (reservation->held_bytes < reservation->need_bytes &&
        !queue_take(memory->queue, reservation))
        return false;
    while (!has_slot(memory) && !place_body(memory))
        if (!queue_await_piece(memory->queue, reservation))
            return false;
    return true;
}

static bool grow_staging(struct item_memory *memory, int64_t bytes)
{
    struct queue_reservation *reservation = &memory->reservation;
    int64_t step = STAGING_MIN;
    while (step < bytes)
        step *= STAGING_FACTOR;
    if (step > reservation->staged_bytes &&
        !queue_take_staging(memory->queue, reservation, step - reservation->staged_bytes))
        return false;
    unsigned char *staging = realloc(memory->staging, (size_t)reservation->staged_bytes);
    if (staging == NULL)
        return handlers__memory_settle(memory); /* the system's memory is gone, not the arena */
    memory->staging = staging;
    memory->staging_bytes = reservation->staged_bytes;
    return true;
}

bool handlers__memory_grow(struct item_memory *memory, int64_t bytes)
{
    assert(bytes >= 0 && bytes <= memory->body_bytes);
    if (has_slot(memory) || bytes <= memory->staging_bytes)
        return true;
    bool is_staged = memory->reservation.held_bytes == 0 && bytes <= staging_max(memory);
    return is_staged ? grow_staging(memory, bytes) : handlers__memory_settle(memory);
}

unsigned char *handlers__memory_body(const struct item_memory *memory, int64_t *room_bytes)
{
    *room_bytes = has_slot(memory) ? memory->body_bytes : memory->staging_bytes;
    if (*room_bytes > memory->body_bytes)
        *room_bytes = memory->body_bytes;
    if (!has_slot(memory))
        return memory->staging;
    return arena_base(memory->arena) + memory->slots[0].offset_bytes + memory->body_before;
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
