/* server/http/http.h: the HTTP door: one libmicrohttpd daemon with listening sockets of its own,
 * inside an event loop.
 *
 * The door frames requests and answers; what they mean is handlers' business. It is the only user
 * of libmicrohttpd, which it hides: it lends handlers a `struct exchange` for each request.
 *
 * What the door adds to the library: a guard against requests with two readings (guard.h),
 * absolute deadlines for every phase of a connection, notice of clients that leave while they wait
 * (watch.h), its own taking in of connections (accept.h), closing without a reset, and an orderly
 * end.
 *
 * Threads: one event loop's, but for the counts at the end.
 */
#ifndef SERVER_HTTP_HTTP_H
#define SERVER_HTTP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mailbox.h"
#include "base/metric.h"
#include "handlers/exchange.h"
#include "server/http/peer.h"
#include "server/http/proxy.h"
#include "server/http/site.h"

struct http;
struct access;
struct put_off_clients;
struct request_log;
struct tls;

/* Those of time may change: see http_set_limits. */
struct http_limits {
    int64_t connections_max; /* of all doors; one above is answered 503 and closed */
    _Atomic int64_t
        header_timeout_ns; /* from the connection, or the request line, to the empty line */
    _Atomic int64_t body_timeout_ns; /* plus one second a MiB */
    _Atomic int64_t body_rate_min; /* bytes a second, over any ten seconds of a body; 0: no limit */
    _Atomic int64_t
        request_timeout_ns;          /* from the complete body to the answer; a wait for memory */
    _Atomic int64_t send_timeout_ns; /* for the client to take the answer, plus one second a MiB */
    _Atomic int64_t idle_timeout_ns; /* between requests */
};

struct http_options {
    const int *listen_fds;                  /* takes: bound and listening, non-blocking */
    int listen_count;                       /* at least one */
    enum exchange_listener listener;        /* which routes exist here */
    struct handlers *handlers;              /* borrowed, as all below */
    struct metric_registry *metrics;        /* */
    struct mailbox *mailbox;                /* of the event loop */
    _Atomic int64_t *connections;           /* open ones of all doors, counted by the doors */
    const _Atomic uint64_t *short_since_ns; /* see queue_short_since_ns */
    const struct proxy_list *proxies;
    struct site_rules site;
    struct tls *tls;               /* NULL: the door speaks plain HTTP */
    struct access *access;         /* NULL: no token is asked for */
    struct request_log *log;       /* NULL: none */
    struct http_peer_key peer_key; /* the same for all doors */
    struct put_off_clients *put_off_clients;
    struct http_limits limits;
    int spare_max;  /* connections above connections_max, of all doors, to be refused in words */
    int linger_max; /* connections of this door that linger (watch.h) */
};

/* Takes the sockets of options->listen_fds, also when it fails. The process ignores SIGPIPE: else
 * the library would send no file by sendfile. */
ERROR_MUST_CHECK enum error http_create(const struct http_options *options, struct http **http,
                                        struct failure *failure);
/* Closes all connections, ending their exchanges; nulls *http. */
void http_destroy(struct http **http);

int http_fd(const struct http *http);        /* lent: readable when http_drive has work */
int http_watch_fd(const struct http *http);  /* lent: readable when http_watch has work */
int http_accept_fd(const struct http *http); /* lent: readable when http_accept has work */

/* Reads, calls handlers, writes, until nothing is ready. true when it stopped earlier, to let
 * others run: call it again soon. */
bool http_drive(struct http *http);
/* Whether something was done since the last http_drive that it must go on with. */
bool http_stirred(const struct http *http);
void http_watch(struct http *http);
/* Takes in connections that wait. */
void http_accept(struct http *http);
/* Deadlines, and handlers_tick. Call it every 10 ms while http_busy, every 100 ms at least. */
void http_tick(struct http *http);

/* From now on every answer closes its connection, and idle connections close. */
void http_drain(struct http *http);
/* Stops listening. Bodies and answers that are on their way get within_ns more at most. */
void http_quiesce(struct http *http, uint64_t within_ns);

/* From any thread. */
void http_set_limits(struct http *http, const struct http_limits *limits); /* those of time */
int64_t http_busy(const struct http *http);                                /* requests under way */
int64_t http_held(const struct http *http);     /* of those, what handlers still have to answer */
int64_t http_arriving(const struct http *http); /* and what is still sending an admitted body */
int64_t http_open(const struct http *http);     /* connections */

#endif
