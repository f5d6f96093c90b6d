/* handlers/visit.h: a request about jobs, on its way to the store and back.
 *
 * A visit belongs to its exchange, as x->state. It asks the desk one thing after the other; each
 * answer comes to `then` on the exchange's loop. It may watch a job meanwhile. It ends by
 * handlers__visit_leave, when it is answered, or when the exchange ends before: what the desk or
 * the watch still holds of it keeps its memory until they let go.
 *
 * Threads: the exchange's loop. Cost: 10 KiB, most of it a job.
 */
#ifndef HANDLERS_VISIT_H
#define HANDLERS_VISIT_H

#include "handlers/handlers_private.h"
#include "queue/jobs/jobs.h"

struct visit {
    struct desk_call call; /* first, so that a call is found to be a visit's */
    struct message news;
    struct exchange *x; /* NULL: it has left */
    struct jobs *jobs;
    struct jobs_watch *watch;
    bool is_asking;     /* the desk has the call */
    uint64_t looked_ns; /* when it was last asked for the job; 0: not yet */
    bool is_watched;    /* news may come */
    /* Who asks. */
    char owner[JOB_OWNER_BYTES];
    bool sees_all; /* an admin */
    /* What for. */
    struct job_id id;
    int wait_s;                    /* until the job is over; 0: not, or not any more */
    bool is_posted;                /* the job was posted by this very request */
    bool was_known;                /* under its Idempotency-Key */
    int64_t position;              /* -1: not known */
    struct job job;                /* what the desk answered */
    struct job *page;              /* of a list; owned */
    struct store_list list, asked; /* what the client asks for, and what the desk is asked */
    void (*then)(struct visit *visit);
    void (*on_news)(struct visit *visit);
    /* Events: what was sent last. */
    int sent_state; /* -1: nothing */
    int sent_percent;
    int64_t sent_position;
    bool is_streaming, has_news, is_gone;
};

/* Who a client is among the owners of jobs: its name, else its address. */
void handlers__job_owner(const struct exchange *x, char owner[JOB_OWNER_BYTES]);

/* Makes the exchange's visit. NULL: the exchange is answered (no jobs here, no memory). */
struct visit *handlers__visit_open(struct exchange *x);
/* Reads the job's id from the path; a path that has none is answered 404. */
ERROR_MUST_CHECK bool handlers__visit_read_id(struct visit *visit);
/* Asks the desk: kind, and in visit->call.in what goes with it; then comes on the loop. Cancels go
 * through jobs_cancel. */
void handlers__visit_ask(struct visit *visit, enum desk_kind kind,
                         void (*then)(struct visit *visit));
/* Asks for the job of visit->id. */
void handlers__visit_get(struct visit *visit, void (*then)(struct visit *visit));
/* After a GET: whether there is such a job, for this client. Otherwise the exchange is answered. */
ERROR_MUST_CHECK bool handlers__visit_found(struct visit *visit);
/* on_news comes whenever the job may have changed. false: the exchange is answered. */
ERROR_MUST_CHECK bool handlers__visit_watch(struct visit *visit,
                                            void (*on_news)(struct visit *visit));
/* Takes the visit off its exchange, which is to be answered by the caller. The visit may be gone
 * when this returns. */
struct exchange *handlers__visit_leave(struct visit *visit);
/* Leaves, and answers with the failure. */
void handlers__visit_fail(struct visit *visit, const struct failure *failure);
/* The exchange gives its visit up. */
void handlers__visit_drop(struct exchange *x);

/* ---- visit_wait.c ---- */

/* Answers once the job of visit->id is over, or visit->wait_s have passed, or the service drains:
 * a GET with its document, a POST with the result or 202. */
void handlers__visit_wait(struct visit *visit);

#endif
