/* server/http/http.c: the HTTP door: life, phases, what its event loop calls. See http.h,
 * private.h.
 *
 * Threads: one event loop's.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/private.h"

#define POOL_BYTES ((size_t)32 << 10)   /* the library's, a connection; cleared for each request */
#define DRIVE_ROUNDS 8                  /* before the queue is looked after */
#define MEASURED_MAX (INT64_C(1) << 40) /* bytes that are given time; the product fits */
#define SHORT_NS CLOCK_S /* how long requests wait for memory before others lose theirs */

/* Which phases may follow. */
static const unsigned moves[HTTP_PHASES] = {
    [HTTP_IDLE] = 1 << HTTP_HEAD,
    [HTTP_HEAD] = 1 << HTTP_BODY | 1 << HTTP_DISCARD | 1 << HTTP_IDLE,
    [HTTP_BODY] = 1 << HTTP_WAIT | 1 << HTTP_SENDING | 1 << HTTP_GONE | 1 << HTTP_IDLE,
    [HTTP_DISCARD] = 1 << HTTP_WAIT | 1 << HTTP_SENDING | 1 << HTTP_GONE | 1 << HTTP_IDLE,
    [HTTP_WAIT] = 1 << HTTP_READY | 1 << HTTP_GONE | 1 << HTTP_IDLE,
    [HTTP_READY] = 1 << HTTP_SENDING | 1 << HTTP_GONE | 1 << HTTP_IDLE,
    [HTTP_SENDING] = 1 << HTTP_DRY | 1 << HTTP_IDLE,
    [HTTP_DRY] = 1 << HTTP_SENDING | 1 << HTTP_GONE | 1 << HTTP_IDLE,
    [HTTP_GONE] = 1 << HTTP_IDLE,
};
/* A stream that is dry needs no exact deadlines. */
#define BUSY                                                                                       \
    (1 << HTTP_BODY | 1 << HTTP_DISCARD | 1 << HTTP_WAIT | 1 << HTTP_READY | 1 << HTTP_SENDING)
#define WITH_EXCHANGE (BUSY | 1 << HTTP_DRY)
#define HELD (1 << HTTP_WAIT | 1 << HTTP_READY)
#define CLOSING (1 << HTTP_BODY | 1 << HTTP_DISCARD | 1 << HTTP_SENDING | 1 << HTTP_DRY)
#define READING (1 << HTTP_IDLE | 1 << HTTP_HEAD | 1 << HTTP_BODY | 1 << HTTP_DISCARD)
#define LEFT_NS (20 * CLOCK_MS) /* for the library to read what a client that left had sent */

/* ---- Life ---- */

static bool make_slots(struct http *http)
{
    int64_t slots = http->options.limits.connections_max + http->options.spare_max;
    http->slots = (uint32_t)slots;
    http->deadlines = calloc((size_t)slots, sizeof *http->deadlines);
    http->connections = calloc((size_t)slots, sizeof(struct http__connection *));
    http->free_slots = calloc((size_t)slots, sizeof *http->free_slots);
    http->waits = calloc((size_t)slots, sizeof *http->waits);
    if (http->deadlines == NULL || http->connections == NULL || http->free_slots == NULL ||
        http->waits == NULL)
        return false;
    while (http->free_count < http->slots) {
        http->free_slots[http->free_count] = http->slots - 1 - http->free_count;
        http->free_count++;
    }
    return true;
}

static struct MHD_Daemon *start(struct http *http)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
                     MHD_USE_ERROR_LOG; /* to http__on_complaint */
    /* Ignored without the flag of TLS. */
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_no_certificate()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(intptr_t)tls_priorities},
        {MHD_OPTION_END, 0, NULL}};
    /* TURBO: closing, the library does not shut the sending side of a socket whose duplicate is put
     * off. */
    flags |= http->options.tls != NULL ? MHD_USE_TLS : MHD_USE_TURBO;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, http__on_request, http, MHD_OPTION_EXTERNAL_LOGGER,
        http__on_complaint, http, MHD_OPTION_NOTIFY_COMPLETED, http__on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, http__on_connection, http, MHD_OPTION_URI_LOG_CALLBACK,
        http__on_target, http, MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)http->slots, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

/* accept_taker: hands the socket over to the library, which closes it where it cannot take it. */
static void take(void *context, int fd, const struct sockaddr *address, socklen_t length)
{
    struct http *http = context;
    http_peer_read(address, fd, &http->options.peer_key, &http->newcomer);
    http->came = NULL;
    if (MHD_add_connection(http->daemon, fd, address, length) == MHD_YES && http->came != NULL &&
        http->options.tls != NULL)
        http__handshake_begin(http->came);
    http->stirred = true;
}

enum error http_create(const struct http_options *options, struct http **result,
                       struct failure *failure)
{
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        for (int i = 0; i < options->listen_count; i++)
            close(options->listen_fds[i]);
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    }
    struct accept_options accept = {.fds = options->listen_fds,
                                    .count = options->listen_count,
                                    .proxies = options->proxies,
                                    .header_timeout_ns = &http->options.limits.header_timeout_ns,
                                    .taker = take,
                                    .context = http};
    enum error error = accept_create(&accept, &http->accept, failure);
    http->options = *options;
    http->now_ns = clock_now_ns();
    http_count_init(&http->count, options->metrics);
    http->log = request_log_buffer_create(options->log);
    http__id_prefix_make(http);
    http->open_gauge = metric_series(options->metrics, METRIC_CONNECTIONS);
    if (error == ERROR_NONE)
        error = watch_create(options->linger_max, &http->watch, failure);
    if (error == ERROR_NONE && !make_slots(http))
        error = failure_set(failure, ERROR_INTERNAL, "out of memory");
    if (error == ERROR_NONE && options->tls == NULL)
        error = put_off_create((int)http->slots, options->put_off_clients, &http->put_off, failure);
    if (error == ERROR_NONE && (http->daemon = start(http)) == NULL)
        error = failure_set(failure, ERROR_INTERNAL, "libmicrohttpd does not start");
    if (error != ERROR_NONE) {
        http_destroy(&http);
        return error;
    }
    *result = http;
    return ERROR_NONE;
}

/* min: how many at least, if there are. */
static void send_put_off(struct http *http, uint64_t due_ns, int64_t min)
{
    if (http->put_off != NULL)
        (void)http__count_open(
            http, -put_off_tick(http->put_off, http->watch, due_ns, min, http->now_ns));
}

void http_destroy(struct http **result)
{
    struct http *http = *result;
    if (http == NULL)
        return;
    for (uint32_t slot = 0; http->connections != NULL && slot < http->slots; slot++) {
        struct http__connection *c = http->connections[slot];
        if (c != NULL && (c->phase == HTTP_WAIT || http__is_paused(c))) {
            http__drop(c, false);
            MHD_resume_connection(c->library);
        } else if (c != NULL && c->phase == HTTP_DRY) {
            http__stream_drop(c, false);
        }
    }
    http__handshakes_abandon(http);
    if (http->daemon != NULL)
        MHD_stop_daemon(http->daemon);
    request_log_buffer_destroy(&http->log);
    accept_destroy(&http->accept);
    send_put_off(http, UINT64_MAX, 0);
    put_off_destroy(&http->put_off);
    watch_destroy(&http->watch);
    for (uint32_t slot = 0; http->connections != NULL && slot < http->slots; slot++) {
        if (http->connections[slot] != NULL)
            free(http->connections[slot]->copy);
        free(http->connections[slot]);
    }
    free(http->connections);
    free(http->deadlines);
    free(http->free_slots);
    free(http->waits);
    free(http);
    *result = NULL;
}

/* ---- Phases ---- */

void http__set_deadline(struct http__connection *c, uint64_t deadline_ns)
{
    uint64_t soon_ns = c->http->now_ns + LEFT_NS;
    uint64_t close_by_ns = c->http->close_by_ns;
    if (close_by_ns != 0 && (CLOSING >> c->phase & 1) != 0 && close_by_ns < deadline_ns)
        deadline_ns = close_by_ns;
    bool soon = c->left && http__is_reading(c) && soon_ns < deadline_ns;
    c->http->deadlines[c->slot] = soon ? soon_ns : deadline_ns;
}

int64_t http__count_open(struct http *http, int change)
{
    atomic_fetch_add(&http->open, change);
    metric_add(http->open_gauge, (uint64_t)(int64_t)change);
    return atomic_fetch_add(http->options.connections, change) + change;
}

uint64_t http__key(const struct http__connection *c)
{
    return (uint64_t)c->generation << 32 | c->slot;
}

static void count(_Atomic int64_t *counter, int change)
{
    if (change != 0)
        atomic_fetch_add_explicit(counter, change, memory_order_relaxed);
}

void http__move(struct http__connection *c, enum http__phase next)
{
    assert((moves[c->phase] & 1u << next) != 0);
    bool arriving = next == HTTP_BODY && c->x.takes_body;
    count(&c->http->busy, (BUSY >> next & 1) - (BUSY >> c->phase & 1));
    count(&c->http->arriving, arriving - c->arriving);
    count(&c->http->held, (HELD >> next & 1) - (HELD >> c->phase & 1));
    c->arriving = arriving;
    bool waiting = next == HTTP_WAIT && c->answered;
    count(&c->http->options.put_off_clients->waiting, waiting - c->waiting);
    c->waiting = waiting;
    c->paused_ns = 0;
    c->phase = next;
}

bool http__is_busy(const struct http__connection *c)
{
    return (WITH_EXCHANGE >> c->phase & 1) != 0;
}

bool http__is_reading(const struct http__connection *c)
{
    return (READING >> c->phase & 1) != 0 && !http__is_paused(c);
}

bool http__is_paused(const struct http__connection *c)
{
    return c->phase == HTTP_BODY && c->paused_ns != 0;
}

uint64_t http__second_a_mebibyte(int64_t bytes)
{
    if (bytes > MEASURED_MAX)
        bytes = MEASURED_MAX;
    return bytes <= 0 ? 0 : (uint64_t)(bytes >> 10) * CLOCK_S / 1024;
}

/* ---- The loop's calls ---- */

void http__suspend_later(struct http__connection *c)
{
    assert(c->phase == HTTP_WAIT || c->phase == HTTP_DRY);
    if (c->noted)
        return; /* it was DRY, and is again, in this very call */
    assert(c->http->wait_count < c->http->slots);
    c->noted = true;
    c->http->waits[c->http->wait_count++] = c->slot;
}

static void suspend(struct http *http)
{
    for (uint32_t i = 0; i < http->wait_count; i++) {
        struct http__connection *c = http->connections[http->waits[i]];
        c->noted = false;
        c->parked = c->phase == HTTP_DRY;
        if (c->phase == HTTP_WAIT || c->parked)
            MHD_suspend_connection(c->library);
    }
    http->wait_count = 0;
}

bool http_drive(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    http->now_ns = clock_now_ns();
    bool more = http__handshakes_resume(http);
    for (int i = 0; i < DRIVE_ROUNDS; i++) {
        http->stirred = false;
        MHD_run(http->daemon);
        suspend(http);
        http__handshakes_settle(http);
        if (MHD_get_timeout(http->daemon, &timeout) != MHD_YES || timeout != 0)
            return more;
    }
    return true;
}

bool http_stirred(const struct http *http)
{
    return http->stirred;
}

void http_watch(struct http *http)
{
    http->now_ns = clock_now_ns();
    watch_run(http->watch, http__on_watched, http);
}

/* How many connections can be taken in; further ones stay in the backlog. */
static int64_t room(const struct http *http)
{
    int64_t open = atomic_load_explicit(http->options.connections, memory_order_relaxed);
    int64_t left = http->options.limits.connections_max + http->options.spare_max - open;
    return left < http->free_count ? left : http->free_count;
}

void http_accept(struct http *http)
{
    http->now_ns = clock_now_ns();
    accept_run(http->accept, room(http), http->now_ns);
}

/* Requests wait for memory: who holds some and crawls loses it. */
static void end_crawlers(struct http *http)
{
    for (uint32_t slot = 0; slot < http->slots; slot++) {
        struct http__connection *c = http->connections[slot];
        if (http->deadlines[slot] != 0 && c != NULL && http__crawls(c))
            http__on_deadline(c);
    }
}

/* Connections above the limit that were let in: as many others that the library puts off hear now,
 * and close. */
static void make_room(struct http *http, int64_t over)
{
    for (uint32_t slot = 0; slot < http->slots && over > 0; slot++) {
        struct http__connection *c = http->connections[slot];
        if (c == NULL || !c->waiting)
            continue;
        if (c->response != NULL)
            (void)MHD_add_response_header(c->response, "Connection", "close");
        http__release(c);
        over--;
    }
}

void http_tick(struct http *http)
{
    http->now_ns = clock_now_ns();
    accept_tick(http->accept, http->now_ns);
    if (room(http) > 0)
        accept_resume(http->accept); /* others' connections may have ended */
    request_log_tick(http->log, http->now_ns);
    uint64_t short_ns = atomic_load(http->options.short_since_ns);
    if (short_ns != 0 && http->now_ns > short_ns + SHORT_NS)
        end_crawlers(http);
    for (uint32_t slot = 0; slot < http->slots; slot++)
        if (http->deadlines[slot] != 0 && http->deadlines[slot] <= http->now_ns)
            http__on_deadline(http->connections[slot]);
    int64_t over = atomic_load(http->options.connections) - http->options.limits.connections_max;
    send_put_off(http, http->now_ns, over);
    if (http->put_off == NULL)
        make_room(http, over);
    watch_tick(http->watch, http->now_ns);
    handlers_tick(http->options.handlers, http->options.mailbox, http->now_ns);
    http->stirred = true; /* the library has deadlines too: see http__close_soon */
}

void http_drain(struct http *http)
{
    http->draining = true;
    send_put_off(http, UINT64_MAX, 0); /* what they were refused for is over */
    for (uint32_t slot = 0; slot < http->slots; slot++) {
        struct http__connection *c = http->connections[slot];
        if (c == NULL || http->deadlines[slot] == 0)
            continue;
        if (c->phase == HTTP_IDLE)
            http__close_soon(c);
        else if (c->phase == HTTP_WAIT && c->answered)
            http__set_deadline(c, 1); /* what it was refused for is over */
        else if (c->phase == HTTP_WAIT)
            handlers_hasten(&c->x);
        else if (c->phase == HTTP_DRY)
            http__stream_more(&c->x); /* that is its end */
    }
}

void http_quiesce(struct http *http, uint64_t within_ns)
{
    http->now_ns = clock_now_ns();
    http->close_by_ns = http->now_ns + within_ns;
    for (uint32_t slot = 0; slot < http->slots; slot++)
        if (http->deadlines[slot] != 0)
            http__set_deadline(http->connections[slot], http->deadlines[slot]);
    accept_close(http->accept, room(http), http->now_ns);
}

void http_set_limits(struct http *http, const struct http_limits *limits)
{
    struct http_limits *own = &http->options.limits;
    own->header_timeout_ns = limits->header_timeout_ns;
    own->body_timeout_ns = limits->body_timeout_ns;
    own->body_rate_min = limits->body_rate_min;
    own->request_timeout_ns = limits->request_timeout_ns;
    own->send_timeout_ns = limits->send_timeout_ns;
    own->idle_timeout_ns = limits->idle_timeout_ns;
}

int64_t http_busy(const struct http *http)
{
    return atomic_load_explicit(&http->busy, memory_order_relaxed);
}

int64_t http_held(const struct http *http)
{
    return atomic_load_explicit(&http->held, memory_order_relaxed);
}

int64_t http_arriving(const struct http *http)
{
    return atomic_load_explicit(&http->arriving, memory_order_relaxed);
}

int64_t http_open(const struct http *http)
{
    return atomic_load_explicit(&http->open, memory_order_relaxed);
}

int http_fd(const struct http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int http_watch_fd(const struct http *http)
{
    return watch_fd(http->watch);
}

int http_accept_fd(const struct http *http)
{
    return accept_fd(http->accept);
}
