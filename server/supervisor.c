/* server/supervisor.c: see supervisor.h.
 *
 * Two seats: the main engine, always wanted; the spare one, wanted while the queue has suspects. A
 * clock looks after both: starts what is wanted and whose backoff is over, kills what is silent,
 * overdue or slow to start, and runs the probe.
 * The backoff doubles with each engine that ended before it finished a batch, and is nothing after
 * one that did some work.
 */
#include "server/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine_process.h"
#include "server/probe.h"

#define TICK_MS 50
#define TICK_BUSY_MS 2 /* while an engine starts */
#define TICK_WAIT_MS 1 /* when batches wait for company */
#define START_MOST_NS (20 * CLOCK_S)
#define STALL_NS (500 * CLOCK_MS) /* a clock this late: the machine slept, not the engine */
#define BACKOFF_LEAST_NS (20 * CLOCK_MS)
#define FAILED_STARTS_MOST 5
#define SPARE_IDLE_NS (5 * CLOCK_S)
#define READY_WITHIN_NS (5 * CLOCK_S)
#define PROBE_EVERY_NS (2 * CLOCK_S)
#define ENVIRONMENT_MAX 64
#define ARGUMENTS_MAX 8

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
    uint64_t batches_before_ns; /* queue_last_batch_ns when it came up */
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
    uint64_t last_tick_ns;
    struct seat seats[SEATS];
    struct probe *probe;
    uint64_t probe_started_ns;
    char path[4096], threads[16], version[ENGINE_NAME_MAX], cpu_family[ENGINE_NAME_MAX];
    char *arguments[ARGUMENTS_MAX];
    char *environment[ENVIRONMENT_MAX];
    int environment_count;
    struct metric_series *device_up, *ready_gauge;
};

/* ---- What an engine is started with ---- */

static const char *const environment_prefixes[] = {
    "CUDA_",          "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "TSAN_OPTIONS=",
    "UBSAN_OPTIONS=", "LSAN_OPTIONS=",    "NVIDIA_",       "TZ=",
};

extern char **environ;

static bool environment_add(struct supervisor *supervisor, const char *name, const char *value)
{
    char entry[512];
    snprintf(entry, sizeof entry, "%s%s", name, value);
    if (supervisor->environment_count == ENVIRONMENT_MAX - 1)
        return false;
    char *copy = strdup(entry);
    if (copy == NULL)
        return false;
    supervisor->environment[supervisor->environment_count++] = copy;
    return true;
}

static bool make_environment(struct supervisor *supervisor)
{
    bool good = environment_add(supervisor, "OPENBLAS_NUM_THREADS=", "1");
    if (good && supervisor->options.cpu != NULL)
        good = environment_add(supervisor, "OPENBLAS_CORETYPE=", supervisor->options.cpu);
    for (char **entry = environ; good && *entry != NULL; entry++)
        for (size_t i = 0; i < sizeof environment_prefixes / sizeof environment_prefixes[0]; i++)
            if (strncmp(*entry, environment_prefixes[i], strlen(environment_prefixes[i])) == 0)
                good = environment_add(supervisor, *entry, "");
    return good;
}

static void make_arguments(struct supervisor *supervisor)
{
    int count = 0;
    snprintf(supervisor->threads, sizeof supervisor->threads, "%d", supervisor->options.threads);
    supervisor->arguments[count++] = supervisor->path;
    supervisor->arguments[count++] = (char *)"--threads";
    supervisor->arguments[count++] = supervisor->threads;
    if (supervisor->options.fault != NULL) {
        supervisor->arguments[count++] = (char *)"--fault";
        supervisor->arguments[count++] = (char *)supervisor->options.fault;
    }
    supervisor->arguments[count] = NULL;
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
    if (access(path, X_OK) != 0)
        return failure_set(failure, ERROR_INTERNAL,
                           "cannot run the engine %s: %s; --engine-path says where it is", path,
                           strerror(errno));
    return ERROR_NONE;
}

/* ---- Seats ---- */

static void seat_start(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns)
{
    struct failure failure;
    seat->batches_before_ns = queue_last_batch_ns(supervisor->queue);
    seat->idle_since_ns = now_ns;
    if (engine_process_start(&seat->process, &failure) == ERROR_NONE)
        return;
    log_line(LOG_ERROR, "engine not started", "why", LOG_STR, failure.detail, NULL);
    seat->not_before_ns = now_ns + (uint64_t)supervisor->options.backoff_max_ns;
    seat->failed_starts++;
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
    bool was_up = process->up_ns != 0;
    bool worked = was_up && queue_last_batch_ns(supervisor->queue) > seat->batches_before_ns;
    seat->failed_starts = was_up ? 0 : seat->failed_starts + 1;
    if (process->mismatch)
        fail(supervisor, "its contract differs from this program's; install both from one build");
    else if (seat->failed_starts >= FAILED_STARTS_MOST &&
             queue_last_batch_ns(supervisor->queue) == 0)
        fail(supervisor, "it ends before it is ready, again and again");
    if (worked || retired) {
        seat->backoff_ns = 0;
    } else {
        seat->backoff_ns = seat->backoff_ns == 0 ? BACKOFF_LEAST_NS : 2 * seat->backoff_ns;
        if (seat->backoff_ns > (uint64_t)supervisor->options.backoff_max_ns)
            seat->backoff_ns = (uint64_t)supervisor->options.backoff_max_ns;
    }
    uint64_t now_ns = clock_now_ns();
    seat->not_before_ns = now_ns + seat->backoff_ns;
    if (seat->wanted && seat->backoff_ns == 0 && !supervisor->failed && !retired)
        seat_start(supervisor, seat, now_ns);
    schedule(supervisor);
}

/* The engine says what it runs on. */
static void note_up(struct supervisor *supervisor, struct seat *seat)
{
    if (seat->process.spare)
        return;
    metric_set(supervisor->device_up, 1);
    if (supervisor->cpu_family[0] != '\0')
        return;
    snprintf(supervisor->cpu_family, sizeof supervisor->cpu_family, "%.*s", ENGINE_NAME_MAX - 1,
             seat->process.shared->cpu_family);
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
    struct seat *seat = &supervisor->seats[SEAT_MAIN];
    enum probe_state state = probe_state(supervisor->probe);
    uint64_t last_ns = queue_last_batch_ns(supervisor->queue);
    bool wrong = state == PROBE_WRONG;
    if (wrong) {
        log_line(LOG_ERROR, "the engine computes wrong answers", NULL);
        engine_process_kill(&seat->process, "wrong_answer", false);
    }
    bool up = seat->process.state == ENGINE_PROCESS_UP;
    bool due =
        last_ns < seat->process.up_ns || (now_ns - last_ns > PROBE_EVERY_NS &&
                                          now_ns - supervisor->probe_started_ns > PROBE_EVERY_NS);
    if (up && state != PROBE_RUNNING && due) {
        supervisor->probe_started_ns = now_ns;
        probe_start(supervisor->probe);
    }
    bool ready = last_ns != 0 && !wrong && now_ns - last_ns < READY_WITHIN_NS;
    atomic_store(supervisor->ready, ready);
    metric_set(supervisor->ready_gauge, ready);
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
    uint64_t delay_ms = supervisor->options.batch_wait_ns > 0 ? TICK_WAIT_MS : TICK_MS;
    for (int i = 0; i < SEATS; i++) {
        const struct seat *seat = &supervisor->seats[i];
        bool starts = seat->process.state == ENGINE_PROCESS_STARTING;
        bool waits = seat->process.state == ENGINE_PROCESS_IDLE && seat->wanted;
        if ((starts || waits) && delay_ms > TICK_BUSY_MS)
            delay_ms = TICK_BUSY_MS;
    }
    if (!*supervisor->ready && delay_ms > TICK_BUSY_MS)
        delay_ms = TICK_BUSY_MS; /* the first probe is on its way */
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
    supervisor->ready_gauge = metric_series(metrics, METRIC_READY);
    snprintf(supervisor->version, sizeof supervisor->version, "%s", options->version);
    supervisor->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum error error = supervisor->event_fd < 0 || !make_environment(supervisor)
                           ? failure_set(failure, ERROR_INTERNAL, "cannot prepare the engine")
                           : find_engine(supervisor, failure);
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

const char *supervisor_cpu_family(const struct supervisor *supervisor)
{
    return supervisor->cpu_family;
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
        engine_process_kill(&supervisor->seats[i].process, "stopped", false);
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
