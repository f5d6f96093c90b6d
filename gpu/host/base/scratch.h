/* gpu/host/base/scratch.h: the workers' scratch memory, and the budget that all of them share.
 *
 * A worker keeps small scratch between matrices. A larger piece is mapped for one chunk and given
 * back after it; those in use at one time stay within the budget. A worker that finds no room waits
 * for the others, in the order of asking, so that a large piece is not starved by small ones; what
 * could never fit is refused at once. All that is kept and mapped together stays within the limit.
 *
 * Threads: a budget serves any number of workers; a scratch belongs to one. A worker that waits
 * holds no other large piece, so none waits for ever. Cost: small pieces touch no lock; a large
 * one costs two locks, a mapping and its page faults.
 */
#ifndef GPU_HOST_BASE_SCRATCH_H
#define GPU_HOST_BASE_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define HOST_SCRATCH_KEPT_BYTES (INT64_C(64) << 20) /* by all workers together, at most */

struct host_budget;

/* Zeroed at first. */
struct host_scratch {
    void *data;
    int64_t bytes;
    bool large; /* mapped, and counted by the budget */
};

/* limit_bytes >= 1; workers: how many share it, >= 1. */
ERROR_MUST_CHECK enum error host_budget_create(int64_t limit_bytes, int workers,
                                               struct host_budget **budget,
                                               struct failure *failure);
void host_budget_destroy(struct host_budget **budget); /* when no worker is left */

/* Makes scratch at least `bytes` long, aligned to 4096, contents undefined. May wait. False when so
 * much can never be had, or the system has none. */
bool host__scratch_fit(struct host_scratch *scratch, struct host_budget *budget, int64_t bytes);
/* Gives a large piece back. */
void host__scratch_done(struct host_scratch *scratch, struct host_budget *budget);
/* The worker ends; no large piece is held. */
void host__scratch_free(struct host_scratch *scratch);

#endif
