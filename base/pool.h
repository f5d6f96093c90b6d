/* pool.h: the bounded work pool, for compression and for encoding and decoding of long bodies,
 * which must never run on an event loop.
 *
 * Threads: pool_submit from any; `run` on one of the pool's; what follows is the task's own
 * business (usually a mailbox_post to the loop that owns the request).
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/error.h"

struct pool;

/* Embedded in the caller's object; the pool borrows it until `run` returns. */
struct pool_task {
    struct pool_task *next; /* private to the pool */
    void (*run)(struct pool_task *self);
};

/* threads >= 1; at most limit tasks wait. */
ERROR_MUST_CHECK enum error pool_create(int threads, int limit, struct pool **pool,
                                        struct failure *failure);
/* Runs what still waits, joins the threads, nulls *pool. */
void pool_destroy(struct pool **pool);

/* ERROR_FULL when limit tasks wait already. */
ERROR_MUST_CHECK enum error pool_submit(struct pool *pool, struct pool_task *task);

#endif
