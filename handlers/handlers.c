/* handlers/handlers.c: what the door calls, and the state behind all endpoints.
 *
 * An exchange finds its route in handlers_begin and is refused there when its client may not use
 * it, when there is none, or the verb is wrong; otherwise the route's own functions see it.
 * x->state belongs to the route and is NULL once the route has given it up.
 *
 * Threads: see handlers.h. Cost: a few comparisons an exchange besides the route's own work.
 */
#include "handlers/handlers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/handlers_private.h"
#include "handlers/history.h"
#include "handlers/inference.h"
#include "handlers/stats.h"
#include "handlers/stream.h"

#define TRACEPARENT_LENGTH 55

/* ---- Life ---- */

static void make_models(struct handlers *handlers)
{
    for (int i = 0; i < handlers->model_count; i++) {
        struct handlers__model *model = &handlers->models[i];
        model->method = method_at(i);
        model->index = i;
    }
    handlers->initial = handlers__model_find(handlers, "auto", strlen("auto"));
    if (handlers->initial == NULL)
        handlers->initial = &handlers->models[0];
}

/* An answer about matrices is no refusal, and a request that was cancelled has no answer. */
static bool is_refusal(enum error error)
{
    return error != ERROR_NONE && error != ERROR_NOT_INVERTIBLE && error != ERROR_CANCELLED;
}

static void make_series(struct handlers *handlers)
{
    struct metric_registry *metrics = handlers->services->metrics;
    for (int i = 0; i < ERROR_COUNT; i++)
        if (is_refusal((enum error)i))
            handlers->rejected[i] =
                metric_series(metrics, METRIC_REJECTED, error_name((enum error)i));
    handlers->cancelled_timeout = metric_series(metrics, METRIC_CANCELLED, "timeout");
    handlers->arena_used = metric_series(metrics, METRIC_ARENA_BYTES, "used");
    handlers->arena_free = metric_series(metrics, METRIC_ARENA_BYTES, "free");
    handlers->memory_waiting = metric_series(metrics, METRIC_MEMORY_WAITING);
    handlers->ready = metric_series(metrics, METRIC_READY);
    handlers->streams_gauge = metric_series(metrics, METRIC_STREAMS);
}

enum error handlers_create(struct handlers_services *services, struct handlers **handlers,
                           struct failure *failure)
{
    struct handlers *made = aligned_alloc(_Alignof(struct handlers), sizeof *made);
    if (made == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    memset(made, 0, sizeof *made);
    made->services = services;
    made->started_ns = clock_now_ns();
    for (int i = 0; i < HANDLERS_SHARDS; i++) {
        pthread_mutex_init(&made->shards[i].lock, NULL);
        made->shards[i].index = i;
    }
    made->model_count = method_count();
    made->models = calloc((size_t)made->model_count, sizeof *made->models);
    if (made->models != NULL) {
        make_models(made);
        make_series(made);
    }
    made->process_stats = process_stats_create(services->metrics);
    if (made->models == NULL || made->process_stats == NULL ||
        handlers__stats_create(made) != ERROR_NONE ||
        handlers__history_create(made) != ERROR_NONE || handlers__page_create(made) != ERROR_NONE) {
        handlers_destroy(&made);
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    }
    *handlers = made;
    return ERROR_NONE;
}

void handlers_destroy(struct handlers **handlers)
{
    if (*handlers == NULL)
        return;
    process_stats_destroy(&(*handlers)->process_stats);
    handlers__page_destroy(*handlers);
    handlers__history_destroy(*handlers);
    handlers__stats_destroy(*handlers);
    for (int i = 0; i < HANDLERS_LOOPS_MAX; i++)
        free((*handlers)->loops[i].event.data);
    handlers__inference_free_idle(*handlers);
    for (int i = 0; i < HANDLERS_SHARDS; i++)
        pthread_mutex_destroy(&(*handlers)->shards[i].lock);
    free((*handlers)->models);
    free(*handlers);
    *handlers = NULL;
}

struct handlers__shard *handlers__shard_of(struct handlers *handlers, const struct mailbox *mailbox)
{
    return &handlers->shards[(unsigned)mailbox->number % HANDLERS_SHARDS];
}

const struct handlers__model *handlers__model_find(const struct handlers *handlers,
                                                   const char *name, size_t length)
{
    for (int i = 0; i < handlers->model_count; i++) {
        const char *known = handlers->models[i].method->name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return &handlers->models[i];
    }
    return NULL;
}

const struct handlers__model *handlers__model_of(const struct handlers *handlers,
                                                 const struct method *method)
{
    return &handlers->models[method_index(method)];
}

bool handlers__ready(const struct handlers *handlers)
{
    const struct handlers_services *services = handlers->services;
    return atomic_load(&services->ready) && !atomic_load(&services->draining);
}

/* ---- An exchange ---- */

/* Paths that people try, and where they meant to go. */
static const struct {
    const char *path, *advice;
} near_paths[] = {
    {"/v1", "There is nothing at this path. POST /v1/invert inverts, GET /v1/methods lists the "
            "methods."},
    {"/v1/inverse", "There is nothing at this path. POST /v1/invert inverts."},
    {"/v2/models", "There is nothing at this path. POST /v2/repository/index lists the models."},
    {"/v2/health", "There is nothing at this path. Try /v2/health/live and /v2/health/ready."},
    {"/health", "There is nothing at this path. Try /livez and /readyz."},
    {"/healthz", "There is nothing at this path. Try /livez and /readyz."},
};

/* Whether the path would be known without the one slash at its end. */
static bool has_slash_too_many(const char *path)
{
    char copy[256];
    size_t length = strlen(path);
    if (length < 2 || length >= sizeof copy || path[length - 1] != '/')
        return false;
    memcpy(copy, path, length - 1);
    copy[length - 1] = '\0';
    return handlers__route_find(copy, EXCHANGE_LISTENER_ALL) != NULL;
}

/* Why nothing answers at a path: it may be one of the other listener's. */
static const char *why_nowhere(const struct exchange *x)
{
    for (size_t i = 0; i < sizeof near_paths / sizeof near_paths[0]; i++)
        if (strcmp(x->path, near_paths[i].path) == 0)
            return near_paths[i].advice;
    if (has_slash_too_many(x->path))
        return "There is nothing at this path; leave out the slash at its end.";
    if (handlers__route_find(x->path, EXCHANGE_LISTENER_ALL) == NULL)
        return "There is nothing at this path. GET /openapi.yaml describes those that exist.";
    return x->listener == EXCHANGE_LISTENER_WORK
               ? "This path is served on the address of --metrics-listen."
               : "This path is served on the address of --listen, not on that of --metrics-listen.";
}

void handlers_begin(struct exchange *x)
{
    x->route = NULL;
    if (strnlen(x->path, HANDLERS_URI_MAX + 1) > HANDLERS_URI_MAX) {
        handlers__fail_with(x, ERROR_URI_TOO_LONG, "A path has at most 8192 bytes here.");
        return;
    }
    const struct handlers_route *route = handlers__route_find(x->path, x->listener);
    x->route = route;
    if (!handlers__admit(x))
        return;
    if (route == NULL) {
        handlers__fail_with(x, ERROR_NOT_FOUND, why_nowhere(x));
        return;
    }
    if (!handlers__route_allows(route, x->verb))
        handlers__fail_verb(x, route);
    else if (route->begin != NULL && x->verb != EXCHANGE_OPTIONS)
        route->begin(x);
}

static void answer_options(struct exchange *x)
{
    char buffer[64];
    struct text allow;
    text_init_fixed(&allow, buffer, sizeof buffer);
    handlers__route_allow(x->route, &allow);
    struct exchange_reply reply;
    handlers__reply_open(&reply, 204);
    handlers__reply_field(&reply, "Allow", buffer);
    exchange_answer(x, &reply);
}

void handlers_run(struct exchange *x)
{
    if (x->answered)
        return;
    assert(x->route != NULL);
    if (x->verb == EXCHANGE_OPTIONS)
        answer_options(x);
    else
        x->route->run(x);
}

static void drop_state(struct exchange *x)
{
    if (x->state == NULL)
        return;
    if (x->drop != NULL)
        x->drop(x);
    else
        x->route->drop(x);
    assert(x->state == NULL);
    x->late = NULL;
}

/* How long x was given, and what gives it longer. */
static void say_deadline(const struct exchange *x, char *text, size_t size)
{
    uint64_t from_ns = x->body_done_ns != 0 ? x->body_done_ns : x->arrived_ns;
    uint64_t given_ns = x->deadline_ns > from_ns ? x->deadline_ns - from_ns : 0;
    bool in_s = given_ns >= 10 * CLOCK_S, in_ms = given_ns >= 10 * CLOCK_MS;
    uint64_t unit_ns = in_s ? CLOCK_S : in_ms ? CLOCK_MS : CLOCK_US;
    snprintf(text, size,
             "No answer within %llu %s; the work was dropped. Ask for longer with timeout, in "
             "microseconds, or start invertd with a larger --request-timeout.",
             (unsigned long long)(given_ns / unit_ns),
             in_s    ? "s"
             : in_ms ? "ms"
                     : "us");
}

bool handlers_make_room(struct exchange *x, int64_t bytes)
{
    assert(x->takes_body && !x->answered);
    return handlers__inference_make_room(x, bytes); /* no other route's sink is to grow */
}

void handlers_expired(struct exchange *x, enum handlers_late what)
{
    char detail[192];
    if (x->answered)
        return;
    if (what == HANDLERS_LATE_ANSWER && x->late != NULL) {
        x->late(x);
        return;
    }
    drop_state(x);
    metric_add(x->handlers->cancelled_timeout, 1);
    switch (what) {
    case HANDLERS_LATE_BODY:
        handlers__fail_with(x, ERROR_BODY_TOO_SLOW,
                            "The body did not arrive in time, or not fast enough.");
        break;
    case HANDLERS_LATE_ROOM:
        handlers__fail_with(x, ERROR_FULL,
                            "The service's memory is taken by other requests; try again later.");
        break;
    case HANDLERS_LATE_ANSWER:
        say_deadline(x, detail, sizeof detail);
        handlers__fail_with(x, ERROR_TIMEOUT, detail);
        break;
    }
}

void handlers_hasten(struct exchange *x)
{
    if (!x->answered && x->late != NULL)
        x->late(x);
}

void handlers_tick(struct handlers *handlers, struct mailbox *mailbox, uint64_t now_ns)
{
    if (mailbox->number == 0)
        handlers__history_tick(handlers, now_ns);
    handlers__streams_tick(handlers__loop_of(handlers, mailbox), now_ns);
}

void handlers_end(struct exchange *x)
{
    drop_state(x);
}

void handlers_refuse(struct exchange *x, enum error code, const char *detail)
{
    if (x->answered)
        return;
    drop_state(x);
    handlers__fail_with(x, code, detail);
}

/* ---- Clients ---- */

struct queue_account *handlers_certified(struct handlers *handlers, const char *name)
{
    return queue_account_by_certificate(handlers->services->queue, name);
}

struct queue_account *handlers__account(const struct exchange *x)
{
    return x->caller != NULL ? x->caller->account : NULL;
}

void handlers_answered(const struct exchange *x, int status, int64_t in_bytes, int64_t out_bytes)
{
    struct queue_account *account = handlers__account(x);
    if (account != NULL)
        queue_account_answered(account, status, in_bytes, out_bytes);
}

/* ---- What an exchange says ---- */

/* Whether so many characters are hexadecimal digits in lower case, not all of them 0. */
static bool is_trace_field(const char *field, size_t length, bool may_be_zero)
{
    return strspn(field, "0123456789abcdef") == length &&
           (may_be_zero || strspn(field, "0") < length);
}

const char *handlers_traceparent(const struct exchange *x)
{
    const char *value = exchange_header(x, "traceparent");
    if (value == NULL || strlen(value) != TRACEPARENT_LENGTH || strncmp(value, "ff", 2) == 0)
        return NULL;
    /* version, trace, parent, flags: each runs up to its dash, or to the end */
    bool valid = is_trace_field(value, 2, true) && value[2] == '-' &&
                 is_trace_field(value + 3, 32, false) && value[35] == '-' &&
                 is_trace_field(value + 36, 16, false) && value[52] == '-' &&
                 is_trace_field(value + 53, 2, true);
    return valid ? value : NULL;
}

const char *handlers_route_label(const struct exchange *x)
{
    return x->route == NULL ? "other" : x->route->pattern;
}
