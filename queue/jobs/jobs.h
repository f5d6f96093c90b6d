/* queue/jobs/jobs.h: jobs as the server and the handlers see them.
 *
 * What comes in: a task (job.h) with its body, in memory or as a file of the spool that is being
 * written. What goes out: the job's document, its end, its result. Between them a runner (runner.h)
 * claims jobs from the store, reads their matrices piece by piece into the arena, hands the pieces
 * to the queue at a priority below all direct requests, and writes what comes back.
 *
 * Guarantees. A job that was accepted is computed at least once and completed exactly once,
 * whatever dies in between: see job.h for leases and attempts, store.h for what commit means. An
 * engine that dies takes no job with it (queue.h); a job whose attempts killed engines twice while
 * alone ends as POISON.
 *
 * Threads: any, but for create and destroy. Nothing blocks. A call comes back by its mailbox.
 */
#ifndef QUEUE_JOBS_JOBS_H
#define QUEUE_JOBS_JOBS_H

#include "base/arena.h"
#include "base/mailbox.h"
#include "base/metric.h"
#include "base/workers.h"
#include "queue/jobs/desk.h"
#include "queue/jobs/spool.h"
#include "queue/queue.h"

struct jobs;
struct jobs_watch;
struct jobs_result; /* what a runner has computed: jobs_result_read */

struct jobs_config {
    struct queue *queue;
    struct arena *arena;
    struct metric_registry *metrics;
    const char *folder;      /* --data-dir: jobs.db, spool/, lock; made with mode 0700 */
    int64_t result_ttl_ms;   /* --result-ttl */
    int64_t lease_ms;        /* 5 s */
    int64_t spool_bytes_max; /* of all jobs; 0: what the disk has */
    int64_t owner_jobs_max;  /* not over, where the client's own limit does not say; 0: none */
    /* On the desk's thread, when a job has ended that has a callback: short. NULL: no one wants it.
     */
    void (*on_callback)(void *context);
    void *callback_context;
    int64_t piece_bytes_max, piece_cost_ns; /* of a piece: a matrix may always be more */
};

/* When all of a job is computed: does it count as good? INFO and the like can be read from the
 * result. On a thread that may block. */
typedef enum error jobs_judge(void *context, const struct job *job,
                              const struct jobs_result *result, struct failure *failure);
/* Reads from a result's bytes, wherever they lie. In judge alone. */
ERROR_MUST_CHECK enum error jobs_result_read(const struct jobs_result *result, int64_t offset_bytes,
                                             void *data, int64_t bytes, struct failure *failure);

/* Locks the folder, opens store and spool, takes up what an earlier life left. Failures name the
 * folder: FULL where another daemon has it. */
ERROR_MUST_CHECK enum error jobs_create(const struct jobs_config *config, struct jobs **jobs,
                                        struct failure *failure);
/* Jobs are computed from now on. judge: NULL: all are good. */
ERROR_MUST_CHECK enum error jobs_start(struct jobs *jobs, jobs_judge *judge, void *context,
                                       struct failure *failure);
/* No more claims; what runs is released. NULL is allowed, as for the next. Then the queue may
 * drain. */
void jobs_stop(struct jobs *jobs);
/* The same, and waits until all that runs has come back, and what was posted to the desk too: while
 * there are engines. Anything of jobs may be called afterwards, but no job runs. */
void jobs_quiesce(struct jobs *jobs);
void jobs_destroy(struct jobs **jobs); /* no call and no watch may be left */

struct desk *jobs_desk(struct jobs *jobs);   /* for get, list, find_key, position, totals */
struct spool *jobs_spool(struct jobs *jobs); /* for bodies that are written as they come */
/* NONE when jobs are taken now; else why not: JOBS_OFF, NO_ROOM, DRAINING. */
ERROR_MUST_CHECK enum error jobs_open_for(const struct jobs *jobs, int64_t spool_bytes,
                                          struct failure *failure);

/* Can such a task ever be computed here? TOO_LARGE, with the limit: before its body has come. */
ERROR_MUST_CHECK enum error jobs_check(const struct jobs *jobs, const struct job_task *task,
                                       struct failure *failure);
/* Posts a put, in which put->job has all but id (made already where a body lies in the spool),
 * times and limits; wakes the runner once it is durable. */
void jobs_accept(struct jobs *jobs, struct desk_call *put);
/* Posts a cancel; a running job is left at its next step, and its files go. In both the call's
 * on_done is taken by jobs. */
void jobs_cancel(struct jobs *jobs, struct desk_call *cancel);

/* ---- Watching: long polls and event streams ---- */

/* What a watch says: the newest state and progress; those in between may be left out. */
struct jobs_news {
    enum job_state state;
    int64_t progress;
    uint64_t serial; /* grows with each change of a job: event ids */
};

/* Calls message.run by the mailbox whenever there is news, not before the last has been taken. */
ERROR_MUST_CHECK enum error jobs_watch(struct jobs *jobs, const struct job_id *id,
                                       struct mailbox *mailbox, struct message *message,
                                       struct jobs_watch **watch, struct failure *failure);
struct jobs_news jobs_watch_take(struct jobs_watch *watch);
/* false: message is on its way, and is the last. */
bool jobs_unwatch(struct jobs_watch **watch);

/* The wall clock that jobs go by, in milliseconds. */
int64_t jobs_now_ms(const struct jobs *jobs);

#endif
