/* server/http/count.h: the metrics of the HTTP door: requests by route and status, durations, body
 * bytes.
 *
 * Finding a series takes a lock and compares strings; an event loop keeps those it has found.
 *
 * Threads: one event loop's. Cost: a hash and a comparison a request.
 */
#ifndef SERVER_HTTP_COUNT_H
#define SERVER_HTTP_COUNT_H

#include <stdint.h>

#include "base/metric.h"

#define HTTP_COUNT_CELLS 256 /* power of two; routes times the statuses they really answer */

struct http_count_cell {
    const char *route; /* NULL: free. Compared by address: labels are constant texts */
    int status;
    struct metric_series *requests, *duration;
};

struct http_count {
    struct metric_registry *metrics; /* borrowed */
    struct metric_series *bytes_in, *bytes_out, *client_left;
    struct http_count_cell cells[HTTP_COUNT_CELLS];
};

void http_count_init(struct http_count *count, struct metric_registry *metrics);
/* One request was answered (or its answer could not be delivered). route is constant text. */
void http_count_request(struct http_count *count, const char *route, int status,
                        uint64_t duration_ns, int64_t in_bytes, int64_t out_bytes);
/* One request was answered by the HTTP library itself. */
void http_count_refused(struct http_count *count, int status);

#endif
