/* handlers/visit.c: see visit.h. */
#include "handlers/visit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void handlers__job_owner(const struct exchange *x, char owner[JOB_OWNER_BYTES])
{
    if (x->caller != NULL && x->caller->name[0] != '\0')
        snprintf(owner, JOB_OWNER_BYTES, "%s", x->caller->name);
    else
        x->door->address(x, owner, JOB_OWNER_BYTES);
}

/* ---- Life ---- */

struct visit *handlers__visit_open(struct exchange *x)
{
    struct jobs *jobs = x->handlers->services->jobs;
    if (jobs == NULL) {
        handlers__fail_with(x, ERROR_JOBS_OFF,
                            "This service keeps no jobs: it has no folder for them (--data-dir).");
        return NULL;
    }
    struct visit *visit = calloc(1, sizeof *visit);
    if (visit == NULL) {
        handlers__fail_with(x, ERROR_FULL, "The service is out of memory; try again later.");
        return NULL;
    }
    visit->x = x;
    visit->jobs = jobs;
    visit->call.mailbox = x->mailbox;
    visit->position = -1;
    visit->sent_state = -1;
    visit->sees_all = x->caller != NULL && (x->caller->roles & CLIENT_ADMIN) != 0;
    handlers__job_owner(x, visit->owner);
    x->state = visit;
    x->drop = handlers__visit_drop;
    return visit;
}

static void free_if_free(struct visit *visit)
{
    if (visit->x != NULL || visit->is_asking || visit->is_watched)
        return;
    free(visit->page);
    free(visit);
}

static void end_watch(struct visit *visit)
{
    if (visit->watch != NULL && jobs_unwatch(&visit->watch))
        visit->is_watched = false;
    visit->watch = NULL;
}

struct exchange *handlers__visit_leave(struct visit *visit)
{
    struct exchange *x = visit->x;
    assert(x != NULL);
    if (x->state == visit) {
        x->state = NULL;
        x->drop = NULL;
        x->late = NULL;
    }
    end_watch(visit);
    visit->x = NULL;
    free_if_free(visit);
    return x;
}

void handlers__visit_drop(struct exchange *x)
{
    (void)handlers__visit_leave(x->state);
}

void handlers__visit_fail(struct visit *visit, const struct failure *failure)
{
    struct failure copy = *failure;
    handlers__fail(handlers__visit_leave(visit), &copy);
}

/* ---- The desk ---- */

static void on_answer(struct message *message)
{
    struct visit *visit = (struct visit *)message;
    assert(visit->is_asking);
    visit->is_asking = false;
    if (visit->x == NULL)
        free_if_free(visit);
    else
        visit->then(visit);
}

void handlers__visit_ask(struct visit *visit, enum desk_kind kind,
                         void (*then)(struct visit *visit))
{
    struct desk_call *call = &visit->call;
    assert(!visit->is_asking && visit->x != NULL);
    visit->is_asking = true;
    visit->then = then;
    call->message.run = on_answer;
    call->kind = kind;
    call->failure.code = ERROR_NONE;
    call->job = &visit->job;
    if (kind == DESK_CANCEL)
        jobs_cancel(visit->jobs, call);
    else
        desk_post(jobs_desk(visit->jobs), call);
}

void handlers__visit_get(struct visit *visit, void (*then)(struct visit *visit))
{
    visit->call.in.get = visit->id;
    handlers__visit_ask(visit, DESK_GET, then);
}

/* ---- One job ---- */

static void answer_unknown(struct visit *visit)
{
    handlers__fail_with(handlers__visit_leave(visit), ERROR_NOT_FOUND,
                        "There is no such job: its id is wrong, it is another client's, it was "
                        "deleted, or it has expired.");
}

bool handlers__visit_read_id(struct visit *visit)
{
    struct handlers__path path;
    if (handlers__route_match(visit->x->route->pattern, visit->x->path, &path) && path.id != NULL &&
        job_id_read(path.id, path.id_length, &visit->id))
        return true;
    answer_unknown(visit);
    return false;
}

bool handlers__visit_found(struct visit *visit)
{
    const struct failure *failure = &visit->call.failure;
    bool is_foreign = failure->code == ERROR_NONE && !visit->sees_all &&
                      strcmp(visit->job.owner, visit->owner) != 0;
    if (failure->code == ERROR_NOT_FOUND || is_foreign)
        answer_unknown(visit);
    else if (failure->code != ERROR_NONE)
        handlers__visit_fail(visit, failure);
    else
        return true;
    return false;
}

/* ---- Watching ---- */

static void on_news(struct message *message)
{
    struct visit *visit = (struct visit *)((char *)message - offsetof(struct visit, news));
    if (visit->watch == NULL) { /* the last one */
        visit->is_watched = false;
        free_if_free(visit);
        return;
    }
    (void)jobs_watch_take(visit->watch);
    visit->on_news(visit);
}

bool handlers__visit_watch(struct visit *visit, void (*run)(struct visit *visit))
{
    struct failure failure;
    assert(visit->watch == NULL && !visit->is_watched);
    visit->on_news = run;
    visit->news.run = on_news;
    if (jobs_watch(visit->jobs, &visit->id, visit->x->mailbox, &visit->news, &visit->watch,
                   &failure) != ERROR_NONE) {
        handlers__visit_fail(visit, &failure);
        return false;
    }
    visit->is_watched = true;
    return true;
}
