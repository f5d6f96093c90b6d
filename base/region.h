/* base/region.h: a file or memory that tensors live in, and the one way from an offset to a
 * pointer.
 *
 * A tensor is a reference: region, offset, shape. Processes map a region at addresses of their own,
 * so only offsets pass between them. Those come from outside: region_at checks each before it
 * becomes a pointer.
 *
 * Threads: any; the count is atomic, and the rest is read-only after create.
 * Ownership: a region owns its descriptor and its mapping, until the last reference is dropped: one
 * that is unregistered while in use goes with its last user.
 */
#ifndef BASE_REGION_H
#define BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct region;

enum region_kind {
    REGION_ARENA,  /* the daemon's own memory */
    REGION_SPOOL,  /* a job's file */
    REGION_CLIENT, /* shared memory of a client */
    REGION_KINDS
};

/* Where this process, or its device, sees a region's bytes. */
struct region_map {
    unsigned char *base;
    uint64_t bytes;
};

/* The pointer to bytes at an offset, of any alignment; NULL when a byte of them, or for no bytes
 * the offset itself, lies outside the region, or when bytes is negative. */
static inline void *region_at(struct region_map map, uint64_t offset_bytes, int64_t bytes)
{
    if (bytes < 0 || offset_bytes > map.bytes || (uint64_t)bytes > map.bytes - offset_bytes)
        return NULL;
    return map.base + offset_bytes;
}

/* The way back: the offset of bytes that lie in the region; false when one of them does not. */
__attribute__((warn_unused_result)) static inline bool
region_offset(struct region_map map, const void *at, int64_t bytes, uint64_t *offset_bytes)
{
    uintptr_t address = (uintptr_t)at, base = (uintptr_t)map.base;
    if (address < base || region_at(map, address - base, bytes) == NULL)
        return false;
    *offset_bytes = address - base;
    return true;
}

/* Maps the first bytes of a descriptor, to read and write, shared with all who map it. Takes fd
 * when it succeeds. TOO_LARGE when the file is shorter; else INTERNAL, with words. */
ERROR_MUST_CHECK enum error region_create(enum region_kind kind, int fd, uint64_t bytes,
                                          struct region **region, struct failure *failure);
/* One reference more: for a request whose tensors lie in shared memory that may be unregistered
 * before its end. Today a region has one holder. */
struct region *region_hold(struct region *region);
/* Drops a reference and nulls *region; the last one unmaps the bytes and closes the descriptor. */
void region_drop(struct region **region);

enum region_kind region_kind(const struct region *region);
int region_fd(const struct region *region); /* lent until the last drop, as the bytes are */
struct region_map region_map(const struct region *region);

#endif
