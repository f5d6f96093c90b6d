/* server/callbacks/sender.c: see sender.h. */
#include "server/callbacks/sender.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/log.h"

#define REAPS_MAX 200 /* looks for the end of a process that was killed, a millisecond apart */

struct sender {
    struct sender_options options;
    uv_signal_t child;
    uv_poll_t poll;
    int open_handles;
    int socket, pid;
    bool is_ended_here; /* no one wants to hear of it */
};

static void on_closed(uv_handle_t *handle)
{
    struct sender *sender = handle->data;
    if (--sender->open_handles > 0)
        return;
    if (sender->socket >= 0)
        close(sender->socket);
    if (!sender->is_ended_here)
        sender->options.on_ended(sender->options.context);
    free(sender);
}

static void close_handles(struct sender *sender)
{
    uv_close((uv_handle_t *)&sender->child, on_closed);
    uv_close((uv_handle_t *)&sender->poll, on_closed);
}

/* A child has ended; is it this one? */
static void on_child(uv_signal_t *handle, int number)
{
    struct sender *sender = handle->data;
    struct spawner_end end;
    (void)number;
    if (!spawner_reap(sender->pid, &end))
        return;
    log_line(LOG_WARNING, "the process that sends callbacks has ended", "pid", LOG_I64,
             (int64_t)sender->pid, "exit", LOG_I64, (int64_t)end.exit_status, "signal", LOG_I64,
             (int64_t)end.signal, NULL);
    close_handles(sender);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct sender *sender = poll->data;
    struct callback_reply reply;
    (void)status;
    (void)events;
    for (;;) {
        ssize_t bytes = recv(sender->socket, &reply, sizeof reply, MSG_DONTWAIT | MSG_TRUNC);
        if (bytes < 0)
            return;
        if (bytes != sizeof reply) { /* the end, or what it never sends */
            uv_poll_stop(poll);
            spawner_kill(sender->pid);
            return;
        }
        reply.problem[sizeof reply.problem - 1] = '\0';
        sender->options.on_reply(sender->options.context, &reply);
    }
}

bool sender_send(struct sender *sender, const struct callback_request *request)
{
    assert(request->body_bytes >= 0 && request->body_bytes <= CALLBACK_BODY_MAX);
    size_t bytes = offsetof(struct callback_request, body) + (size_t)request->body_bytes;
    return send(sender->socket, request, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

static void watch(struct sender *sender)
{
    int status = uv_signal_init(sender->options.loop, &sender->child);
    assert(status == 0);
    status = uv_poll_init(sender->options.loop, &sender->poll, sender->socket);
    assert(status == 0); /* a socket can be polled */
    sender->open_handles = 2;
    sender->child.data = sender->poll.data = sender;
    /* Before the process is there, so that no end is missed; it is heard when the loop runs. */
    status = uv_signal_start(&sender->child, on_child, SIGCHLD);
    assert(status == 0); /* the loop has watched it before, for the engines */
    status = uv_poll_start(&sender->poll, UV_READABLE, on_readable);
    assert(status == 0);
}

enum error sender_start(const struct sender_options *options, struct sender **result,
                        struct failure *failure)
{
    int ends[2];
    struct sender *sender = calloc(1, sizeof *sender);
    *result = NULL;
    if (sender == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory");
    sender->options = *options;
    enum error error = descriptor_pair(ends, failure);
    if (error != ERROR_NONE) {
        free(sender);
        return error;
    }
    sender->socket = ends[1];
    watch(sender);
    const struct spawner_program program = {
        .path = options->path,
        .arguments = options->arguments,
        .fds = {-1, -1, STDERR_FILENO, ends[0], -1, -1},
    };
    static_assert(CALLBACK_FD_CONTROL == 3, "as in the table of descriptors");
    error = spawner_start(options->spawner, &program, &sender->pid, failure);
    close(ends[0]);
    if (error != ERROR_NONE) {
        sender->is_ended_here = true;
        close_handles(sender);
        return error;
    }
    *result = sender;
    return ERROR_NONE;
}

void sender_end(struct sender **sender_pointer)
{
    struct sender *sender = *sender_pointer;
    struct spawner_end end;
    *sender_pointer = NULL;
    if (sender == NULL)
        return;
    sender->is_ended_here = true;
    if (uv_is_closing((uv_handle_t *)&sender->child))
        return; /* it has ended by itself just now */
    spawner_kill(sender->pid);
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < REAPS_MAX && !spawner_reap(sender->pid, &end); i++)
        nanosleep(&pause, NULL);
    close_handles(sender);
}
