/* server/supervisor.c: see supervisor.h.
 *
 * Two seats: the main engine, always wanted; the spare one, wanted while the queue has suspects. A
 * clock looks after both: starts what is wanted and whose backoff is over, kills what is silent,
 * overdue or slow to start, and runs the probe.
 * The backoff doubles with each engine that ended before it finished a batch, and is nothing after
 * one that did some work. A wrong answer of the probe ends the engine that gave it, and the service
 * is unready until a probe is right again.
 */
#include "server/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine_process.h"
#include "server/probe.h"

#define TICK_MS 50
#define TICK_BUSY_MS 2 /* while an engine starts */
#define START_MOST_NS (20 * CLOCK_S)
#define STALL_NS (500 * CLOCK_MS) /* a clock this late: the machine slept, not the engine */
#define BACKOFF_LEAST_NS (20 * CLOCK_MS)
#define SPARE_BACKOFF_MOST_NS (100 * CLOCK_MS)
#define FAILED_STARTS_MOST 5
#define SPARE_IDLE_NS (5 * CLOCK_S)
#define READY_WITHIN_NS (5 * CLOCK_S)
#define PROBE_EVERY_NS (2 * CLOCK_S)
#define ENVIRONMENT_MAX 64
#define ARGUMENTS_MAX 16

enum seat_id {
    SEAT_MAIN,
    SEAT_SPARE,
    SEATS
};

struct seat {
    struct engine_process process;
    bool wanted;
    int failed_starts; /* ended before they were up, in a row */
    uint64_t backoff_ns, not_before_ns;
    uint64_t idle_since_ns;
};

struct supervisor {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct queue *queue;
    struct metric_registry *metrics;
    struct supervisor_options options;
    _Atomic bool *ready;
    void (*on_failed)(void *context);
    void (*on_stopped)(void *context);
    void *context;
    int event_fd;
    bool stopping, failed, timer_closed;
    bool ever_up;    /* an engine has been up */
    bool distrusted; /* the last probe's answer was wrong */
    uint64_t last_tick_ns;
    struct seat seats[SEATS];
    struct probe *probe;
    uint64_t probe_started_ns;
    char path[4096], threads[16], version[ENGINE_NAME_MAX], cpu_family[ENGINE_NAME_MAX];
    char scratch_max[24];
    char *arguments[ARGUMENTS_MAX]; /* ends with NULL */
    int argument_count;
    char *environment[ENVIRONMENT_MAX];
    int environment_count;
    struct metric_series *device_up;
};

/* ---- What an engine is started with ---- */

static const char *const environment_prefixes[] = {
    "CUDA_",          "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "TSAN_OPTIONS=",
    "UBSAN_OPTIONS=", "LSAN_OPTIONS=",    "NVIDIA_",       "TZ=",
};

/* Adds name followed by value. */
static enum error environment_add(struct supervisor *supervisor, const char *name,
                                  const char *value, struct failure *failure)
{
    if (supervisor->environment_count == ENVIRONMENT_MAX - 1)
        return failure_set(failure, ERROR_INTERNAL,
                           "more than %d environment variables are meant for the engine; unset "
                           "some of those that begin with CUDA_ or NVIDIA_",
                           ENVIRONMENT_MAX - 1);
    char *entry = NULL;
    if (asprintf(&entry, "%s%s", name, value) < 0)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for the engine's environment");
    supervisor->environment[supervisor->environment_count++] = entry;
    return ERROR_NONE;
}

static bool is_inherited(const char *entry)
{
    for (size_t i = 0; i < sizeof environment_prefixes / sizeof environment_prefixes[0]; i++)
        if (strncmp(entry, environment_prefixes[i], strlen(environment_prefixes[i])) == 0)
            return true;
    return false;
}

static enum error make_environment(struct supervisor *supervisor, struct failure *failure)
{
    enum error error = environment_add(supervisor, "OPENBLAS_NUM_THREADS=", "1", failure);
    if (error == ERROR_NONE && supervisor->options.cpu != NULL)
        error = environment_add(supervisor, "OPENBLAS_CORETYPE=", supervisor->options.cpu, failure);
    for (char **entry = environ; error == ERROR_NONE && *entry != NULL; entry++)
        if (is_inherited(*entry))
            error = environment_add(supervisor, *entry, "", failure);
    return error;
}

static void add_argument(struct supervisor *supervisor, const char *flag, const char *value)
{
    assert(supervisor->argument_count + 2 < ARGUMENTS_MAX);
    /* libuv's argv is not const, but nobody writes it. */
    supervisor->arguments[supervisor->argument_count++] = (char *)(uintptr_t)flag;
    supervisor->arguments[supervisor->argument_count++] = (char *)(uintptr_t)value;
}

static void make_arguments(struct supervisor *supervisor)
{
    const struct supervisor_options *options = &supervisor->options;
    snprintf(supervisor->threads, sizeof supervisor->threads, "%d", options->threads);
    snprintf(supervisor->scratch_max, sizeof supervisor->scratch_max, "%lld",
             (long long)options->scratch_max_bytes);
    supervisor->arguments[supervisor->argument_count++] = supervisor->path;
    add_argument(supervisor, "--threads", supervisor->threads);
    add_argument(supervisor, "--log-format", options->log_format);
    add_argument(supervisor, "--log-level", options->log_level);
    if (options->scratch_max_bytes > 0)
        add_argument(supervisor, "--scratch-max", supervisor->scratch_max);
    if (options->fault != NULL)
        add_argument(supervisor, "--fault", options->fault);
}

/* The engine's program stands beside this one unless an option says otherwise. */
static enum error find_engine(struct supervisor *supervisor, struct failure *failure)
{
    static const char name[] = "invertd-host";
    const char *given = supervisor->options.engine_path;
    char *path = supervisor->path;
    if (given != NULL) {
        snprintf(path, sizeof supervisor->path, "%s", given);
    } else {
        size_t length = sizeof supervisor->path - sizeof name;
        if (uv_exepath(path, &length) != 0)
            return failure_set(failure, ERROR_INTERNAL, "cannot find this program's own path");
        path[length] = '\0';
        char *slash = strrchr(path, '/');
        memcpy(slash != NULL ? slash + 1 : path, name, sizeof name);
    }
    struct stat status;
    errno = 0;
    if (access(path, X_OK) == 0 && stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        errno = EACCES; /* a folder, say */
    if (errno != 0)
        return failure_set(failure, ERROR_INTERNAL,
                           "cannot run the engine %s: %s; --engine-path says where it is", path,
                           strerror(errno));
    return ERROR_NONE;
}

/* ---- Seats ---- */

/* The next start waits twice as long as this one did. A spare engine that comes up and dies is what
 * a spare engine is for, and others wait for it: it is not kept waiting for long. */
static void back_off(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns)
{
    uint64_t most_ns = (uint64_t)supervisor->options.backoff_max_ns;
    if (seat->process.spare && seat->process.up_ns != 0 && most_ns > SPARE_BACKOFF_MOST_NS)
        most_ns = SPARE_BACKOFF_MOST_NS;
    seat->backoff_ns = seat->backoff_ns == 0 ? BACKOFF_LEAST_NS : 2 * seat->backoff_ns;
    if (seat->backoff_ns > most_ns)
        seat->backoff_ns = most_ns;
    seat->not_before_ns = now_ns + seat->backoff_ns;
}

static void fail(struct supervisor *supervisor, const char *why)
{
    if (supervisor->failed || supervisor->stopping)
        return;
    supervisor->failed = true;
    log_line(LOG_ERROR, "the engine cannot be used", "why", LOG_STR, why, "path", LOG_STR,
             supervisor->path, NULL);
    supervisor->on_failed(supervisor->context);
}

/* An engine did not come up. Before any ever did, that is the end; later it is tried again, for
 * what is wrong (an upgrade half done, say) may pass, and the front still answers. */
static void start_failed(struct supervisor *supervisor, struct seat *seat, const char *why)
{
    seat->failed_starts++;
    if (!supervisor->ever_up && seat->failed_starts >= FAILED_STARTS_MOST)
        fail(supervisor, why);
}

static void seat_start(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns)
{
    struct failure failure;
    seat->idle_since_ns = now_ns;
    if (engine_process_start(&seat->process, &failure) == ERROR_NONE)
        return;
    log_line(LOG_ERROR, "engine not started", "why", LOG_STR, failure.detail, NULL);
    back_off(supervisor, seat, now_ns);
    start_failed(supervisor, seat, "it cannot be started");
}

static void check_stopped(struct supervisor *supervisor)
{
    for (int i = 0; i < SEATS; i++)
        if (supervisor->seats[i].process.state != ENGINE_PROCESS_IDLE)
            return;
    if (supervisor->stopping && supervisor->timer_closed)
        supervisor->on_stopped(supervisor->context);
}

static void schedule(struct supervisor *supervisor);

static void on_ended(struct engine_process *process, const char *reason)
{
    struct supervisor *supervisor = process->owner;
    struct seat *seat = &supervisor->seats[process->spare ? SEAT_SPARE : SEAT_MAIN];
    if (!process->spare)
        metric_set(supervisor->device_up, 0);
    if (supervisor->stopping) {
        check_stopped(supervisor);
        return;
    }
    bool retired = reason != NULL && strcmp(reason, "retired") == 0;
    if (!retired)
        metric_add(metric_series(supervisor->metrics, METRIC_ENGINE_RESTARTS,
                                 process->spare ? "host-spare" : "host",
                                 reason != NULL ? reason : "died"),
                   1);
    uint64_t now_ns = clock_now_ns();
    if (process->up_ns != 0)
        seat->failed_starts = 0;
    else if (process->mismatch && !supervisor->ever_up)
        fail(supervisor, "its contract differs from this program's; install both from one build");
    else
        start_failed(supervisor, seat, "it ends before it is ready, again and again");
    if (process->mismatch && supervisor->ever_up)
        log_line(LOG_ERROR,
                 "the engine on disk is of another build than this program: restart invertd",
                 "path", LOG_STR, supervisor->path, NULL);
    if (process->worked || retired) {
        seat->backoff_ns = 0;
        seat->not_before_ns = now_ns;
    } else {
        back_off(supervisor, seat, now_ns);
    }
    if (seat->wanted && process->worked && !supervisor->failed && !retired)
        seat_start(supervisor, seat, now_ns);
    schedule(supervisor);
}

/* The engine says what it runs on. */
static void note_up(struct supervisor *supervisor, struct seat *seat)
{
    supervisor->ever_up = true;
    if (seat->process.spare)
        return;
    metric_set(supervisor->device_up, 1);
    if (supervisor->cpu_family[0] != '\0')
        return;
    snprintf(supervisor->cpu_family, sizeof supervisor->cpu_family, "%.*s", ENGINE_NAME_MAX - 1,
             seat->process.shared->model);
    const char *wanted = supervisor->options.cpu;
    if (wanted != NULL && strcasecmp(wanted, supervisor->cpu_family) != 0) {
        /* The same bits on several machines are what --cpu is for: nothing else will do. */
        log_line(LOG_ERROR, "OpenBLAS has no such kernel family for this CPU", "cpu", LOG_STR,
                 wanted, "took", LOG_STR, supervisor->cpu_family, NULL);
        fail(supervisor, "its kernels are not those that --cpu asks for");
    }
    metric_set(metric_series(supervisor->metrics, METRIC_BUILD_INFO, supervisor->version,
                             supervisor->cpu_family),
               1);
}

static void watch(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns, bool stalled)
{
    struct engine_process *process = &seat->process;
    uint64_t heartbeat = atomic_load(&process->shared->heartbeat);
    if (heartbeat != process->heartbeat || stalled) {
        process->heartbeat = heartbeat;
        process->heartbeat_seen_ns = now_ns;
    }
    if (now_ns - process->heartbeat_seen_ns > (uint64_t)supervisor->options.heartbeat_ns)
        engine_process_kill(process, "heartbeat", true);
    else if (!stalled && queue_lane_overdue_ns(process->lane, now_ns) > 0)
        engine_process_kill(process, "deadline", true);
}

static void look_after(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns,
                       bool stalled)
{
    struct engine_process *process = &seat->process;
    switch (process->state) {
    case ENGINE_PROCESS_IDLE:
        if (seat->wanted && now_ns >= seat->not_before_ns && !supervisor->failed)
            seat_start(supervisor, seat, now_ns);
        break;
    case ENGINE_PROCESS_STARTING:
        if (engine_process_poll(process))
            note_up(supervisor, seat);
        else if (now_ns - process->started_ns > START_MOST_NS)
            engine_process_kill(process, "start", false);
        break;
    case ENGINE_PROCESS_UP:
        watch(supervisor, seat, now_ns, stalled);
        break;
    case ENGINE_PROCESS_ENDING:
        break;
    }
}

/* The spare engine comes with the first suspect and goes some time after the last. */
static void look_after_spare(struct supervisor *supervisor, uint64_t now_ns)
{
    struct seat *spare = &supervisor->seats[SEAT_SPARE];
    if (queue_has_suspects(supervisor->queue)) {
        spare->wanted = true;
        spare->idle_since_ns = now_ns;
    } else if (spare->wanted && now_ns - spare->idle_since_ns > SPARE_IDLE_NS) {
        spare->wanted = false;
        engine_process_kill(&spare->process, "retired", false);
    }
}

/* ---- Readiness ---- */

static void look_after_probe(struct supervisor *supervisor, uint64_t now_ns)
{
    struct engine_process *engine = &supervisor->seats[SEAT_MAIN].process;
    enum probe_state verdict = probe_take(supervisor->probe);
    if (verdict == PROBE_WRONG) {
        log_line(LOG_ERROR, "the engine computes wrong answers", "pid", LOG_I64,
                 (int64_t)engine->pid, NULL);
        engine_process_kill(engine, "wrong_answer", false);
        supervisor->distrusted = true;
    } else if (verdict == PROBE_RIGHT) {
        supervisor->distrusted = false;
    }
    uint64_t last_ns = queue_last_batch_ns(supervisor->queue);
    bool up = engine->state == ENGINE_PROCESS_UP;
    bool is_new = supervisor->probe_started_ns < engine->up_ns;
    bool is_idle = now_ns > last_ns + PROBE_EVERY_NS || supervisor->distrusted;
    bool due = is_new || (is_idle && now_ns > supervisor->probe_started_ns + PROBE_EVERY_NS);
    if (up && due && !probe_is_running(supervisor->probe)) {
        supervisor->probe_started_ns = now_ns;
        probe_start(supervisor->probe);
    }
    bool ready = last_ns != 0 && !supervisor->distrusted && now_ns < last_ns + READY_WITHIN_NS;
    atomic_store(supervisor->ready, ready);
}

/* ---- The clock ---- */

static void on_tick(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    uint64_t now_ns = clock_now_ns();
    bool stalled = now_ns - supervisor->last_tick_ns > STALL_NS;
    supervisor->last_tick_ns = now_ns;
    look_after_spare(supervisor, now_ns);
    for (int i = 0; i < SEATS; i++)
        look_after(supervisor, &supervisor->seats[i], now_ns, stalled);
    look_after_probe(supervisor, now_ns);
    queue_tick(supervisor->queue, now_ns);
    schedule(supervisor);
}

static void schedule(struct supervisor *supervisor)
{
    uint64_t delay_ms = TICK_MS;
    for (int i = 0; i < SEATS; i++) {
        const struct seat *seat = &supervisor->seats[i];
        bool starts = seat->process.state == ENGINE_PROCESS_STARTING;
        bool waits = seat->process.state == ENGINE_PROCESS_IDLE && seat->wanted &&
                     seat->backoff_ns <= BACKOFF_LEAST_NS;
        if (starts || waits)
            delay_ms = TICK_BUSY_MS;
    }
    if (!*supervisor->ready && probe_is_running(supervisor->probe))
        delay_ms = TICK_BUSY_MS; /* readiness is a batch away */
    if (!supervisor->stopping)
        uv_timer_start(&supervisor->timer, on_tick, delay_ms, 0);
}

/* ---- Life ---- */

static void set_up_seats(struct supervisor *supervisor, struct arena *arena)
{
    for (int i = 0; i < SEATS; i++) {
        struct engine_process *process = &supervisor->seats[i].process;
        process->loop = supervisor->loop;
        process->queue = supervisor->queue;
        process->arena = arena;
        process->path = supervisor->path;
        process->arguments = supervisor->arguments;
        process->environment = supervisor->environment;
        process->event_fd = supervisor->event_fd;
        process->spare = i == SEAT_SPARE;
        process->version = supervisor->version;
        process->on_ended = on_ended;
        process->owner = supervisor;
    }
    supervisor->seats[SEAT_MAIN].wanted = true;
}

enum error supervisor_create(uv_loop_t *loop, struct queue *queue, struct arena *arena,
                             struct metric_registry *metrics,
                             const struct supervisor_options *options, _Atomic bool *ready,
                             void (*on_failed)(void *context), void (*on_stopped)(void *context),
                             void *context, struct supervisor **result, struct failure *failure)
{
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (supervisor == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for the supervisor");
    supervisor->loop = loop;
    supervisor->queue = queue;
    supervisor->metrics = metrics;
    supervisor->options = *options;
    supervisor->ready = ready;
    supervisor->on_failed = on_failed;
    supervisor->on_stopped = on_stopped;
    supervisor->context = context;
    supervisor->timer_closed = true;
    supervisor->device_up = metric_series(metrics, METRIC_DEVICE_UP, "host");
    snprintf(supervisor->version, sizeof supervisor->version, "%s", options->version);
    supervisor->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum error error =
        supervisor->event_fd < 0
            ? failure_set(failure, ERROR_INTERNAL, "cannot make an eventfd: %s", strerror(errno))
            : make_environment(supervisor, failure);
    if (error == ERROR_NONE)
        error = find_engine(supervisor, failure);
    if (error == ERROR_NONE)
        error = probe_create(queue, arena, &supervisor->probe, failure);
    if (error != ERROR_NONE) {
        supervisor_destroy(&supervisor);
        return error;
    }
    make_arguments(supervisor);
    set_up_seats(supervisor, arena);
    uv_timer_init(loop, &supervisor->timer);
    supervisor->timer.data = supervisor;
    supervisor->timer_closed = false;
    supervisor->last_tick_ns = clock_now_ns();
    seat_start(supervisor, &supervisor->seats[SEAT_MAIN], supervisor->last_tick_ns);
    schedule(supervisor);
    *result = supervisor;
    return ERROR_NONE;
}

int supervisor_event_fd(const struct supervisor *supervisor)
{
    return supervisor->event_fd;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct supervisor *supervisor = handle->data;
    supervisor->timer_closed = true;
    check_stopped(supervisor);
}

void supervisor_stop(struct supervisor *supervisor)
{
    if (supervisor->stopping)
        return;
    supervisor->stopping = true;
    atomic_store(supervisor->ready, false);
    probe_cancel(supervisor->probe);
    uv_timer_stop(&supervisor->timer);
    uv_close((uv_handle_t *)&supervisor->timer, on_timer_closed);
    for (int i = 0; i < SEATS; i++)
        engine_process_kill(&supervisor->seats[i].process, "stopped by invertd", false);
}

void supervisor_destroy(struct supervisor **supervisor_pointer)
{
    struct supervisor *supervisor = *supervisor_pointer;
    if (supervisor == NULL)
        return;
    assert(supervisor->timer_closed);
    probe_destroy(&supervisor->probe);
    for (int i = 0; i < supervisor->environment_count; i++)
        free(supervisor->environment[i]);
    if (supervisor->event_fd >= 0)
        close(supervisor->event_fd);
    free(supervisor);
    *supervisor_pointer = NULL;
}
