/* handlers/handlers_private.h: what the files of this folder share: the state behind all
 * endpoints, the routes, replies and errors.
 *
 * Threads: everything here that takes an exchange runs on that exchange's loop. `struct handlers`
 * is shared by all loops: read-only after create, except the shards, which have locks of their own.
 */
#ifndef HANDLERS_HANDLERS_PRIVATE_H
#define HANDLERS_HANDLERS_PRIVATE_H

#include <pthread.h>
#include <stddef.h>

#include "base/process_stats.h"
#include "base/text.h"
#include "gpu/method.h"
#include "handlers/handlers.h"
#include "queue/account.h"

#define HANDLERS_SHARDS 16          /* power of two; more than loops usually are */
#define HANDLERS_URI_MAX 8192       /* bytes of a path */
#define HANDLERS_PAGE_MAX (4 << 20) /* bytes of a document that is not an inference's answer */
#define HANDLERS_JSON "application/json"
#define HANDLERS_PROBLEM "application/problem+json"
#define HANDLERS_CHALLENGE "Bearer" /* WWW-Authenticate */

struct inference;
struct stats;
struct stats_cell;
struct stream;
struct history;

/* A method as the endpoints need it. */
struct handlers__model {
    const struct method *method;
    int index; /* in the registry */
};

/* What a loop would else fight for with others: every loop is given a shard by its mailbox's
 * number, so that no two loops share one as long as there are enough. */
struct handlers__shard {
    _Alignas(64) pthread_mutex_t lock; /* guards idle and idle_count */
    struct inference *idle;            /* inferences to be used again */
    int idle_count;
    int index;
};

/* What belongs to one loop alone. */
struct handlers__loop {
    struct stream *streams;  /* a list */
    uint64_t tick_ns;        /* when they are looked at next */
    struct text event;       /* of /v1/events, as its listeners here are sent it */
    uint64_t event_sequence; /* of the sample that it was made of; 0: there is none */
};

struct handlers {
    struct handlers_services *services; /* borrowed */
    struct handlers__model *models;     /* by method index */
    int model_count;
    const struct handlers__model *initial; /* of /v1 when the client names no method */
    struct stats *stats;
    struct history *history;
    struct text page_policy; /* Content-Security-Policy of the page of `/` */
    uint64_t started_ns;
    struct metric_series *rejected[ERROR_COUNT]; /* NULL: refuses no request */
    struct metric_series *cancelled_timeout;
    _Atomic uint64_t logged; /* errors.c: a second << 8 | the lines logged in it */
    _Atomic int uploads;     /* bodies that are being written to the spool */
    struct process_stats *process_stats;
    struct metric_series *arena_used, *arena_free, *memory_waiting, *ready;
    struct metric_series *streams_gauge;
    _Atomic int64_t streams; /* of all loops */
    struct handlers__loop loops[HANDLERS_LOOPS_MAX];
    struct handlers__shard shards[HANDLERS_SHARDS];
};

struct handlers__shard *handlers__shard_of(struct handlers *handlers,
                                           const struct mailbox *mailbox);
/* NULL when no method has that name. */
const struct handlers__model *handlers__model_find(const struct handlers *handlers,
                                                   const char *name, size_t length);
const struct handlers__model *handlers__model_of(const struct handlers *handlers,
                                                 const struct method *method);
/* Ready to take work: engines answer, and no drain has begun. */
bool handlers__ready(const struct handlers *handlers);

/* ---- Routes: routes.c ---- */

enum handlers__place {
    HANDLERS_PLACE_WORK = 1,       /* the main listener */
    HANDLERS_PLACE_OPERATIONS = 2, /* the metrics listener, where there is one */
    HANDLERS_PLACE_BOTH = 3
};

/* One row of the table of routes. */
struct handlers_route {
    const char *pattern; /* "{model}", "{version}" and "{id}" each take one segment */
    unsigned verbs;      /* bits 1 << enum exchange_verb */
    unsigned roles; /* of enum client_role, one of which is needed; 0: no client need be known */
    enum handlers__place place;
    void (*begin)(struct exchange *x); /* NULL: nothing to do before the body is complete */
    void (*run)(struct exchange *x);
    void (*drop)(struct exchange *x); /* gives x->state up; NULL: there is none */
};

/* What stood in the pattern's braces: pointers into the path. */
struct handlers__path {
    const char *model, *version, *id; /* NULL: not in the pattern */
    size_t model_length, version_length, id_length;
};

/* The row for the path; NULL when there is none for this listener. */
const struct handlers_route *handlers__route_find(const char *path,
                                                  enum exchange_listener listener);
/* Whether the path fits the pattern; fills in *found when it does. */
bool handlers__route_match(const char *pattern, const char *path, struct handlers__path *found);
bool handlers__route_allows(const struct handlers_route *route, enum exchange_verb verb);
/* "GET, HEAD, OPTIONS" */
void handlers__route_allow(const struct handlers_route *route, struct text *allow);
int handlers__route_count(void);
const struct handlers_route *handlers__route_at(int index);

/* ---- Replies: reply.c ---- */

/* An empty reply: no field, no segment. Leaves the arrays' contents undefined. */
void handlers__reply_open(struct exchange_reply *reply, int status);
void handlers__reply_field(struct exchange_reply *reply, const char *name, const char *value);
void handlers__reply_segment(struct exchange_reply *reply, const void *data, size_t bytes);
/* Answers with a document; takes the text. A text that failed becomes a 500. */
void handlers__reply_text(struct exchange *x, struct exchange_reply *reply,
                          const char *content_type, struct text *text);
/* The same for a plain 200 without further fields. */
void handlers__reply_document(struct exchange *x, const char *content_type, struct text *text);

/* ---- Errors: errors.c ---- */

/* Answers with the error in the format of the path and counts it. */
void handlers__fail(struct exchange *x, const struct failure *failure);
void handlers__fail_with(struct exchange *x, enum error code, const char *detail);
/* The same for what went wrong when a job was computed: no request is refused. */
void handlers__report(struct exchange *x, const struct failure *failure);
void handlers__count_refusal(const struct exchange *x, enum error code);
/* 405 with Allow. */
void handlers__fail_verb(struct exchange *x, const struct handlers_route *route);
/* Appends a problem document without its closing brace, so that members can follow. */
void handlers__problem_open(struct text *text, const struct exchange *x, enum error code,
                            const char *detail);

/* The account of the client that asks; NULL: it has none. */
struct queue_account *handlers__account(const struct exchange *x);

/* ---- Clients: entry.c ---- */

/* Whether the client may use x->route, or ask for a path that is no route's. Otherwise answers: 401
 * to one that is not known, 403 to one without the role. */
bool handlers__admit(struct exchange *x);

/* ---- The page of `/`: page.c ---- */

ERROR_MUST_CHECK enum error handlers__page_create(struct handlers *handlers);
void handlers__page_destroy(struct handlers *handlers);
/* Answers with the page that asks for a token. reply: opened, without a type. */
void handlers__login_page(struct exchange *x, struct exchange_reply *reply);

/* ---- Endpoints ---- */

void handlers__v2_server(struct exchange *x);
void handlers__v2_model(struct exchange *x);
void handlers__v2_model_ready(struct exchange *x);
void handlers__v2_model_config(struct exchange *x);
void handlers__v2_model_stats(struct exchange *x);
void handlers__v2_stats(struct exchange *x);
void handlers__v2_index_begin(struct exchange *x);
void handlers__v2_index_run(struct exchange *x);
void handlers__v2_index_drop(struct exchange *x);
void handlers__v2_infer_begin(struct exchange *x);

void handlers__v1_invert_begin(struct exchange *x);
void handlers__v1_methods(struct exchange *x);
void handlers__status(struct exchange *x);
void handlers__events(struct exchange *x);

void handlers__live(struct exchange *x);
void handlers__ready_answer(struct exchange *x);
void handlers__metrics(struct exchange *x);
void handlers__openapi(struct exchange *x);
void handlers__status_page(struct exchange *x);

#endif
