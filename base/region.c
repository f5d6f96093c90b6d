/* base/region.c: see region.h. */
#include "base/region.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct region {
    _Atomic int references;
    enum region_kind kind;
    int fd;
    struct region_map map;
};

static enum error map_bytes(int fd, uint64_t bytes, struct region_map *map, struct failure *failure)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return failure_set(failure, ERROR_INTERNAL, "A region's descriptor is not usable: %s.",
                           strerror(errno));
    if (status.st_size < 0 || (uint64_t)status.st_size < bytes)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "A region has %lld bytes, and %llu were to be used.",
                           (long long)status.st_size, (unsigned long long)bytes);
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return failure_set(failure, ERROR_INTERNAL, "A region of %llu bytes cannot be mapped: %s.",
                           (unsigned long long)bytes, strerror(errno));
    *map = (struct region_map){base, bytes};
    return ERROR_NONE;
}

enum error region_create(enum region_kind kind, int fd, uint64_t bytes, struct region **region,
                         struct failure *failure)
{
    assert(kind < REGION_KINDS && fd >= 0);
    struct region *made = malloc(sizeof *made);
    if (made == NULL)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for a region.");
    *made = (struct region){.references = 1, .kind = kind, .fd = fd};
    enum error error = map_bytes(fd, bytes, &made->map, failure);
    if (error != ERROR_NONE) {
        free(made);
        return error;
    }
    *region = made;
    return ERROR_NONE;
}

struct region *region_hold(struct region *region)
{
    int before = atomic_fetch_add_explicit(&region->references, 1, memory_order_relaxed);
    assert(before > 0);
    return region;
}

void region_drop(struct region **region)
{
    struct region *old = *region;
    *region = NULL;
    if (old == NULL)
        return;
    int before = atomic_fetch_sub_explicit(&old->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    munmap(old->map.base, (size_t)old->map.bytes);
    close(old->fd);
    free(old);
}

enum region_kind region_kind(const struct region *region)
{
    return region->kind;
}

int region_fd(const struct region *region)
{
    return region->fd;
}

struct region_map region_map(const struct region *region)
{
    return region->map;
}
