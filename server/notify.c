/* server/notify.c: see notify.h. */
#include "server/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS 50 /* for readiness to come */
#define US_A_MS 1000

struct notify {
    uv_timer_t timer;
    const _Atomic bool *ready;
    bool was_ready, stopping;
    uint64_t watchdog_ms; /* 0: none */
    int socket;
    struct sockaddr_un address;
    socklen_t address_bytes;
};

static void send_state(const struct notify *notify, const char *state)
{
    (void)sendto(notify->socket, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&notify->address, notify->address_bytes);
}

static void on_tick(uv_timer_t *timer)
{
    struct notify *notify = timer->data;
    if (!notify->was_ready && !notify->stopping && atomic_load(notify->ready)) {
        notify->was_ready = true;
        send_state(notify, "READY=1");
    }
    if (notify->watchdog_ms > 0)
        send_state(notify, "WATCHDOG=1");
    uint64_t next_ms = notify->was_ready ? notify->watchdog_ms : LOOK_MS;
    if (notify->watchdog_ms > 0 && notify->watchdog_ms < next_ms)
        next_ms = notify->watchdog_ms;
    if (next_ms > 0)
        uv_timer_start(timer, on_tick, next_ms, 0);
}

/* A path, or behind an @ a name that is in no file system. */
static enum error read_address(const char *socket, struct notify *notify, struct failure *failure)
{
    size_t length = strlen(socket);
    struct sockaddr_un *address = &notify->address;
    bool fits = length >= 2 && length < sizeof address->sun_path;
    if (!fits || (*socket != '/' && *socket != '@'))
        return failure_set(failure, ERROR_BAD_OPTION,
                           "NOTIFY_SOCKET must be a path from the root or begin with @, and be "
                           "shorter than %zu bytes.",
                           sizeof address->sun_path);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, socket, length);
    notify->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (*socket == '@')
        address->sun_path[0] = '\0';
    else
        notify->address_bytes++; /* the zero behind a path */
    return ERROR_NONE;
}

static enum error read_watchdog(const struct notify_options *options, struct notify *notify,
                                struct failure *failure)
{
    char *end;
    if (options->watchdog_us == NULL)
        return ERROR_NONE;
    if (options->watchdog_pid != NULL && strtoll(options->watchdog_pid, NULL, 10) != getpid())
        return ERROR_NONE;
    errno = 0;
    long long us = strtoll(options->watchdog_us, &end, 10);
    if (errno != 0 || *end != '\0' || us < 2 * US_A_MS)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "WATCHDOG_USEC must be a count of microseconds, at least 2000.");
    notify->watchdog_ms = (uint64_t)us / US_A_MS / 2;
    return ERROR_NONE;
}

enum error notify_create(const struct notify_options *options, struct notify **result,
                         struct failure *failure)
{
    *result = NULL;
    if (options->socket == NULL)
        return ERROR_NONE;
    struct notify *notify = calloc(1, sizeof *notify);
    if (notify == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory");
    notify->ready = options->ready;
    notify->socket = -1;
    enum error error = read_address(options->socket, notify, failure);
    if (error == ERROR_NONE)
        error = read_watchdog(options, notify, failure);
    if (error == ERROR_NONE)
        notify->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (error == ERROR_NONE && notify->socket < 0)
        error = failure_set(failure, ERROR_INTERNAL, "cannot make a socket: %s", strerror(errno));
    if (error != ERROR_NONE) {
        free(notify);
        return error;
    }
    notify->timer.data = notify;
    uv_timer_init(options->loop, &notify->timer);
    uv_timer_start(&notify->timer, on_tick, 0, 0);
    *result = notify;
    return ERROR_NONE;
}

/* Between its READY=1 and STOPPING=1. */
static bool is_serving(const struct notify *notify)
{
    return notify != NULL && notify->was_ready && !notify->stopping;
}

void notify_reloading(struct notify *notify)
{
    char state[64];
    if (!is_serving(notify))
        return;
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(clock_now_ns() / CLOCK_US));
    send_state(notify, state);
}

void notify_reloaded(struct notify *notify)
{
    if (is_serving(notify))
        send_state(notify, "READY=1");
}

void notify_stopping(struct notify *notify)
{
    if (notify == NULL)
        return;
    notify->stopping = true;
    send_state(notify, "STOPPING=1");
}

void notify_close(struct notify *notify)
{
    if (notify != NULL)
        uv_close((uv_handle_t *)&notify->timer, NULL);
}

void notify_free(struct notify **notify)
{
    if (*notify != NULL)
        close((*notify)->socket);
    free(*notify);
    *notify = NULL;
}
