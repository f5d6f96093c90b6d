/* handlers/health.c: what probes, scrapers and browsers ask: live, ready, metrics, the API's
 * description.
 *
 * Threads: the exchange's loop.
 */
#include <stdio.h>

#include "base/clock.h"
#include "handlers/handlers_private.h"
#include "handlers/openapi.h"
#include "handlers/stats.h"

#define METRICS_MAX (16 << 20)

static void answer_flag(struct exchange *x, const char *name, bool value)
{
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    text_printf(&json, "{\"%s\":%s}", name, value ? "true" : "false");
    struct exchange_reply reply;
    handlers__reply_open(&reply, value ? 200 : 503);
    handlers__reply_text(x, &reply, HANDLERS_JSON, &json);
}

void handlers__live(struct exchange *x)
{
    answer_flag(x, "live", atomic_load(&x->handlers->services->live));
}

void handlers__ready_answer(struct exchange *x)
{
    answer_flag(x, "ready", handlers__ready(x->handlers));
}

/* Renders the metrics, after an update of those that are kept elsewhere. */
void handlers__metrics(struct exchange *x)
{
    struct handlers *handlers = x->handlers;
    const struct arena *arena = handlers->services->arena;
    uint64_t used = arena_used_bytes(arena);
    metric_set(handlers->arena_used, (int64_t)used);
    metric_set(handlers->arena_free, (int64_t)(arena_bytes(arena) - used));
    metric_set(handlers->memory_waiting, queue_waiting_for_room(handlers->services->queue));
    metric_set(handlers->ready, handlers__ready(handlers));
    process_stats_update(handlers->process_stats);
    queue_show_running(handlers->services->queue);
    queue_accounts_show(handlers->services->queue);
    handlers__stats_publish(handlers);
    struct text page;
    text_init(&page, METRICS_MAX);
    metric_render(handlers->services->metrics, &page);
    handlers__reply_document(x, "text/plain; version=0.0.4; charset=utf-8", &page);
}

void handlers__openapi(struct exchange *x)
{
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_field(&reply, "Content-Type", "application/yaml");
    handlers__reply_segment(&reply, openapi_yaml, openapi_yaml_bytes);
    exchange_answer(x, &reply);
}
