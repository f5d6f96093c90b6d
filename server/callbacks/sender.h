/* server/callbacks/sender.h: invertd-post, as the front sees it: started by the spawner, asked and
 * heard over a pair of sockets, reaped when it has ended.
 *
 * Threads: the loop's. Nothing blocks.
 */
#ifndef SERVER_CALLBACKS_SENDER_H
#define SERVER_CALLBACKS_SENDER_H

#include <uv.h>

#include "callback/message.h"
#include "server/engines/spawner.h"

struct sender;

struct sender_options {
    uv_loop_t *loop;
    struct spawner *spawner;
    const char *path;
    char *const *arguments; /* argv, borrowed until start has returned */
    /* A reply, of which nothing has been checked but its length; problem ends with a NUL. */
    void (*on_reply)(void *context, const struct callback_reply *reply);
    /* It has ended by itself; the process is gone when this returns. */
    void (*on_ended)(void *context);
    void *context;
};

ERROR_MUST_CHECK enum error sender_start(const struct sender_options *options,
                                         struct sender **sender, struct failure *failure);
/* false: it takes nothing now. */
ERROR_MUST_CHECK bool sender_send(struct sender *sender, const struct callback_request *request);
/* Ends it, in the end of the daemon; nulls *sender, which may be NULL. Its handles close as the
 * loop runs on; on_ended does not come. */
void sender_end(struct sender **sender);

#endif
