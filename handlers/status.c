/* handlers/status.c: what the service does now, as one document: GET /v1/status, and once a second
 * as events.
 *
 * Rates and quantiles are of the last second and of the last minute, by history.h; what is of the
 * moment is read where it is kept.
 *
 * Threads: see status.h. Cost: some 100 us, and a few KiB of text. A loop makes one document a
 * second for all who listen there.
 */
#include "handlers/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/stream.h"
#include "queue/jobs/job.h"

#define QUERY_DIGITS 3

struct status {
    struct handlers *handlers;
    struct history_span second, minute;
};

void handlers__jobs_count(const struct handlers *handlers, struct handlers__jobs_count *count)
{
    const struct handlers_services *services = handlers->services;
    int64_t jobs[JOB_STATES] = {0};
    for (int i = 0; services->jobs != NULL && i < JOB_STATES; i++)
        jobs[i] = (int64_t)metric_value(
            metric_series(services->metrics, METRIC_JOBS, job_state_name((enum job_state)i)));
    *count = (struct handlers__jobs_count){.kept = services->jobs != NULL,
                                           .accepted = jobs[JOB_ACCEPTED],
                                           .running = jobs[JOB_RUNNING],
                                           .successful = jobs[JOB_SUCCESSFUL],
                                           .failed = jobs[JOB_FAILED]};
}

/* ---- Parts of the document ---- */

static void put_number(struct text *json, const char *name, double value)
{
    text_printf(json, "\"%s\":", name);
    if (isfinite(value))
        text_printf(json, "%.6g", value);
    else
        text_puts(json, "null");
}

static double rate(const struct history_span *span, uint64_t from, uint64_t to)
{
    return span->seconds > 0 ? (double)(to - from) / span->seconds : 0;
}

/* X(name, counter of a sample) */
#define RATES(X)                                                                                   \
    X("requests", totals.success)                                                                  \
    X("inversions", totals.matrices)                                                               \
    X("failed", totals.failure)                                                                    \
    X("refused", refused)                                                                          \
    X("bytes_in", bytes_in)                                                                        \
    X("bytes_out", bytes_out)

static void put_pair(struct text *json, const char *name, double second, double minute)
{
    text_printf(json, "\"%s\":{", name);
    put_number(json, "second", second);
    text_puts(json, ",");
    put_number(json, "minute", minute);
    text_puts(json, "}");
}

static void put_rates(const struct status *status, struct text *json)
{
    const struct history_span *second = &status->second, *minute = &status->minute;
    const char *comma = "";
    text_puts(json, ",\"rates\":{");
#define PUT_RATE(name, counter)                                                                    \
    text_puts(json, comma);                                                                        \
    put_pair(json, name, rate(second, second->from.counter, second->to.counter),                   \
             rate(minute, minute->from.counter, minute->to.counter));                              \
    comma = ",";
    RATES(PUT_RATE)
#undef PUT_RATE
    text_puts(json, "}");
}

static void put_quantiles(const struct status *status, const uint64_t *from, const uint64_t *to,
                          struct text *json)
{
    const struct metric_counts *times = handlers__history_times(status->handlers);
    put_number(json, "p50_s", handlers__history_quantile(times, from, to, 0.5) / CLOCK_S);
    text_puts(json, ",");
    put_number(json, "p99_s", handlers__history_quantile(times, from, to, 0.99) / CLOCK_S);
}

static void put_latency(const struct status *status, struct text *json)
{
    text_puts(json, ",\"latency\":{");
    put_quantiles(status, status->minute.from.latency, status->minute.to.latency, json);
    text_puts(json, "}");
}

static void put_queue(const struct status *status, struct text *json)
{
    struct handlers *handlers = status->handlers;
    struct queue *queue = handlers->services->queue;
    struct metric_registry *metrics = handlers->services->metrics;
    int64_t waiting = 0;
    text_printf(json, ",\"queue\":{\"under_way\":%lld,\"waiting_for_memory\":%lld,\"by_method\":{",
                (long long)queue_pending(queue), (long long)queue_waiting_for_room(queue));
    for (int i = 0; i < handlers->model_count; i++) {
        const char *name = handlers->models[i].method->name;
        int64_t depth = (int64_t)metric_value(metric_series(metrics, METRIC_QUEUE_DEPTH, name));
        waiting += depth;
        text_printf(json, "%s\"%s\":%lld", i == 0 ? "" : ",", name, (long long)depth);
    }
    text_printf(json, "},\"waiting\":%lld,\"wait\":{", (long long)waiting);
    put_quantiles(status, status->minute.from.waits, status->minute.to.waits, json);
    text_puts(json, "}}");
}

/* The batches that run: of each method the oldest. */
static void put_running(const struct handlers *handlers, struct text *json)
{
    struct metric_registry *metrics = handlers->services->metrics;
    const char *comma = "";
    text_puts(json, ",\"running\":[");
    for (int i = 0; i < handlers->model_count; i++) {
        const char *name = handlers->models[i].method->name;
        uint64_t ns = metric_value(metric_series(metrics, METRIC_BATCH_RUNNING, name));
        if (ns == 0)
            continue;
        text_printf(json, "%s{\"method\":\"%s\",", comma, name);
        put_number(json, "seconds", (double)ns / CLOCK_S);
        text_puts(json, ",");
        put_number(json, "progress",
                   (double)metric_value(metric_series(metrics, METRIC_BATCH_PROGRESS, name)) / 1e3);
        text_puts(json, "}");
        comma = ",";
    }
    text_puts(json, "]");
}

static void put_batches(const struct status *status, struct text *json)
{
    const struct history_span *second = &status->second, *minute = &status->minute;
    const struct metric_counts *shape = handlers__history_sizes(status->handlers);
    text_puts(json, ",\"batches\":{");
    put_pair(json, "rate", rate(second, second->from.batches, second->to.batches),
             rate(minute, minute->from.batches, minute->to.batches));
    text_puts(json, ",\"sizes\":[");
    const char *comma = "";
    for (int i = 0; i <= shape->bounds; i++) {
        uint64_t count = minute->to.sizes[i] - minute->from.sizes[i];
        if (count == 0)
            continue;
        text_printf(json, "%s{\"from\":%llu,\"to\":", comma,
                    i == 0 ? 1ULL : (unsigned long long)shape->limits[i - 1] + 1);
        if (i < shape->bounds)
            text_printf(json, "%llu", (unsigned long long)shape->limits[i]);
        else
            text_puts(json, "null");
        text_printf(json, ",\"batches\":%llu}", (unsigned long long)count);
        comma = ",";
    }
    text_puts(json, "]");
    put_running(status->handlers, json);
    text_puts(json, "}");
}

double handlers__status_busy(const struct history_span *span, int device)
{
    double share = rate(span, span->from.busy_ns[device], span->to.busy_ns[device]) / CLOCK_S;
    return fmin(share, 1);
}

void handlers__status_model(struct metric_registry *metrics, const char *device, char *model,
                            size_t size)
{
    char other[64];
    model[0] = '\0';
    for (struct metric_series *info = metric_next(metrics, METRIC_DEVICE_INFO, NULL); info != NULL;
         info = metric_next(metrics, METRIC_DEVICE_INFO, info)) {
        metric_label(info, "device", other, sizeof other);
        if (strcmp(other, device) == 0 && metric_value(info) == 1)
            metric_label(info, "model", model, size);
    }
}

static void put_device(const struct status *status, const struct metric_series *up, int index,
                       struct text *json)
{
    struct metric_registry *metrics = status->handlers->services->metrics;
    const struct history_span *second = &status->second, *minute = &status->minute;
    char device[64], model[128];
    metric_label(up, "device", device, sizeof device);
    handlers__status_model(metrics, device, model, sizeof model);
    text_puts(json, index == 0 ? "{\"device\":" : ",{\"device\":");
    text_json_string(json, device, strlen(device));
    text_puts(json, ",\"model\":");
    text_json_string(json, model, strlen(model));
    text_printf(json, ",\"up\":%s,\"spares\":%lld,", metric_value(up) == 1 ? "true" : "false",
                (long long)metric_value(metric_series(metrics, METRIC_DEVICE_SPARES, device)));
    put_pair(json, "busy", handlers__status_busy(second, index),
             handlers__status_busy(minute, index));
    text_puts(json, ",");
    put_pair(json, "inversions",
             rate(second, second->from.device_matrices[index], second->to.device_matrices[index]),
             rate(minute, minute->from.device_matrices[index], minute->to.device_matrices[index]));
    text_puts(json, "}");
}

static void put_devices(const struct status *status, struct text *json)
{
    struct metric_registry *metrics = status->handlers->services->metrics;
    int index = 0;
    text_puts(json, ",\"devices\":[");
    for (struct metric_series *up = metric_next(metrics, METRIC_DEVICE_UP, NULL);
         up != NULL && index < HISTORY_DEVICES; up = metric_next(metrics, METRIC_DEVICE_UP, up))
        put_device(status, up, index++, json);
    text_puts(json, "]");
}

static void put_arena(const struct handlers *handlers, struct text *json)
{
    const struct arena *arena = handlers->services->arena;
    unsigned long long bytes = arena_bytes(arena), used = arena_used_bytes(arena);
    text_printf(json, ",\"arena\":{\"bytes\":%llu,\"used\":%llu,\"free\":%llu}", bytes, used,
                bytes - used);
}

static void put_jobs(const struct handlers *handlers, struct text *json)
{
    struct handlers__jobs_count count;
    handlers__jobs_count(handlers, &count);
    text_printf(json,
                ",\"jobs\":{\"kept\":%s,\"accepted\":%lld,\"running\":%lld,\"successful\":%lld,"
                "\"failed\":%lld}",
                count.kept ? "true" : "false", (long long)count.accepted, (long long)count.running,
                (long long)count.successful, (long long)count.failed);
}

static void put_residual(const struct history_span *minute, enum survey_residual kind,
                         const char *name, struct text *json)
{
    uint64_t measured = minute->to.totals.measured[kind] - minute->from.totals.measured[kind];
    text_printf(json, "\"%s\":{", name);
    put_number(json, "largest", measured > 0 ? minute->residuals[kind] : (double)NAN);
    text_printf(json, ",\"matrices\":%llu},", (unsigned long long)measured);
}

static void put_accuracy(const struct status *status, struct text *json)
{
    static const char *const labels[SURVEY_INFOS] = {
#define STATUS_LABEL(id, label, help) [SURVEY_##id] = (label),
        SURVEY_INFO_TABLE(STATUS_LABEL)
#undef STATUS_LABEL
    };
    const struct stats_totals *from = &status->minute.from.totals, *to = &status->minute.to.totals;
    text_puts(json, ",\"accuracy\":{");
    put_residual(&status->minute, SURVEY_RESIDUAL_NORM, "residual", json);
    put_residual(&status->minute, SURVEY_RESIDUAL_SCALED, "scaled_residual", json);
    text_puts(json, "\"info\":{");
    for (int i = 0; i < SURVEY_INFOS; i++)
        text_printf(json, "%s\"%s\":{\"minute\":%llu,\"total\":%llu}", i == 0 ? "" : ",", labels[i],
                    (unsigned long long)(to->infos[i] - from->infos[i]),
                    (unsigned long long)to->infos[i]);
    text_puts(json, "},\"rcond\":[");
    for (int i = 0; i < SURVEY_DECADES; i++) {
        bool is_last = i == SURVEY_DECADES - 1;
        text_printf(json, "%s{\"from\":%.0e,\"minute\":%llu,\"total\":%llu}", i == 0 ? "" : ",",
                    is_last ? 0 : pow(10, -i - 1),
                    (unsigned long long)(to->rconds[i] - from->rconds[i]),
                    (unsigned long long)to->rconds[i]);
    }
    text_puts(json, "]}");
}

/* X(name, field of a point) */
#define POINTS(X)                                                                                  \
    X("requests", requests)                                                                        \
    X("inversions", matrices)                                                                      \
    X("p50_s", p50_s)                                                                              \
    X("p99_s", p99_s)                                                                              \
    X("busy", busy)                                                                                \
    X("waiting", waiting)

static void put_point(struct text *json, int index, double value)
{
    text_puts(json, index == 0 ? "" : ",");
    if (isfinite(value))
        text_printf(json, "%.4g", value);
    else
        text_puts(json, "null");
}

static void put_history(struct handlers *handlers, int seconds, struct text *json)
{
    struct history_point *points = malloc(HISTORY_SECONDS * sizeof *points);
    if (points == NULL) {
        json->failed = true;
        return;
    }
    int count = handlers__history_points(handlers, seconds, points);
    text_puts(json, ",\"history\":{\"step_s\":1");
#define PUT_POINTS(name, field)                                                                    \
    text_puts(json, ",\"" name "\":[");                                                            \
    for (int i = 0; i < count; i++)                                                                \
        put_point(json, i, (double)points[i].field);                                               \
    text_puts(json, "]");
    POINTS(PUT_POINTS)
#undef PUT_POINTS
    text_puts(json, "}");
    free(points);
}

void handlers__status_document(struct handlers *handlers, int history_seconds, struct text *json)
{
    struct status *status = malloc(sizeof *status); /* larger than a frame may be */
    if (status == NULL) {
        json->failed = true;
        return;
    }
    status->handlers = handlers;
    handlers__history_span(handlers, 1, &status->second);
    handlers__history_span(handlers, HISTORY_MINUTE, &status->minute);
    text_puts(json, "{\"version\":");
    text_json_string(json, handlers->services->version, strlen(handlers->services->version));
    text_printf(json, ",\"time_ms\":%llu,\"ready\":%s,", (unsigned long long)clock_wall_ms(),
                handlers__ready(handlers) ? "true" : "false");
    put_number(json, "uptime_s", (double)(clock_now_ns() - handlers->started_ns) / CLOCK_S);
    put_rates(status, json);
    put_latency(status, json);
    put_queue(status, json);
    put_batches(status, json);
    put_devices(status, json);
    put_arena(handlers, json);
    put_jobs(handlers, json);
    put_accuracy(status, json);
    if (history_seconds > 0)
        put_history(handlers, history_seconds, json);
    text_puts(json, "}");
    free(status);
}

/* ---- GET /v1/status ---- */

struct wanted {
    int seconds;
    bool is_bad;
};

static bool on_parameter(void *context, const char *name, const char *value)
{
    struct wanted *wanted = context;
    if (strcmp(name, "history") != 0)
        return true;
    size_t digits = strspn(value, "0123456789");
    wanted->is_bad = digits == 0 || digits > QUERY_DIGITS || value[digits] != '\0';
    wanted->seconds = wanted->is_bad ? 0 : (int)strtol(value, NULL, 10);
    wanted->is_bad |= wanted->seconds > HISTORY_SECONDS;
    return !wanted->is_bad;
}

void handlers__status(struct exchange *x)
{
    struct wanted wanted = {0};
    x->door->query(x, on_parameter, &wanted);
    if (wanted.is_bad) {
        handlers__fail_with(x, ERROR_BAD_OPTION,
                            "history is a number of seconds from 0 to 300: of so many the document "
                            "has the figures one by one.");
        return;
    }
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    handlers__status_document(x->handlers, wanted.seconds, &json);
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_field(&reply, "Cache-Control", "no-store");
    handlers__reply_text(x, &reply, HANDLERS_JSON, &json);
}

/* ---- GET /v1/events ---- */

struct listener {
    struct handlers *handlers;
    struct handlers__loop *loop;
    uint64_t seen; /* sequence of the last document it was sent */
};

/* The loop's document of this second, as an event. */
static const struct text *event_of(struct listener *listener)
{
    struct handlers__loop *loop = listener->loop;
    uint64_t sequence = handlers__history_sequence(listener->handlers);
    if (sequence == loop->event_sequence)
        return &loop->event;
    if (loop->event.data != NULL)
        text_free(&loop->event);
    text_init(&loop->event, STREAM_EVENTS_MAX);
    text_printf(&loop->event, "id: %llu\ndata: ", (unsigned long long)sequence);
    handlers__status_document(listener->handlers, 0, &loop->event);
    text_puts(&loop->event, "\n\n");
    loop->event_sequence = loop->event.failed ? 0 : sequence;
    return &loop->event;
}

static bool next_event(void *context, struct text *events)
{
    struct listener *listener = context;
    const struct text *event = event_of(listener);
    if (event->failed)
        return false;
    if (listener->seen == listener->loop->event_sequence)
        return true;
    listener->seen = listener->loop->event_sequence;
    text_append(events, event->data, event->length);
    return true;
}

void handlers__events(struct exchange *x)
{
    static const struct stream_source source = {
        .next = next_event, .on_end = free, .each_second = true};
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        handlers__fail_with(x, ERROR_INTERNAL, "The service is out of memory.");
        return;
    }
    listener->handlers = x->handlers;
    listener->loop = handlers__loop_of(x->handlers, x->mailbox);
    handlers__stream_answer(x, &source, listener);
}
