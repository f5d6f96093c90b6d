/* server/http/accept.c: see accept.h. Threads: one event loop's. */
#include "server/http/accept.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"

#define EVENTS_MAX 16
#define SAY_AGAIN_NS (10 * UINT64_C(1000000000)) /* between two warnings of the same kind */

enum pause {
    RUNNING,
    NO_ROOM,       /* until accept_resume */
    NO_DESCRIPTORS /* until resume_ns */
};

struct accept {
    int epoll_fd;
    int *fds; /* listening */
    int count;
    enum pause pause;
    uint64_t resume_ns, said_ns;
    accept_taker *taker;
    void *context;
};

/* What the sockets' entries in the set report. */
static bool set_events(struct accept *accept, int operation, uint32_t events)
{
    bool good = true;
    for (int i = 0; i < accept->count; i++) {
        struct epoll_event event = {.events = events, .data.fd = accept->fds[i]};
        good &= epoll_ctl(accept->epoll_fd, operation, accept->fds[i], &event) == 0;
    }
    return good;
}

enum error accept_create(const int *fds, int count, accept_taker *taker, void *context,
                         struct accept **result, struct failure *failure)
{
    struct accept *accept = calloc(1, sizeof *accept);
    int *copy = calloc((size_t)count, sizeof *copy);
    if (accept == NULL || copy == NULL) {
        for (int i = 0; i < count; i++)
            close(fds[i]);
        free(copy);
        free(accept);
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    }
    memcpy(copy, fds, (size_t)count * sizeof *copy);
    *accept = (struct accept){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                              .fds = copy,
                              .count = count,
                              .taker = taker,
                              .context = context};
    if (accept->epoll_fd < 0 || !set_events(accept, EPOLL_CTL_ADD, EPOLLIN)) {
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

void accept_tick(struct accept *accept, uint64_t now_ns)
{
    if (accept->pause == NO_DESCRIPTORS && now_ns >= accept->resume_ns)
        go_on(accept);
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
        accept->taker(accept->context, fd, (const struct sockaddr *)&address, length);
        taken++;
    }
    return taken;
}

int accept_run(struct accept *accept, int64_t room, uint64_t now_ns)
{
    struct epoll_event events[EVENTS_MAX];
    if (room <= 0)
        stop(accept, NO_ROOM);
    if (accept->pause != RUNNING)
        return 0;
    int max = room < ACCEPT_MAX ? (int)room : ACCEPT_MAX, taken = 0;
    int count = epoll_wait(accept->epoll_fd, events, EVENTS_MAX, 0);
    /* The set reports its sockets in turns, so a busy one does not keep the others waiting. */
    for (int i = 0; i < count; i++)
        taken += take_from(accept, events[i].data.fd, max - taken, now_ns);
    return taken;
}

void accept_close(struct accept *accept, int64_t room, uint64_t now_ns)
{
    if (accept->pause == NO_ROOM && room > 0)
        go_on(accept);
    for (int i = 0; i < accept->count; i++) {
        /* No more may queue up, beyond one, which is the least there is. */
        (void)listen(accept->fds[i], 0);
        if (room > 0)
            room -=
                take_from(accept, accept->fds[i], room < INT32_MAX ? (int)room : INT32_MAX, now_ns);
    }
    close_sockets(accept);
}
