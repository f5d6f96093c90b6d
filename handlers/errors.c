/* handlers/errors.c: an error as the client of a path expects it, from the one table in
 * base/error.h.
 *
 * Paths below /v2 answer {"error":"text"}, as the Open Inference Protocol says; all others a
 * problem document (RFC 9457). 429, 503 and 507 say when to come back. Every error that refuses a
 * request is counted by its name; a matrix without an inverse is an answer, not a refusal. What is
 * the service's own failing (5xx) is logged, with the client's trace when it has one; of a flood
 * of them the first in each second, since the counters count the others.
 *
 * Threads: the exchange's loop.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "handlers/handlers_private.h"

#define LOGGED_A_SECOND 32 /* less than 256, see may_log */

static bool is_v2(const struct exchange *x)
{
    return x->path != NULL && strncmp(x->path, "/v2", 3) == 0 &&
           (x->path[3] == '\0' || x->path[3] == '/');
}

static void put_string(struct text *text, const char *string)
{
    text_json_string(text, string, strlen(string));
}

void handlers__problem_open(struct text *text, const struct exchange *x, enum error code,
                            const char *detail)
{
    text_puts(text, "{\"type\":\"urn:invertd:problem:");
    text_puts(text, error_name(code));
    text_puts(text, "\",\"title\":");
    put_string(text, error_title(code));
    text_printf(text, ",\"status\":%d,\"detail\":", error_http_status(code));
    put_string(text, detail);
    /* A path that is too long is not said again. */
    if (x->path != NULL && strlen(x->path) <= HANDLERS_URI_MAX) {
        text_puts(text, ",\"instance\":");
        put_string(text, x->path);
    }
}

/* Takes a line out of this second's. */
static bool may_log(struct handlers *handlers)
{
    uint64_t second = clock_now_ns() / CLOCK_S;
    uint64_t seen = atomic_load_explicit(&handlers->logged, memory_order_relaxed), next;
    do {
        if (seen >> 8 == second && (seen & 0xff) == LOGGED_A_SECOND)
            return false;
        next = seen >> 8 == second ? seen + 1 : second << 8 | 1;
    } while (!atomic_compare_exchange_weak_explicit(&handlers->logged, &seen, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void log_failing(const struct exchange *x, enum error code)
{
    static const char words[] = "request failed";
    const char *route = handlers_route_label(x), *trace = handlers_traceparent(x);
    int64_t status = error_http_status(code);
    if (trace == NULL)
        log_line(LOG_WARNING, words, "route", LOG_STR, route, "status", LOG_I64, status, "error",
                 LOG_STR, error_name(code), NULL);
    else
        log_line(LOG_WARNING, words, "route", LOG_STR, route, "status", LOG_I64, status, "error",
                 LOG_STR, error_name(code), "traceparent", LOG_STR, trace, NULL);
}

/* When to come again: as the refusal says, or once what is queued is done. */
static int retry_after_s(struct queue *queue, const struct failure *failure)
{
    return failure != NULL && failure->retry_after_s > 0 ? failure->retry_after_s
                                                         : queue_retry_after_s(queue);
}

void handlers__count_refusal(const struct exchange *x, enum error code)
{
    assert(x->handlers->rejected[code] != NULL);
    metric_add(x->handlers->rejected[code], 1);
}

/* failure: what says more than code and detail, or NULL. allow: the value of the Allow field, or
 * NULL. */
static void send_error(struct exchange *x, enum error code, const char *detail,
                       const struct failure *failure, const char *allow)
{
    struct handlers *handlers = x->handlers;
    int status = error_http_status(code);
    if (detail == NULL || detail[0] == '\0')
        detail = error_title(code);
    struct text text;
    text_init(&text, HANDLERS_PAGE_MAX);
    bool v2 = is_v2(x);
    if (v2) {
        text_puts(&text, "{\"error\":");
        put_string(&text, detail);
    } else {
        handlers__problem_open(&text, x, code, detail);
    }
    text_puts(&text, "}");

    struct exchange_reply reply;
    handlers__reply_open(&reply, status);
    char seconds[16];
    if (status == 429 || status == 503 || status == 507) {
        snprintf(seconds, sizeof seconds, "%d", retry_after_s(handlers->services->queue, failure));
        handlers__reply_field(&reply, "Retry-After", seconds);
    }
    if (status == 401)
        handlers__reply_field(&reply, "WWW-Authenticate", HANDLERS_CHALLENGE);
    if (allow != NULL)
        handlers__reply_field(&reply, "Allow", allow);
    reply.close = code == ERROR_DRAINING || code == ERROR_BODY_TOO_SLOW;
    handlers__reply_text(x, &reply, v2 ? HANDLERS_JSON : HANDLERS_PROBLEM, &text);
}

/* The same, counted and logged. */
static void answer_error(struct exchange *x, enum error code, const char *detail,
                         const struct failure *failure, const char *allow)
{
    handlers__count_refusal(x, code);
    if (error_http_status(code) >= 500 && log_wanted(LOG_WARNING) && may_log(x->handlers))
        log_failing(x, code);
    send_error(x, code, detail, failure, allow);
}

void handlers__fail(struct exchange *x, const struct failure *failure)
{
    answer_error(x, failure->code, failure->detail, failure, NULL);
}

void handlers__report(struct exchange *x, const struct failure *failure)
{
    send_error(x, failure->code, failure->detail, failure, NULL);
}

void handlers__fail_with(struct exchange *x, enum error code, const char *detail)
{
    answer_error(x, code, detail, NULL, NULL);
}

void handlers__fail_verb(struct exchange *x, const struct handlers_route *route)
{
    char buffer[64];
    struct text allow;
    text_init_fixed(&allow, buffer, sizeof buffer);
    handlers__route_allow(route, &allow);
    char detail[128];
    snprintf(detail, sizeof detail, "This path answers %s.", buffer);
    answer_error(x, ERROR_METHOD_NOT_ALLOWED, detail, NULL, buffer);
}
