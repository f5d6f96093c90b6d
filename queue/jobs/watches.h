/* queue/jobs/watches.h: who waits for news of which job. See jobs.h for what a watch says.
 *
 * Threads: any; one mutex, held for a few instructions for each watch of the job. Cost: 100 bytes a
 * watch; news of a job that no one watches look at one bucket.
 */
#ifndef QUEUE_JOBS_WATCHES_H
#define QUEUE_JOBS_WATCHES_H

#include <pthread.h>

#include "base/mailbox.h"
#include "queue/jobs/jobs.h"

#define WATCHES_BUCKETS 4096

struct watches {
    pthread_mutex_t lock;
    uint64_t serial;
    int count;
    struct jobs_watch *buckets[WATCHES_BUCKETS];
};

void watches_init(struct watches *watches);
void watches_fini(struct watches *watches); /* none is left */
/* JOB_STATES: the state is as it was. progress -1: likewise. */
void watches_report(struct watches *watches, const struct job_id *id, enum job_state state,
                    int64_t progress);
/* NULL: out of memory. */
struct jobs_watch *watches_add(struct watches *watches, const struct job_id *id,
                               struct mailbox *mailbox, struct message *message);

#endif
