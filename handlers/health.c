/* handlers/health.c: what probes, scrapers and browsers ask: live, ready, metrics, the API's
 * description, a status page.
 *
 * Threads: the exchange's loop.
 */
#include <stdio.h>
#include <string.h>

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

/* ---- The status page ---- */

/* Nothing is loaded, run or framed; the style is the page's own. */
static const char page_policy[] = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                                  "form-action 'none'; frame-ancestors 'none'";

static const char page_head[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>invertd</title>"
    "<meta name=\"viewport\" content=\"width=device-width\">"
    "<meta name=\"color-scheme\" content=\"light dark\"><style>"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2em 1em .2em 0;"
    "vertical-align:top}pre{background:#8882;padding:.6em;overflow-x:auto}"
    "</style></head><body><h1>invertd</h1>";

static void put_html(struct text *page, const char *string)
{
    for (; *string != '\0'; string++) {
        switch (*string) {
        case '<':
            text_puts(page, "&lt;");
            break;
        case '>':
            text_puts(page, "&gt;");
            break;
        case '&':
            text_puts(page, "&amp;");
            break;
        case '"':
            text_puts(page, "&quot;");
            break;
        default:
            text_append(page, string, 1);
        }
    }
}

/* The text alone where the caller may not see that path, or another listener serves it. */
static void put_link(struct text *page, const struct exchange *x, const char *path,
                     const char *string)
{
    const struct handlers_route *route = handlers__route_find(path, x->listener);
    bool works = route != NULL && (route->roles == 0 || client_may(x->caller, route->roles));
    if (works)
        text_printf(page, "<a href=\"%s\">", path);
    text_puts(page, string);
    if (works)
        text_puts(page, "</a>");
}

static void put_links(struct text *page, const struct exchange *x)
{
    static const char *const links[][2] = {{"/openapi.yaml", "The API"},
                                           {"/v1/methods", "the methods and their options"},
                                           {"/v2", "the Open Inference Protocol"},
                                           {"/v2/models/stats", "statistics"},
                                           {"/metrics", "metrics"}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        text_puts(page, i == 0 ? "<p>" : ", ");
        put_link(page, x, links[i][0], links[i][1]);
    }
    text_puts(page, ".</p></body></html>\n");
}

/* "3 of 10": what a client uses of a quota; where it has none, the first alone, if it is counted.
 */
static void put_use(struct text *page, double used, double limit)
{
    text_puts(page, "<td>");
    if (limit > 0 || used > 0)
        text_printf(page, "%.4g", used);
    if (limit > 0)
        text_printf(page, " of %.4g", limit);
}

struct clients_table {
    struct text *page;
    int rows;
};

static void put_client(void *context, const struct queue_account_use *use)
{
    struct clients_table *table = context;
    const double second = (double)CLOCK_S, mib = 1 << 20;
    if (table->rows == 0)
        text_puts(table->page, "<h2>Clients</h2><table><tr><th>Name<th>Requests under way"
                               "<th>Requests a second<th>MiB of the arena<th>Device seconds a "
                               "second");
    if (table->rows == QUEUE_ACCOUNTS_SHOWN)
        text_puts(table->page, "<tr><td colspan=\"5\">and others");
    if (table->rows++ >= QUEUE_ACCOUNTS_SHOWN)
        return;
    text_puts(table->page, "<tr><td>");
    put_html(table->page, use->name);
    put_use(table->page, (double)use->requests, (double)use->limits.requests);
    put_use(table->page, (double)use->rate, (double)use->limits.rate);
    put_use(table->page, (double)use->bytes / mib, (double)use->limits.bytes / mib);
    put_use(table->page, (double)use->device_ns / second, (double)use->limits.device_ns / second);
}

/* Nothing where no client has a name. */
static void put_clients(struct text *page, struct queue *queue)
{
    struct clients_table table = {.page = page};
    queue_accounts_each(queue, put_client, &table);
    if (table.rows > 0)
        text_puts(page, "</table>");
}

/* Commands to copy, for the address that the browser has asked. */
static void put_commands(struct text *page, const struct exchange *x)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    const char *host = exchange_header(x, "Host");
    if (host == NULL || *host == '\0' || host[strspn(host, plain)] != '\0')
        host = "localhost:8000";
    const char *scheme = x->handlers->services->tls ? "https://" : "";
    const char *token = x->handlers->services->tokens ? "-H 'Authorization: Bearer TOKEN' " : "";
    text_printf(page,
                "<h2>Try it</h2><pre>curl -sS %s-d '{\"matrix\":[[4,7],[2,6]]}' %s%s/v1/invert\n\n"
                "curl -sS %s--fail-with-body --data-binary @a.npy "
                "-H 'Content-Type: application/x-npy' \\\n"
                "     %s%s/v1/invert -o inverse.npy || cat inverse.npy</pre>",
                token, scheme, host, token, scheme, host);
}

static void put_methods(struct text *page, const struct exchange *x)
{
    const struct handlers *handlers = x->handlers;
    char path[64];
    text_puts(page, "<h2>Methods</h2><table><tr><th>Name<th>What it does<th>When");
    for (int i = 0; i < handlers->model_count; i++) {
        const struct method *method = handlers->models[i].method;
        snprintf(path, sizeof path, "/v2/models/%s", method->name);
        text_puts(page, "<tr><td>");
        put_link(page, x, path, method->name);
        text_puts(page, "<td>");
        put_html(page, method->title);
        text_puts(page, "<td>");
        put_html(page, method->when);
    }
    text_puts(page, "</table>");
}

void handlers__status_page(struct exchange *x)
{
    struct handlers *handlers = x->handlers;
    struct text page;
    text_init(&page, HANDLERS_PAGE_MAX);
    text_puts(&page, page_head);
    text_puts(&page, "<p>Version ");
    put_html(&page, handlers->services->version);
    text_puts(&page, handlers__ready(handlers) ? ", ready. " : ", <b>not ready</b>. ");
    int64_t pending = queue_pending(handlers->services->queue);
    text_printf(&page, "%lld request%s under way; %llu of %llu MiB of the arena in use.</p>",
                (long long)pending, pending == 1 ? "" : "s",
                (unsigned long long)(arena_used_bytes(handlers->services->arena) >> 20),
                (unsigned long long)(arena_bytes(handlers->services->arena) >> 20));
    put_clients(&page, handlers->services->queue);
    put_methods(&page, x);
    put_commands(&page, x);
    put_links(&page, x);
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_field(&reply, "Content-Security-Policy", page_policy);
    handlers__reply_text(x, &reply, "text/html; charset=utf-8", &page);
}
