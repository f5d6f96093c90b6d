/* server/http/private.h: the inside of the HTTP door, shared by http*.c. The only place that
 * includes libmicrohttpd ("the library").
 *
 * A connection has one exchange at a time and carries it inside itself. Its life is the table of
 * phases below. The library calls http__on_request when the head is complete, for each piece of
 * the body, and when the body is complete; between that and the answer the connection is suspended.
 *
 *   IDLE -> HEAD -> BODY -> WAIT -> READY -> SENDING -> IDLE ...
 *                                            |     ^
 *                                            v     |
 *                                              DRY
 *
 * In BODY the connection is suspended, too, while there is no memory for more of the body (paused),
 * and in DRY, while the source of its stream has nothing.
 *
 * A connection whose client left, or that was answered past the library, is GONE until the library
 * closes it.
 *
 * What libmicrohttpd 0.9.75 wants to have done so: its sockets are edge-triggered, so it is run
 * until it has nothing ready; resuming does not wake it; an answer is accepted at the first call
 * or after the body, never between; after a short read it waits for the next edge, and misses an
 * end that had come already, so it gets a notice; a connection is suspended after it returns, see
 * http__suspend_later; it clears its whole memory pool after each
 * request, so the pool is small; it keeps no absolute deadlines. Errors it finds itself (see
 * guard.h) it answers with a small HTML page and closes.
 *
 * Threads: one event loop's. Ownership: connections are the door's, and recycled; the library
 * knows them by its socket context. Cost: no allocation of ours a request; the library makes one
 * for the response and three for each field of it.
 */
#ifndef SERVER_HTTP_PRIVATE_H
#define SERVER_HTTP_PRIVATE_H

#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/text.h"
#include "handlers/handlers.h"
#include "server/http/accept.h"
#include "server/http/access.h"
#include "server/http/http.h"
#include "server/http/count.h"
#include "server/http/guard.h"
#include "server/http/put_off.h"
#include "server/http/request_log.h"
#include "server/http/tls.h"
#include "server/http/watch.h"

#define HTTP_ID_BYTES 36      /* of an id that is made, its NUL among them */
#define HTTP_ID_MAX_BYTES 128 /* of a client's */

enum http__phase {
    HTTP_IDLE,    /* no request */
    HTTP_HEAD,    /* a request line has come */
    HTTP_BODY,    /* handlers_begin was called; the body is arriving */
    HTTP_DISCARD, /* as BODY, but the answer is known: a refusal */
    HTTP_WAIT,    /* handlers_run was called; suspended until the answer, or the time for it */
    HTTP_READY,   /* answered and resumed; the library has not asked for the answer yet */
    HTTP_SENDING, /* the library has the answer */
    HTTP_DRY,     /* it is a stream that has nothing now */
    HTTP_GONE,    /* no exchange any more; the connection will close */
    HTTP_PHASES
};

/* Connections in a line, first come first served. */
struct http__line {
    struct http__connection *first, *last;
};

struct http__connection {
    struct exchange x; /* first, so that an exchange is found to be a connection's */
    struct http *http;
    struct MHD_Connection *library;
    int fd;
    uint32_t slot, generation; /* generation: the slot's, to recognise late events */
    struct http_peer peer;
    enum http__phase phase;
    bool over;           /* above the limit: answered 503 */
    bool left;           /* the client has closed its sending side */
    bool probed;         /* and was sent an interim response, to find out whether it is there */
    bool final;          /* the next answer closes the connection */
    bool plain;          /* nothing unread is to be expected when it closes */
    bool in_call;        /* inside http__on_request: the library takes at once what is answered */
    bool early;          /* a refusal of this request is answered before its body */
    bool answered;       /* the exchange */
    bool arriving;       /* counted as such: the body of an admitted request */
    bool waiting;        /* counted as such: its refusal is put off, by the library */
    bool asleep;         /* in its TLS handshake: see handshake.c */
    bool shaken;         /* which is over but for what the library sends */
    bool named;          /* certified is known */
    bool noted;          /* is in http.waits */
    bool parked;         /* suspended while DRY */
    bool lends;          /* the answer is in memory that handlers lend */
    uint64_t refused_ns; /* when a request was last turned away for lack of room; 0: never */
    uint64_t put_off_ns; /* until when the refusal of this one is put off; 0: it is not */

    struct gnutls_session_int *session; /* NULL: no TLS */
    struct tls_credentials *credentials;
    struct http__line *line; /* that it stands in; NULL: none */
    struct http__connection *next, *previous;
    char id[HTTP_ID_BYTES];     /* of the request, where the client gave none */
    struct client certified;    /* the client, by its certificate */
    struct access_table *table; /* held: that the last request's token was looked up in */

    const char *cors; /* the listed site whose page sent the request; NULL: none */
    struct http_guard_uri target;
    struct http_guard_frame frame;
    uint64_t first_deadline_ns; /* x.deadline_ns as the door set it */

    /* While the body arrives. Time in which the door does not read moves all three. */
    uint64_t began_ns;   /* when its head had come; and when an answer began to be sent */
    uint64_t body_by_ns; /* when it must be complete */
    uint64_t pace_by_ns; /* when it is too slow, unless more comes */
    uint64_t paused_ns;  /* since when it is not read, for want of memory; 0: it is */

    struct MHD_Response *response; /* until the library has it */
    int status;
    int refused; /* the status of what was sent in place of the library's answer; 0: nothing */
    int64_t answer_bytes;
    struct exchange_stream stream; /* of an answer that is one */
    void (*release)(void *context);
    void *release_context; /* the stream's, too */
    struct text raw;       /* the same refusal, to be written while the body is still arriving */

    /* What a new connection in this slot need not clear. */
    unsigned char *copy; /* [HTTP_COPY_MAX], once it was needed */
    int field_count;
    struct http_guard_field fields[HTTP_GUARD_FIELDS_MAX];
};

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    struct watch *watch;
    struct put_off *put_off; /* NULL: the door speaks TLS */
    struct accept *accept;
    struct http_peer newcomer;     /* of the connection that is being handed to the library */
    struct http__connection *came; /* which has become this one; NULL: none */
    struct http_count count;
    struct request_log_buffer *log; /* NULL: none */
    char id_prefix[17];             /* of the ids that the door makes: random */
    uint64_t id_count;
    struct metric_series *open_gauge;
    struct http__line woken, awake; /* in their handshakes */
    bool stirred, draining;
    uint64_t now_ns;      /* of this round; for deadlines */
    uint64_t close_by_ns; /* once quiesced: when the last body or answer is cut; 0: not yet */
    _Atomic int64_t busy, held, arriving, open;

    uint32_t slots;
    uint64_t *deadlines;                   /* [slots]: when to look at the connection; 0: never */
    struct http__connection **connections; /* [slots]; NULL: not made yet */
    uint32_t *free_slots;                  /* a stack */
    uint32_t *waits;                       /* [slots]: to be suspended when the library returns */
    uint32_t wait_count;
    uint32_t free_count;
};

/* ---- http.c ---- */

/* The one place where a phase changes. */
void http__move(struct http__connection *c, enum http__phase next);
bool http__is_busy(const struct http__connection *c);    /* it has an exchange */
bool http__is_reading(const struct http__connection *c); /* the library is */
uint64_t http__key(const struct http__connection *c);    /* for the watch */
bool http__is_paused(const struct http__connection *c);
/* Counts connections, those that are put off too; how many there are, of all doors. */
int64_t http__count_open(struct http *http, int change);
/* Suspends a connection that WAITs or is DRY, once the library has returned: it then knows that it
 * has nothing to read, and asks for the answer when it is resumed. Suspended inside its call, it
 * may read first, find the end of a half-closed connection, and close it unanswered. */
void http__suspend_later(struct http__connection *c);
/* 0: none. The library soon hears of a client that left, whatever the deadline. */
void http__set_deadline(struct http__connection *c, uint64_t deadline_ns);
uint64_t http__second_a_mebibyte(int64_t bytes); /* in nanoseconds */

/* ---- handshake.c ---- */

void http__handshake_begin(struct http__connection *c);
/* The client has sent something, or left. Nothing unless it was waited for. */
void http__handshake_wake(struct http__connection *c);
/* Before the library runs: lets it go on with some. true: there are more. */
bool http__handshakes_resume(struct http *http);
/* After it ran: those that wait for their clients sleep. */
void http__handshakes_settle(struct http *http);
/* The library is about to close one of those that it goes on with, and does not say which: answers
 * those whose clients speak plain HTTP. */
void http__handshake_failed(struct http *http);
/* The connection is closed. */
void http__handshake_end(struct http__connection *c);
/* Before the library stops. */
void http__handshakes_abandon(struct http *http);

/* ---- caller.c ---- */

/* Who sends the request whose head is in c->fields. Lent until the connection's next request. NULL:
 * a token is asked for, and none has come that is somebody's. */
const struct client *http__caller(struct http__connection *c);
/* The connection is closed. */
void http__caller_forget(struct http__connection *c);

/* ---- answer.c ---- */

/* Implements exchange_door.answer. */
void http__answer(struct exchange *x, const struct exchange_reply *reply);
/* Gives the answer to the library. */
enum MHD_Result http__send_answer(struct http__connection *c);
/* Writes c->raw to the client, without waiting. */
void http__send_raw(struct http__connection *c);
/* Writes the answer in the middle of the body and lets the connection close. */
void http__answer_past_library(struct http__connection *c);
/* Hands the connection, which is refused, over to be answered at c->put_off_ns; the library is to
 * close its side. false: it cannot be. */
bool http__put_off(struct http__connection *c);
/* The library may ask for the answer of a connection that WAITs. */
void http__release(struct http__connection *c);
/* Writes the request into the access log. status 0: unanswered. */
void http__log(const struct http__connection *c, const char *route, int status, uint64_t took_ns);
/* Ends the exchange, whether it was answered or not. left: the client is gone. */
void http__finish(struct http__connection *c, bool left);
/* Ends the exchange unanswered; the connection will close. */
void http__drop(struct http__connection *c, bool left);
/* Lets the library close a connection that is idle, or that it thinks to be inside a body: soon,
 * and not if a request arrives in between. */
void http__close_soon(struct http__connection *c);

/* ---- stream.c: answers that are a file, or of unknown length ---- */

/* Takes the descriptor; borrows the segments before it until release. NULL: out of memory. */
struct MHD_Response *http__file_response(const struct http__connection *c,
                                         const struct exchange_reply *reply);
struct MHD_Response *http__stream_response(struct http__connection *c);
/* Implements exchange_door.more. */
void http__stream_more(struct exchange *x);
/* Ends the exchange of a connection that is DRY, whose client is gone or is given up. */
void http__stream_drop(struct http__connection *c, bool left);

/* ---- request_id.c ---- */

/* The prefix of the door's ids. */
void http__id_prefix_make(struct http *http);
/* The id of a request: the client's, where it is one, or a new one. Lent until the next request. */
const char *http__id(struct http__connection *c, const char *given);

/* ---- request.c: what the library calls ---- */

/* Whether the answer refuses the request for lack of room. */
bool http__is_full(const struct http__connection *c);
/* Sets the deadline of a connection that WAITs. */
void http__wait(struct http__connection *c);

/* The library complains before it answers by itself. A Content-Length that is no number it would
 * answer with two heads, in one piece: so the answer is sent here, and its own goes nowhere. */
void http__on_complaint(void *context, const char *format, va_list arguments);
void *http__on_target(void *context, const char *uri, struct MHD_Connection *library);
enum MHD_Result http__on_request(void *context, struct MHD_Connection *library, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_bytes, void **state);
void http__on_completed(void *context, struct MHD_Connection *library, void **state,
                        enum MHD_RequestTerminationCode why);

/* ---- body.c: how fast a body must come, and the pause when there is no memory for it ---- */

/* The head has come, and a body is to follow. */
void http__body_begin(struct http__connection *c);
/* So many bytes of it have come. */
void http__body_came(struct http__connection *c, size_t length);
/* Stops reading until the room for it is made. */
void http__body_pause(struct http__connection *c);
/* Implements exchange_door.room_made. */
void http__body_resume(struct exchange *x);
/* A deadline has passed: refuses the body if it was one of its own. */
void http__body_late(struct http__connection *c);
/* Others wait for memory: whether this body, or the taking of this answer, holds some and crawls.
 */
bool http__crawls(const struct http__connection *c);

/* ---- connection.c ---- */

void http__on_connection(void *context, struct MHD_Connection *library, void **connection,
                         enum MHD_ConnectionNotificationCode code);
/* What the watch reports; key: as given to watch_add. */
void http__on_watched(void *context, uint64_t key, enum watch_event event);
void http__on_deadline(struct http__connection *c);

#endif
