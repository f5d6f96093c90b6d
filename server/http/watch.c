/* server/http/watch.c: see watch.h. Threads: one event loop's. */
#include "server/http/watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A run sees many departures, for a busy loop takes many requests in between two runs: those whose
 * clients have left must not pile up. It reads less from those who linger. */
#define EVENTS_MAX 1024
#define DROPS_MAX 64
#define SCRATCH_BYTES (64 << 10)
#define LINGER_BIT (UINT64_C(1) << 63) /* marks the key of a lingering connection: its index */

struct lingerer {
    int fd; /* -1: free */
    int next_free;
    uint64_t until_ns;
    int64_t left_bytes;
};

struct watch {
    int epoll_fd;
    int linger_max, lingering;
    int first_free; /* -1: none */
    struct lingerer *lingerers;
    unsigned char *scratch;
};

enum error watch_create(int linger_max, struct watch **result, struct failure *failure)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch->linger_max = linger_max;
    watch->lingerers = calloc((size_t)linger_max, sizeof *watch->lingerers);
    watch->scratch = malloc(SCRATCH_BYTES);
    watch->first_free = -1;
    if (watch->epoll_fd < 0 || watch->lingerers == NULL || watch->scratch == NULL) {
        watch->linger_max = 0; /* the table may not exist */
        watch_destroy(&watch);
        return failure_set(failure, ERROR_INTERNAL, "cannot make an epoll set");
    }
    for (int i = linger_max - 1; i >= 0; i--) {
        watch->lingerers[i] = (struct lingerer){.fd = -1, .next_free = watch->first_free};
        watch->first_free = i;
    }
    *result = watch;
    return ERROR_NONE;
}

void watch_destroy(struct watch **result)
{
    struct watch *watch = *result;
    if (watch == NULL)
        return;
    for (int i = 0; i < watch->linger_max; i++)
        if (watch->lingerers[i].fd >= 0)
            close(watch->lingerers[i].fd);
    if (watch->epoll_fd >= 0)
        close(watch->epoll_fd);
    free(watch->lingerers);
    free(watch->scratch);
    free(watch);
    *result = NULL;
}

int watch_fd(const struct watch *watch)
{
    return watch->epoll_fd;
}

void watch_add(struct watch *watch, int fd, uint64_t key)
{
    assert((key & LINGER_BIT) == 0);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.u64 = key};
    /* When this fails for want of memory, the client's leaving is noticed when the answer is
     * sent: nothing breaks. */
    (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void watch_forget(struct watch *watch, int fd)
{
    (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void watch_reading(struct watch *watch, int fd, uint64_t key, bool on)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET | (on ? EPOLLIN : 0),
                                .data.u64 = key};
    (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void watch_linger(struct watch *watch, int fd, uint64_t now_ns)
{
    shutdown(fd, SHUT_WR);
    if (watch->first_free < 0)
        return;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return;
    int index = watch->first_free;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP,
                                .data.u64 = LINGER_BIT | (uint64_t)index};
    if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, own, &event) != 0) {
        close(own);
        return;
    }
    struct lingerer *lingerer = &watch->lingerers[index];
    watch->first_free = lingerer->next_free;
    watch->lingering++;
    *lingerer = (struct lingerer){
        .fd = own, .until_ns = now_ns + WATCH_LINGER_NS, .left_bytes = WATCH_LINGER_BYTES};
}

static void end(struct watch *watch, int index)
{
    struct lingerer *lingerer = &watch->lingerers[index];
    close(lingerer->fd);
    *lingerer = (struct lingerer){.fd = -1, .next_free = watch->first_free};
    watch->first_free = index;
    watch->lingering--;
}

/* Drops one scratch buffer's worth, which TCP does without a copy: the rest comes with the next
 * event, so that one client that sends fast does not hold the loop. */
static void drop(struct watch *watch, int index)
{
    struct lingerer *lingerer = &watch->lingerers[index];
    ssize_t count = recv(lingerer->fd, watch->scratch, SCRATCH_BYTES, MSG_DONTWAIT | MSG_TRUNC);
    if (count > 0)
        lingerer->left_bytes -= count;
    bool again = count < 0 && (errno == EAGAIN || errno == EINTR);
    if ((count <= 0 && !again) || lingerer->left_bytes < 0)
        end(watch, index);
}

static enum watch_event event_of(uint32_t events)
{
    if ((events & (EPOLLHUP | EPOLLERR)) != 0)
        return WATCH_GONE;
    return (events & EPOLLRDHUP) != 0 ? WATCH_HALF_CLOSED : WATCH_READABLE;
}

void watch_run(struct watch *watch,
               void (*on_event)(void *context, uint64_t key, enum watch_event event), void *context)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(watch->epoll_fd, events, EVENTS_MAX, 0), drops = 0;
    for (int i = 0; i < count; i++) {
        uint64_t key = events[i].data.u64;
        if ((key & LINGER_BIT) == 0)
            on_event(context, key, event_of(events[i].events));
        else if (watch->lingerers[key & ~LINGER_BIT].fd >= 0 && drops++ < DROPS_MAX)
            drop(watch, (int)(key & ~LINGER_BIT));
    }
}

void watch_tick(struct watch *watch, uint64_t now_ns)
{
    for (int i = 0; i < watch->linger_max && watch->lingering > 0; i++)
        if (watch->lingerers[i].fd >= 0 && watch->lingerers[i].until_ns <= now_ns)
            end(watch, i);
}
