/* handlers/stream.c: see stream.h. The framing is that of HTML's "server-sent events". */
#include "handlers/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TICK_NS CLOCK_S
#define SILENCE_NS (15 * CLOCK_S) /* after which a comment is sent */
#define COMMENT ":\n\n"

struct stream {
    struct exchange *x;
    struct handlers__loop *loop;
    struct stream *next, *previous; /* of the loop */
    const struct stream_source *source;
    void *context;
    struct text events; /* what the client is being sent */
    size_t sent;        /* of them */
    uint64_t said_ns;   /* when there were some last */
    bool is_silent;     /* for so long that a comment is due */
    bool has_probed;    /* a client that has closed its sending side */
    bool has_ended;
};

struct handlers__loop *handlers__loop_of(struct handlers *handlers, const struct mailbox *mailbox)
{
    assert(mailbox->number >= 0 && mailbox->number < HANDLERS_LOOPS_MAX);
    return &handlers->loops[mailbox->number];
}

/* ---- What the client is sent ---- */

static void refill(struct stream *stream)
{
    stream->events.length = 0;
    stream->sent = 0;
    if (stream->has_ended)
        return;
    bool is_probe = stream->x->half_closed && !stream->has_probed;
    stream->has_ended = !stream->source->next(stream->context, &stream->events);
    if (stream->events.length == 0 && !stream->has_ended && (stream->is_silent || is_probe))
        text_puts(&stream->events, COMMENT);
    if (stream->events.length == 0)
        return;
    stream->has_probed |= is_probe;
    stream->is_silent = false;
    stream->said_ns = clock_now_ns();
}

static int64_t on_read(void *context, void *buffer, size_t max)
{
    struct stream *stream = context;
    if (stream->sent == stream->events.length)
        refill(stream);
    if (stream->events.failed)
        return EXCHANGE_STREAM_END; /* out of memory: the client comes again */
    size_t length = stream->events.length - stream->sent;
    if (length == 0)
        return stream->has_ended ? EXCHANGE_STREAM_END : EXCHANGE_STREAM_DRY;
    if (length > max)
        length = max;
    memcpy(buffer, stream->events.data + stream->sent, length);
    stream->sent += length;
    return (int64_t)length;
}

/* ---- Life ---- */

static void count(struct handlers *handlers, int change)
{
    atomic_fetch_add(&handlers->streams, change);
    metric_add(handlers->streams_gauge, (uint64_t)(int64_t)change);
}

/* Makes the stream; NULL when x has been refused. */
static struct stream *open_stream(struct exchange *x)
{
    struct handlers *handlers = x->handlers;
    if (atomic_load(&handlers->services->draining)) {
        handlers__fail_with(x, ERROR_DRAINING, "The service is shutting down.");
        return NULL;
    }
    /* Loops that do this at once may let in one more each. */
    if (atomic_load(&handlers->streams) >= atomic_load(&handlers->services->limits.streams_max)) {
        handlers__fail_with(x, ERROR_FULL,
                            "There are as many streams of events as are served (--streams-max); "
                            "come again later, or ask for the document itself now and then.");
        return NULL;
    }
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        handlers__fail_with(x, ERROR_INTERNAL, "The service is out of memory.");
    return stream;
}

static void link_stream(struct stream *stream)
{
    struct handlers__loop *loop = stream->loop;
    stream->next = loop->streams;
    if (stream->next != NULL)
        stream->next->previous = stream;
    loop->streams = stream;
}

static void unlink_stream(struct stream *stream)
{
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        stream->loop->streams = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
}

void handlers__stream_answer(struct exchange *x, const struct stream_source *source, void *context)
{
    static const struct exchange_stream body = {on_read};
    struct stream *stream = open_stream(x);
    if (stream == NULL) {
        if (source->on_end != NULL)
            source->on_end(context);
        return;
    }
    stream->x = x;
    stream->loop = handlers__loop_of(x->handlers, x->mailbox);
    stream->source = source;
    stream->context = context;
    stream->said_ns = clock_now_ns();
    text_init(&stream->events, STREAM_EVENTS_MAX);
    text_printf(&stream->events, "retry: %d\n\n", STREAM_RETRY_MS);
    link_stream(stream);
    count(x->handlers, 1);
    x->state = stream;

    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_field(&reply, "Content-Type", "text/event-stream");
    handlers__reply_field(&reply, "Cache-Control", "no-store");
    handlers__reply_field(&reply, "X-Accel-Buffering", "no"); /* nginx passes events on at once */
    reply.stream = &body;
    reply.context = stream;
    exchange_answer(x, &reply);
}

void handlers__stream_wake(struct exchange *x)
{
    assert(x->state != NULL && x->streams);
    exchange_more(x);
}

void handlers__stream_drop(struct exchange *x)
{
    struct stream *stream = x->state;
    x->state = NULL;
    unlink_stream(stream);
    count(x->handlers, -1);
    if (stream->source->on_end != NULL)
        stream->source->on_end(stream->context);
    text_free(&stream->events);
    free(stream);
}

void handlers__streams_tick(struct handlers__loop *loop, uint64_t now_ns)
{
    if (loop->streams == NULL || now_ns < loop->tick_ns)
        return;
    loop->tick_ns = now_ns + TICK_NS;
    for (struct stream *stream = loop->streams; stream != NULL; stream = stream->next) {
        stream->is_silent |= now_ns > stream->said_ns + SILENCE_NS;
        if (stream->is_silent || stream->source->each_second)
            exchange_more(stream->x);
    }
}
