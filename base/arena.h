/* base/arena.h: one memfd, mapped by the front and by every engine, from which requests take slots.
 *
 * Bodies, decoded tensors, outputs and encoded answers live here, so that an engine reads and
 * writes them in place. Offsets, never pointers, cross the process boundary. The map of free
 * granules is kept outside the arena: nothing an engine writes can damage it.
 *
 * Threads: alloc and free from any thread (mutexes inside; short slots are handed on within a
 * processor, so that event loops seldom meet). The rest is read-only after create.
 * Cost: alloc and free are O(1) (two-level segregated fit over granules of ARENA_GRANULE bytes).
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/region.h"

#define ARENA_GRANULE 512 /* bytes; a slot is a whole number of them, and aligned to one */

struct arena;

/* A piece of the arena. bytes is what was granted (rounded up); 0 for "no slot". */
struct arena_slot {
    uint64_t offset_bytes;
    uint64_t bytes;
};

/* Makes the memfd (sealed against shrinking) and maps it. bytes is rounded up to 2 MiB. */
ERROR_MUST_CHECK enum error arena_create(int64_t bytes, struct arena **arena,
                                         struct failure *failure);
/* Frees map and memfd; nulls *arena. No slot may be in use. */
void arena_destroy(struct arena **arena);

/* ERROR_FULL, without touching *slot, when no free run is long enough. (One that is longer by less
 * than a sixteenth may be overlooked behind 64 others of its class.) Contents are undefined. 0
 * bytes get a granule. In a build with the address sanitizer, slots given back are poisoned. */
ERROR_MUST_CHECK enum error arena_alloc(struct arena *arena, int64_t bytes,
                                        struct arena_slot *slot);
/* Gives the slot back and zeroes *slot. A zero slot is allowed and does nothing. */
void arena_free(struct arena *arena, struct arena_slot *slot);

unsigned char *arena_base(const struct arena *arena);   /* the front's own mapping */
struct region_map arena_map(const struct arena *arena); /* base and bytes */
int arena_fd(const struct arena *arena);                /* lent: belongs to the arena */
uint64_t arena_bytes(const struct arena *arena);
/* The sum of granted slots; any thread. Exact while no other thread takes or gives back. */
uint64_t arena_used_bytes(const struct arena *arena);

#endif
