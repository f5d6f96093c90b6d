/* gpu/host/base/scratch.c: see scratch.h.
 *
 * Shared state: `used` and the two ticket counters, under `lock`; the rest of a budget is constant.
 */
#include "gpu/host/base/scratch.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/checked.h"

#define PAGE_BYTES 4096
#define KEPT_PART 4 /* of a small limit, so much is kept at most */

struct host_budget {
    int64_t kept_each; /* what one worker may keep */
    int64_t limit;     /* of the large pieces */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t used;
    uint64_t next_ticket,
        served; /* a worker that asks takes a ticket; tickets are served in turn */
};

enum error host_budget_create(int64_t limit_bytes, int workers, struct host_budget **result,
                              struct failure *failure)
{
    assert(limit_bytes >= 1 && workers >= 1);
    struct host_budget *budget = calloc(1, sizeof *budget);
    if (!budget)
        return failure_set(failure, ERROR_INTERNAL, "no memory for the scratch budget");
    int64_t kept = limit_bytes / KEPT_PART;
    kept = kept < HOST_SCRATCH_KEPT_BYTES ? kept : HOST_SCRATCH_KEPT_BYTES;
    budget->kept_each = kept / workers / PAGE_BYTES * PAGE_BYTES;
    budget->limit = limit_bytes - kept;
    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->changed, NULL);
    *result = budget;
    return ERROR_NONE;
}

void host_budget_destroy(struct host_budget **budget)
{
    struct host_budget *old = *budget;
    if (!old)
        return;
    assert(old->used == 0 && old->served == old->next_ticket);
    pthread_cond_destroy(&old->changed);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *budget = NULL;
}

static bool take(struct host_budget *budget, int64_t bytes)
{
    if (bytes > budget->limit)
        return false;
    pthread_mutex_lock(&budget->lock);
    uint64_t ticket = budget->next_ticket++;
    while (budget->served != ticket || budget->used > budget->limit - bytes)
        pthread_cond_wait(&budget->changed, &budget->lock);
    budget->served++;
    budget->used += bytes;
    pthread_cond_broadcast(&budget->changed); /* the next ticket may fit too */
    pthread_mutex_unlock(&budget->lock);
    return true;
}

static void give(struct host_budget *budget, int64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    assert(budget->used >= bytes);
    budget->used -= bytes;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->lock);
}

static bool map_large(struct host_scratch *scratch, struct host_budget *budget, int64_t bytes)
{
    if (!take(budget, bytes))
        return false;
    void *map =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        give(budget, bytes);
        return false;
    }
    /* Fewer faults while it is written for the first time: a sixth of the time, or less. */
    (void)madvise(map, (size_t)bytes, MADV_HUGEPAGE);
    *scratch = (struct host_scratch){.data = map, .bytes = bytes, .large = true};
    return true;
}

bool host__scratch_fit(struct host_scratch *scratch, struct host_budget *budget, int64_t bytes)
{
    if (bytes < 0)
        return false;
    if (bytes <= scratch->bytes)
        return true;
    host__scratch_free(scratch);
    int64_t rounded;
    if (!checked_round_up(bytes, PAGE_BYTES, &rounded))
        return false;
    if (rounded > budget->kept_each)
        return map_large(scratch, budget, rounded);
    scratch->data = aligned_alloc(PAGE_BYTES, (size_t)rounded);
    scratch->bytes = scratch->data ? rounded : 0;
    return scratch->data != NULL;
}

void host__scratch_done(struct host_scratch *scratch, struct host_budget *budget)
{
    if (!scratch->large)
        return;
    munmap(scratch->data, (size_t)scratch->bytes);
    give(budget, scratch->bytes);
    *scratch = (struct host_scratch){0};
}

void host__scratch_free(struct host_scratch *scratch)
{
    assert(!scratch->large);
    free(scratch->data);
    *scratch = (struct host_scratch){0};
}
