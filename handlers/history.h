/* handlers/history.h: what the counters said in each of the last seconds, for the status document:
 * rates and quantiles are differences of two samples.
 *
 * Threads: loop 0 takes the samples; any thread reads. Cost: some 10 us a second, and 400 KiB.
 */
#ifndef HANDLERS_HISTORY_H
#define HANDLERS_HISTORY_H

#include "handlers/handlers_private.h"
#include "handlers/stats.h"

#define HISTORY_SECONDS 300
#define HISTORY_MINUTE 60
#define HISTORY_DEVICES 16 /* further ones are not shown */

struct history_sample {
    uint64_t at_ns;
    /* Since the start. */
    struct stats_totals totals; /* residuals: of the second before */
    uint64_t refused, bytes_in, bytes_out, batches;
    uint64_t latency[METRIC_BUCKETS_MAX + 1]; /* requests that were computed, by their time */
    uint64_t waits[METRIC_BUCKETS_MAX + 1];   /* and by that in the queue */
    uint64_t sizes[METRIC_BUCKETS_MAX + 1];   /* batches, by their matrices */
    uint64_t busy_ns[HISTORY_DEVICES], device_matrices[HISTORY_DEVICES];
    int64_t waiting; /* at that time */
};

struct history_span {
    double seconds; /* 0: no sample yet */
    struct history_sample from, to;
    double residuals[SURVEY_RESIDUALS]; /* the largest; 0: none */
};

/* What a chart shows of a second. */
struct history_point {
    double requests, matrices, p50_s, p99_s, busy; /* a second; NaN: no request; share of devices */
    int64_t waiting;
};

ERROR_MUST_CHECK enum error handlers__history_create(struct handlers *handlers);
void handlers__history_destroy(struct handlers *handlers);
/* Takes a sample when a second is over. On loop 0. */
void handlers__history_tick(struct handlers *handlers, uint64_t now_ns);
/* Changes with every sample. */
uint64_t handlers__history_sequence(struct handlers *handlers);
/* The last so many seconds, or as many as there are. */
void handlers__history_span(struct handlers *handlers, int seconds, struct history_span *span);
/* The last seconds one by one, the oldest first; returns how many. */
int handlers__history_points(struct handlers *handlers, int max, struct history_point *points);

/* The q-quantile of what two readings of a histogram differ by, interpolated in its bucket; NaN:
 * nothing. In the unit of the limits. */
double handlers__history_quantile(const struct metric_counts *shape, const uint64_t *from,
                                  const uint64_t *to, double q);
/* The buckets of times, and of sizes. */
const struct metric_counts *handlers__history_times(const struct handlers *handlers);
const struct metric_counts *handlers__history_sizes(const struct handlers *handlers);

#endif
