/* queue/jobs/jobs_private.h: what jobs.c and jobs_calls.c share. */
#ifndef QUEUE_JOBS_JOBS_PRIVATE_H
#define QUEUE_JOBS_JOBS_PRIVATE_H

#include <pthread.h>

#include "queue/jobs/folder.h"
#include "queue/jobs/jobs.h"
#include "queue/jobs/runner_private.h"
#include "queue/jobs/watches.h"
#include "queue/jobs/world.h"

#define LOOKS_MAX 64 /* cancelled jobs to be looked after; more: all */
#define GONE_MAX 64  /* jobs that expire at a time */

/* Something that is done now and then, by a call of the desk. */
struct routine {
    struct desk_call call;
    uint64_t due_ns;
    bool is_under_way;
};

struct jobs {
    struct world world; /* first */
    struct jobs_config config;
    struct folder folder;
    struct desk *desk;
    struct spool *spool;
    struct workers *workers;
    struct runner *runner;
    struct mailbox mailbox;
    struct watches watches;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows, up to the next gap */
    pthread_cond_t woken;
    bool is_woken, may_claim, is_stopping, looks_at_all;
    int looks;
    struct job_id look[LOOKS_MAX];

    _Atomic bool stops;
    _Atomic int64_t free_bytes, used_bytes; /* of the spool's file system; of jobs */

    /* The thread's. */
    struct routine clean, count;
    struct store_gone gone[GONE_MAX];
    int gone_count;
    bool gone_is_more; /* than were asked for */
    struct runner_work removal;

    struct metric_series *states[JOB_STATES], *bytes, *retries, *duration[2];
};

/* Any thread: there may be a job to claim; the job may have been cancelled. */
void queue__jobs_wake_to_claim(struct jobs *jobs);
void queue__jobs_wake_to_look(struct jobs *jobs, const struct job_id *id);
/* The files of a job that was cancelled. What cannot be removed now goes when its row does. */
void queue__jobs_remove_later(struct jobs *jobs, const struct job *job);

#endif
