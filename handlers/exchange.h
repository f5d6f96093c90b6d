/* handlers/exchange.h: one HTTP request and its answer, as handlers see them.
 *
 * The door (server/http/http.c) makes an exchange for each request and calls the four functions of
 * handlers/handlers.h; a handler answers through exchange_answer. Handlers see no sockets and no
 * libmicrohttpd, so that they are tested with an exchange of the test's own.
 *
 * Threads: an exchange belongs to one event loop; everything here runs on that loop's thread.
 * Work elsewhere (pool, engines) never touches the exchange: it posts a message to `mailbox`, and
 * the handler's own object knows from handlers_end whether the exchange still exists.
 */
#ifndef HANDLERS_EXCHANGE_H
#define HANDLERS_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/client.h"
#include "base/error.h"
#include "base/mailbox.h"

struct exchange;
struct handlers; /* handlers/handlers.h */
struct handlers_route;

enum exchange_verb {
    EXCHANGE_GET,
    EXCHANGE_HEAD,
    EXCHANGE_POST,
    EXCHANGE_PUT,
    EXCHANGE_DELETE,
    EXCHANGE_OPTIONS,
    EXCHANGE_OTHER
};

/* Where an exchange came in. With one listener for everything the door leaves ALL (zero). */
enum exchange_listener {
    EXCHANGE_LISTENER_ALL,
    EXCHANGE_LISTENER_WORK,       /* there is a metrics listener: no metrics here */
    EXCHANGE_LISTENER_OPERATIONS, /* --metrics-listen: metrics and health alone */
};

#define EXCHANGE_HEADERS_MAX 16
#define EXCHANGE_SEGMENTS_MAX 40

struct exchange_field {
    const char *name, *value; /* borrowed until exchange_answer returns */
};

/* A part of a file. Its bytes must stay as they are until the answer is sent; a file that became
 * shorter cuts the connection. Reading it may hold the loop for as long as the disk takes. */
struct exchange_file {
    int fd; /* the door closes it */
    int64_t offset, bytes;
};

#define EXCHANGE_STREAM_DRY 0  /* nothing now: read is called again after exchange_more */
#define EXCHANGE_STREAM_END -1 /* nothing any more */

/* A body whose length is not known when it begins: in chunks in HTTP/1.1; in HTTP/1.0 the end of
 * the connection ends it. Each piece has --send-timeout to be taken; a stream that is dry waits
 * without a deadline. It ends before its source does when its client leaves, or when the service
 * begins to drain. */
struct exchange_stream {
    /* Puts up to max bytes into buffer and returns how many, or one of the above. context: the
     * reply's. Must not call exchange_more. Not called for HEAD. */
    int64_t (*read)(void *context, void *buffer, size_t max);
};

struct exchange_reply {
    int status;
    struct exchange_field fields[EXCHANGE_HEADERS_MAX]; /* Content-Type among them */
    int field_count;
    struct iovec segments[EXCHANGE_SEGMENTS_MAX]; /* lent until release is called */
    int segment_count;
    /* Borrowed, what they point at until exchange_answer returns. */
    const struct exchange_file *file;     /* behind the segments; NULL: none */
    const struct exchange_stream *stream; /* instead of segments; NULL: none */
    bool close;                           /* close the connection afterwards */
    /* Called once, on the loop's thread, when the segments or the stream are no longer needed. May
     * be NULL. */
    void (*release)(void *context);
    void *context;
};

/* What was computed for a request, for the log. */
struct exchange_work {
    const char *method; /* constant text; NULL: nothing */
    int64_t n, batch;
    uint64_t queue_ns, compute_ns; /* as Server-Timing has them */
};

/* What the door lends. The same for all exchanges of a door; a test has its own. */
struct exchange_door {
    /* Value of a header field's line, any case of name; index 0: the first. NULL: there are not so
     * many. Lent until end. */
    const char *(*header)(const struct exchange *x, const char *name, int index);
    /* Calls each(context, name, value) for each query parameter in order, percent-decoded; value
     * is "" when there is no "=". Stops when each returns false. */
    void (*query)(const struct exchange *x,
                  bool (*each)(void *context, const char *name, const char *value), void *context);
    /* Sends the reply; see exchange_answer. */
    void (*answer)(struct exchange *x, const struct exchange_reply *reply);
    /* deadline_ns was moved, perhaps after handlers_run had returned. */
    void (*deadline_moved)(struct exchange *x);
    /* The memory is there that handlers_make_room had to wait for: sink and sink_bytes say so. */
    void (*room_made)(struct exchange *x);
    /* The address of the peer as text, without its port; of a unix socket, its user. */
    void (*address)(const struct exchange *x, char *text, size_t size);
    /* See exchange_more. */
    void (*more)(struct exchange *x);
};

struct exchange {
    /* Set by the door before handlers_begin. */
    const struct exchange_door *door;
    struct handlers *handlers;
    struct mailbox *mailbox; /* of the loop this exchange lives on */
    enum exchange_verb verb;
    const char *path;       /* without query, percent-decoded; lent until end */
    int64_t content_length; /* -1: none given */
    bool expect_continue;
    uint32_t client;             /* a number for the peer: same peer, same number */
    const char *id;              /* of the request, as X-Request-Id has it; lent until end */
    const struct client *caller; /* who sends it, lent until end; NULL: unknown */
    uint64_t arrived_ns;

    /* Where the body goes, and how much of it there is room for. handlers_begin sets takes_body
     * when it wants one; handlers_make_room makes the sink longer, and may move it. The door copies
     * at most sink_bytes there and counts body_bytes; a body of another length than content_length
     * never reaches handlers_run. Without takes_body the door discards the body. */
    bool takes_body;
    unsigned char *sink;
    int64_t sink_offset; /* of the sink's first byte in the body: it may be a window */
    int64_t sink_bytes, body_bytes;

    /* When the whole request must be answered; the door sets arrived + the configured timeout,
     * handlers may move it (the v2 `timeout` parameter). Past it: handlers_expired. */
    uint64_t deadline_ns;

    /* Set by handlers. */
    const struct handlers_route *route; /* NULL: none matched */
    void *state;                        /* the handler's own */
    void (*drop)(struct exchange *x);   /* gives x->state up; NULL: the route's does */
    /* The deadline has passed, or the service begins to drain, and what is awaited may be left:
     * the handler answers soon. NULL: a deadline is one. */
    void (*late)(struct exchange *x);
    bool answered;             /* set by exchange_answer */
    bool streams;              /* and the answer is a stream */
    struct exchange_work work; /* zeroed by the door */
    uint64_t body_done_ns;     /* set by the door: the body was complete */
    /* Set by the door: the client has closed its sending side. It may have left, or wait for the
     * answer. A dry stream is read again when this becomes true: a piece that is sent shows whether
     * anyone is there. */
    bool half_closed;

    /* Set by the door before handlers_begin: which routes exist here. */
    enum exchange_listener listener;
};

/* Sends the answer: exactly once an exchange. Allowed in handlers_begin (a refusal: the door
 * discards the body within its limits before it answers, unless the client waits for 100 Continue),
 * in handlers_run, or later from a message on the same loop. In handlers_begin neither a file nor a
 * stream. The file's descriptor is the door's from here on. */
void exchange_answer(struct exchange *x, const struct exchange_reply *reply);
/* The stream that x was answered with has more, or has ended. On the loop's thread, until
 * handlers_end; costs nothing where the stream was not dry. */
void exchange_more(struct exchange *x);

const char *exchange_header(const struct exchange *x, const char *name); /* the first line's */

#endif
