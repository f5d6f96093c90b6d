/* callback/main.c: invertd-post: sends the callbacks of jobs, for the front, which itself may not
 * open a connection (base/confine.h).
 *
 *      invertd-post HOSTS CA AGENT TIMEOUT_MS CONFINED
 *
 * HOSTS: the entries of --allow-callbacks with commas between; CA: a file, or "" for the system's;
 * CONFINED: 1 or 0. Requests and replies go over descriptor CALLBACK_FD_CONTROL (message.h).
 *
 * It resolves names, speaks TLS and reads what strangers answer: so it is a process of its own,
 * that has no secret, no key, no matrix and no listener, writes to no file and runs no program. It
 * ends when the front does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/confine.h"
#include "callback/post.h"

#define ARGUMENTS 5

static void reply(void *context, const struct callback_reply *reply)
{
    (void)context;
    if (send(CALLBACK_FD_CONTROL, reply, sizeof *reply, MSG_NOSIGNAL) != sizeof *reply)
        _exit(1);
}

/* A message is a request up to the end of its body. */
static bool is_whole(const struct callback_request *request, ssize_t bytes)
{
    const ssize_t head = offsetof(struct callback_request, body);
    return bytes >= head && request->body_bytes >= 0 && request->body_bytes <= CALLBACK_BODY_MAX &&
           bytes == head + request->body_bytes;
}

/* All requests that wait. false: the front has gone. */
static bool receive(struct post *post)
{
    static struct callback_request request;
    for (;;) {
        ssize_t bytes = recv(CALLBACK_FD_CONTROL, &request, sizeof request, MSG_DONTWAIT);
        if (bytes < 0)
            return true;
        if (!is_whole(&request, bytes))
            return false;
        post_start(post, &request);
    }
}

/* HOSTS is cut in place. */
static enum error read_hosts(char *text, struct callback_hosts *hosts, struct failure *failure)
{
    enum error error = ERROR_NONE;
    while (text != NULL && error == ERROR_NONE) {
        const char *entry = strsep(&text, ",");
        error = callback_hosts_add(hosts, entry, failure);
    }
    return error;
}

int main(int argc, char **argv)
{
    static struct callback_hosts hosts;
    struct failure failure = {0};
    struct post *post = NULL;
    if (argc != 1 + ARGUMENTS) {
        fputs("invertd-post: invertd starts this program, where --allow-callbacks is given\n",
              stderr);
        return 2;
    }
    const struct post_options options = {.hosts = &hosts,
                                         .ca = argv[2][0] != '\0' ? argv[2] : NULL,
                                         .agent = argv[3],
                                         .timeout_ms = strtoll(argv[4], NULL, 10),
                                         .on_end = reply};
    signal(SIGPIPE, SIG_IGN);
    enum error error = read_hosts(argv[1], &hosts, &failure);
    if (error == ERROR_NONE)
        error = post_create(&options, &post, &failure);
    if (error == ERROR_NONE && CONFINE_IS_BUILT && strcmp(argv[5], "1") == 0 &&
        confine_process(CONFINE_POST, &failure) != ERROR_NONE)
        fprintf(stderr, "invertd-post: %s\n", failure.detail); /* it serves all the same */
    if (error != ERROR_NONE) {
        fprintf(stderr, "invertd-post: %s\n", failure.detail);
        return 1;
    }
    while (receive(post)) {
        post_step(post);
        post_wait(post, CALLBACK_FD_CONTROL);
    }
    _exit(0); /* threads that resolve names may still wait for an answer */
}
