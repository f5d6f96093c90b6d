/* queue/jobs/job.h: a job: one decoded item that is computed later, and outlives its connection.
 *
 * The life of a job, one table (job.c):
 *
 *     ACCEPTED --claim--> RUNNING --finish--> SUCCESSFUL or FAILED --expire--> (gone)
 *     ACCEPTED, RUNNING, SUCCESSFUL, FAILED --cancel--> DISMISSED --expire--> (gone)
 *     RUNNING --claim, its lease has run out--> RUNNING, the next attempt
 *     RUNNING --release, the daemon stops--> ACCEPTED
 *
 * Who computes a job holds it by a lease and an attempt number. What names an older attempt than
 * the job's changes nothing (fencing), so a runner that was given up for dead cannot overwrite its
 * successor.
 *
 * A job's input is one run of bytes, its body, and so is its result; a task says where in them each
 * tensor lies. Up to JOB_INLINE_MAX bytes lie in the store, longer ones in files of the spool
 * (spool.h), whose names carry the job's id and, for results, the attempt.
 *
 * An unfinished job does not expire. A finished one does at expires_ms: its bytes go, its row stays
 * a while, so that its client learns that it was there.
 *
 * Times are in milliseconds of Unix time, 0: not yet. Threads: plain data.
 */
#ifndef QUEUE_JOBS_JOB_H
#define QUEUE_JOBS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/engine.h"
#include "gpu/method.h"

#define JOB_ID_BYTES 16
#define JOB_PRIORITY_MAX 2
#define JOB_ID_TEXT (2 * JOB_ID_BYTES + 1) /* lower-case hexadecimal digits and a NUL */
#define JOB_INLINE_MAX (INT64_C(64) << 10) /* bytes of a body, or of a result, in the store */
#define JOB_OWNER_BYTES 72                 /* of a name or an address, its NUL among them */
#define JOB_KEY_BYTES 256                  /* of an Idempotency-Key, its NUL among them */
#define JOB_DIGEST_BYTES 32                /* SHA-256 */
#define JOB_ANSWER_MAX 4096                /* bytes of what the handlers keep with a job */
#define JOB_URL_BYTES 1025                 /* of a callback's URL, its NUL among them */
#define JOB_PLACE_BYTES 262                /* of its HOST:PORT, likewise */
#define JOB_PROBLEM_BYTES 160              /* of why it failed, likewise */
#define JOB_PROGRESS_WHOLE 1000000

/* 128 random bits: who does not know it does not guess it. */
struct job_id {
    uint8_t bytes[JOB_ID_BYTES];
};

/* X(state, name in documents) */
#define JOB_STATE_TABLE(X)                                                                         \
    X(ACCEPTED, "accepted")                                                                        \
    X(RUNNING, "running")                                                                          \
    X(SUCCESSFUL, "successful")                                                                    \
    X(FAILED, "failed")                                                                            \
    X(DISMISSED, "dismissed")

enum job_state {
#define JOB_STATE_ENUM(state, name) JOB_##state,
    JOB_STATE_TABLE(JOB_STATE_ENUM)
#undef JOB_STATE_ENUM
    JOB_STATES
};

/* Where a tensor's first matrix lies in a body or a result: dense, matrix after matrix. */
struct job_tensor {
    int64_t offset_bytes; /* -1: absent, or not wanted. A multiple of the element's size */
    bool column_major;    /* each matrix (inputs alone) */
};

/* What is to be computed. */
struct job_task {
    const struct method *method;
    enum precision precision;
    int64_t batch, n, m;
    int64_t options[METHOD_OPTIONS_MAX];
    struct job_tensor inputs[METHOD_INPUTS_MAX];
    struct job_tensor outputs[METHOD_OUTPUTS_MAX];
    int64_t body_bytes, result_bytes;
    bool nan_on_singular; /* a matrix without an inverse does not fail the job */
    int priority;         /* among jobs: 0 to JOB_PRIORITY_MAX, the higher first */
};

/* How it ended. */
struct job_outcome {
    enum error error;                                    /* NONE: SUCCESSFUL */
    char message[sizeof(((struct failure *)0)->detail)]; /* for the client; "": none */
    char kernel[ENGINE_KERNEL_NAME_MAX];
    uint64_t queue_ns, compute_ns;    /* as Server-Timing has them */
    bool has_result;                  /* of a job that FAILED: its outputs are kept all the same */
    uint8_t digest[JOB_DIGEST_BYTES]; /* of the result */
};

/* Where the news of its end stands, one table. PENDING until the job is over, then WAITING for the
 * next attempt until one of the others; a job that is cancelled has none any more.
 * X(state, name in documents) */
#define JOB_CALLBACK_TABLE(X)                                                                      \
    X(NONE, "none")                                                                                \
    X(PENDING, "waiting")                                                                          \
    X(WAITING, "waiting")                                                                          \
    X(DELIVERED, "delivered")                                                                      \
    X(UNWANTED, "unwanted")                                                                        \
    X(FAILED, "failed")

enum job_callback_state {
#define JOB_CALLBACK_ENUM(state, name) JOB_CALLBACK_##state,
    JOB_CALLBACK_TABLE(JOB_CALLBACK_ENUM)
#undef JOB_CALLBACK_ENUM
    JOB_CALLBACK_STATES
};

struct job_callback {
    enum job_callback_state state;
    int32_t attempts;
    int64_t due_ms;                  /* WAITING: when the next attempt begins; 0: at once */
    char problem[JOB_PROBLEM_BYTES]; /* of the last attempt; "": none */
};

/* A job as the store has it, without the bytes of body and result. */
struct job {
    struct job_id id;
    enum job_state state;
    char owner[JOB_OWNER_BYTES]; /* its client's name, else its address: who may see it */
    struct job_task task;
    uint8_t answer[JOB_ANSWER_MAX]; /* the handlers' own: how the answer is to be written */
    int answer_bytes;
    int64_t created_ms, started_ms, finished_ms;
    int64_t expires_ms; /* when a finished one goes; of others: when, if it were cancelled now */
    int64_t progress;   /* 0 .. JOB_PROGRESS_WHOLE */
    int32_t attempt;    /* 0: never claimed */
    int64_t lease_until_ms;
    int32_t kills;              /* attempts that ended with the engines that they ran on */
    struct job_outcome outcome; /* once it is SUCCESSFUL or FAILED */
    int64_t spool_bytes;        /* that its files take, or have reserved */
    struct job_callback callback;
};

/* Random bits from the kernel. */
ERROR_MUST_CHECK enum error job_id_make(struct job_id *id, struct failure *failure);
void job_id_write(const struct job_id *id, char text[JOB_ID_TEXT]);
/* false: that is none. */
ERROR_MUST_CHECK bool job_id_read(const char *text, size_t length, struct job_id *id);

/* May a job move so? */
bool job_may_move(enum job_state from, enum job_state to);
bool job_is_over(enum job_state state); /* SUCCESSFUL, FAILED or DISMISSED */
const char *job_state_name(enum job_state state);
const char *job_callback_name(enum job_callback_state state);
/* false: there is none. */
ERROR_MUST_CHECK bool job_state_find(const char *name, size_t length, enum job_state *state);

/* The task of one matrix: the bytes of its inputs and wanted outputs; -1 on overflow. */
int64_t job_matrix_bytes(const struct job_task *task);
/* Is every number within its bounds, and every tensor inside body and result? MALFORMED: what is
 * not. */
ERROR_MUST_CHECK enum error job_task_check(const struct job_task *task, struct failure *failure);
/* A task in bytes, for stores: versioned, the same on every machine. read checks it; MALFORMED. */
#define JOB_TASK_MAX 2048
void job_task_write(const struct job_task *task, uint8_t out[JOB_TASK_MAX], size_t *bytes);
ERROR_MUST_CHECK enum error job_task_read(const uint8_t *in, size_t bytes, struct job_task *task,
                                          struct failure *failure);

#endif
