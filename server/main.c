/* server/main.c: invertd: what there is, in which order it starts, and the reverse.
 *
 * config, log, listeners, arena, metrics, queue, loops, supervisor, pool, jobs, handlers, doors;
 * then the loops run. Loop 0 is this thread's, with the supervisor and the signals on it. What is
 * made hangs from `struct daemon`; what was not made yet is NULL, so one function takes down any
 * part of it.
 *
 * Exit codes: 0 clean, 2 bad options, 1 anything else.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/workers.h"
#include "handlers/judge.h"
#include "queue/account.h"
#include "server/callbacks/callbacks.h"
#include "server/config.h"
#include "server/data.h"
#include "server/descriptors.h"
#include "server/drain.h"
#include "server/engines/command.h"
#include "server/http/access.h"
#include "server/http/put_off.h"
#include "server/http/request_log.h"
#include "server/http/tls.h"
#include "server/http/token_file.h"
#include "server/listeners.h"
#include "server/loop.h"
#include "server/machine.h"
#include "server/notify.h"
#include "server/reload.h"
#include "version.h"

enum exit_code {
    EXIT_CLEAN = 0,
    EXIT_TROUBLE = 1,
    EXIT_OPTIONS = 2
};

#define MS 1000000          /* ns */
#define ARENA_SHARE_LARGE 2 /* an arena above this part of the memory is worth a warning */

struct daemon {
    struct config config;
    struct listeners listeners;
    struct descriptors_share descriptors;
    struct tls *tls;                /* NULL: none */
    struct access *access;          /* NULL: no tokens */
    struct request_log *access_log; /* NULL: none */
    struct arena *arena;
    struct metric_registry *metrics;
    struct queue *queue;
    struct spawner *spawner;
    struct supervisor *supervisor;
    struct workers *pool;
    struct jobs *jobs; /* NULL: none are taken */
    struct callback_hosts callback_hosts;
    struct callbacks *callbacks; /* NULL: none are sent */
    struct handlers *handlers;
    struct handlers_services services;
    struct loop *loops[CONFIG_LOOPS_MAX];
    int loop_count;
    struct drain *drain;
    struct notify *notify; /* NULL: no manager */
    struct reload *reload;
    int argc;
    char **argv;
    _Atomic int64_t connections;
    struct http_peer_key peer_key;
    struct put_off_clients put_off_clients;
    bool engines_stopped;
};

/* ---- Ends ---- */

/* When an orderly end cannot be had: engines end by themselves when this process does. */
static _Noreturn void give_up(struct daemon *daemon, const char *why)
{
    log_line(LOG_ERROR, "ending at once", "why", LOG_STR, why, NULL);
    listeners_close(&daemon->listeners);
    _exit(EXIT_TROUBLE);
}

static void on_engines_failed(void *context)
{
    give_up(context, "an engine that has to be there cannot be used");
}

static void on_engines_stopped(void *context)
{
    struct daemon *daemon = context;
    daemon->engines_stopped = true;
    loop_stop_here(daemon->loops[0]);
}

static void on_drained(void *context)
{
    struct daemon *daemon = context;
    loop_stop_here(daemon->loops[0]);
}

static void on_expired(void *context, const char *why)
{
    give_up(context, why);
}

static void on_hangup(void *context)
{
    struct daemon *daemon = context;
    notify_reloading(daemon->notify);
    reload_run(daemon->reload);
    notify_reloaded(daemon->notify);
}

static void on_stopping(void *context)
{
    struct daemon *daemon = context;
    notify_stopping(daemon->notify);
    callbacks_stop(daemon->callbacks);
    jobs_stop(daemon->jobs);
}

/* ---- Start ---- */

/* What the listeners and so many loops take. */
static struct descriptors_use use_of(const struct daemon *daemon, int loops)
{
    return (struct descriptors_use){.loops = loops,
                                    .doors = listeners_doors(&daemon->listeners, loops),
                                    .sockets = listeners_sockets(&daemon->listeners, loops),
                                    .connections = daemon->config.connections_max};
}

/* Settles what file descriptors are for. Where there are few, connections-max and the number of
 * loops become smaller, unless --loops asks for so many. */
static enum error share_descriptors(struct daemon *daemon, struct failure *failure)
{
    struct descriptors_use use = use_of(daemon, daemon->loop_count);
    int64_t wanted = descriptors_max(&use), limit = descriptors_raise(wanted);
    while (daemon->config.loops == 0 && daemon->loop_count > 1 && limit < descriptors_min(&use))
        use = use_of(daemon, --daemon->loop_count);
    if (limit < descriptors_min(&use))
        return failure_set(failure, ERROR_INTERNAL,
                           "the limit on open files is %lld; at least %lld are needed (ulimit -n)",
                           (long long)limit, (long long)descriptors_min(&use));
    struct descriptors_share share = descriptors_share_out(&use, limit);
    if (share.connections < daemon->config.connections_max)
        log_line(LOG_WARNING, "connections-max is lowered to what the limit on open files allows",
                 "limit", LOG_I64, limit, "wanted", LOG_I64, wanted, "connections_max", LOG_I64,
                 share.connections, NULL);
    daemon->config.connections_max = share.connections;
    daemon->descriptors = share;
    return ERROR_NONE;
}

static enum error start_engines(struct daemon *daemon, struct failure *failure)
{
    struct supervisor_options options = config_supervisor(&daemon->config, INVERTD_VERSION);
    options.loop = loop_uv(daemon->loops[0]);
    options.spawner = daemon->spawner;
    options.queue = daemon->queue;
    options.arena = daemon->arena;
    options.metrics = daemon->metrics;
    options.ready = &daemon->services.ready;
    options.on_failed = on_engines_failed;
    options.on_stopped = on_engines_stopped;
    options.context = daemon;
    return supervisor_create(&options, &daemon->supervisor, failure);
}

/* Settles the size of the arena, which other limits follow. */
static void size_arena(struct config *config)
{
    char path[ENGINE_PATH_MAX];
    struct failure failure;
    bool has_engine = engine_command_find(config->engine_cuda_path, ENGINE_CUDA_PROGRAM, "", path,
                                          &failure) == ERROR_NONE;
    int64_t memory_bytes = machine_memory_bytes();
    config->arena_size_bytes =
        config_arena_bytes(config, memory_bytes, has_engine && machine_has_nvidia());
    /* The system hands it out page by page: it would be missed under load, not now. */
    if (config->arena_size_bytes > memory_bytes / ARENA_SHARE_LARGE)
        log_line(LOG_WARNING, "the arena is larger than half of the memory", "arena_bytes", LOG_I64,
                 config->arena_size_bytes, "memory_bytes", LOG_I64, memory_bytes, NULL);
}

/* Gives a client of the token file its account. */
static bool open_account(void *context, struct client *client)
{
    client->account = queue_account_by_token(context, client->name, &client->limits);
    return client->account != NULL;
}

static enum error make_accounts(const struct daemon *daemon, struct failure *failure)
{
    const struct access_bind bind = {open_account, daemon->queue};
    if (daemon->access == NULL || access_set_bind(daemon->access, &bind))
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "out of memory");
}

/* On the desk's thread. */
static void on_callback(void *context)
{
    callbacks_wake(((struct daemon *)context)->callbacks);
}

static enum error open_jobs(struct daemon *daemon, struct failure *failure)
{
    const struct config *config = &daemon->config;
    struct jobs_config parts = {.queue = daemon->queue,
                                .arena = daemon->arena,
                                .metrics = daemon->metrics,
                                .on_callback = on_callback,
                                .callback_context = daemon};
    enum error error = data_open(config, &parts, &daemon->jobs, failure);
    if (error == ERROR_NONE)
        error = callback_hosts_read(&config->allow_callbacks, &daemon->callback_hosts, failure);
    const struct callbacks_options callbacks = {.loop = loop_uv(daemon->loops[0]),
                                                .spawner = daemon->spawner,
                                                .jobs = daemon->jobs,
                                                .access = daemon->access,
                                                .metrics = daemon->metrics,
                                                .hosts = &daemon->callback_hosts,
                                                .entries = &config->allow_callbacks,
                                                .ca = config->callback_ca,
                                                .version = INVERTD_VERSION,
                                                .retry_ms = config->callback_retry_ns / MS,
                                                .confined = !config->no_seccomp};
    return error == ERROR_NONE ? callbacks_create(&callbacks, &daemon->callbacks, failure) : error;
}

static enum error make_handlers(struct daemon *daemon, struct failure *failure)
{
    const struct config *config = &daemon->config;
    struct handlers_services *services = &daemon->services;
    services->queue = daemon->queue;
    services->arena = daemon->arena;
    services->pool = daemon->pool;
    services->jobs = daemon->jobs;
    services->callbacks = &daemon->callback_hosts;
    services->metrics = daemon->metrics;
    services->version = INVERTD_VERSION;
    services->tls = config->tls_cert != NULL;
    services->tokens = config->token_file != NULL;
    services->limits = config_handlers_limits(config);
    enum error error = handlers_create(services, &daemon->handlers, failure);
    if (error != ERROR_NONE || daemon->jobs == NULL)
        return error;
    return jobs_start(daemon->jobs, handlers_judge, daemon->handlers, failure);
}

static enum error make_services(struct daemon *daemon, struct failure *failure)
{
    const struct config *config = &daemon->config;
    struct queue_limits limits = config_queue_limits(config);
    enum error error = arena_create(config->arena_size_bytes, &daemon->arena, failure);
    if (error != ERROR_NONE)
        return error;
    daemon->metrics = metric_registry_create();
    if (daemon->metrics == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    error = queue_create(&limits, daemon->metrics, &daemon->queue, failure);
    if (error == ERROR_NONE)
        error = make_accounts(daemon, failure);
    for (int i = 0; i < daemon->loop_count && error == ERROR_NONE; i++)
        error = loop_create(daemon->queue, i, &daemon->loops[i], failure);
    if (error != ERROR_NONE)
        return error;

    error = start_engines(daemon, failure);
    if (error != ERROR_NONE)
        return error;
    error = loop_watch_engines(daemon->loops[0], supervisor_event_fd(daemon->supervisor), failure);
    for (int i = 0; i < daemon->loop_count && config->batch_wait_us > 0 && error == ERROR_NONE; i++)
        error = loop_watch_batches(daemon->loops[i], failure);
    if (error != ERROR_NONE)
        return error;
    error = workers_create(config_pool_threads(config, machine_cores()), (int)config->pool_max,
                           &daemon->pool, failure);
    if (error != ERROR_NONE)
        return error;
    static_assert(CONFIG_LOOPS_MAX <= HANDLERS_LOOPS_MAX, "a loop has a place among the handlers");
    error = open_jobs(daemon, failure);
    return error == ERROR_NONE ? make_handlers(daemon, failure) : error;
}

/* A door for what a loop listens on in one place; none where that is nothing. */
static enum error add_door(struct daemon *daemon, int loop, enum exchange_listener place,
                           enum listen_reach reach, struct failure *failure)
{
    int fds[LISTENERS_MAX];
    struct http_options options = {
        .listen_fds = fds,
        .listen_count = listeners_take(&daemon->listeners, loop, place, reach, fds),
        .listener = place,
        .handlers = daemon->handlers,
        .metrics = daemon->metrics,
        .connections = &daemon->connections,
        .proxies = &daemon->config.proxies,
        .site = {reach == LISTEN_REACH_LOOPBACK, &daemon->config.allowed_hosts,
                 &daemon->config.cors_origins},
        .tls = reach == LISTEN_REACH_UNIX ? NULL : daemon->tls,
        .access = daemon->access,
        .log = daemon->access_log,
        .peer_key = daemon->peer_key,
        .put_off_clients = &daemon->put_off_clients,
        .short_since_ns = queue_short_since_ns(daemon->queue),
        .limits = config_http_limits(&daemon->config),
        .spare_max = daemon->descriptors.spare,
        .linger_max = daemon->descriptors.linger,
    };
    if (options.listen_count == 0)
        return ERROR_NONE;
    return loop_add_door(daemon->loops[loop], &options, failure);
}

static enum error open_doors(struct daemon *daemon, struct failure *failure)
{
    static const enum exchange_listener places[] = {EXCHANGE_LISTENER_ALL, EXCHANGE_LISTENER_WORK,
                                                    EXCHANGE_LISTENER_OPERATIONS};
    enum error error = ERROR_NONE;
    for (int i = 0; i < daemon->loop_count; i++)
        for (int k = 0; k < 3 * LISTEN_REACHES && error == ERROR_NONE; k++)
            error = add_door(daemon, i, places[k / LISTEN_REACHES],
                             (enum listen_reach)(k % LISTEN_REACHES), failure);
    return error;
}

static enum error make_reload(struct daemon *daemon, struct failure *failure)
{
    struct reload_options options = {
        .argc = daemon->argc,
        .argv = daemon->argv,
        .config = &daemon->config,
        .services = &daemon->services,
        .loops = daemon->loops,
        .loop_count = daemon->loop_count,
        .drain = daemon->drain,
        .tls = daemon->tls,
        .access = daemon->access,
        .access_log = daemon->access_log,
    };
    return reload_create(&options, &daemon->reload, failure);
}

static enum error make_notify(struct daemon *daemon, struct failure *failure)
{
    const struct notify_options options = {
        .socket = getenv("NOTIFY_SOCKET"),
        .watchdog_us = getenv("WATCHDOG_USEC"),
        .watchdog_pid = getenv("WATCHDOG_PID"),
        .loop = loop_uv(daemon->loops[0]),
        .ready = &daemon->services.ready,
    };
    return notify_create(&options, &daemon->notify, failure);
}

static enum error start(struct daemon *daemon, struct failure *failure)
{
    enum error error = share_descriptors(daemon, failure);
    if (error == ERROR_NONE)
        error = listeners_open(&daemon->listeners, daemon->loop_count, failure);
    if (error == ERROR_NONE)
        error = make_services(daemon, failure);
    if (error == ERROR_NONE)
        error = open_doors(daemon, failure);
    if (error != ERROR_NONE)
        return error;
    struct drain_options drain = {
        .services = &daemon->services,
        .loops = daemon->loops,
        .loop_count = daemon->loop_count,
        .delay_ns = daemon->config.drain_delay_ns,
        .timeout_ns = daemon->config.drain_timeout_ns,
        .on_hangup = on_hangup,
        .on_stopping = on_stopping,
        .on_done = on_drained,
        .on_expired = on_expired,
        .context = daemon,
    };
    error = drain_create(&drain, loop_uv(daemon->loops[0]), &daemon->drain, failure);
    if (error == ERROR_NONE)
        error = make_reload(daemon, failure);
    if (error == ERROR_NONE)
        error = make_notify(daemon, failure);
    for (int i = 1; i < daemon->loop_count && error == ERROR_NONE; i++)
        error = loop_start(daemon->loops[i], failure);
    if (error == ERROR_NONE)
        error = listeners_write_port(&daemon->listeners, failure);
    return error;
}

/* All threads and descriptors are there, the engines come from the spawner. What serves unconfined
 * serves all the same: an old kernel, or another sandbox around it, is no reason not to. */
static void confine_front(struct daemon *daemon)
{
    struct failure failure = {0};
    bool wanted = CONFINE_IS_BUILT && !daemon->config.no_seccomp;
    bool confined = wanted && confine_process(CONFINE_FRONT, &failure) == ERROR_NONE;
    metric_set(metric_series(daemon->metrics, METRIC_SECCOMP, "front"), confined);
    if (wanted && !confined)
        log_line(LOG_WARNING, "the front is not confined", "why", LOG_STR, failure.detail, NULL);
}

/* A gateway, or TLS, is not the daemon's to ask for: a private network may do. */
static void warn_of_plain_tokens(const struct daemon *daemon)
{
    bool plain = daemon->access != NULL && daemon->tls == NULL && !daemon->config.open;
    if (plain && listeners_check_closed(&daemon->listeners, NULL) != ERROR_NONE)
        log_line(LOG_WARNING,
                 "tokens cross the network in plain text; give --tls-cert and --tls-key, or --open "
                 "where a gateway speaks TLS",
                 NULL);
}

/* ---- Stop ---- */

/* NULL parts were never made. Work that no client waits for may still be in the pool and in
 * engines, which post its completion to the owning loop. So the doors close first, which starts no
 * new work. Then pool and engines let go of everything, and the loops run their last messages. What
 * those messages touch goes last. */
static void stop(struct daemon *daemon)
{
    for (int i = 0; i < daemon->loop_count; i++)
        if (daemon->loops[i] != NULL)
            loop_close_doors(daemon->loops[i]);
    workers_destroy(&daemon->pool);
    jobs_quiesce(daemon->jobs);
    if (daemon->supervisor != NULL) {
        supervisor_stop(daemon->supervisor);
        if (!daemon->engines_stopped)
            loop_run_here(daemon->loops[0]);
    }
    if (daemon->drain != NULL)
        drain_close(daemon->drain);
    notify_close(daemon->notify);
    reload_close(daemon->reload);
    callbacks_close(daemon->callbacks);
    for (int i = daemon->loop_count - 1; i >= 0; i--)
        loop_destroy(&daemon->loops[i]);
    drain_free(&daemon->drain);
    notify_free(&daemon->notify);
    callbacks_free(&daemon->callbacks);
    reload_destroy(&daemon->reload);
    spawner_destroy(&daemon->spawner);
    supervisor_destroy(&daemon->supervisor); /* whose descriptor loop 0 has watched */
    jobs_destroy(&daemon->jobs);
    handlers_destroy(&daemon->handlers);
    queue_destroy(&daemon->queue);
    metric_registry_destroy(&daemon->metrics);
    arena_destroy(&daemon->arena);
    tls_destroy(&daemon->tls);
    access_destroy(&daemon->access);
    request_log_close(&daemon->access_log);
    listeners_close(&daemon->listeners);
    config_free(&daemon->config);
}

/* ---- Command line ---- */

static int complain(const struct failure *failure)
{
    fprintf(stderr, "invertd: %s\n", failure->detail);
    return failure->code == ERROR_BAD_OPTION ? EXIT_OPTIONS : EXIT_TROUBLE;
}

static int print(struct config *config, enum config_task task)
{
    switch (task) {
    case CONFIG_HELP:
        config_print_help(stdout);
        break;
    case CONFIG_VERSION:
        puts("invertd " INVERTD_VERSION);
        break;
    case CONFIG_PRINT:
        option_print_config(&config_table, config, stdout);
        break;
    case CONFIG_PRINT_MARKDOWN:
        option_print_markdown(&config_table, stdout);
        break;
    case CONFIG_NEW_TOKEN:
    case CONFIG_SERVE:
        break;
    }
    config_free(config);
    return fflush(stdout) == 0 ? EXIT_CLEAN : EXIT_TROUBLE;
}

/* --new-token NAME [ROLE,...]: the token is on the first line, that of the file on the second. */
static int print_token(char *const *arguments)
{
    char token[DIGEST_HEX_BYTES], buffer[256];
    struct failure failure = {0};
    struct text line;
    text_init_fixed(&line, buffer, sizeof buffer);
    const char *name = arguments[0], *roles = name == NULL ? NULL : arguments[1];
    enum error error = ERROR_NONE;
    if (name == NULL || (roles != NULL && arguments[2] != NULL))
        error = failure_set(&failure, ERROR_BAD_OPTION,
                            "--new-token takes NAME [ROLE,...], and stands alone.");
    if (error == ERROR_NONE)
        error = token_file_new(name, roles == NULL ? client_role_name(CLIENT_INFER) : roles, token,
                               &line, &failure);
    if (error != ERROR_NONE)
        return complain(&failure);
    printf("%s\n%s\n", token, buffer);
    return fflush(stdout) == 0 ? EXIT_CLEAN : EXIT_TROUBLE;
}

/* What the options name beyond themselves: addresses, certificates, tokens, the access log. */
static enum error read_files(struct daemon *daemon, struct failure *failure)
{
    const struct config *config = &daemon->config;
    const struct tls_files tls = {config->tls_cert, config->tls_key, config->tls_client_ca};
    enum error error = listeners_read(&config->listen, config->metrics_listen, config->port_file,
                                      &daemon->listeners, failure);
    if (error == ERROR_NONE && !config->open && config->tls_client_ca == NULL &&
        config->token_file == NULL)
        error = listeners_check_closed(&daemon->listeners, failure);
    if (error == ERROR_NONE && tls.cert != NULL)
        error = tls_create(&tls, &daemon->tls, failure);
    if (error == ERROR_NONE && config->token_file != NULL)
        error = access_create(config->token_file, &daemon->access, failure);
    if (error == ERROR_NONE && config->access_log != NULL)
        error = request_log_open(config->access_log, &daemon->access_log, failure);
    return error;
}

int main(int argc, char **argv)
{
    static struct daemon daemon; /* main's, too large for a frame */
    struct failure failure = {0};
    enum config_task task;
    machine_hold_standard_descriptors();
    daemon.argc = argc;
    daemon.argv = argv;
    if (config_read(argc, argv, environ, &daemon.config, &task, &failure) != ERROR_NONE)
        return complain(&failure);
    if (task == CONFIG_NEW_TOKEN)
        return print_token(argv + 1);
    if (task != CONFIG_SERVE)
        return print(&daemon.config, task);
    if (engine_command_make_spawner(daemon.config.engine_path, daemon.config.engine_cuda_path,
                                    daemon.config.cpu, &daemon.spawner, &failure) != ERROR_NONE) {
        config_free(&daemon.config);
        return complain(&failure);
    }
    if (read_files(&daemon, &failure) != ERROR_NONE) {
        config_free(&daemon.config);
        return complain(&failure);
    }
    if (!log_open((enum log_level)daemon.config.log_level,
                  (enum log_format)daemon.config.log_format, "invertd", daemon.config.log_file)) {
        failure_set(&failure, ERROR_INTERNAL, "cannot open the log file %s: %s",
                    daemon.config.log_file, strerror(errno));
        config_free(&daemon.config);
        return complain(&failure);
    }
    signal(SIGPIPE, SIG_IGN);
    machine_keep_free_memory();
    size_arena(&daemon.config);
    daemon.loop_count = config_loops(&daemon.config, machine_cores());
    daemon.services.live = true;
    http_peer_key_make(&daemon.peer_key);

    enum error error = start(&daemon, &failure);
    if (error == ERROR_NONE) {
        confine_front(&daemon);
        listeners_log(&daemon.listeners);
        warn_of_plain_tokens(&daemon);
        log_line(LOG_INFO, "serving", "version", LOG_STR, INVERTD_VERSION, "port", LOG_I64,
                 (int64_t)listeners_port(&daemon.listeners, false), "metrics_port", LOG_I64,
                 (int64_t)listeners_port(&daemon.listeners, true), "loops", LOG_I64,
                 (int64_t)daemon.loop_count, NULL);
        loop_run_here(daemon.loops[0]);
    } else {
        log_line(LOG_ERROR, "cannot start", "why", LOG_STR, failure.detail, NULL);
    }
    stop(&daemon);
    if (error == ERROR_NONE)
        log_line(LOG_INFO, "stopped", NULL);
    if (error == ERROR_NONE)
        return EXIT_CLEAN;
    return failure.code == ERROR_BAD_OPTION ? EXIT_OPTIONS : EXIT_TROUBLE;
}
