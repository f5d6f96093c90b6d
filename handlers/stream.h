/* handlers/stream.h: answers that are streams of server-sent events (text/event-stream).
 *
 * A stream asks its source for events whenever its client has taken the ones before: a source keeps
 * what is true now, not a queue, so a client that reads slowly misses what was overtaken, and holds
 * no memory. A comment goes out when nothing else has for 15 s, so that proxies keep the connection
 * and a client that is gone is noticed.
 *
 * Life: handlers__stream_answer, next as often as there may be news, on_end once. A stream ends
 * when its source says so, when its client leaves, or when the service begins to drain.
 *
 * Threads: the exchange's loop. Cost: nothing while there is no news; a copy of each event.
 */
#ifndef HANDLERS_STREAM_H
#define HANDLERS_STREAM_H

#include "handlers/handlers_private.h"

#define STREAM_EVENTS_MAX (1 << 20) /* bytes of what a source says at once */
#define STREAM_RETRY_MS 3000        /* after which a browser that lost the connection comes again */

struct stream_source {
    /* Appends the events that are news to the client, each ending with an empty line; nothing when
     * there are none. false: there will be none any more; what was appended is sent. */
    bool (*next)(void *context, struct text *events);
    /* The stream is over. NULL: nothing to be done. */
    void (*on_end)(void *context);
    bool each_second; /* next is asked every second, woken or not */
};

/* Answers x, from its route's run, with a stream; or with 503 when there are --streams-max already,
 * or the service drains: on_end is called then, too. The route's drop is handlers__stream_drop.
 * Takes x->state. source is constant data. */
void handlers__stream_answer(struct exchange *x, const struct stream_source *source, void *context);
/* There may be news. Until on_end. */
void handlers__stream_wake(struct exchange *x);
void handlers__stream_drop(struct exchange *x);
/* What is due of the loop's streams. */
void handlers__streams_tick(struct handlers__loop *loop, uint64_t now_ns);
/* The part of the state that belongs to the loop with this mailbox. */
struct handlers__loop *handlers__loop_of(struct handlers *handlers, const struct mailbox *mailbox);

#endif
