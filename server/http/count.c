/* server/http/count.c: see count.h. Threads: one event loop's. */
#include "server/http/count.h"

#include <stdio.h>

#include "base/error.h"

#define PROBES 8 /* cells looked at before the registry is asked instead */

void http_count_init(struct http_count *count, struct metric_registry *metrics)
{
    *count = (struct http_count){.metrics = metrics};
    count->bytes_in = metric_series(metrics, METRIC_BYTES, "in");
    count->bytes_out = metric_series(metrics, METRIC_BYTES, "out");
    count->client_left = metric_series(metrics, METRIC_CANCELLED, "client_left");
}

static struct http_count_cell find(struct http_count *count, const char *route, int status)
{
    uint32_t hash = (uint32_t)((uintptr_t)route >> 3) * UINT32_C(2654435761);
    uint32_t start = (hash >> 16) + (uint32_t)status;
    struct http_count_cell *cell = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        cell = &count->cells[(start + i) % HTTP_COUNT_CELLS];
        if (cell->route == route && cell->status == status)
            return *cell;
        if (cell->route == NULL)
            break;
    }
    char code[16];
    snprintf(code, sizeof code, "%d", status);
    struct http_count_cell found = {
        .route = route,
        .status = status,
        .requests = metric_series(count->metrics, METRIC_REQUESTS, route, code),
        .duration = metric_series(count->metrics, METRIC_REQUEST_DURATION, route),
    };
    if (cell->route == NULL)
        *cell = found;
    return found;
}

void http_count_request(struct http_count *count, const char *route, int status,
                        uint64_t duration_ns, int64_t in_bytes, int64_t out_bytes)
{
    struct http_count_cell cell = find(count, route, status);
    metric_add(cell.requests, 1);
    metric_observe(cell.duration, duration_ns);
    metric_add(count->bytes_in, (uint64_t)in_bytes);
    metric_add(count->bytes_out, (uint64_t)out_bytes);
}

void http_count_refused(struct http_count *count, int status)
{
    enum error reason = ERROR_MALFORMED; /* unless the table has a row of that status */
    for (int code = ERROR_NONE + 1; code < ERROR_COUNT; code++)
        if (error_http_status((enum error)code) == status) {
            reason = (enum error)code;
            break;
        }
    metric_add(find(count, "other", status).requests, 1);
    metric_add(metric_series(count->metrics, METRIC_REJECTED, error_name(reason)), 1);
}
