/* server/http/connection.c: connections as they come, go, and stay for too long. See private.h.
 *
 * Threads: one event loop's.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/http/private.h"

/* Above the limit. Who is put off gives way to a newcomer that has not come too early. */
static bool is_over(const struct http *http, int64_t open)
{
    const struct put_off_clients *clients = http->options.put_off_clients;
    int64_t over = open - http->options.limits.connections_max;
    return over > 0 && (over > atomic_load(&clients->waiting) ||
                        put_off_owes(clients, http->newcomer.number, http->now_ns));
}

static void open_connection(struct http *http, struct MHD_Connection *library, void **context)
{
    if (http->free_count == 0)
        return; /* the library's own limit is lower */
    uint32_t slot = http->free_slots[http->free_count - 1];
    struct http__connection *c = http->connections[slot];
    if (c == NULL)
        c = http->connections[slot] = calloc(1, sizeof *c);
    if (c == NULL)
        return;
    http->free_count--;
    uint32_t generation = c->generation;
    memset(c, 0, offsetof(struct http__connection, copy));
    c->http = http;
    c->library = library;
    c->fd = MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->slot = slot;
    c->generation = (generation + 1) & 0x7fffffff;
    c->peer = http->newcomer;
    c->over = is_over(http, http__count_open(http, 1));
    http__set_deadline(c, http->now_ns + (uint64_t)http->options.limits.header_timeout_ns);
    watch_add(http->watch, c->fd, http__key(c));
    if (http->draining)
        http__close_soon(c);
    *context = http->came = c;
}

static void close_connection(struct http__connection *c)
{
    struct http *http = c->http;
    char byte;
    watch_forget(http->watch, c->fd);
    /* 0: the client has closed already. */
    if (!c->plain && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
        watch_linger(http->watch, c->fd, http->now_ns);
    uint64_t until_ns = c->refused_ns + PUT_OFF_NS;
    if (c->refused_ns != 0 && http->now_ns < until_ns)
        put_off_owe(http->options.put_off_clients, c->peer.number, until_ns, http->now_ns);
    http__set_deadline(c, 0);
    http__handshake_end(c);
    http__caller_forget(c);
    http->free_slots[http->free_count++] = c->slot;
    accept_resume(http->accept);
    (void)http__count_open(http, -1);
}

void http__on_connection(void *context, struct MHD_Connection *library, void **connection,
                         enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        open_connection(context, library, connection);
    else if (*connection != NULL)
        close_connection(*connection);
}

void http__on_watched(void *context, uint64_t key, enum watch_event event)
{
    struct http *http = context;
    struct http__connection *c = http->connections[key & 0xffffffff];
    if (c == NULL || c->generation != key >> 32)
        return;
    http__handshake_wake(c);
    if (event == WATCH_READABLE)
        return;
    c->left = c->x.half_closed = true;
    if (c->phase == HTTP_DRY && event == WATCH_GONE)
        http__stream_drop(c, true);
    else if (c->phase == HTTP_DRY)
        http__stream_more(&c->x);
    if (c->phase != HTTP_WAIT) {
        http__set_deadline(c, http->deadlines[c->slot]); /* see there */
        return;
    }
    if (event == WATCH_HALF_CLOSED) {
        http__wait(c);
        return;
    }
    http__drop(c, true);
    http->stirred = true;
    MHD_resume_connection(c->library);
}

/* A client that has closed its sending side may still take the answer, or be gone: the system does
 * not say, until something is sent. Clients have to take any interim response (RFC 9110, 15.2). One
 * that is gone resets the connection, which the watch reports. */
static void probe(struct http__connection *c)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    c->probed = true;
    if (c->session == NULL)
        (void)send(c->fd, interim, sizeof interim - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    http__wait(c);
}

/* The answer is due, or the time for it is over. */
static void end_wait(struct http__connection *c)
{
    if (c->answered) {
        http__release(c);
    } else if (c->http->now_ns < c->x.deadline_ns) {
        probe(c);
    } else {
        handlers_expired(&c->x, HANDLERS_LATE_ANSWER);
        assert(c->answered || c->http->now_ns < c->x.deadline_ns); /* it was waiting, no longer */
    }
}

void http__on_deadline(struct http__connection *c)
{
    if (c->left && http__is_reading(c)) {
        shutdown(c->fd, SHUT_RD); /* an edge: the library reads what is left, and then the end */
        http__set_deadline(c, UINT64_MAX);
        return;
    }
    http__set_deadline(c, 0);
    switch (c->phase) {
    case HTTP_IDLE:
        if (!c->final && c->target.length > 0)
            http__close_soon(c);
        else
            shutdown(c->fd, SHUT_RDWR); /* no request line has come in time */
        break;
    case HTTP_BODY:
        http__body_late(c);
        break;
    case HTTP_DISCARD:
        http__answer_past_library(c);
        break;
    case HTTP_WAIT:
        end_wait(c);
        break;
    case HTTP_DRY:
        http__stream_drop(c, false);
        break;
    case HTTP_HEAD:
    case HTTP_SENDING:
    case HTTP_GONE:
        shutdown(c->fd, SHUT_RDWR); /* the library finds it closed */
        break;
    default:
        break;
    }
}
