/* tests/sim/life_private.h: what life.c and life_world.c share. */
#ifndef TESTS_SIM_LIFE_PRIVATE_H
#define TESTS_SIM_LIFE_PRIVATE_H

#include "queue/jobs/desk.h"
#include "queue/jobs/runner.h"
#include "tests/sim/disk.h"
#include "tests/sim/life.h"
#include "tests/sim/vfs.h"

#define LIFE_RUNNERS 2
#define LIFE_JOBS 5
#define LIFE_PENDING 512

/* A runner, and what it waits for. */
struct life_runner {
    struct runner_world world; /* first */
    struct life *life;
    struct mailbox mailbox;
    struct runner *runner;
    uint64_t stalled_until_ns;
};

enum life_pending_kind {
    LIFE_WORK,
    LIFE_MEMORY,
    LIFE_ITEM
};

struct life_pending {
    enum life_pending_kind kind;
    struct runner_world *world;
    void *what;
    bool is_cancelled; /* ITEM */
};

/* One that a client wants. */
struct life_job {
    bool is_posted, is_known, is_cancelled, may_be_cancelled; /* known: acknowledged */
    bool is_asking, has_body_file;
    char key[16];
    struct store_new fresh;
    struct job known;
    struct desk_call call;
    uint8_t *body;
    int finishes;
};

struct life {
    uint64_t random;
    enum life_mutant mutant;
    FILE *trace;
    struct sim_disk *sim;
    struct disk_ops disk_ops; /* the simulated disk's, but for what a mutant leaves out */
    struct sim_vfs *vfs;
    struct metric_registry *metrics;
    struct desk *desk;
    struct spool *spool;
    struct store_ops store_ops;
    const struct store_ops *whole_store_ops;
    struct mailbox mailbox; /* the clients' */
    struct life_runner runners[LIFE_RUNNERS];
    uint64_t now_ns;
    int64_t wall_offset_ms;
    bool heals;
    struct life_pending pending[LIFE_PENDING];
    int pending_count;
    struct life_job jobs[LIFE_JOBS];
    char wrong[256]; /* what went wrong; "": nothing */
};

extern const struct runner_ops life_ops;

void life_say(struct life *life, const char *format, ...) __attribute__((format(printf, 2, 3)));
void life_fail(struct life *life, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t life_wall_ms(const struct life *life);
/* A call that is done at once. */
enum error life_ask(struct life *life, struct desk_call *call);
/* Does something that is under way, if anything is. */
void life_do_pending(struct life *life);
/* Leaves out what a mutant leaves out of the disk. */
void life_spoil_disk(struct life *life);
void life_make_body(struct life_job *job);
/* What is there of a job is right; job: as the store has it. */
void life_check_result(struct life *life, struct life_job *job, const struct job *now);

#endif
