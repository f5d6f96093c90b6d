/* server/http/watch.h: what the HTTP library does not watch: clients that leave while they wait,
 * and the end of connections that were closed while the client was still sending.
 *
 * A suspended connection is in no epoll set. The watch has a set of its own, into which each
 * connection is put once; it reports, once, when the client has closed its sending side or is gone.
 *
 * A socket that is closed with unread bytes in it, or to which more bytes come, resets the
 * connection, and the reset can overtake the answer. So a connection that is closed early lingers:
 * a duplicate of its descriptor, whose sending side is already shut, is read from, and what comes
 * is dropped, until the client closes, WATCH_LINGER_NS pass or WATCH_LINGER_BYTES came.
 *
 * Threads: one event loop's. Cost: one epoll_ctl a connection; one system call a burst of events.
 */
#ifndef SERVER_HTTP_WATCH_H
#define SERVER_HTTP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define WATCH_LINGER_NS (5 * UINT64_C(1000000000))
#define WATCH_LINGER_BYTES (INT64_C(256) << 20)

struct watch;

/* linger_max: how many connections may linger at once; further ones are closed at once. */
ERROR_MUST_CHECK enum error watch_create(int linger_max, struct watch **watch,
                                         struct failure *failure);
void watch_destroy(struct watch **watch); /* closes what lingers */

int watch_fd(const struct watch *watch); /* lent; readable when watch_run has something to do */

/* Borrows fd until watch_forget, or until it is closed with no duplicate left. */
void watch_add(struct watch *watch, int fd, uint64_t key);
void watch_forget(struct watch *watch, int fd);
/* Whether what the client sends is reported too, once for each arrival; of an fd that was added. */
void watch_reading(struct watch *watch, int fd, uint64_t key, bool on);
/* Lets the connection behind fd linger. Duplicates fd: the caller closes its own. The sending side
 * is shut here. */
void watch_linger(struct watch *watch, int fd, uint64_t now_ns);

enum watch_event {
    WATCH_READABLE,    /* where reading is on for it */
    WATCH_HALF_CLOSED, /* the client has closed its sending side, and perhaps the other one too */
    WATCH_GONE         /* it takes no answer any more */
};

/* Calls on_event(context, key, event) for what happened since; key may be of a connection that is
 * closed already, if it was closed during this very call. */
void watch_run(struct watch *watch,
               void (*on_event)(void *context, uint64_t key, enum watch_event event),
               void *context);
/* Closes what has lingered for too long. Call it every 100 ms or so. */
void watch_tick(struct watch *watch, uint64_t now_ns);

#endif
