/* handlers/page.c: the page of `/`: what the service does now, for people; and in its place, for a
 * browser whose user is not known, a form for a token.
 *
 * Both have one style and one script. With scripts the figures follow /v1/events; without, they are
 * those of the moment at which the page was made. The policy lets that script and that style run,
 * by their digests, and nothing else.
 *
 * Threads: the exchange's loop. Cost: a page of some 25 KiB.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "handlers/handlers_private.h"
#include "handlers/history.h"
#include "handlers/live_page.h"
#include "handlers/login_page.h"
#include "handlers/status.h"

static const char before_style[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>invertd</title>\n<style>";
static const char before_body[] = "</style>\n</head>\n<body>\n";
static const char before_script[] = "<script>";
static const char at_end[] = "</script>\n</body>\n</html>\n";

/* ---- The policy ---- */

/* "'sha256-...'" of what stands in the page. */
static void put_digest(struct text *text, const unsigned char *data, size_t bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char digest[DIGEST_BYTES + 1] = {0}; /* a multiple of three */
    text->failed |= !digest_sha256(data, bytes, digest);
    text_puts(text, "'sha256-");
    for (int i = 0; i < DIGEST_BYTES; i += 3) {
        unsigned bits = (unsigned)digest[i] << 16 | (unsigned)digest[i + 1] << 8 | digest[i + 2];
        for (int k = 0; k < 4 && 8 * i + 6 * k < 8 * DIGEST_BYTES; k++)
            text_append(text, &letters[bits >> (18 - 6 * k) & 63], 1);
    }
    text_puts(text, "='"); /* 32 bytes leave one place over */
}

enum error handlers__page_create(struct handlers *handlers)
{
    struct text *policy = &handlers->page_policy;
    text_init(policy, HANDLERS_PAGE_MAX);
    text_puts(policy, "default-src 'none'; connect-src 'self'; base-uri 'none'; "
                      "form-action 'none'; frame-ancestors 'none'; style-src ");
    put_digest(policy, live_page_css, live_page_css_bytes);
    text_puts(policy, "; script-src ");
    put_digest(policy, live_page_js, live_page_js_bytes);
    return policy->failed ? ERROR_INTERNAL : ERROR_NONE;
}

void handlers__page_destroy(struct handlers *handlers)
{
    if (handlers->page_policy.data != NULL)
        text_free(&handlers->page_policy);
}

void handlers__login_page(struct exchange *x, struct exchange_reply *reply)
{
    handlers__reply_field(reply, "Content-Type", "text/html; charset=utf-8");
    handlers__reply_field(reply, "Content-Security-Policy", x->handlers->page_policy.data);
    handlers__reply_segment(reply, before_style, sizeof before_style - 1);
    handlers__reply_segment(reply, live_page_css, live_page_css_bytes);
    handlers__reply_segment(reply, before_body, sizeof before_body - 1);
    handlers__reply_segment(reply, login_page_html, login_page_html_bytes);
    handlers__reply_segment(reply, before_script, sizeof before_script - 1);
    handlers__reply_segment(reply, live_page_js, live_page_js_bytes);
    handlers__reply_segment(reply, at_end, sizeof at_end - 1);
    exchange_answer(x, reply);
}

/* ---- Parts of the page ---- */

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
    text_puts(page, ".</p>");
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
        text_puts(table->page,
                  "<h2>Clients</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                  "aria-label=\"Clients\"><table><thead><tr><th scope=\"col\">Name"
                  "<th scope=\"col\">Requests under way<th scope=\"col\">Requests a second"
                  "<th scope=\"col\">MiB of the arena<th scope=\"col\">Device seconds a second"
                  "<tbody>");
    if (table->rows == QUEUE_ACCOUNTS_SHOWN)
        text_puts(table->page, "<tr><td colspan=\"5\">and others");
    if (table->rows++ >= QUEUE_ACCOUNTS_SHOWN)
        return;
    text_puts(table->page, "<tr><th scope=\"row\">");
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
        text_puts(page, "</table></div>");
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
                "<h2>Try it</h2><pre tabindex=\"0\">curl -sS %s-d '{\"matrix\":[[4,7],[2,6]]}' "
                "%s%s/v1/invert\n\n"
                "curl -sS %s--fail-with-body --data-binary @a.npy "
                "-H 'Content-Type: application/x-npy' \\\n"
                "     %s%s/v1/invert -o inverse.npy || cat inverse.npy</pre>",
                token, scheme, host, token, scheme, host);
}

static void put_methods(struct text *page, const struct exchange *x)
{
    const struct handlers *handlers = x->handlers;
    char path[64];
    text_puts(page, "<h2>Methods</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                    "aria-label=\"Methods\"><table class=\"wide\"><thead><tr><th scope=\"col\">Name"
                    "<th scope=\"col\">What it does<th scope=\"col\">When<tbody>");
    for (int i = 0; i < handlers->model_count; i++) {
        const struct method *method = handlers->models[i].method;
        snprintf(path, sizeof path, "/v2/models/%s", method->name);
        text_puts(page, "<tr><th scope=\"row\">");
        put_link(page, x, path, method->name);
        text_puts(page, "<td>");
        put_html(page, method->title);
        text_puts(page, "<td>");
        put_html(page, method->when);
    }
    text_puts(page, "</table></div>");
}

/* ---- Figures ---- */

/* A number with the largest of the units that fits; as the script's `short`. */
struct unit {
    double bound;
    const char *name;
};

static void put_short(struct text *page, double value, const struct unit *units, int count)
{
    int i = 0;
    while (i < count - 1 && value < units[i].bound)
        i++;
    if (value == 0)
        text_puts(page, "0");
    else
        text_printf(page, "%.3g%s", value / units[i].bound, units[i].name);
}

static void put_value(struct text *page, const char *form, double value)
{
    static const struct unit counts[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1, ""}};
    static const struct unit seconds[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " &micro;s"}};
    static const struct unit bytes[] = {
        {0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}};
    static const struct unit times[] = {{86400, " days"}, {3600, " h"}, {60, " min"}, {1, " s"}};
    if (!isfinite(value))
        text_puts(page, "&ndash;");
    else if (strcmp(form, "seconds") == 0)
        put_short(page, value, seconds, 3);
    else if (strcmp(form, "bytes") == 0)
        put_short(page, value, bytes, 5);
    else if (strcmp(form, "time") == 0)
        put_short(page, floor(value), times, 4);
    else if (strcmp(form, "small") == 0)
        text_printf(page, "%.1e", value);
    else
        put_short(page, value, counts, 4);
}

/* at: where the script finds it in the document; as: the form of its text. */
static void put_figure(struct text *page, const char *label, const char *at, const char *as,
                       double value)
{
    text_printf(page, "<div><dt>%s</dt><dd data-at=\"%s\" data-as=\"%s\">", label, at, as);
    put_value(page, as, value);
    text_puts(page, "</dd></div>\n");
}

static double a_second(const struct history_span *span, uint64_t from, uint64_t to)
{
    return span->seconds > 0 ? (double)(to - from) / span->seconds : 0;
}

static void put_figures(struct text *page, struct handlers *handlers,
                        const struct history_span *second, const struct history_span *minute)
{
    const struct metric_counts *times = handlers__history_times(handlers);
    const uint64_t *from = minute->from.latency, *to = minute->to.latency;
    const struct arena *arena = handlers->services->arena;
    text_puts(page, "<h2 id=\"now\">Now</h2><dl class=\"figures\">\n");
    put_figure(page, "Requests a second", "rates.requests.second", "count",
               a_second(second, second->from.totals.success, second->to.totals.success));
    put_figure(page, "Inversions a second", "rates.inversions.second", "count",
               a_second(second, second->from.totals.matrices, second->to.totals.matrices));
    put_figure(page, "Inversions a second, last minute", "rates.inversions.minute", "count",
               a_second(minute, minute->from.totals.matrices, minute->to.totals.matrices));
    put_figure(page, "Refused a second, last minute", "rates.refused.minute", "count",
               a_second(minute, minute->from.refused, minute->to.refused));
    put_figure(page, "Median latency, last minute", "latency.p50_s", "seconds",
               handlers__history_quantile(times, from, to, 0.5) / CLOCK_S);
    put_figure(page, "99% are faster than", "latency.p99_s", "seconds",
               handlers__history_quantile(times, from, to, 0.99) / CLOCK_S);
    put_figure(page, "Requests under way", "queue.under_way", "whole",
               (double)queue_pending(handlers->services->queue));
    put_figure(page, "Wait for a batch", "queue.waiting", "whole", (double)minute->to.waiting);
    put_figure(page, "Wait for memory", "queue.waiting_for_memory", "whole",
               (double)queue_waiting_for_room(handlers->services->queue));
    put_figure(page, "Batches a second, last minute", "batches.rate.minute", "count",
               a_second(minute, minute->from.batches, minute->to.batches));
    put_figure(page, "Memory in use", "arena.used", "bytes", (double)arena_used_bytes(arena));
    put_figure(page, "Memory in all", "arena.bytes", "bytes", (double)arena_bytes(arena));
    text_puts(page, "</dl>\n");
}

static void put_accuracy(struct text *page, const struct history_span *minute)
{
    const char *none = "<p class=\"soft\">A residual is measured where a request asks for one.</p>";
    text_puts(page, "<h2>Accuracy</h2><dl class=\"figures\">\n");
    for (int i = 0; i < SURVEY_RESIDUALS; i++)
        put_figure(page,
                   i == SURVEY_RESIDUAL_NORM ? "Largest |I &minus; X A|, last minute"
                                             : "Largest scaled residual, last minute",
                   i == SURVEY_RESIDUAL_NORM ? "accuracy.residual.largest"
                                             : "accuracy.scaled_residual.largest",
                   "small", minute->residuals[i] > 0 ? minute->residuals[i] : (double)NAN);
    text_puts(page, "</dl>");
    text_puts(page, none);
}

/* ---- Charts, which the script draws ---- */

#define CHART(id, lines, name, form, words)                                                        \
    "<figure " id lines form "><figcaption><span class=\"name\">" name                             \
    "</span><span class=\"top\">" words "</span></figcaption><svg role=\"img\" aria-label=\"" name \
    "\" viewBox=\"0 0 300 80\" preserveAspectRatio=\"none\"></svg></figure>\n"
#define LINES(lines, form, name)                                                                   \
    CHART("", "data-lines=\"" lines "\" ", name, "data-form=\"" form "\"", "")

static const char rate_charts[] = "<h2>Last five minutes</h2><div class=\"charts\">\n" LINES(
    "requests", "count", "Requests a second") LINES("inversions", "count", "Inversions a second")
    LINES("p50_s p99_s", "seconds", "Latency: median, 99% (dashed)")
        LINES("waiting", "whole", "Requests that wait for a batch")
            LINES("busy", "share", "Devices at work")
                CHART("id=\"sizes\"", "", "Batches by matrices, last minute", "", "") "</div>\n";
static const char rcond_chart[] =
    CHART("id=\"rcond\"", "", "Matrices by RCOND, since the start", "", "");
static const char devices_head[] =
    "<h2>Devices</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Devices\">"
    "<table id=\"devices\"><thead><tr><th scope=\"col\">Device<th scope=\"col\">State"
    "<th scope=\"col\">Model<th scope=\"col\">At work<th scope=\"col\">Last minute"
    "<th scope=\"col\">Inversions a second<tbody>";
static const char jobs_table[] =
    "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Jobs\" hidden>"
    "<table id=\"jobs\"><thead><tr><th scope=\"col\">Newest jobs<th scope=\"col\">Status"
    "<th scope=\"col\">Progress<th scope=\"col\">Time<th scope=\"col\">Method"
    "<th scope=\"col\">Matrices<tbody></table></div>\n";

/* How many there are by status; the script adds those that this client may see. */
static void put_jobs(struct text *page, const struct handlers *handlers)
{
    struct handlers__jobs_count count;
    handlers__jobs_count(handlers, &count);
    text_puts(page, "<h2>Jobs</h2>");
    if (!count.kept) {
        text_puts(page, "<p class=\"soft\">This service keeps no jobs.</p>\n");
        return;
    }
    text_puts(page, "<dl class=\"figures\">\n");
    put_figure(page, "Wait", "jobs.accepted", "whole", (double)count.accepted);
    put_figure(page, "Run", "jobs.running", "whole", (double)count.running);
    put_figure(page, "Successful, and kept", "jobs.successful", "whole", (double)count.successful);
    put_figure(page, "Failed, and kept", "jobs.failed", "whole", (double)count.failed);
    text_puts(page, "</dl>\n");
    text_puts(page, jobs_table);
}

static void put_devices(struct text *page, struct metric_registry *metrics,
                        const struct history_span *second, const struct history_span *minute)
{
    char device[64], model[128];
    int i = 0;
    text_puts(page, devices_head);
    for (struct metric_series *up = metric_next(metrics, METRIC_DEVICE_UP, NULL);
         up != NULL && i < HISTORY_DEVICES; up = metric_next(metrics, METRIC_DEVICE_UP, up), i++) {
        metric_label(up, "device", device, sizeof device);
        handlers__status_model(metrics, device, model, sizeof model);
        text_puts(page, "<tr><th scope=\"row\">");
        put_html(page, device);
        text_printf(page, "<td>%s<td>", metric_value(up) == 1 ? "up" : "down");
        put_html(page, model);
        text_printf(page, "<td>%.0f %%<td>%.0f %%<td>", 100 * handlers__status_busy(second, i),
                    100 * handlers__status_busy(minute, i));
        put_value(page, "count",
                  a_second(second, second->from.device_matrices[i], second->to.device_matrices[i]));
    }
    text_puts(page, "</table></div>\n");
}

static void put_main(struct text *page, const struct exchange *x)
{
    struct handlers *handlers = x->handlers;
    struct history_span *spans = malloc(2 * sizeof *spans); /* larger than a frame should be */
    if (spans == NULL) {
        page->failed = true;
        return;
    }
    handlers__history_span(handlers, 1, &spans[0]);
    handlers__history_span(handlers, HISTORY_MINUTE, &spans[1]);
    put_figures(page, handlers, &spans[0], &spans[1]);
    text_puts(page, rate_charts);
    put_devices(page, handlers->services->metrics, &spans[0], &spans[1]);
    put_jobs(page, handlers);
    put_accuracy(page, &spans[1]);
    text_puts(page, rcond_chart);
    free(spans);
    put_clients(page, handlers->services->queue);
    put_methods(page, x);
    put_commands(page, x);
}

void handlers__status_page(struct exchange *x)
{
    struct handlers *handlers = x->handlers;
    struct text page;
    text_init(&page, HANDLERS_PAGE_MAX);
    text_puts(&page, before_style);
    text_append(&page, (const char *)live_page_css, live_page_css_bytes);
    text_puts(&page, before_body);
    text_puts(&page, "<header><h1>invertd</h1><p>Version ");
    put_html(&page, handlers->services->version);
    text_puts(&page, handlers__ready(handlers) ? ", ready" : ", <b class=\"bad\">not ready</b>");
    text_puts(&page, ", up for <span data-at=\"uptime_s\" data-as=\"time\">");
    put_value(&page, "time", (double)(clock_now_ns() - handlers->started_ns) / CLOCK_S);
    text_puts(&page, "</span>.</p><p id=\"state\" role=\"status\">Figures of the moment at which "
                     "this page was made.</p></header>\n<main>\n");
    put_main(&page, x);
    text_puts(&page, "</main>\n<footer><h2>More</h2>");
    put_links(&page, x);
    text_puts(&page, "</footer>\n");
    text_puts(&page, before_script);
    text_append(&page, (const char *)live_page_js, live_page_js_bytes);
    text_puts(&page, at_end);
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_field(&reply, "Content-Security-Policy", handlers->page_policy.data);
    handlers__reply_text(x, &reply, "text/html; charset=utf-8", &page);
}
