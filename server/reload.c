/* server/reload.c: see reload.h. Threads: loop 0's. */
#include "server/reload.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

struct reload {
    struct reload_options options;
    uv_timer_t timer; /* looks at the token file, where there is one */
    struct config
        given; /* as it was read: in that in force, some numbers follow from the machine */
};

static void keep(const char *message, const struct failure *failure)
{
    log_line(LOG_ERROR, message, "why", LOG_STR, failure->detail, NULL);
}

static void report(void *context, const struct option_row *row, const char *before,
                   const char *after)
{
    int *changes = context;
    *changes += row->reload;
    log_line(row->reload ? LOG_INFO : LOG_WARNING,
             row->reload ? "option changed" : "option waits for a restart", "option", LOG_STR,
             row->flag, "before", LOG_STR, before, "after", LOG_STR, after, NULL);
}

static void apply(struct reload *reload, const struct config *fresh)
{
    const struct reload_options *options = &reload->options;
    option_reload_apply(&config_table, &reload->given, fresh);
    option_reload_apply(&config_table, options->config, fresh);
    log_set_level((enum log_level)fresh->log_level);
    struct http_limits http = config_http_limits(fresh);
    for (int i = 0; i < options->loop_count; i++)
        loop_set_limits(options->loops[i], &http);
    struct handlers_limits handlers = config_handlers_limits(fresh),
                           *own = &options->services->limits;
    own->body_max_bytes = handlers.body_max_bytes;
    own->job_max_bytes = handlers.job_max_bytes;
    own->compress_min_bytes = handlers.compress_min_bytes;
    own->compress_level = handlers.compress_level;
    own->streams_max = handlers.streams_max;
    struct queue_limits queue = config_queue_limits(options->config); /* which knows the arena */
    queue_set_limits(options->services->queue, &queue);
    drain_set_times(options->drain, fresh->drain_delay_ns, fresh->drain_timeout_ns);
}

static void reload_options(struct reload *reload)
{
    struct config fresh;
    struct failure failure = {0};
    enum config_task task;
    int changes = 0;
    if (config_read(reload->options.argc, reload->options.argv, environ, &fresh, &task, &failure) !=
        ERROR_NONE) {
        keep("options not reloaded; the old ones stay", &failure);
        return;
    }
    option_reload_differences(&config_table, &reload->given, &fresh, report, &changes);
    apply(reload, &fresh);
    config_free(&fresh);
    log_line(LOG_INFO, "options reloaded", "changed", LOG_I64, (int64_t)changes, NULL);
}

static void reload_certificates(struct tls *tls)
{
    struct failure failure = {0};
    if (tls_reload(tls, &failure) != ERROR_NONE)
        keep("certificates not reloaded; the old ones stay", &failure);
    else
        log_line(LOG_INFO, "certificates reloaded", "expires", LOG_I64, tls_expires(tls), NULL);
}

static void reload_tokens(struct access *access)
{
    struct failure failure = {0};
    if (access_reload(access, &failure) != ERROR_NONE)
        keep("tokens not reloaded; the old ones stay", &failure);
    else
        log_line(LOG_INFO, "tokens reloaded", "clients", LOG_I64, (int64_t)access_count(access),
                 NULL);
}

static void on_timer(uv_timer_t *timer)
{
    const struct reload *reload = timer->data;
    if (access_has_changed(reload->options.access))
        reload_tokens(reload->options.access);
}

/* ---- Life ---- */

enum error reload_create(const struct reload_options *options, struct reload **result,
                         struct failure *failure)
{
    enum config_task task;
    struct reload *reload = calloc(1, sizeof *reload);
    if (reload == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    reload->options = *options;
    enum error error =
        config_read(options->argc, options->argv, environ, &reload->given, &task, failure);
    if (error != ERROR_NONE) {
        free(reload);
        return error;
    }
    reload->timer.data = reload;
    uv_timer_init(loop_uv(options->loops[0]), &reload->timer);
    if (options->access != NULL) {
        uint64_t check_ms = (uint64_t)options->config->token_check_ns / CLOCK_MS;
        uv_timer_start(&reload->timer, on_timer, check_ms, check_ms);
    }
    *result = reload;
    return ERROR_NONE;
}

void reload_close(struct reload *reload)
{
    if (reload != NULL)
        uv_close((uv_handle_t *)&reload->timer, NULL);
}

void reload_destroy(struct reload **reload)
{
    if (*reload == NULL)
        return;
    config_free(&(*reload)->given);
    free(*reload);
    *reload = NULL;
}

void reload_run(struct reload *reload)
{
    log_reopen();
    log_line(LOG_INFO, "log opened anew", NULL);
    if (reload->options.access_log != NULL)
        request_log_reopen(reload->options.access_log);
    if (reload->options.tls != NULL)
        reload_certificates(reload->options.tls);
    if (reload->options.access != NULL)
        reload_tokens(reload->options.access);
    reload_options(reload);
}
