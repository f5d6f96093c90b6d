/* server/notify.h: reports to systemd, or to a manager that speaks its sd_notify protocol:
 * datagrams to the unix socket that NOTIFY_SOCKET names.
 *
 * READY=1 once the service is ready, RELOADING=1 and READY=1 around a reload that comes after it,
 * STOPPING=1 when it begins to end. WATCHDOG=1 twice in the time that WATCHDOG_USEC gives, from the
 * event loop, which thereby shows that it turns; where WATCHDOG_PID is another process, none.
 *
 * NULL stands for a service without a manager: all functions take it. What cannot be sent is
 * left, for there is no one to say it to.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include <stdatomic.h>
#include <stdbool.h>

#include <uv.h>

#include "base/error.h"

struct notify;

struct notify_options {
    const char *socket, *watchdog_us, *watchdog_pid; /* of the environment; NULL: not there */
    uv_loop_t *loop;
    const _Atomic bool *ready; /* borrowed until close */
};

/* *notify is NULL without a manager. BAD_OPTION: the environment makes no sense. */
ERROR_MUST_CHECK enum error notify_create(const struct notify_options *options,
                                          struct notify **notify, struct failure *failure);
void notify_reloading(struct notify *notify);
void notify_reloaded(struct notify *notify);
void notify_stopping(struct notify *notify);
/* The loop runs once more, then free. */
void notify_close(struct notify *notify);
void notify_free(struct notify **notify);

#endif
