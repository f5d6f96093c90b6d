/* server/http/accept.c: see accept.h. Threads: one event loop's. */
#include "server/http/accept.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "server/http/peer.h"

#define EVENTS_MAX 16
#define SAY_AGAIN_NS (10 * UINT64_C(1000000000)) /* between two warnings of the same kind */

enum pause {
    RUNNING,
    NO_ROOM,       /* until accept_resume */
    NO_DESCRIPTORS /* until resume_ns */
};

/* A connection that owes a header. */
struct pending {
    int fd; /* -1: free */
    int next_free;
    uint64_t until_ns;
    struct sockaddr_storage address; /* the proxy's */
    socklen_t length;
    struct proxy_header header;
};

struct accept {
    struct accept_options options; /* but for fds */
    int epoll_fd;
    int *fds; /* listening */
    int count;
    enum pause pause;
    uint64_t resume_ns, said_ns, said_of_header_ns;
    struct pending *pending; /* [ACCEPT_PENDING_MAX]; NULL: there are no proxies */
    int pending_count, first_free;
};

#define PENDING_BIT (UINT64_C(1) << 63) /* marks an entry of the set as an index of pending */

/* What the sockets' entries in the set report. */
static bool set_events(struct accept *accept, int operation, uint32_t events)
{
    bool good = true;
    for (int i = 0; i < accept->count; i++) {
        struct epoll_event event = {.events = events, .data.u64 = (uint64_t)accept->fds[i]};
        good &= epoll_ctl(accept->epoll_fd, operation, accept->fds[i], &event) == 0;
    }
    return good;
}

static bool make_pending(struct accept *accept)
{
    if (accept->options.proxies->count == 0)
        return true;
    accept->pending = calloc(ACCEPT_PENDING_MAX, sizeof *accept->pending);
    for (int i = 0; accept->pending != NULL && i < ACCEPT_PENDING_MAX; i++) {
        accept->pending[i].fd = -1;
        accept->pending[i].next_free = i + 1;
    }
    return accept->pending != NULL;
}

enum error accept_create(const struct accept_options *options, struct accept **result,
                         struct failure *failure)
{
    struct accept *accept = calloc(1, sizeof *accept);
    int *copy = calloc((size_t)options->count, sizeof *copy);
    if (accept == NULL || copy == NULL) {
        for (int i = 0; i < options->count; i++)
            close(options->fds[i]);
        free(copy);
        free(accept);
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    }
    memcpy(copy, options->fds, (size_t)options->count * sizeof *copy);
    *accept = (struct accept){.options = *options,
                              .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                              .fds = copy,
                              .count = options->count};
    if (accept->epoll_fd < 0 || !make_pending(accept) ||
        !set_events(accept, EPOLL_CTL_ADD, EPOLLIN)) {
        accept_destroy(&accept);
        return failure_set(failure, ERROR_INTERNAL, "cannot make an epoll set");
    }
    *result = accept;
    return ERROR_NONE;
}

static void close_sockets(struct accept *accept)
{
    for (int i = 0; i < accept->count; i++)
        close(accept->fds[i]);
    accept->count = 0;
    for (int i = 0; accept->pending != NULL && i < ACCEPT_PENDING_MAX; i++)
        if (accept->pending[i].fd >= 0)
            close(accept->pending[i].fd);
    free(accept->pending);
    accept->pending = NULL;
    accept->pending_count = 0;
}

void accept_destroy(struct accept **result)
{
    struct accept *accept = *result;
    if (accept == NULL)
        return;
    close_sockets(accept);
    if (accept->epoll_fd >= 0)
        close(accept->epoll_fd);
    free(accept->fds);
    free(accept);
    *result = NULL;
}

int accept_fd(const struct accept *accept)
{
    return accept->epoll_fd;
}

/* ---- Pauses ---- */

static void stop(struct accept *accept, enum pause pause)
{
    assert(pause != RUNNING);
    if (accept->pause == RUNNING)
        (void)set_events(accept, EPOLL_CTL_MOD, 0);
    accept->pause = pause;
}

static void go_on(struct accept *accept)
{
    (void)set_events(accept, EPOLL_CTL_MOD, EPOLLIN);
    accept->pause = RUNNING;
}

static void lack_descriptors(struct accept *accept, int number, uint64_t now_ns)
{
    stop(accept, NO_DESCRIPTORS);
    accept->resume_ns = now_ns + ACCEPT_PAUSE_NS;
    if (accept->said_ns != 0 && now_ns < accept->said_ns + SAY_AGAIN_NS)
        return;
    accept->said_ns = now_ns;
    log_line(LOG_WARNING, "connections have to wait", "why", LOG_STR, strerror(number), NULL);
}

void accept_resume(struct accept *accept)
{
    if (accept->pause == NO_ROOM)
        go_on(accept);
}

/* ---- Headers of proxies ---- */

static void hand_over(const struct accept *accept, int fd, const struct sockaddr *address,
                      socklen_t length)
{
    accept->options.taker(accept->options.context, fd, address, length);
}

static void forget(struct accept *accept, struct pending *pending)
{
    pending->fd = -1;
    pending->next_free = accept->first_free;
    accept->first_free = (int)(pending - accept->pending);
    accept->pending_count--;
}

/* An operator who has left out one side of the protocol sees no answer and no request. */
static void warn_of_header(struct accept *accept, const struct pending *pending, uint64_t now_ns)
{
    static const struct http_peer_key no_key; /* it has no part in the text */
    char name[HTTP_PEER_TEXT];
    struct http_peer peer;
    if (accept->said_of_header_ns != 0 && now_ns < accept->said_of_header_ns + SAY_AGAIN_NS)
        return;
    accept->said_of_header_ns = now_ns;
    http_peer_read((const struct sockaddr *)&pending->address, pending->fd, &no_key, &peer);
    http_peer_show(&peer, name);
    log_line(LOG_WARNING, "connection from a proxy closed", "address", LOG_STR, name, "why",
             LOG_STR, "it does not begin with a PROXY header of version 2; see --proxy-protocol",
             NULL);
}

/* Goes on with the header; whether the connection still owes some of it. */
static bool owes_more(struct accept *accept, struct pending *pending, uint64_t now_ns)
{
    struct sockaddr_storage client;
    socklen_t length;
    int fd = pending->fd;
    enum proxy_state state = proxy_header_read(&pending->header, fd);
    if (state == PROXY_MORE)
        return true;
    if (state == PROXY_BAD && pending->header.count > 0)
        warn_of_header(accept, pending, now_ns);
    (void)epoll_ctl(accept->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* where it was waited for */
    forget(accept, pending);
    if (state == PROXY_BAD)
        close(fd);
    else if (proxy_header_client(&pending->header, &client, &length))
        hand_over(accept, fd, (const struct sockaddr *)&client, length);
    else
        hand_over(accept, fd, (const struct sockaddr *)&pending->address, pending->length);
    return false;
}

/* A connection from a proxy: mostly its header has come already. */
static void await_header(struct accept *accept, int fd, const struct sockaddr *address,
                         socklen_t length, uint64_t now_ns)
{
    assert(accept->pending_count < ACCEPT_PENDING_MAX);
    int index = accept->first_free;
    struct pending *pending = &accept->pending[index];
    accept->first_free = pending->next_free;
    accept->pending_count++;
    *pending = (struct pending){.fd = fd,
                                .until_ns = now_ns + (uint64_t)*accept->options.header_timeout_ns,
                                .length = length};
    memcpy(&pending->address, address, length);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = PENDING_BIT | (uint64_t)index};
    if (!owes_more(accept, pending, now_ns) ||
        epoll_ctl(accept->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
        return;
    close(fd);
    forget(accept, pending);
}

static void end_late(struct accept *accept, uint64_t now_ns)
{
    for (int i = 0; i < ACCEPT_PENDING_MAX && accept->pending_count > 0; i++) {
        struct pending *pending = &accept->pending[i];
        if (pending->fd < 0 || now_ns < pending->until_ns)
            continue;
        close(pending->fd);
        forget(accept, pending);
        accept_resume(accept);
    }
}

void accept_tick(struct accept *accept, uint64_t now_ns)
{
    if (accept->pause == NO_DESCRIPTORS && now_ns >= accept->resume_ns)
        go_on(accept);
    end_late(accept, now_ns);
}

/* ---- Connections ---- */

static bool is_lack(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

/* Connections of one socket, max at most; how many. */
static int take_from(struct accept *accept, int listener, int max, uint64_t now_ns)
{
    int taken = 0;
    while (taken < max && accept->pause == RUNNING) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd =
            accept4(listener, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO))
            continue; /* a client that has left already */
        if (fd < 0 && is_lack(errno))
            lack_descriptors(accept, errno, now_ns);
        if (fd < 0)
            break;
        if (length > sizeof address)
            length = sizeof address;
        if (accept->pending != NULL &&
            proxy_list_has(accept->options.proxies, (const struct sockaddr *)&address))
            await_header(accept, fd, (const struct sockaddr *)&address, length, now_ns);
        else
            hand_over(accept, fd, (const struct sockaddr *)&address, length);
        taken++;
    }
    return taken;
}

/* How many may be taken: connections that owe a header have a place already, and room for more of
 * them is needed too, in case they come from a proxy. */
static int may_take(const struct accept *accept, int64_t room)
{
    room -= accept->pending_count;
    if (accept->pending != NULL && room > ACCEPT_PENDING_MAX - accept->pending_count)
        room = ACCEPT_PENDING_MAX - accept->pending_count;
    return room < ACCEPT_MAX ? (int)room : ACCEPT_MAX;
}

void accept_run(struct accept *accept, int64_t room, uint64_t now_ns)
{
    struct epoll_event events[EVENTS_MAX];
    int max = may_take(accept, room), taken = 0;
    if (max <= 0 && accept->pause == RUNNING)
        stop(accept, NO_ROOM);
    /* The set reports its sockets in turns, so a busy one does not keep the others waiting. */
    int count = epoll_wait(accept->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        uint64_t key = events[i].data.u64;
        if ((key & PENDING_BIT) != 0)
            (void)owes_more(accept, &accept->pending[key & ~PENDING_BIT], now_ns);
        else
            taken += take_from(accept, (int)key, max - taken, now_ns);
    }
    if (accept->pending != NULL && may_take(accept, room - taken) > 0)
        accept_resume(accept);
}

void accept_close(struct accept *accept, int64_t room, uint64_t now_ns)
{
    if (accept->pause == NO_ROOM && room > 0)
        go_on(accept);
    for (int i = 0; i < accept->count; i++) {
        /* No more may queue up, beyond one, which is the least there is. */
        (void)listen(accept->fds[i], 0);
        int max, taken;
        do {
            max = may_take(accept, room);
            taken = max > 0 ? take_from(accept, accept->fds[i], max, now_ns) : 0;
            room -= taken;
        } while (taken > 0 && taken == max);
    }
    close_sockets(accept);
}
