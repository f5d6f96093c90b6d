/* server/callbacks/callbacks.h: posts the end of jobs to where their clients want it.
 *
 * The store has each callback and when it is due next. This takes one after the other from there,
 * writes and signs what is to be sent, has invertd-post send it, and writes back how that ended.
 * What is under way when the daemon dies is sent anew by its next life: at least once.
 *
 * Bounds: CALLBACK_SLOTS attempts at a time, two of them at one host and port; see retry.h for how
 * often and for how long.
 *
 * Threads: loop 0's, but for callbacks_wake.
 */
#ifndef SERVER_CALLBACKS_CALLBACKS_H
#define SERVER_CALLBACKS_CALLBACKS_H

#include <uv.h>

#include "base/metric.h"
#include "callback/hosts.h"
#include "queue/jobs/jobs.h"
#include "server/engines/spawner.h"
#include "server/http/access.h"

struct callbacks;

struct callbacks_options {
    uv_loop_t *loop; /* borrowed, as all below */
    struct spawner *spawner;
    struct jobs *jobs;
    struct access *access; /* whose secrets sign; NULL: nothing is signed */
    struct metric_registry *metrics;
    const struct callback_hosts *hosts;
    const struct option_list *entries; /* the same as texts */
    const char *ca;                    /* NULL: the system's */
    const char *version;
    int64_t retry_ms; /* the pause after the first attempt */
    bool confined;
};

/* Starts invertd-post. *callbacks is NULL where there are no hosts or no jobs. */
ERROR_MUST_CHECK enum error callbacks_create(const struct callbacks_options *options,
                                             struct callbacks **callbacks, struct failure *failure);
/* Any thread: something may be due. NULL: nothing, as below. */
void callbacks_wake(struct callbacks *callbacks);
/* No attempt begins any more. */
void callbacks_stop(struct callbacks *callbacks);
/* When the desk has handed back what it had, and before the loop is destroyed. */
void callbacks_close(struct callbacks *callbacks);
void callbacks_free(struct callbacks **callbacks); /* after that */

#endif
