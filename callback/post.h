/* callback/post.h: attempts at callbacks under way: POST requests by libcurl, which may block on
 * nothing. The only door to libcurl but for the client's.
 *
 * An attempt goes by no proxy, follows no redirect, keeps no cookie and no connection, and connects
 * to no address that the list of hosts does not allow, whatever its host's name has led to. Of an
 * answer the status counts; what follows it is thrown away, and POST_ANSWER_MAX bytes are read at
 * most.
 *
 * Threads: one; libcurl resolves names on threads of its own.
 */
#ifndef CALLBACK_POST_H
#define CALLBACK_POST_H

#include "callback/hosts.h"
#include "callback/message.h"

#define POST_ANSWER_MAX (16 << 10) /* bytes of an answer, its head among them */

struct post;

struct post_options {
    const struct callback_hosts *hosts; /* borrowed, as what follows */
    const char *ca;    /* a file of authorities that are trusted; NULL: the system's */
    const char *agent; /* User-Agent */
    int64_t timeout_ms;
    void (*on_end)(void *context, const struct callback_reply *reply);
    void *context;
};

/* INTERNAL: libcurl cannot be used. */
ERROR_MUST_CHECK enum error post_create(const struct post_options *options, struct post **post,
                                        struct failure *failure);
/* Begins an attempt, in a slot that is free; copies the request. One that cannot begin ends. */
void post_start(struct post *post, const struct callback_request *request);
/* Sleeps until a socket is ready, fd is, or some time has passed. */
void post_wait(struct post *post, int fd);
/* Does what can be done. */
void post_step(struct post *post);
void post_destroy(struct post **post);

#endif
