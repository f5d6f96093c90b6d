/* queue/jobs/desk.h: the thread that a store works on, and what others ask of it.
 *
 * Who wants something of the store fills in a call and posts it. The desk takes all calls that
 * wait, does them in one transaction, commits, and hands each back: so one sync serves all who wait
 * (group commit), and posting never blocks. Calls are done and handed back in the order of posting.
 * A call is handed back by its mailbox, or, without one, on the desk's thread.
 *
 * When a transaction fails, each of its calls is STORE_FAILED, and whether it happened is unknown:
 * look with GET before you remove a file for it. The desk then opens the store anew, every few
 * seconds, and refuses calls (STORE_FAILED) until that succeeds.
 *
 * Threads: desk_post from any, also from a call's run. Ownership: a call is the caller's; the desk
 * borrows it until it is handed back. Cost: no allocation.
 */
#ifndef QUEUE_JOBS_DESK_H
#define QUEUE_JOBS_DESK_H

#include "base/mailbox.h"
#include "base/metric.h"
#include "queue/jobs/store.h"

struct desk;

/* One for each call of store_ops, with its arguments and results. */
enum desk_kind {
    DESK_PUT,
    DESK_FIND_KEY,
    DESK_GET,
    DESK_READ_BODY,
    DESK_READ_RESULT,
    DESK_CLAIM,
    DESK_END_LEASES,
    DESK_RENEW,
    DESK_FINISH,
    DESK_RELEASE,
    DESK_CANCEL,
    DESK_LIST,
    DESK_POSITION,
    DESK_EXPIRE,
    DESK_CLAIM_CALLBACK,
    DESK_SETTLE_CALLBACK,
    DESK_TOTALS,
    DESK_KINDS
};

struct desk_call {
    /* The caller's. */
    struct message message;  /* run: when it is done. First, so that a call is found by it */
    struct mailbox *mailbox; /* NULL: run is called on the desk's thread, and must be short */
    enum desk_kind kind;
    /* On the desk's thread, when what it did is durable or has failed, before it is handed back:
     * for who has to know of it besides the caller. Short; NULL: no one. */
    void (*on_done)(void *context, const struct desk_call *call);
    void *context;
    union {
        struct store_new *put; /* the desk only reads it */
        struct {
            const char *owner, *key;
            const uint8_t *digest;
        } find_key;
        const struct store_claim *claim;
        struct {
            struct store_lease lease;
            int64_t lease_until_ms, progress;
        } renew;
        struct {
            struct store_lease lease;
            const struct job_outcome *outcome;
            const uint8_t *result;
            int64_t now_ms, expires_ms;
        } finish;
        struct {
            struct store_lease lease;
            bool killed;
        } release;
        struct {
            struct job_id id;
            int64_t now_ms;
        } cancel;
        struct {
            struct job_id id;
            uint8_t *to;
            int64_t bytes;
        } read;                            /* READ_BODY, READ_RESULT */
        struct job_id get, position, node; /* node: END_LEASES */
        const struct store_callback_claim *claim_callback;
        const struct store_callback_end *settle_callback;
        const struct store_list *list;
        struct {
            int64_t now_ms, keep_ms;
            struct store_gone *gone;
            int max;
        } expire;
    } in;
    /* The desk's answer. */
    struct failure failure; /* code NONE: all is well */
    struct job *job;        /* PUT (known), FIND_KEY, GET, CLAIM, CANCEL (was), CLAIM_CALLBACK: the
                             * caller's memory, as what follows */
    struct store_callback *callback; /* CLAIM_CALLBACK */
    struct job *jobs;                /* LIST: the caller's, in.list->limit of them */
    int count;                       /* LIST, EXPIRE */
    bool is_more;                    /* EXPIRE */
    int64_t position;
    struct store_totals totals;
    /* The desk's own. */
    struct desk_call *next;
};

/* Opens a store: at the start, and again after it failed. */
struct desk_opener {
    ERROR_MUST_CHECK enum error (*open)(void *context, struct store **store,
                                        struct failure *failure);
    void *context;
};

/* Opens the store and starts the thread. A store that cannot be opened now: its failure. The opener
 * is copied, its context borrowed. */
ERROR_MUST_CHECK enum error desk_create(const struct desk_opener *opener,
                                        struct metric_registry *metrics, struct desk **desk,
                                        struct failure *failure);
/* The same without a thread, for simulations: calls wait until desk_run does them, which returns
 * how many they were, or opens a store that has failed. */
ERROR_MUST_CHECK enum error desk_create_driven(const struct desk_opener *opener,
                                               struct metric_registry *metrics, struct desk **desk,
                                               struct failure *failure);
int desk_run(struct desk *desk);
/* Does what has been posted, and ends. */
void desk_destroy(struct desk **desk);

void desk_post(struct desk *desk, struct desk_call *call);
/* Whether it takes calls: false after a failure, until the store is open again. Any thread. */
bool desk_works(const struct desk *desk);

#endif
