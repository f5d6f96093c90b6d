/* handlers/status.h: the status document, of which the page of `/`, /v1/status and /v1/events show
 * the same.
 *
 * Threads: any.
 */
#ifndef HANDLERS_STATUS_H
#define HANDLERS_STATUS_H

#include "handlers/handlers_private.h"
#include "handlers/history.h"

/* Jobs by status, of all clients, as they were counted within the last second. */
struct handlers__jobs_count {
    bool kept; /* false: this service keeps no jobs, and all are 0 */
    int64_t accepted, running, successful, failed;
};

void handlers__jobs_count(const struct handlers *handlers, struct handlers__jobs_count *count);
/* The share of the span in which the device, by its place among history_sample's, was at work. */
double handlers__status_busy(const struct history_span *span, int device);
/* The model that the device's engine last came up with; "": none did. */
void handlers__status_model(struct metric_registry *metrics, const char *device, char *model,
                            size_t size);
/* Appends the document, with the last so many seconds one by one for charts. */
void handlers__status_document(struct handlers *handlers, int history_seconds, struct text *json);

#endif
