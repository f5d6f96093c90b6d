/* queue/jobs/runner_private.h: what runner.c, run.c and piece.c share. See runner.h. */
#ifndef QUEUE_JOBS_RUNNER_PRIVATE_H
#define QUEUE_JOBS_RUNNER_PRIVATE_H

#include "queue/jobs/runner.h"
#include "queue/jobs/transfer.h"

#define RUNNER_RUNS 32   /* attempts under way: many, for small jobs take a sync each way */
#define RUNNER_PIECES 16 /* pieces under way, of all runs: enough for engines not to run dry */

enum run_state {
    RUN_FREE,
    RUN_CLAIMING,
    RUN_OPENING,
    RUN_COMPUTING,
    RUN_CLOSING,
    RUN_FINISHING,
    RUN_TIDYING,
    RUN_LEAVING,
    RUN_RELEASING,
    RUN_ASKING,
    RUN_STATES
};

/* What a run that ends early does with its job. */
enum run_end {
    RUN_END_NONE,   /* it does not */
    RUN_END_LOST,   /* leaves it alone: the lease is another's, or will be */
    RUN_END_AGAIN,  /* releases it */
    RUN_END_KILLED, /* releases it, and says that it has ended engines */
    RUN_END_FAILED  /* finishes it: outcome says why */
};

/* What a judge reads. */
struct jobs_result {
    const struct transfer_end *end;
    int64_t bytes;
};

struct run {
    struct runner *runner;
    enum run_state state;
    enum run_end end;
    uint64_t order; /* of claims */
    struct job job;
    struct store_lease lease;

    uint64_t stop_ns;  /* the lease counts as lost from then on */
    uint64_t renew_ns; /* when to renew it */
    uint64_t ask_ns;   /* ASKING: when to ask again */
    struct store_claim claim;
    struct desk_call call; /* claim, read, finish, release, ask */
    bool calling;
    struct desk_call renewal;
    bool renewing;
    uint64_t renewal_sent_ns; /* or the claim was */
    struct runner_work work;  /* open, close, tidy: all of the files but pieces */
    bool working;
    struct failure failure; /* of the work */

    struct transfer_end body, result;
    int64_t next, done;          /* matrices: cut, written */
    int pieces;                  /* under way */
    bool is_kept;                /* the result's file has its name */
    bool tidy_body, tidy_result; /* TIDYING: which files go */
    struct job_outcome outcome;
    struct job asked; /* ASKING: the job as it is now */
};

enum piece_state {
    PIECE_FREE,
    PIECE_TAKING,
    PIECE_READING,
    PIECE_COMPUTING,
    PIECE_WRITING,
    PIECE_STATES
};

struct piece {
    struct runner *runner;
    enum piece_state state;
    struct run *run;
    int64_t first;
    struct transfer_layout layout;
    struct runner_memory memory;
    struct runner_work work; /* read, write */
    struct failure failure;  /* of the work */
    struct queue_item item;
    struct message computed;
};

struct runner {
    struct runner_config config;
    bool is_stopping;
    bool may_claim;          /* there may be a job */
    uint64_t claim_ns;       /* when to look for one in any case, for leases run out */
    uint64_t pause_until_ns; /* no claims before: something that all jobs need fails */
    uint64_t pause_ns;       /* how long the last pause was */
    uint64_t cut_ns;         /* no memory before */
    uint64_t progress_ns;    /* when to report progress */
    uint64_t orders;
    struct run runs[RUNNER_RUNS];
    struct piece pieces[RUNNER_PIECES];
};

/* Calls through the world. */
static inline uint64_t queue__runner_now_ns(const struct runner *runner)
{
    return runner->config.world->ops->now_ns(runner->config.world);
}

static inline int64_t queue__runner_wall_ms(const struct runner *runner)
{
    return runner->config.world->ops->wall_ms(runner->config.world);
}

/* ---- run.c ---- */

void queue__run_init(struct runner *runner, struct run *run);
/* Everything that it holds goes, and with it a result that is not kept. */
void queue__run_drop(struct run *run);
/* FREE: asks for a job. */
void queue__run_claim(struct run *run);
/* Time passes: leases, and what is to be asked again. Returns when it wants to be looked at. */
uint64_t queue__run_step(struct run *run, uint64_t now_ns);
/* Renews the lease now, if there is one. */
void queue__run_renew(struct run *run);
/* Ends early; the first reason counts. */
void queue__run_leave(struct run *run, enum run_end end);
/* The same as FAILED, with what failure says. */
void queue__run_fail(struct run *run, const struct failure *failure);
/* What others need too has failed: it is released, after many attempts it fails; claims pause. */
void queue__run_trouble(struct run *run, const struct failure *failure);
/* It has matrices that no piece has. */
bool queue__run_has_more(const struct run *run);
int64_t queue__run_progress(const struct run *run);
/* ---- runner.c ---- */

/* Something that all jobs need has failed: claims pause, longer each time. */
void queue__runner_pause(struct runner *runner);

/* ---- piece.c ---- */

void queue__piece_init(struct runner *runner, struct piece *piece);
/* FREE: cuts a piece from the run. false: there is no memory to be had now. */
bool queue__piece_cut(struct piece *piece, struct run *run);
/* Its run leaves. */
void queue__piece_stop(struct piece *piece);
/* Matrices that are done of it, with shares. */
double queue__piece_done(const struct piece *piece);

#endif
