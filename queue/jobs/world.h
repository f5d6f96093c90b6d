/* queue/jobs/world.h: what a runner stands on in the daemon: the queue, the arena, the desk, and
 * threads that may block. */
#ifndef QUEUE_JOBS_WORLD_H
#define QUEUE_JOBS_WORLD_H

#include "queue/jobs/runner.h"

struct world {
    struct runner_world runner; /* first */
    struct queue *queue;
    struct arena *arena;
    struct desk *desk;
    struct workers *workers;
};

/* All borrowed. */
void world_init(struct world *world, struct queue *queue, struct arena *arena,
                struct mailbox *mailbox);

#endif
