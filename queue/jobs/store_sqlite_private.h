/* queue/jobs/store_sqlite_private.h: tables, statements and rows, for store_sqlite.c alone. */
#ifndef QUEUE_JOBS_STORE_SQLITE_PRIVATE_H
#define QUEUE_JOBS_STORE_SQLITE_PRIVATE_H

#include "queue/jobs/sqlite.h"
#include "queue/jobs/store.h"

/* The statements, whose texts are in store_sqlite_tables.c. The lists have one for each state that
 * is listed, since they run together. */
enum store_statement {
    STORE_PUT_JOB,
    STORE_PUT_INPUT,
    STORE_GET,
    STORE_GET_SEQ,
    STORE_GET_KEY,
    STORE_FREE_KEY,
    STORE_BODY,
    STORE_RESULT,
    STORE_NEXT_KIND,
    STORE_FIRST_WAITING,
    STORE_LAPSED,
    STORE_TAKE,
    STORE_END_LEASES,
    STORE_RENEW,
    STORE_RELEASE,
    STORE_END,
    STORE_PUT_RESULT,
    STORE_DROP_BODY,
    STORE_DROP_RESULT,
    STORE_DROP,
    STORE_NEXT_ENDED,
    STORE_REMOVE_JOB,
    STORE_REMOVE_INPUT,
    STORE_REMOVE_RESULT,
    STORE_PUT_CALLBACK,
    STORE_NEXT_PLACE,
    STORE_FIRST_CALLBACK,
    STORE_CALLBACK_URL,
    STORE_TAKE_CALLBACK,
    STORE_CALLBACK_DUE,
    STORE_SETTLE_CALLBACK,
    STORE_FREE_CALLBACKS,
    STORE_REMOVE_CALLBACK,
    STORE_COUNT_ABOVE,
    STORE_COUNT_AHEAD,
    STORE_OLDEST,
    STORE_OWNER,
    STORE_SET_OWNER,
    STORE_REMOVE_OWNER,
    STORE_TOTALS,
    STORE_SET_TOTALS,
    STORE_LIST_ALL_ACCEPTED,
    STORE_LIST_ALL_RUNNING,
    STORE_LIST_ALL_SUCCESSFUL,
    STORE_LIST_ALL_FAILED,
    STORE_LIST_OWNER_ACCEPTED,
    STORE_LIST_OWNER_RUNNING,
    STORE_LIST_OWNER_SUCCESSFUL,
    STORE_LIST_OWNER_FAILED,
    STORE_STATEMENTS
};

/* A job as the file has it. */
struct store_row {
    int64_t seq;
    bool is_dropped;  /* it has expired: key and bytes have gone */
    bool is_readable; /* its task is; else job.task.method is NULL */
    uint8_t key_digest[JOB_DIGEST_BYTES];
    struct job job;
};

/* Columns of the statements of whole jobs that lists are merged by. */
#define STORE_ID 1
#define STORE_CREATED 4

struct sqlite_store {
    struct store store;
    struct sqlite *sqlite;
    bool changed;                 /* totals are not those of the file */
    struct store_totals totals;   /* oldest_accepted_ms apart */
    struct store_totals at_begin; /* of the transaction */
    struct store_row row;         /* the one that a call is about */
};

static inline struct sqlite_store *queue__store_of(struct store *store)
{
    return (struct sqlite_store *)store;
}

/* Brings the tables to this version, and prepares the statements. */
ERROR_MUST_CHECK enum error queue__store_open_tables(struct sqlite *sqlite,
                                                     struct failure *failure);
/* The row that a statement of whole jobs stands on. INTERNAL: it is damaged, or of another version;
 * what could be read is there. */
ERROR_MUST_CHECK enum error queue__store_read_row(struct sqlite *sqlite, int statement,
                                                  struct store_row *row, struct failure *failure);

/* Which method and precision a claim takes: "lu/FP64". */
#define STORE_KIND_BYTES 64
void queue__store_write_kind(const struct job_task *task, char kind[STORE_KIND_BYTES]);
/* The largest order of such a kind that the claim takes; 0: none. */
int64_t queue__store_kind_n_max(const struct store_claim *claim, const char *kind);

/* ---- Parts of calls ---- */

/* Counts more or fewer for the owner. */
ERROR_MUST_CHECK enum error queue__store_change_owner(struct sqlite_store *self, const char *owner,
                                                      int64_t open, int64_t spool_bytes,
                                                      struct failure *failure);
/* Counts the job's move, and its bytes in the spool from now on. The row is the caller's to write.
 */
ERROR_MUST_CHECK enum error queue__store_move(struct sqlite_store *self, struct store_row *row,
                                              enum job_state to, int64_t spool_bytes,
                                              struct failure *failure);
/* Runs a statement of one number for the row. */
ERROR_MUST_CHECK enum error queue__store_run(struct sqlite_store *self, int statement, int64_t seq,
                                             struct failure *failure);
/* Into self->row, from a statement that is bound. NOT_FOUND; INTERNAL: the row is there, and cannot
 * be read whole. */
ERROR_MUST_CHECK enum error queue__store_read_one(struct sqlite_store *self, int statement,
                                                  struct failure *failure);
/* The same by id; not one that was cancelled. */
ERROR_MUST_CHECK enum error queue__store_find(struct sqlite_store *self, const struct job_id *id,
                                              struct failure *failure);
/* The kind after one in the alphabet, of jobs that wait; "": there is none. */
ERROR_MUST_CHECK enum error queue__store_next_kind(struct sqlite_store *self,
                                                   char kind[STORE_KIND_BYTES],
                                                   struct failure *failure);

/* ---- Calls of store_ops ---- */

ERROR_MUST_CHECK enum error queue__store_get(struct store *store, const struct job_id *id,
                                             struct job *job, struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_read_body(struct store *store, const struct job_id *id,
                                                   uint8_t *body, int64_t bytes,
                                                   struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_read_result(struct store *store, const struct job_id *id,
                                                     uint8_t *result, int64_t bytes,
                                                     struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_list(struct store *store, const struct store_list *list,
                                              struct job *jobs, int *count,
                                              struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_position(struct store *store, const struct job_id *id,
                                                  int64_t *position, struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_totals(struct store *store, struct store_totals *totals,
                                                struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_claim(struct store *store, const struct store_claim *claim,
                                               struct job *job, struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_end_leases(struct store *store, const struct job_id *node,
                                                    struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_renew(struct store *store, const struct store_lease *lease,
                                               int64_t lease_until_ms, int64_t progress,
                                               struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_finish(struct store *store,
                                                const struct store_lease *lease,
                                                const struct job_outcome *outcome,
                                                const uint8_t *result, int64_t now_ms,
                                                int64_t expires_ms, struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_release(struct store *store,
                                                 const struct store_lease *lease, bool killed,
                                                 struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_cancel(struct store *store, const struct job_id *id,
                                                int64_t now_ms, struct job *was,
                                                struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_expire(struct store *store, int64_t now_ms,
                                                int64_t keep_ms, struct store_gone *gone,
                                                int *count, bool *is_more, struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_claim_callback(struct store *store,
                                                        const struct store_callback_claim *claim,
                                                        struct job *job,
                                                        struct store_callback *callback,
                                                        struct failure *failure);
ERROR_MUST_CHECK enum error queue__store_settle_callback(struct store *store,
                                                         const struct store_callback_end *end,
                                                         struct failure *failure);

#endif
