/* queue/jobs/store.h: where jobs are kept: one interface for every store.
 *
 * A store is a table of rows (store_sqlite.h). All calls come from one thread (desk.h), which does
 * what has gathered in one transaction, so that one sync is enough for all of it. Between begin and
 * commit a call sees what those before it did. Nothing has happened until commit returns NONE; then
 * it survives a power loss.
 *
 * A call that is refused (NOT_FOUND, KEY_REUSED, CLIENT_QUOTA, NO_ROOM, LEASE_LOST, INTERNAL: a row
 * that cannot be read) has changed nothing, and the transaction goes on. STORE_FAILED means that
 * the disk is full or fails: the caller rolls back, and whether a commit happened is unknown. From
 * then on the store takes nothing more: every begin is STORE_FAILED until it is opened anew (what a
 * sync has failed to write the system may have forgotten, and says so once).
 *
 * Time is the caller's: stores read no clock. Ownership: buffers are the caller's.
 */
#ifndef QUEUE_JOBS_STORE_H
#define QUEUE_JOBS_STORE_H

#include "queue/jobs/job.h"

#define STORE_LIST_MAX 1000

struct store {
    const struct store_ops *ops;
};

/* What a new job comes with. */
struct store_new {
    struct job job;          /* ACCEPTED, attempt 0 */
    const uint8_t *body;     /* task.body_bytes of them, if at most JOB_INLINE_MAX; else NULL: it
                              * lies in the spool by now, synced */
    char key[JOB_KEY_BYTES]; /* "": none */
    uint8_t key_digest[JOB_DIGEST_BYTES]; /* of the request that came with the key */
    char callback_url[JOB_URL_BYTES];     /* who hears of its end; "": no one */
    char callback_place[JOB_PLACE_BYTES]; /* HOST:PORT of it */
    int64_t owner_jobs_max;  /* that are not over; 0: no limit. Past it: CLIENT_QUOTA */
    int64_t owner_bytes_max; /* of the spool; 0: no limit. CLIENT_QUOTA */
    int64_t bytes_max;       /* of the spool, by all; 0: no limit. NO_ROOM */
};

/* Which jobs a runner can take, and until when it holds them. */
struct store_claim {
    struct job_id node; /* whose runner it is: see end_leases */
    int64_t now_ms, lease_until_ms;
    int64_t n_max[ENGINE_METHODS_MAX][PRECISION_COUNT]; /* 0: not that method */
    int64_t matrix_bytes_max;                           /* inputs and outputs of one matrix of it */
};

struct store_lease {
    struct job_id id;
    int32_t attempt;
};

/* Which callback is attempted next: the one that is due first, of those whose place is not among
 * the busy ones. */
struct store_callback_claim {
    int64_t now_ms;
    int64_t again_ms;        /* when it is due again, unless it is settled before */
    const char *const *busy; /* [busy_count]; borrowed */
    int busy_count;
};

struct store_callback {
    char url[JOB_URL_BYTES], place[JOB_PLACE_BYTES];
    int64_t next_due_ms; /* where none is due: when one is; 0: none waits */
};

/* How an attempt ended. */
struct store_callback_end {
    struct job_id id;
    int32_t attempts; /* as the claim had it */
    enum job_callback_state state;
    int64_t due_ms;      /* of WAITING */
    const char *problem; /* "": none. Borrowed */
};

struct store_list {
    const char *owner; /* NULL: everybody's */
    unsigned states;   /* bits 1 << enum job_state; never DISMISSED */
    int64_t since_ms;  /* created then or later; 0: any */
    int64_t before_ms; /* the cursor: older than this one (created, id); 0: newest */
    struct job_id before_id;
    int limit; /* 1 .. STORE_LIST_MAX */
};

struct store_totals {
    int64_t jobs[JOB_STATES];   /* that have not expired */
    int64_t spool_bytes;        /* of all of them */
    int64_t oldest_accepted_ms; /* 0: none waits */
};

/* What remains of a job that has gone: files to be removed, if they are there. */
struct store_gone {
    struct job_id id;
    int32_t attempt; /* its last */
};

struct store_ops {
    ERROR_MUST_CHECK enum error (*begin)(struct store *store, struct failure *failure);
    ERROR_MUST_CHECK enum error (*commit)(struct store *store, struct failure *failure);
    void (*rollback)(struct store *store);

    /* KEY_REUSED where the owner used the key for another request. Where it is the same request,
     * NONE, and *known is that job, which may be DISMISSED; else known->state is JOB_STATES. A key
     * is free again when its job has expired. INTERNAL: there is such an id. */
    ERROR_MUST_CHECK enum error (*put)(struct store *store, const struct store_new *new_job,
                                       struct job *known, struct failure *failure);
    /* The job of a key, if there is one: found->state is JOB_STATES if not. As put, without
     * putting. */
    ERROR_MUST_CHECK enum error (*find_key)(struct store *store, const char *owner, const char *key,
                                            const uint8_t digest[JOB_DIGEST_BYTES],
                                            struct job *found, struct failure *failure);
    /* NOT_FOUND: no such row, or one that is DISMISSED. Rows that have expired are found, until
     * they are removed. */
    ERROR_MUST_CHECK enum error (*get)(struct store *store, const struct job_id *id,
                                       struct job *job, struct failure *failure);
    /* Bodies and results of up to JOB_INLINE_MAX bytes, of which all are asked for. NOT_FOUND: it
     * is not there, not yet or not any more. */
    ERROR_MUST_CHECK enum error (*read_body)(struct store *store, const struct job_id *id,
                                             uint8_t *body, int64_t bytes, struct failure *failure);
    ERROR_MUST_CHECK enum error (*read_result)(struct store *store, const struct job_id *id,
                                               uint8_t *result, int64_t bytes,
                                               struct failure *failure);
    /* The next job by (priority, created) that is ACCEPTED, or RUNNING with a lease that has run
     * out, and that the runner can take: RUNNING, attempt one more, no progress. job->state is
     * JOB_STATES when there is none. */
    ERROR_MUST_CHECK enum error (*claim)(struct store *store, const struct store_claim *claim,
                                         struct job *job, struct failure *failure);
    /* The leases of a node have run out: for its next life, which begins with this. The node is who
     * holds the lock of a data folder, so no one else goes by its name. */
    ERROR_MUST_CHECK enum error (*end_leases)(struct store *store, const struct job_id *node,
                                              struct failure *failure);
    /* LEASE_LOST: it is another attempt's, or over, or gone. So for all that name a lease. */
    ERROR_MUST_CHECK enum error (*renew)(struct store *store, const struct store_lease *lease,
                                         int64_t lease_until_ms, int64_t progress,
                                         struct failure *failure);
    /* SUCCESSFUL or FAILED by outcome->error. result: its bytes, if at most JOB_INLINE_MAX; else
     * NULL: the file of this attempt, synced. A failed job without outputs: NULL, and has_result
     * false. The body goes, of which a file is the caller's to remove once this is committed. */
    ERROR_MUST_CHECK enum error (*finish)(struct store *store, const struct store_lease *lease,
                                          const struct job_outcome *outcome, const uint8_t *result,
                                          int64_t now_ms, int64_t expires_ms,
                                          struct failure *failure);
    /* RUNNING -> ACCEPTED. killed: it ended the engines it ran on. */
    ERROR_MUST_CHECK enum error (*release)(struct store *store, const struct store_lease *lease,
                                           bool killed, struct failure *failure);
    /* -> DISMISSED; was: the job before. NOT_FOUND as get. Frees what is in the store of body and
     * result; its files are the caller's to remove once this is committed. Its key stays until it
     * expires. */
    ERROR_MUST_CHECK enum error (*cancel)(struct store *store, const struct job_id *id,
                                          int64_t now_ms, struct job *was, struct failure *failure);
    /* Newest first. */
    ERROR_MUST_CHECK enum error (*list)(struct store *store, const struct store_list *list,
                                        struct job *jobs, int *count, struct failure *failure);
    /* How many ACCEPTED jobs a claim takes before this one; -1: it is not ACCEPTED. Cost bounded:
     * counts to 10,000 at most. */
    ERROR_MUST_CHECK enum error (*position)(struct store *store, const struct job_id *id,
                                            int64_t *position, struct failure *failure);
    /* Drops key and result of up to *count jobs that are over and whose expires_ms has come, and
     * removes as many rows whose expires_ms lies keep_ms back. *count and gone: those that were
     * dropped, whose files may go once it is committed; a removed row was dropped before. *is_more:
     * it was as many as were allowed, of either: ask again. */
    ERROR_MUST_CHECK enum error (*expire)(struct store *store, int64_t now_ms, int64_t keep_ms,
                                          struct store_gone *gone, int *count, bool *is_more,
                                          struct failure *failure);
    /* A callback that is due: its job, with one attempt more. job->state is JOB_STATES when there
     * is none: see callback->next_due_ms. The end of the leases makes due what was claimed. */
    ERROR_MUST_CHECK enum error (*claim_callback)(struct store *store,
                                                  const struct store_callback_claim *claim,
                                                  struct job *job, struct store_callback *callback,
                                                  struct failure *failure);
    /* Nothing happens to one that has gone, or was claimed again since. */
    ERROR_MUST_CHECK enum error (*settle_callback)(struct store *store,
                                                   const struct store_callback_end *end,
                                                   struct failure *failure);
    ERROR_MUST_CHECK enum error (*totals)(struct store *store, struct store_totals *totals,
                                          struct failure *failure);
    void (*destroy)(struct store **store);
};

#endif
