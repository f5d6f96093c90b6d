/* handlers/stats.h: what each model has done: the statistics extension, nv_inference_* and
 * invertd_inversions_total.
 *
 * Threads: a cell is written by the loops of its shard, with relaxed atomics, and read by anyone.
 * All counts only grow, so that clients may take differences. The metrics are brought up to the
 * cells when a page is asked for: nothing on the hot path is shared between loops.
 */
#ifndef HANDLERS_STATS_H
#define HANDLERS_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/datatype.h"
#include "base/text.h"
#include "handlers/handlers_private.h"
#include "handlers/inference/survey.h"

/* One answered request, in nanoseconds. The last four are parts of the first. */
struct stats_times {
    uint64_t total_ns, queue_ns, input_ns, infer_ns, output_ns;
};

ERROR_MUST_CHECK enum error handlers__stats_create(struct handlers *handlers);
void handlers__stats_destroy(struct handlers *handlers);

struct stats_cell *handlers__stats_cell(struct handlers *handlers,
                                        const struct handlers__shard *shard,
                                        const struct handlers__model *model);
void handlers__stats_success(struct stats_cell *cell, const struct stats_times *times,
                             int64_t matrices);
void handlers__stats_failure(struct stats_cell *cell, uint64_t total_ns);
void handlers__stats_inversions(struct stats_cell *cell, enum precision precision,
                                const int64_t counts[SURVEY_INFOS]);
/* RCONDs and residuals. */
void handlers__stats_accuracy(struct stats_cell *cell, const struct survey *survey);
/* Handed to the queue, and back from it. */
void handlers__stats_submitted(struct stats_cell *cell);
void handlers__stats_returned(struct stats_cell *cell);

/* The statistics document of one model, or of all when model is NULL. */
void handlers__stats_document(struct handlers *handlers, const struct handlers__model *model,
                              struct text *json);
/* Everything since the start, of all models. */
struct stats_totals {
    uint64_t success, failure, matrices; /* requests answered well and not; matrices */
    uint64_t infos[SURVEY_INFOS], rconds[SURVEY_DECADES], measured[SURVEY_RESIDUALS];
    double residuals[SURVEY_RESIDUALS]; /* the largest since the last time; 0: none */
};
/* For one caller: it takes the largest residuals away. */
void handlers__stats_take(struct handlers *handlers, struct stats_totals *totals);
/* Brings the metrics up to the cells. */
void handlers__stats_publish(struct handlers *handlers);

#endif
