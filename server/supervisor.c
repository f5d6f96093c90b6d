/* server/supervisor.c: see supervisor.h.
 *
 * A table of seats: the host's, one for each CUDA device, and spare ones for each place. A clock
 * looks after all of them, after the probes and after readiness.
 *
 * Devices: those of --engine are wanted at the start; the engine that comes up tells how many there
 * are, and with `all` the others are wanted then. A place none of whose devices is in service is
 * given up in the queue, so that the host takes over at once. The spare CUDA engines run on the
 * device whose engine died last, for the fault may be that device's. There are two of them: a spare
 * engine is going to be killed by the item that killed the first one, and takes a second or more to
 * come up; meanwhile the other one goes on with the suspects that did nothing wrong.
 *
 * Probes: one for each engine but the spare ones, of a method that it serves, when it comes up and
 * whenever it has had nothing to do for a while. A wrong answer ends the engine that gave it, and
 * the service is unready until a probe of that place is right again or the place is out.
 */
#include "server/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine_command.h"
#include "server/probe.h"
#include "server/seat.h"

#define TICK_MS 50
#define TICK_BUSY_MS 2            /* while an engine starts */
#define STALL_NS (500 * CLOCK_MS) /* a clock this late: the machine slept, not the engine */
#define START_MOST_NS (20 * CLOCK_S)
#define START_GIB_NS CLOCK_S /* more for each GiB of arena, which a CUDA engine pins */
#define SPARE_IDLE_NS (5 * CLOCK_S)
#define READY_WITHIN_NS (5 * CLOCK_S)
#define PROBE_EVERY_NS (2 * CLOCK_S)

enum seat_id {
    SEAT_HOST,
    SEAT_SPARE_HOST,
    SEAT_SPARE_CUDA,
    SEAT_SPARE_CUDA_2,
    SEAT_CUDA, /* of device 0, and so on */
    SEATS = SEAT_CUDA + ENGINE_DEVICES_MAX
};

/* What the supervisor keeps of a place. */
struct post {
    uint64_t spare_used_ns; /* when suspects were last seen */
    bool distrusted;        /* the last probe's answer was wrong */
};

struct trial {
    struct probe *probe; /* NULL: the engine has not been up, or is a spare one */
    uint64_t started_ns;
};

struct supervisor {
    struct supervisor_options options;
    uv_timer_t timer;
    int event_fd;
    bool stopping, failed, timer_closed;
    bool settled; /* every engine asked for is up, or known to be missing */
    uint64_t last_tick_ns;
    struct seat seats[SEATS];
    struct trial trials[SEATS];
    struct post posts[QUEUE_PLACES];
    int last_died; /* the CUDA device */
    struct engine_environment environment;
    char host_path[ENGINE_PATH_MAX], cuda_path[ENGINE_PATH_MAX];
    char threads[16], scratch_max[24], device_memory_max[24];
};

static const char *const spare_names[SEATS] = {[SEAT_SPARE_HOST] = "host-spare",
                                               [SEAT_SPARE_CUDA] = "cuda-spare",
                                               [SEAT_SPARE_CUDA_2] = "cuda-spare-2"};
/* Every engine takes it. */
static const char probe_method[] = "lu";

/* ---- Setting up ---- */

static void make_host_command(struct supervisor *supervisor, struct seat *seat)
{
    const struct supervisor_options *options = &supervisor->options;
    struct engine_command *command = &seat->command;
    engine_command_add(command, supervisor->host_path);
    engine_command_add_flag(command, "--threads", supervisor->threads);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--scratch-max",
                            options->scratch_max_bytes > 0 ? supervisor->scratch_max : NULL);
    engine_command_add_flag(command, "--fault", options->host_fault);
}

static void make_cuda_command(struct supervisor *supervisor, struct seat *seat)
{
    const struct supervisor_options *options = &supervisor->options;
    struct engine_command *command = &seat->command;
    engine_command_add(command, supervisor->cuda_path);
    engine_command_add_flag(command, "--device", seat->device_text);
    engine_command_add_flag(command, "--device-memory-max",
                            options->device_memory_max_bytes > 0 ? supervisor->device_memory_max
                                                                 : NULL);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--fault", options->cuda_fault);
}

static void set_device(struct seat *seat, int device)
{
    seat->device = device;
    snprintf(seat->device_text, sizeof seat->device_text, "%d", device);
}

static void on_ended(struct engine_process *process);

static void set_up_seat(struct supervisor *supervisor, enum seat_id id)
{
    const struct supervisor_options *options = &supervisor->options;
    struct seat *seat = &supervisor->seats[id];
    bool is_host = id < SEAT_SPARE_CUDA;
    bool is_spare = spare_names[id] != NULL;
    enum queue_place_id place = is_host ? QUEUE_HOST : QUEUE_CUDA;
    set_device(seat, id >= SEAT_CUDA ? (int)id - SEAT_CUDA : 0);
    if (is_spare)
        snprintf(seat->name, sizeof seat->name, "%s", spare_names[id]);
    else if (is_host)
        snprintf(seat->name, sizeof seat->name, "host");
    else
        snprintf(seat->name, sizeof seat->name, "cuda:%d", seat->device);
    if (is_host)
        make_host_command(supervisor, seat);
    else
        make_cuda_command(supervisor, seat);
    seat->must = id == SEAT_HOST || (id >= SEAT_CUDA && options->engines.must &&
                                     options->engines.devices[seat->device]);
    seat->metrics = options->metrics;
    seat->start_most_ns = START_MOST_NS + (arena_bytes(options->arena) >> 30) * START_GIB_NS;
    seat->heartbeat_ns = (uint64_t)options->heartbeat_ns;
    seat->backoff_max_ns = (uint64_t)options->backoff_max_ns;
    struct engine_process *process = &seat->process;
    process->loop = options->loop;
    process->queue = options->queue;
    process->arena = options->arena;
    process->path = is_host ? supervisor->host_path : supervisor->cuda_path;
    process->arguments = seat->command.arguments;
    process->environment = supervisor->environment.entries;
    process->event_fd = supervisor->event_fd;
    process->engine = (struct queue_engine){place, is_spare, (int)id, seat->name};
    process->version = options->version;
    process->on_ended = on_ended;
    process->owner = supervisor;
}

/* Of a place that has an engine: its spare ones are there for the first failure. */
static void show_failures(struct supervisor *supervisor, struct seat *seat)
{
    seat_show_failures(seat);
    for (int id = 0; id < SEATS; id++) {
        const struct queue_engine *engine = &supervisor->seats[id].process.engine;
        if (engine->spare && engine->place == seat->process.engine.place)
            seat_show_failures(&supervisor->seats[id]);
    }
}

static void set_up_seats(struct supervisor *supervisor)
{
    const struct supervisor_options *options = &supervisor->options;
    snprintf(supervisor->threads, sizeof supervisor->threads, "%d", options->threads);
    snprintf(supervisor->scratch_max, sizeof supervisor->scratch_max, "%lld",
             (long long)options->scratch_max_bytes);
    snprintf(supervisor->device_memory_max, sizeof supervisor->device_memory_max, "%lld",
             (long long)options->device_memory_max_bytes);
    for (int id = 0; id < SEATS; id++)
        set_up_seat(supervisor, (enum seat_id)id);
    metric_set(metric_series(options->metrics, METRIC_DEVICE_UP, "host"), 0);
    show_failures(supervisor, &supervisor->seats[SEAT_HOST]);
}

/* Without a CUDA engine's program `auto` means the host alone. */
static enum error find_programs(struct supervisor *supervisor, struct failure *failure)
{
    struct supervisor_options *options = &supervisor->options;
    enum error error = engine_command_find(options->host_path, "invertd-host", "engine-path",
                                           supervisor->host_path, failure);
    if (error != ERROR_NONE || !options->engines.cuda)
        return error;
    error = engine_command_find(options->cuda_path, "invertd-cuda", "engine-cuda-path",
                                supervisor->cuda_path, failure);
    bool needed = options->engines.must || options->cuda_path != NULL;
    if (error != ERROR_NOT_FOUND || needed)
        return error;
    options->engines = (struct engine_choice){0};
    log_line(LOG_INFO, "no CUDA engine is installed: the host computes alone", "path", LOG_STR,
             supervisor->cuda_path, NULL);
    return ERROR_NONE;
}

/* ---- Engines ---- */

static void fail(struct supervisor *supervisor, const struct seat *seat, const char *why)
{
    if (supervisor->failed || supervisor->stopping)
        return;
    supervisor->failed = true;
    log_line(LOG_ERROR, "the engine cannot be used", "device", LOG_STR, seat->name, "why", LOG_STR,
             why, "path", LOG_STR, seat->process.path, NULL);
    supervisor->options.on_failed(supervisor->options.context);
}

static bool is_main_cuda(const struct seat *seat)
{
    return seat->process.engine.place == QUEUE_CUDA && !seat->process.engine.spare;
}

/* An engine has told how many devices there are. */
static void note_devices(struct supervisor *supervisor, const struct seat *seat, int count,
                         uint64_t now_ns)
{
    if (!is_main_cuda(seat) || !supervisor->options.engines.all || supervisor->stopping)
        return;
    for (int device = 0; device < count && device < ENGINE_DEVICES_MAX; device++)
        seat_want(&supervisor->seats[SEAT_CUDA + device], now_ns);
}

/* Tells the queue whether a CUDA engine is there or comes soon. */
static void note_places(struct supervisor *supervisor)
{
    bool hope = false;
    for (int id = SEAT_CUDA; id < SEATS; id++)
        hope |= supervisor->seats[id].state == SEAT_WANTED;
    queue_give_up(supervisor->options.queue, QUEUE_CUDA, !hope);
}

/* The spare CUDA engines sit on the device whose engine died last, or another in service. */
static void place_spares(struct supervisor *supervisor)
{
    int device = supervisor->last_died, tried = 0;
    while (supervisor->seats[SEAT_CUDA + device].state != SEAT_WANTED &&
           ++tried < ENGINE_DEVICES_MAX)
        device = (device + 1) % ENGINE_DEVICES_MAX;
    for (int id = SEAT_SPARE_CUDA; id <= SEAT_SPARE_CUDA_2; id++)
        if (supervisor->seats[id].process.state == ENGINE_PROCESS_IDLE)
            set_device(&supervisor->seats[id], device);
}

static void check_stopped(struct supervisor *supervisor)
{
    for (int i = 0; i < SEATS; i++)
        if (supervisor->seats[i].process.state != ENGINE_PROCESS_IDLE)
            return;
    if (supervisor->stopping && supervisor->timer_closed)
        supervisor->options.on_stopped(supervisor->options.context);
}

static void schedule(struct supervisor *supervisor);

static void on_ended(struct engine_process *process)
{
    struct supervisor *supervisor = process->owner;
    struct seat *seat = &supervisor->seats[process->engine.number];
    uint64_t now_ns = clock_now_ns();
    if (supervisor->stopping) {
        check_stopped(supervisor);
        return;
    }
    /* Nobody else may answer it: not the spare engine either, if it was running. */
    probe_cancel(supervisor->trials[process->engine.number].probe);
    if (is_main_cuda(seat))
        supervisor->last_died = seat->device;
    place_spares(supervisor);
    seat_note_end(seat, now_ns);
    if (seat->failure != NULL)
        fail(supervisor, seat, seat->failure);
    note_devices(supervisor, seat, process->device_count, now_ns);
    note_places(supervisor);
    schedule(supervisor);
}

/* The same bits on several machines are what --cpu is for: nothing else will do. */
static void check_cpu(struct supervisor *supervisor, const struct seat *seat, const char *model)
{
    const char *wanted = supervisor->options.cpu;
    if (wanted == NULL || strcasecmp(wanted, model) == 0)
        return;
    log_line(LOG_ERROR, "OpenBLAS has no such kernel family for this CPU", "cpu", LOG_STR, wanted,
             "took", LOG_STR, model, NULL);
    fail(supervisor, seat, "its kernels are not those that --cpu asks for");
}

/* The engine says what it runs on. */
static void note_up(struct supervisor *supervisor, struct seat *seat, uint64_t now_ns)
{
    struct metric_registry *metrics = supervisor->options.metrics;
    char model[ENGINE_NAME_MAX];
    snprintf(model, sizeof model, "%.*s", ENGINE_NAME_MAX - 1, seat->process.shared->model);
    note_devices(supervisor, seat, seat->process.shared->device_count, now_ns);
    note_places(supervisor);
    if (seat->process.engine.spare)
        return;
    show_failures(supervisor, seat);
    metric_set(metric_series(metrics, METRIC_DEVICE_INFO, seat->name, model), 1);
    if (seat != &supervisor->seats[SEAT_HOST])
        return;
    metric_set(metric_series(metrics, METRIC_BUILD_INFO, supervisor->options.version, model), 1);
    check_cpu(supervisor, seat, model);
}

/* Engines that start together on one device hinder each other: three took 3.6 s on an H200, where
 * one alone answers after 1.1 to 1.7 s (2026-11-21). So a spare engine waits for the device's own
 * and for the spare one before it. */
static void hold_spare(struct supervisor *supervisor, struct seat *spare, uint64_t now_ns)
{
    spare->held = false;
    if (spare->process.engine.place != QUEUE_CUDA)
        return;
    for (const struct seat *other = supervisor->seats; other < supervisor->seats + SEATS; other++) {
        bool is_before = is_main_cuda(other) || (other->process.engine.spare && other < spare);
        bool is_near = other->process.engine.place == QUEUE_CUDA && other->device == spare->device;
        spare->held |=
            is_near && ((is_before && seat_is_starting(other, now_ns)) ||
                        (other != spare && other->process.state == ENGINE_PROCESS_STARTING));
    }
}

/* Spare engines come with the first suspect and go some time after the last. */
static void look_after_spares(struct supervisor *supervisor, enum queue_place_id place,
                              uint64_t now_ns)
{
    struct post *post = &supervisor->posts[place];
    bool wanted = queue_has_suspects(supervisor->options.queue, place);
    if (wanted) {
        place_spares(supervisor);
        post->spare_used_ns = now_ns;
    }
    bool unused = now_ns - post->spare_used_ns > SPARE_IDLE_NS;
    for (int i = 0; i < SEATS; i++) {
        struct seat *seat = &supervisor->seats[i];
        if (!seat->process.engine.spare || seat->process.engine.place != place)
            continue;
        hold_spare(supervisor, seat, now_ns);
        if (wanted)
            seat_want(seat, now_ns);
        else if (unused)
            seat_dismiss(seat);
    }
}

/* ---- Readiness ---- */

/* A right answer that another engine gave, after the seat's had ended, is none of the seat's. */
static void judge(struct supervisor *supervisor, struct post *post, struct probe *probe,
                  enum seat_id id)
{
    enum probe_state verdict = probe_take(probe);
    if (verdict == PROBE_RIGHT && probe_engine(probe) == (int)id)
        post->distrusted = false;
    if (verdict != PROBE_WRONG)
        return;
    struct engine_process *engine = &supervisor->seats[probe_engine(probe)].process;
    log_line(LOG_ERROR, "the engine computes wrong answers", "device", LOG_STR,
             engine->engine.device, "pid", LOG_I64, (int64_t)engine->pid, NULL);
    engine_process_kill(engine, ENGINE_PROCESS_WRONG_ANSWER, false);
    post->distrusted = true;
}

/* Where the arena is full, an engine is probed a little later. */
static bool has_probe(struct supervisor *supervisor, struct trial *trial)
{
    const struct supervisor_options *options = &supervisor->options;
    struct failure failure;
    return trial->probe != NULL || probe_create(options->queue, options->arena, probe_method,
                                                &trial->probe, &failure) == ERROR_NONE;
}

static void look_after_probe(struct supervisor *supervisor, enum seat_id id, uint64_t now_ns)
{
    const struct seat *seat = &supervisor->seats[id];
    struct trial *trial = &supervisor->trials[id];
    struct post *post = &supervisor->posts[seat->process.engine.place];
    if (trial->probe != NULL)
        judge(supervisor, post, trial->probe, id);
    if (seat->process.engine.spare || !seat_is_up(seat) || !has_probe(supervisor, trial))
        return;
    uint64_t last_ns = queue_lane_last_batch_ns(seat->process.lane);
    bool is_new = trial->started_ns < seat->process.up_ns;
    bool is_idle = now_ns > last_ns + PROBE_EVERY_NS || post->distrusted;
    bool due = is_new || (is_idle && now_ns > trial->started_ns + PROBE_EVERY_NS);
    if (due && !probe_is_running(trial->probe)) {
        trial->started_ns = now_ns;
        probe_start(trial->probe, id);
    }
}

static void look_after_readiness(struct supervisor *supervisor, uint64_t now_ns)
{
    bool settled = true, fresh = false, trusted = true;
    for (int i = 0; i < SEATS; i++)
        settled &=
            supervisor->seats[i].process.engine.spare || seat_is_settled(&supervisor->seats[i]);
    supervisor->settled |= settled;
    for (int p = 0; p < QUEUE_PLACES; p++) {
        enum queue_place_id place = (enum queue_place_id)p;
        uint64_t last_ns = queue_last_batch_ns(supervisor->options.queue, place);
        fresh |= last_ns != 0 && now_ns < last_ns + READY_WITHIN_NS;
        trusted &=
            !supervisor->posts[p].distrusted || queue_is_out(supervisor->options.queue, place);
    }
    atomic_store(supervisor->options.ready, supervisor->settled && fresh && trusted);
}

/* ---- The clock ---- */

static void on_tick(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    uint64_t now_ns = clock_now_ns();
    bool stalled = now_ns - supervisor->last_tick_ns > STALL_NS;
    supervisor->last_tick_ns = now_ns;
    for (int p = 0; p < QUEUE_PLACES; p++)
        look_after_spares(supervisor, (enum queue_place_id)p, now_ns);
    for (int i = 0; i < SEATS; i++) {
        struct seat *seat = &supervisor->seats[i];
        if (seat_look_after(seat, now_ns, stalled))
            note_up(supervisor, seat, now_ns);
        if (seat->failure != NULL)
            fail(supervisor, seat, seat->failure);
    }
    for (int i = 0; i < SEATS; i++)
        look_after_probe(supervisor, (enum seat_id)i, now_ns);
    note_places(supervisor);
    look_after_readiness(supervisor, now_ns);
    queue_tick(supervisor->options.queue, now_ns);
    schedule(supervisor);
}

static void schedule(struct supervisor *supervisor)
{
    bool busy = false;
    for (int i = 0; i < SEATS; i++)
        busy |= seat_is_busy(&supervisor->seats[i]);
    for (int i = 0; i < SEATS; i++) /* readiness is a batch away */
        busy |= !*supervisor->options.ready && probe_is_running(supervisor->trials[i].probe);
    if (!supervisor->stopping)
        uv_timer_start(&supervisor->timer, on_tick, busy ? TICK_BUSY_MS : TICK_MS, 0);
}

/* ---- Life ---- */

static enum error make_parts(struct supervisor *supervisor, struct failure *failure)
{
    const struct supervisor_options *options = &supervisor->options;
    supervisor->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (supervisor->event_fd < 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot make an eventfd: %s", strerror(errno));
    enum error error =
        engine_command_make_environment(options->cpu, &supervisor->environment, failure);
    if (error == ERROR_NONE)
        error = find_programs(supervisor, failure);
    return error;
}

enum error supervisor_create(const struct supervisor_options *options, struct supervisor **result,
                             struct failure *failure)
{
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (supervisor == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for the supervisor");
    supervisor->options = *options;
    supervisor->timer_closed = true;
    enum error error = make_parts(supervisor, failure);
    if (error != ERROR_NONE) {
        supervisor_destroy(&supervisor);
        return error;
    }
    set_up_seats(supervisor);
    uv_timer_init(options->loop, &supervisor->timer);
    supervisor->timer.data = supervisor;
    supervisor->timer_closed = false;
    uint64_t now_ns = supervisor->last_tick_ns = clock_now_ns();
    seat_want(&supervisor->seats[SEAT_HOST], now_ns);
    for (int device = 0; device < ENGINE_DEVICES_MAX; device++)
        if (supervisor->options.engines.devices[device])
            seat_want(&supervisor->seats[SEAT_CUDA + device], now_ns);
    note_places(supervisor);
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
    atomic_store(supervisor->options.ready, false);
    for (int i = 0; i < SEATS; i++)
        probe_cancel(supervisor->trials[i].probe);
    uv_timer_stop(&supervisor->timer);
    uv_close((uv_handle_t *)&supervisor->timer, on_timer_closed);
    for (int i = 0; i < SEATS; i++)
        seat_stop(&supervisor->seats[i]);
}

void supervisor_destroy(struct supervisor **supervisor_pointer)
{
    struct supervisor *supervisor = *supervisor_pointer;
    if (supervisor == NULL)
        return;
    assert(supervisor->timer_closed);
    for (int i = 0; i < SEATS; i++)
        probe_destroy(&supervisor->trials[i].probe);
    engine_command_free_environment(&supervisor->environment);
    if (supervisor->event_fd >= 0)
        close(supervisor->event_fd);
    free(supervisor);
    *supervisor_pointer = NULL;
}
