/* handlers/job_events.c: GET /v1/jobs/{id}/events: a job's status and progress as they change.
 *
 *      id: ATTEMPT.STATE.PERCENT
 *      event: status
 *      data: {"status":"running"}
 *
 *      id: ..
 *      event: progress
 *      data: {"progress":42,"position":null}
 *
 * The watch says that something has changed, the store what. An id says what the client knows by
 * then, so that one that comes again with Last-Event-ID, to this daemon or to its successor, hears
 * of nothing twice. The stream ends with the job.
 *
 * Threads: the exchange's loop. Cost: a look into the store for each change, and one a second while
 * the job waits for its turn, for its place.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/job_pages.h"
#include "handlers/jobs/document.h"
#include "handlers/stream.h"

#define LOOK_NS (900 * CLOCK_MS) /* a stream asks for more once a second, and when it is woken */

static void look(struct visit *visit);

static int percent_of(const struct visit *visit)
{
    return visit->job.state == JOB_SUCCESSFUL ? 100 : handlers__job_percent(visit->job.progress);
}

/* What the client knew when it lost the connection. */
static void read_last_id(struct visit *visit)
{
    int attempt, state, percent, length = 0;
    const char *value = exchange_header(visit->x, "Last-Event-ID");
    if (value == NULL || sscanf(value, "%9d.%9d.%9d%n", &attempt, &state, &percent, &length) != 3 ||
        value[length] != '\0')
        return;
    visit->sent_state = state;
    visit->sent_percent = percent;
    visit->sent_position = -1;
}

static void put_id(const struct visit *visit, struct text *events)
{
    text_printf(events, "id: %d.%d.%d\n", (int)visit->job.attempt, (int)visit->job.state,
                percent_of(visit));
}

static void add_status(struct visit *visit, struct text *events)
{
    put_id(visit, events);
    text_printf(events, "event: status\ndata: {\"status\":\"%s\"}\n\n",
                job_state_name(visit->job.state));
    visit->sent_state = (int)visit->job.state;
}

static void add_progress(struct visit *visit, struct text *events)
{
    put_id(visit, events);
    text_printf(events, "event: progress\ndata: {\"progress\":%d,\"position\":", percent_of(visit));
    if (visit->position >= 0)
        text_printf(events, "%lld}\n\n", (long long)visit->position);
    else
        text_puts(events, "null}\n\n");
    visit->sent_percent = percent_of(visit);
    visit->sent_position = visit->position;
}

/* Of the last look. The last status comes after the last progress. */
static bool next(void *context, struct text *events)
{
    struct visit *visit = context;
    bool is_over = job_is_over(visit->job.state);
    bool is_new = visit->sent_state < 0 || (int)visit->job.state != visit->sent_state;
    if (is_new && !is_over)
        add_status(visit, events);
    if (visit->sent_percent != percent_of(visit) || visit->sent_position != visit->position)
        add_progress(visit, events);
    if (is_new && is_over)
        add_status(visit, events);
    if (visit->job.state == JOB_ACCEPTED && !visit->is_asking &&
        clock_now_ns() >= visit->looked_ns + LOOK_NS)
        look(visit);
    return !is_over;
}

static void on_end(void *context)
{
    (void)handlers__visit_leave(context);
}

static void look_done(struct visit *visit)
{
    static const struct stream_source source = {
        .next = next, .on_end = on_end, .each_second = true};
    struct exchange *x = visit->x;
    if (visit->has_news && !job_is_over(visit->job.state)) {
        look(visit);
        return;
    }
    if (visit->is_streaming) {
        handlers__stream_wake(x);
        return;
    }
    visit->is_streaming = true;
    x->state = NULL; /* the stream's from now on, with its row's drop */
    x->drop = NULL;
    handlers__stream_answer(x, &source, visit);
}

static void positioned(struct visit *visit)
{
    visit->position = visit->call.failure.code == ERROR_NONE ? visit->call.position : -1;
    look_done(visit);
}

static void looked(struct visit *visit)
{
    const enum error code = visit->call.failure.code;
    if (!visit->is_streaming && !handlers__visit_found(visit))
        return;
    if (visit->is_streaming && code == ERROR_NOT_FOUND)
        visit->job.state = JOB_DISMISSED;
    if (code == ERROR_NONE && visit->job.state == JOB_ACCEPTED) {
        visit->call.in.position = visit->id; /* until then the last one holds */
        handlers__visit_ask(visit, DESK_POSITION, positioned);
        return;
    }
    visit->position = -1;
    look_done(visit);
}

static void look(struct visit *visit)
{
    visit->has_news = false;
    visit->looked_ns = clock_now_ns();
    handlers__visit_get(visit, looked);
}

static void on_news(struct visit *visit)
{
    visit->has_news = true;
    if (!visit->is_asking)
        look(visit);
}

/* It is this client's: then it may be watched. What has changed meanwhile is looked for again. */
static void found(struct visit *visit)
{
    if (!handlers__visit_found(visit))
        return;
    if (handlers__visit_watch(visit, on_news))
        look(visit);
}

void handlers__job_events(struct exchange *x)
{
    struct visit *visit = handlers__visit_open(x);
    if (visit == NULL || !handlers__visit_read_id(visit))
        return;
    visit->sent_percent = -1;
    read_last_id(visit);
    handlers__visit_get(visit, found);
}
