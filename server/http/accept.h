/* server/http/accept.h: how connections come in: the listening sockets of one door.
 *
 * The HTTP library does not listen: it is handed sockets. So what has to happen before the first
 * byte of HTTP happens here, and a door has as many listening sockets as it is given.
 *
 * The sockets are in an epoll set of their own, level-triggered, that the event loop polls. They
 * leave it while no connection can be taken: until accept_resume where the door has no room, for
 * ACCEPT_PAUSE_NS where the process has no descriptors left. Clients then wait in the backlog, and
 * the loop does not spin.
 *
 * A connection from an address that proxies have waits here until the proxy's header has come
 * (proxy.h), for the header's timeout at most; without a valid one it is closed.
 *
 * Threads: one event loop's. Cost: two system calls a turn, and one a connection.
 */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "server/http/proxy.h"

#define ACCEPT_MAX 64                             /* connections taken in a turn */
#define ACCEPT_PAUSE_NS (100 * UINT64_C(1000000)) /* without descriptors, before the next try */

#define ACCEPT_PENDING_MAX 256 /* connections without the header they owe */

struct accept;

/* Takes fd: connected, non-blocking, close-on-exec. address: the client's. */
typedef void accept_taker(void *context, int fd, const struct sockaddr *address, socklen_t length);

struct accept_options {
    const int *fds; /* takes: listening, non-blocking */
    int count;
    const struct proxy_list *proxies;         /* borrowed; may be empty */
    const _Atomic int64_t *header_timeout_ns; /* borrowed: of a proxy's header */
    accept_taker *taker;
    void *context;
};

/* Takes the listening sockets also when it fails. */
ERROR_MUST_CHECK enum error accept_create(const struct accept_options *options,
                                          struct accept **accept, struct failure *failure);
void accept_destroy(struct accept **accept); /* closes the sockets */

int accept_fd(const struct accept *accept); /* lent: readable when accept_run has work */

/* Hands over connections that wait, but no more than room. */
void accept_run(struct accept *accept, int64_t room, uint64_t now_ns);
/* There is room again. Cheap where nothing was paused. */
void accept_resume(struct accept *accept);
/* Ends pauses for want of descriptors, and connections without a header. Call it every 100 ms or
 * so. */
void accept_tick(struct accept *accept, uint64_t now_ns);

/* Hands over what waits, as far as there is room, and closes the listening sockets. No client that
 * has connected is reset, unless it does so in this very moment, or through a proxy that has not
 * said so yet. */
void accept_close(struct accept *accept, int64_t room, uint64_t now_ns);

#endif
