/* handlers/handlers.h: what the door calls. One file a family of endpoints behind it.
 *
 * Life of an exchange: handlers_begin, handlers_make_room as a long body arrives, then handlers_run
 * when the body is complete (at once when there is none), possibly handlers_expired, and always
 * handlers_end last. On each call the handler may answer or not yet; between run and the answer the
 * door suspends the connection.
 *
 * Threads: all calls for one exchange come from its loop's thread.
 */
#ifndef HANDLERS_HANDLERS_H
#define HANDLERS_HANDLERS_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/metric.h"
#include "base/workers.h"
#include "callback/hosts.h"
#include "handlers/exchange.h"
#include "queue/jobs/jobs.h"
#include "queue/queue.h"

/* May change at any time. */
struct handlers_limits {
    _Atomic int64_t body_max_bytes;     /* request body, inflated too */
    _Atomic int64_t job_max_bytes;      /* of one that is written to the spool as it comes */
    _Atomic int64_t streams_max;        /* streams of events that have not ended */
    _Atomic int64_t compress_min_bytes; /* answers below are never compressed */
    _Atomic int compress_level;         /* zlib 1..9 */
};

/* What handlers work with: all owned by main, all outlive the handlers. */
#define HANDLERS_LOOPS_MAX 64 /* mailboxes' numbers are below */

struct handlers_services {
    struct queue *queue;
    struct arena *arena;
    struct workers *pool;
    struct jobs *jobs;                      /* NULL: none are taken */
    const struct callback_hosts *callbacks; /* who may be called back */
    struct metric_registry *metrics;
    const char *version;
    bool tls, tokens; /* what a client needs, as the status page has it */
    struct handlers_limits limits;
    /* Kept by the server. */
    _Atomic bool live, ready, draining;
};

ERROR_MUST_CHECK enum error handlers_create(struct handlers_services *services,
                                            struct handlers **handlers, struct failure *failure);
void handlers_destroy(struct handlers **handlers); /* no exchange may be left */

void handlers_begin(struct exchange *x);
void handlers_run(struct exchange *x);
/* Makes room in the sink for the body's first so many bytes, before handlers_run. false: there is
 * no memory now; nothing is read of the body until the door's room_made is called. */
ERROR_MUST_CHECK bool handlers_make_room(struct exchange *x, int64_t bytes);
/* What took too long. */
enum handlers_late {
    HANDLERS_LATE_ANSWER, /* 504 */
    HANDLERS_LATE_BODY,   /* 408 */
    HANDLERS_LATE_ROOM    /* 503: no memory became free for the body */
};
/* A deadline passed unanswered; drops the work, or ends a mere waiting and moves the deadline. */
void handlers_expired(struct exchange *x, enum handlers_late what);
/* The service begins to drain: what x waits for may be left. */
void handlers_hasten(struct exchange *x);
/* Work of a loop that is due by the clock: what its streams have to say. To be called on each
 * loop's thread, every 100 ms at least; mailbox: the loop's. */
void handlers_tick(struct handlers *handlers, struct mailbox *mailbox, uint64_t now_ns);
/* The client has gone (which the door counts), or the answer was sent: the exchange is invalid
 * after this. Work that is under way is cancelled and cleans up after itself. */
void handlers_end(struct exchange *x);
/* The answer, of a status and so many body bytes in and out, is counted for the client that has an
 * account. Before handlers_end. */
void handlers_answered(const struct exchange *x, int status, int64_t in_bytes, int64_t out_bytes);
/* Answers for the door itself (a bad frame, too many connections): the error in the format of the
 * path. */
void handlers_refuse(struct exchange *x, enum error code, const char *detail);

/* Whether its path is one of health, which answers under any Host. For the door, before begin. */
bool handlers_is_health(const struct exchange *x);

/* The account of a client that a certificate names; see queue_account_by_certificate. Any thread.
 */
struct queue_account *handlers_certified(struct handlers *handlers, const char *name);

/* The request's W3C traceparent for log lines about it; NULL when it has none that is valid. Lent
 * until end. */
const char *handlers_traceparent(const struct exchange *x);

/* The route's pattern for metrics and logs ("/v2/models/{model}/infer", "other"). */
const char *handlers_route_label(const struct exchange *x);

#endif
