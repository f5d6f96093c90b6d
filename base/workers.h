/* base/workers.h: the bounded work pool, for compression and for encoding and decoding of long
 * bodies, which must never run on an event loop.
 *
 * Threads: workers_submit from any; `run` on one of the pool's; what follows is the task's own
 * business (usually a mailbox_post to the loop that owns the request).
 */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include "base/error.h"

struct workers;

/* Embedded in the caller's object; the pool borrows it until `run` returns. */
struct workers_task {
    struct workers_task *next; /* private to the pool */
    void (*run)(struct workers_task *self);
};

/* threads >= 1; at most limit tasks wait. */
ERROR_MUST_CHECK enum error workers_create(int threads, int limit, struct workers **pool,
                                           struct failure *failure);
/* Runs what still waits, joins the threads, nulls *pool. */
void workers_destroy(struct workers **pool);

/* ERROR_FULL when limit tasks wait already. */
ERROR_MUST_CHECK enum error workers_submit(struct workers *pool, struct workers_task *task);

#endif
