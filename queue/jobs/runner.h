/* queue/jobs/runner.h: the runner: takes jobs from the store, has them computed, puts back results.
 *
 * A run is one attempt at one job. It holds the job's lease, its body and its result while pieces
 * of it, whole matrices, go through the engines:
 *
 *     CLAIMING   the store looks for a job
 *     OPENING    its body is looked up, and room taken for its result
 *     COMPUTING  pieces take memory, are read, computed and written (struct piece)
 *     CLOSING    the result is judged, its digest taken, and its file kept: synced, under its name
 *     FINISHING  the store is asked to finish the job: from its commit on it is done
 *     TIDYING    the body's file goes
 *     LEAVING    it ends early: pieces come back first. Then the job is released, or finished as
 *                FAILED, or left alone, where the lease is lost
 *     RELEASING  the store is asked to release it
 *     ASKING     the store has not said whether it is finished, or that it is not: whose file is
 *                the result's?
 *
 * A run goes by its lease until a second before that runs out, on a clock that never jumps, counted
 * from before the renewal was sent. So the store gives a job to another attempt only when this one
 * has stopped; and were it late all the same, the store refuses what names an older attempt.
 *
 * The runner does nothing by itself. It is driven by messages to its mailbox and by runner_step, on
 * one thread, and acts through struct runner_ops. jobs.c gives it a thread, a queue and a disk; the
 * simulation gives it what is none of these.
 *
 * Threads: one.
 */
#ifndef QUEUE_JOBS_RUNNER_H
#define QUEUE_JOBS_RUNNER_H

#include "base/arena.h"
#include "base/mailbox.h"
#include "base/workers.h"
#include "queue/jobs/desk.h"
#include "queue/jobs/jobs.h"
#include "queue/jobs/spool.h"
#include "queue/queue.h"

struct runner;

/* Something that may block: run is called on another thread, then done is posted to the runner's
 * mailbox. */
struct runner_work {
    void (*run)(struct runner_work *work);
    struct message done;
    struct workers_task task; /* of runner_ops.work, with what follows */
    struct runner_world *world;
};

/* A piece's part of the arena. */
struct runner_memory {
    int64_t bytes;
    struct message ready; /* posted when it is there */
    unsigned char *at;    /* then: its first byte, aligned to ARENA_GRANULE, and where it lies */
    uint64_t offset_bytes;
    /* Of runner_ops.take. */
    struct arena_slot slot;
    struct queue_reservation reservation;
    struct message room;
    struct runner_world *world;
};

/* All return at once. */
struct runner_ops {
    uint64_t (*now_ns)(struct runner_world *world); /* never jumps */
    int64_t (*wall_ms)(struct runner_world *world); /* of Unix time; may jump */
    void (*post)(struct runner_world *world, struct desk_call *call);
    void (*work)(struct runner_world *world, struct runner_work *work);
    /* Takes memory->bytes: `ready` comes. Refused (FULL, NO_ENGINE, DRAINING, ...): try later. */
    enum error (*take)(struct runner_world *world, struct runner_memory *memory);
    /* Stops waiting for it. false: `ready` comes all the same. */
    bool (*stop_taking)(struct runner_world *world, struct runner_memory *memory);
    void (*give)(struct runner_world *world, struct runner_memory *memory);
    void (*submit)(struct runner_world *world, struct queue_item *item);
    void (*cancel)(struct runner_world *world, struct queue_item *item);
    /* How long all of an item is going to take, in nanoseconds. */
    double (*predict)(struct runner_world *world, const struct queue_item *item);
    /* Matrices of a submitted item that are done, with shares of those that run. */
    double (*done)(struct runner_world *world, const struct queue_item *item);
    bool (*has_engine)(struct runner_world *world);
};

struct runner_world {
    const struct runner_ops *ops;
    struct mailbox *mailbox; /* the runner's: run by who drives it */
};

struct runner_config {
    struct runner_world *world; /* borrowed */
    struct spool *spool;        /* borrowed */
    struct job_id node;         /* see store.h, end_leases */
    int64_t lease_ms, result_ttl_ms;
    int64_t piece_bytes_max, piece_cost_ns; /* of a piece: a matrix may always be more */
    int64_t arena_bytes;                    /* what a matrix needs at most */
    jobs_judge *judge;                      /* NULL: all are good */
    void *judge_context;
    /* What each call did to a job: on the desk's thread, as desk_call.on_done. NULL: none. */
    void (*on_call)(void *context, const struct desk_call *call);
    /* How far a job is. NULL: none. */
    void (*on_progress)(void *context, const struct job_id *id, int64_t progress);
    void *context;
};

/* NULL: out of memory. */
struct runner *runner_create(const struct runner_config *config);
void runner_destroy(struct runner **runner); /* it is idle */
/* The same as a crash does it, for simulations: what is under way is forgotten. */
void runner_abandon(struct runner **runner);

/* Does what is due; when to call it again at the latest (ops.now_ns). Messages that were run may
 * have made something due: after mailbox_run call it in any case. */
uint64_t runner_step(struct runner *runner);
/* There may be a job to claim. */
void runner_wake(struct runner *runner);
const struct runner_config *runner_config(const struct runner *runner); /* lent; any thread */
/* The job may have been cancelled: its lease is looked after at once. NULL: all jobs'. */
void runner_look_after(struct runner *runner, const struct job_id *id);
/* No more claims; what runs is released. */
void runner_stop(struct runner *runner);
bool runner_is_idle(const struct runner *runner);

/* May a file of the spool go that a crash may have left? get: what the store says of its job;
 * attempt: 0: a body, -1: one that is not whole, and of this life no one writes. */
bool runner_file_may_go(enum error get, const struct job *job, int32_t attempt);
/* Can a runner ever compute such a task? TOO_LARGE, with the limit. Any thread. */
ERROR_MUST_CHECK enum error runner_check(const struct runner_config *config,
                                         const struct job_task *task, struct failure *failure);

#endif
