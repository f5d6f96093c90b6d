/* handlers/job_pages.c: see job_pages.h. */
#include "handlers/job_pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/jobs/document.h"
#include "handlers/jobs/prefer.h"

#define LIST_DEFAULT 100
#define SHOWN_STATES                                                                               \
    (1u << JOB_ACCEPTED | 1u << JOB_RUNNING | 1u << JOB_SUCCESSFUL | 1u << JOB_FAILED)

/* ---- Queries ---- */

/* What reads one parameter. */
struct query_row {
    const char *name;
    enum error (*read)(struct visit *visit, const char *value, struct failure *failure);
};

struct query_reader {
    struct visit *visit;
    const struct query_row *rows; /* name NULL ends them */
    const char *known;            /* their names, for the message */
    enum error error;
    struct failure failure;
};

static bool read_parameter(void *context, const char *name, const char *value)
{
    struct query_reader *reader = context;
    for (const struct query_row *row = reader->rows; row->name != NULL; row++) {
        if (strcmp(row->name, name) != 0)
            continue;
        reader->error = row->read(reader->visit, value, &reader->failure);
        return reader->error == ERROR_NONE;
    }
    reader->error =
        failure_set(&reader->failure, ERROR_BAD_OPTION,
                    "There is no such parameter in this query; there is %s.", reader->known);
    return false;
}

/* false: the exchange is answered. */
static bool read_query(struct visit *visit, const struct query_row *rows, const char *known)
{
    struct query_reader reader = {.visit = visit, .rows = rows, .known = known};
    visit->x->door->query(visit->x, read_parameter, &reader);
    if (reader.error == ERROR_NONE)
        return true;
    handlers__visit_fail(visit, &reader.failure);
    return false;
}

static enum error read_wait(struct visit *visit, const char *value, struct failure *failure)
{
    visit->wait_s = handlers__wait_seconds(value, (int)strnlen(value, 32));
    if (visit->wait_s >= 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION,
                       "wait is a whole number of seconds; more than %d count as %d.",
                       PREFER_WAIT_MAX_S, PREFER_WAIT_MAX_S);
}

/* ---- One job ---- */

static void reply_job(struct exchange *x, int status, const struct job *job, int64_t position,
                      bool was_posted)
{
    char path[JOB_PATH_TEXT];
    struct text json;
    struct exchange_reply reply;
    text_init(&json, HANDLERS_PAGE_MAX);
    handlers__job_document(job, position, &json);
    handlers__reply_open(&reply, status);
    handlers__job_path(&job->id, path);
    if (was_posted) {
        handlers__reply_field(&reply, "Location", path);
        handlers__reply_field(&reply, "Preference-Applied", "respond-async");
    }
    handlers__reply_field(&reply, "Cache-Control", "no-store");
    handlers__reply_text(x, &reply, HANDLERS_JSON, &json);
}

void handlers__job_reply_accepted(struct exchange *x, const struct job *job, bool was_known)
{
    reply_job(x, was_known ? 200 : 202, job, -1, true);
}

void handlers__job_answer_accepted(struct visit *visit)
{
    struct exchange *x = visit->x;
    const struct job job = visit->job;
    bool was_known = visit->was_known;
    (void)handlers__visit_leave(visit);
    handlers__job_reply_accepted(x, &job, was_known);
}

static void answer_with_position(struct visit *visit)
{
    struct exchange *x = visit->x;
    const struct job job = visit->job;
    bool asked = visit->call.kind == DESK_POSITION && visit->call.failure.code == ERROR_NONE;
    int64_t position = asked ? visit->call.position : -1;
    (void)handlers__visit_leave(visit);
    reply_job(x, 200, &job, position, false);
}

void handlers__job_answer(struct visit *visit)
{
    if (visit->job.state != JOB_ACCEPTED) {
        answer_with_position(visit);
        return;
    }
    visit->call.in.position = visit->id;
    handlers__visit_ask(visit, DESK_POSITION, answer_with_position);
}

static void cancelled(struct visit *visit)
{
    struct exchange_reply reply;
    if (!handlers__visit_found(visit))
        return;
    handlers__reply_open(&reply, 204);
    exchange_answer(handlers__visit_leave(visit), &reply);
}

/* It is this client's: then it may be cancelled. */
static void found_to_cancel(struct visit *visit)
{
    if (!handlers__visit_found(visit))
        return;
    visit->call.in.cancel.id = visit->id;
    visit->call.in.cancel.now_ms = jobs_now_ms(visit->jobs);
    handlers__visit_ask(visit, DESK_CANCEL, cancelled);
}

void handlers__job_page(struct exchange *x)
{
    static const struct query_row rows[] = {{"wait", read_wait}, {NULL, NULL}};
    struct visit *visit = handlers__visit_open(x);
    if (visit == NULL || !handlers__visit_read_id(visit))
        return;
    if (x->verb == EXCHANGE_DELETE)
        handlers__visit_get(visit, found_to_cancel);
    else if (read_query(visit, rows, "wait"))
        handlers__visit_wait(visit);
}

/* ---- A list ---- */

/* One name, or several with commas between them. */
static enum error read_status(struct visit *visit, const char *value, struct failure *failure)
{
    visit->list.states = 0;
    for (;;) {
        enum job_state state;
        size_t length = strcspn(value, ",");
        if (!job_state_find(value, length, &state) || state == JOB_DISMISSED)
            return failure_set(failure, ERROR_BAD_OPTION,
                               "status is accepted, running, successful or failed, or several of "
                               "them with commas between.");
        visit->list.states |= 1u << state;
        if (value[length] == '\0')
            return ERROR_NONE;
        value += length + 1;
    }
}

static enum error read_since(struct visit *visit, const char *value, struct failure *failure)
{
    if (handlers__time_read(value, &visit->list.since_ms))
        return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION,
                       "since is a time as RFC 3339 has it: 2026-01-31T12:00:00Z.");
}

static enum error read_limit(struct visit *visit, const char *value, struct failure *failure)
{
    size_t digits = strspn(value, "0123456789");
    long limit = digits > 0 && value[digits] == '\0' ? strtol(value, NULL, 10) : 0;
    if (limit < 1)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "limit is a whole number from 1 on; more than %d count as %d.",
                           STORE_LIST_MAX, STORE_LIST_MAX);
    visit->list.limit = limit < STORE_LIST_MAX ? (int)limit : STORE_LIST_MAX;
    return ERROR_NONE;
}

static enum error read_cursor(struct visit *visit, const char *value, struct failure *failure)
{
    if (handlers__cursor_read(value, &visit->list.before_ms, &visit->list.before_id))
        return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION,
                       "cursor is what the page before had as \"next\".");
}

/* One job more than was asked for says that there is a next page. */
static void listed(struct visit *visit)
{
    if (visit->call.failure.code != ERROR_NONE) {
        handlers__visit_fail(visit, &visit->call.failure);
        return;
    }
    struct text json;
    const int limit = visit->list.limit;
    int count = visit->call.count;
    bool is_more = count > limit || (count == limit && limit == STORE_LIST_MAX);
    if (count > limit)
        count = limit;
    text_init(&json, (size_t)HANDLERS_PAGE_MAX);
    text_puts(&json, "{\"jobs\":[");
    for (int i = 0; i < count; i++) {
        text_puts(&json, i > 0 ? "," : "");
        handlers__job_document(&visit->page[i], -1, &json);
    }
    text_puts(&json, "],\"next\":");
    if (is_more) {
        char cursor[JOB_CURSOR_TEXT];
        handlers__cursor_write(visit->page[count - 1].created_ms, &visit->page[count - 1].id,
                               cursor);
        text_printf(&json, "\"%s\"}", cursor);
    } else {
        text_puts(&json, "null}");
    }
    handlers__reply_document(handlers__visit_leave(visit), HANDLERS_JSON, &json);
}

void handlers__jobs_list(struct exchange *x)
{
    static const struct query_row rows[] = {{"status", read_status},
                                            {"since", read_since},
                                            {"limit", read_limit},
                                            {"cursor", read_cursor},
                                            {NULL, NULL}};
    struct visit *visit = handlers__visit_open(x);
    if (visit == NULL)
        return;
    visit->list = (struct store_list){.owner = visit->sees_all ? NULL : visit->owner,
                                      .states = SHOWN_STATES,
                                      .limit = LIST_DEFAULT};
    if (!read_query(visit, rows, "status, since, limit or cursor"))
        return;
    struct desk_call *call = &visit->call;
    struct store_list asked = visit->list;
    asked.limit += asked.limit < STORE_LIST_MAX;
    visit->page = calloc((size_t)asked.limit, sizeof *visit->page);
    if (visit->page == NULL) {
        handlers__fail_with(handlers__visit_leave(visit), ERROR_FULL,
                            "The service is out of memory; try again later.");
        return;
    }
    visit->asked = asked;
    call->in.list = &visit->asked;
    call->jobs = visit->page;
    handlers__visit_ask(visit, DESK_LIST, listed);
}
