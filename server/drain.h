/* server/drain.h: signals, and the orderly end: a small machine of states on loop 0's thread.
 *
 *   SERVING --SIGTERM, SIGINT--> DELAY --drain-delay--> DRAINING --all finished--> CLOSING --> done
 *
 * DELAY: not ready, but serving. DRAINING: what was admitted is finished, new work is answered 503,
 * every answer closes its connection. CLOSING: no longer listening; the last answers go out.
 *
 * The service owes an answer to who sent a whole request. Past drain-timeout with such an answer
 * outstanding, or at a second signal, on_expired is called instead, which does not return to
 * serving. It owes nothing to clients that do not finish their bodies, do not read their answers or
 * have left: near the end of drain-timeout they are cut off, and the end is a clean one. SIGHUP
 * is reported in any state.
 *
 * Threads: loop 0's.
 */
#ifndef SERVER_DRAIN_H
#define SERVER_DRAIN_H

#include <uv.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "server/loop.h"

struct drain;

struct drain_options {
    struct handlers_services *services; /* borrowed, as the loops */
    struct loop **loops;
    int loop_count;
    int64_t delay_ns, timeout_ns;
    void (*on_hangup)(void *context);   /* SIGHUP came */
    void (*on_stopping)(void *context); /* the first of the others came */
    void (*on_done)(void *context);
    void (*on_expired)(void *context, const char *why);
    void *context;
};

/* When it fails, *drain is closed and freed like any other, unless it is NULL. */
ERROR_MUST_CHECK enum error drain_create(const struct drain_options *options, uv_loop_t *uv,
                                         struct drain **drain, struct failure *failure);
/* Has no effect on a drain that has begun. */
void drain_set_times(struct drain *drain, int64_t delay_ns, int64_t timeout_ns);
/* Closes its handles; the loop must run once more, then drain_free. */
void drain_close(struct drain *drain);
void drain_free(struct drain **drain);

#endif
