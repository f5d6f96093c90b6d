/* handlers/history.c: see history.h. A ring of samples under a mutex, which is held for as long as
 * a sample is copied or the charts' points are made.
 */
#include "handlers/history.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/inference.h"

#define SAMPLES (HISTORY_SECONDS + 1)
#define ROUTES_MAX 16

struct history {
    pthread_mutex_t lock; /* guards the ring */
    struct history_sample *ring;
    uint64_t count; /* samples taken; the last is at (count - 1) % SAMPLES */
    uint64_t due_ns;
    struct metric_counts times, sizes; /* the shapes */
    int route_count;
    struct metric_series *durations[ROUTES_MAX]; /* of the routes that compute */
    struct metric_series *bytes_in, *bytes_out;
};

/* ---- Samples ---- */

static void take_devices(struct metric_registry *metrics, struct history_sample *sample)
{
    int count = 0;
    char device[64];
    for (struct metric_series *up = metric_next(metrics, METRIC_DEVICE_UP, NULL);
         up != NULL && count < HISTORY_DEVICES; up = metric_next(metrics, METRIC_DEVICE_UP, up)) {
        metric_label(up, "device", device, sizeof device);
        sample->busy_ns[count] = metric_value(metric_series(metrics, METRIC_DEVICE_BUSY, device));
        sample->device_matrices[count++] =
            metric_value(metric_series(metrics, METRIC_DEVICE_MATRICES, device));
    }
}

/* Adds up all series of a histogram. */
static void take_histogram(struct metric_registry *metrics, enum metric_id id, uint64_t *counts)
{
    struct metric_counts sum = {0};
    for (struct metric_series *series = metric_next(metrics, id, NULL); series != NULL;
         series = metric_next(metrics, id, series))
        metric_counts_add(series, &sum);
    memcpy(counts, sum.counts, sizeof sum.counts);
}

static void take(struct handlers *handlers, uint64_t now_ns, struct history_sample *sample)
{
    struct history *history = handlers->history;
    struct metric_registry *metrics = handlers->services->metrics;
    memset(sample, 0, sizeof *sample);
    sample->at_ns = now_ns;
    queue_show_running(handlers->services->queue);
    handlers__stats_take(handlers, &sample->totals);
    for (int i = 0; i < ERROR_COUNT; i++)
        if (handlers->rejected[i] != NULL)
            sample->refused += metric_value(handlers->rejected[i]);
    sample->bytes_in = metric_value(history->bytes_in);
    sample->bytes_out = metric_value(history->bytes_out);
    struct metric_counts sum = {0};
    for (int i = 0; i < history->route_count; i++)
        metric_counts_add(history->durations[i], &sum);
    memcpy(sample->latency, sum.counts, sizeof sum.counts);
    take_histogram(metrics, METRIC_QUEUE_DURATION, sample->waits);
    take_histogram(metrics, METRIC_BATCH_SIZE, sample->sizes);
    for (int i = 0; i <= METRIC_BUCKETS_MAX; i++)
        sample->batches += sample->sizes[i];
    take_devices(metrics, sample);
    for (struct metric_series *depth = metric_next(metrics, METRIC_QUEUE_DEPTH, NULL);
         depth != NULL; depth = metric_next(metrics, METRIC_QUEUE_DEPTH, depth))
        sample->waiting += (int64_t)metric_value(depth);
}

static struct history_sample *sample_at(const struct history *history, uint64_t index)
{
    return &history->ring[index % SAMPLES];
}

void handlers__history_tick(struct handlers *handlers, uint64_t now_ns)
{
    struct history *history = handlers->history;
    struct history_sample sample;
    if (now_ns < history->due_ns)
        return;
    history->due_ns += CLOCK_S;
    if (history->due_ns <= now_ns)
        history->due_ns = now_ns + CLOCK_S; /* the loop was held up, or this is the first */
    take(handlers, now_ns, &sample);
    pthread_mutex_lock(&history->lock);
    *sample_at(history, history->count++) = sample;
    pthread_mutex_unlock(&history->lock);
}

/* ---- Life ---- */

static void find_series(struct handlers *handlers, struct history *history)
{
    struct metric_registry *metrics = handlers->services->metrics;
    for (int i = 0; i < handlers__route_count(); i++) {
        const struct handlers_route *route = handlers__route_at(i);
        if (route->run != handlers__inference_run)
            continue;
        assert(history->route_count < ROUTES_MAX);
        history->durations[history->route_count++] =
            metric_series(metrics, METRIC_REQUEST_DURATION, route->pattern);
    }
    history->bytes_in = metric_series(metrics, METRIC_BYTES, "in");
    history->bytes_out = metric_series(metrics, METRIC_BYTES, "out");
    metric_counts_add(history->durations[0], &history->times);
    metric_counts_add(metric_series(metrics, METRIC_BATCH_SIZE, handlers->models[0].method->name),
                      &history->sizes);
}

enum error handlers__history_create(struct handlers *handlers)
{
    struct history *history = calloc(1, sizeof *history);
    if (history == NULL)
        return ERROR_INTERNAL;
    pthread_mutex_init(&history->lock, NULL);
    handlers->history = history;
    history->ring = calloc(SAMPLES, sizeof *history->ring);
    if (history->ring == NULL)
        return ERROR_INTERNAL;
    find_series(handlers, history);
    handlers__history_tick(handlers, clock_now_ns());
    return ERROR_NONE;
}

void handlers__history_destroy(struct handlers *handlers)
{
    struct history *history = handlers->history;
    if (history == NULL)
        return;
    pthread_mutex_destroy(&history->lock);
    free(history->ring);
    free(history);
    handlers->history = NULL;
}

/* ---- Reading ---- */

uint64_t handlers__history_sequence(struct handlers *handlers)
{
    struct history *history = handlers->history;
    pthread_mutex_lock(&history->lock);
    uint64_t count = history->count;
    pthread_mutex_unlock(&history->lock);
    return count;
}

/* How many seconds there are, of so many. Under the lock. */
static int seconds_held(const struct history *history, int wanted)
{
    uint64_t held = history->count < SAMPLES ? history->count : SAMPLES;
    assert(held > 0 && wanted >= 0);
    return (uint64_t)wanted < held ? wanted : (int)held - 1;
}

void handlers__history_span(struct handlers *handlers, int seconds, struct history_span *span)
{
    struct history *history = handlers->history;
    memset(span, 0, sizeof *span);
    pthread_mutex_lock(&history->lock);
    int held = seconds_held(history, seconds);
    uint64_t last = history->count - 1;
    span->to = *sample_at(history, last);
    span->from = *sample_at(history, last - (uint64_t)held);
    for (int i = 0; i < held; i++)
        for (int k = 0; k < SURVEY_RESIDUALS; k++)
            span->residuals[k] = fmax(span->residuals[k],
                                      sample_at(history, last - (uint64_t)i)->totals.residuals[k]);
    pthread_mutex_unlock(&history->lock);
    span->seconds = (double)(span->to.at_ns - span->from.at_ns) / (double)CLOCK_S;
}

double handlers__history_quantile(const struct metric_counts *shape, const uint64_t *from,
                                  const uint64_t *to, double q)
{
    uint64_t total = 0, below = 0;
    for (int i = 0; i <= shape->bounds; i++)
        total += to[i] - from[i];
    double wanted = q * (double)total;
    for (int i = 0; i < shape->bounds; i++) {
        uint64_t here = to[i] - from[i];
        if (here > 0 && (double)(below + here) >= wanted) {
            double low = i == 0 ? 0 : (double)shape->limits[i - 1];
            double part = (wanted - (double)below) / (double)here;
            return low + part * ((double)shape->limits[i] - low);
        }
        below += here;
    }
    return total == 0 ? (double)NAN : (double)shape->limits[shape->bounds - 1];
}

/* The mean over the devices that there are. */
static double busy_between(const struct history_sample *from, const struct history_sample *to)
{
    double sum = 0, interval_ns = (double)(to->at_ns - from->at_ns);
    int devices = 0;
    for (int i = 0; i < HISTORY_DEVICES; i++) {
        devices += to->busy_ns[i] > 0;
        sum += fmin((double)(to->busy_ns[i] - from->busy_ns[i]) / interval_ns, 1);
    }
    return devices > 0 ? sum / devices : 0;
}

static struct history_point point_between(const struct history *history,
                                          const struct history_sample *from,
                                          const struct history_sample *to)
{
    double seconds = (double)(to->at_ns - from->at_ns) / (double)CLOCK_S;
    const struct metric_counts *times = &history->times;
    return (struct history_point){
        .requests = (double)(to->totals.success + to->totals.failure - from->totals.success -
                             from->totals.failure) /
                    seconds,
        .matrices = (double)(to->totals.matrices - from->totals.matrices) / seconds,
        .p50_s = handlers__history_quantile(times, from->latency, to->latency, 0.5) / CLOCK_S,
        .p99_s = handlers__history_quantile(times, from->latency, to->latency, 0.99) / CLOCK_S,
        .busy = busy_between(from, to),
        .waiting = to->waiting,
    };
}

int handlers__history_points(struct handlers *handlers, int max, struct history_point *points)
{
    struct history *history = handlers->history;
    pthread_mutex_lock(&history->lock);
    int count = seconds_held(history, max);
    for (int i = 0; i < count; i++) {
        uint64_t to = history->count - (uint64_t)(count - i);
        points[i] = point_between(history, sample_at(history, to - 1), sample_at(history, to));
    }
    pthread_mutex_unlock(&history->lock);
    return count;
}

const struct metric_counts *handlers__history_times(const struct handlers *handlers)
{
    return &handlers->history->times;
}

const struct metric_counts *handlers__history_sizes(const struct handlers *handlers)
{
    return &handlers->history->sizes;
}
