/* server/engine_process.c: see engine_process.h.
 *
 * Descriptors the child gets (gpu/engine.h): 0 the control pipe, whose other end is ours alone and
 * closes with us; 2 our stderr; 3 the arena; 4 the shared lanes; 5 the event descriptor. Everything
 * else is closed on exec.
 */
#include "server/engine_process.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static void move(struct engine_process *engine, enum engine_process_state to)
{
    static const enum engine_process_state next[] = {
        [ENGINE_PROCESS_IDLE] = ENGINE_PROCESS_STARTING,
        [ENGINE_PROCESS_STARTING] = ENGINE_PROCESS_UP,
        [ENGINE_PROCESS_UP] = ENGINE_PROCESS_ENDING,
        [ENGINE_PROCESS_ENDING] = ENGINE_PROCESS_IDLE,
    };
    bool ends_early = engine->state == ENGINE_PROCESS_STARTING && to == ENGINE_PROCESS_ENDING;
    assert(next[engine->state] == to || ends_early);
    engine->state = to;
}

/* The memory both sides share, filled in for a new engine. */
static enum error map_shared(struct engine_process *engine, struct failure *failure)
{
    size_t bytes = sizeof *engine->shared;
    engine->shared_fd = memfd_create("invertd-lanes", MFD_CLOEXEC);
    if (engine->shared_fd < 0 || ftruncate(engine->shared_fd, (off_t)bytes) != 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot make the lanes' shared memory: %s",
                           strerror(errno));
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, engine->shared_fd, 0);
    if (map == MAP_FAILED)
        return failure_set(failure, ERROR_INTERNAL, "cannot map the lanes' shared memory: %s",
                           strerror(errno));
    engine->shared = map;
    engine->shared->contract_hash = engine_contract_hash();
    engine->shared->arena_bytes = arena_bytes(engine->arena);
    snprintf(engine->shared->front_version, sizeof engine->shared->front_version, "%s",
             engine->version);
    return ERROR_NONE;
}

/* Safe at any point: undoes what start has done so far. */
static void release(struct engine_process *engine)
{
    queue_lane_destroy(&engine->lane);
    if (engine->shared != NULL)
        munmap(engine->shared, sizeof *engine->shared);
    engine->shared = NULL;
    if (engine->shared_fd > 0)
        close(engine->shared_fd);
    if (engine->control_fd > 0)
        close(engine->control_fd);
    engine->shared_fd = engine->control_fd = 0;
    engine->pid = 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct engine_process *engine = handle->data;
    move(engine, ENGINE_PROCESS_IDLE);
    engine->on_ended(engine);
}

static void on_unspawned_closed(uv_handle_t *handle)
{
    struct engine_process *engine = handle->data;
    engine->closing = false;
}

/* Those up to WRONG_ANSWER are failures. */
static const char *const end_names[ENGINE_PROCESS_REASONS] = {
    [ENGINE_PROCESS_NONE] = "died",
    [ENGINE_PROCESS_HEARTBEAT] = "heartbeat",
    [ENGINE_PROCESS_DEADLINE] = "deadline",
    [ENGINE_PROCESS_START] = "start",
    [ENGINE_PROCESS_WRONG_ANSWER] = "wrong_answer",
    [ENGINE_PROCESS_RETIRED] = "retired",
    [ENGINE_PROCESS_STOPPED] = "stopped",
};
#define FAILURES (ENGINE_PROCESS_WRONG_ANSWER + 1)

/* Ends that an engine gives itself, to tell of its device; that it is absent is no failure. */
static const struct {
    enum engine_exit code;
    const char *name;
} device_ends[] = {
    {ENGINE_EXIT_FAULT, "device_fault"},
    {ENGINE_EXIT_DEVICE_OUT, "device_out"},
    {ENGINE_EXIT_DEVICE_ABSENT, "device_absent"},
};
#define DEVICE_ENDS ((int)(sizeof device_ends / sizeof device_ends[0]))
#define DEVICE_FAILURES (DEVICE_ENDS - 1)

const char *engine_process_end_name(const struct engine_process *engine)
{
    for (int i = 0; engine->reason == ENGINE_PROCESS_NONE && i < DEVICE_ENDS; i++)
        if (engine->exit_code == (int64_t)device_ends[i].code)
            return device_ends[i].name;
    return end_names[engine->reason];
}

const char *engine_process_failure_name(const struct engine_process *engine, int index)
{
    if (index < FAILURES)
        return end_names[index];
    bool has_device = engine->engine.place != QUEUE_HOST;
    return has_device && index < FAILURES + DEVICE_FAILURES ? device_ends[index - FAILURES].name
                                                            : NULL;
}

/* Has it been ended because nobody needs it? By SIGKILL, for nothing of it outlives it: a signal in
 * the log would look like a failure. */
static bool is_told(const struct engine_process *engine)
{
    return engine->reason == ENGINE_PROCESS_RETIRED || engine->reason == ENGINE_PROCESS_STOPPED;
}

/* What the engine said of itself, kept for the owner: its memory goes. */
static void note_end(struct engine_process *engine, int64_t exit_status, int signal)
{
    engine->mismatch = atomic_load(&engine->shared->ready) == ENGINE_MISMATCH;
    engine->device_count = engine->shared->device_count;
    engine->exit_code = signal != 0 ? -1 : exit_status;
    if (engine->reason == ENGINE_PROCESS_NONE && (engine->exit_code == ENGINE_EXIT_DEVICE_OUT ||
                                                  engine->exit_code == ENGINE_EXIT_DEVICE_ABSENT))
        engine->blame = false;
}

/* The process has been reaped: its slots in the arena may be used again. */
static void on_exit(uv_process_t *process, int64_t exit_status, int signal)
{
    struct engine_process *engine = process->data;
    note_end(engine, exit_status, signal);
    if (engine->state != ENGINE_PROCESS_ENDING)
        move(engine, ENGINE_PROCESS_ENDING);
    bool was_absent = engine->exit_code == ENGINE_EXIT_DEVICE_ABSENT; /* the owner tells */
    enum log_level level = was_absent ? LOG_DEBUG : engine->blame ? LOG_WARNING : LOG_INFO;
    const char *name = engine_process_end_name(engine), *device = engine->engine.device;
    if (is_told(engine))
        log_line(LOG_INFO, "engine stopped", "device", LOG_STR, device, "pid", LOG_I64,
                 (int64_t)engine->pid, "reason", LOG_STR, name, NULL);
    else
        log_line(level, "engine ended", "device", LOG_STR, device, "pid", LOG_I64,
                 (int64_t)engine->pid, "exit", LOG_I64, exit_status, "signal", LOG_I64,
                 (int64_t)signal, "reason", LOG_STR, name, NULL);
    queue_lane_down(engine->lane, engine->blame);
    engine->worked = queue_lane_worked(engine->lane);
    release(engine);
    uv_close((uv_handle_t *)process, on_closed);
}

static int spawn(struct engine_process *engine, int control_child_fd)
{
    uv_stdio_container_t stdio[ENGINE_FD_EVENT + 1] = {
        [ENGINE_FD_CONTROL] = {.flags = UV_INHERIT_FD, .data.fd = control_child_fd},
        [1] = {.flags = UV_IGNORE},
        [2] = {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        [ENGINE_FD_ARENA] = {.flags = UV_INHERIT_FD, .data.fd = arena_fd(engine->arena)},
        [ENGINE_FD_SHARED] = {.flags = UV_INHERIT_FD, .data.fd = engine->shared_fd},
        [ENGINE_FD_EVENT] = {.flags = UV_INHERIT_FD, .data.fd = engine->event_fd},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit,
        .file = engine->path,
        .args = engine->arguments,
        .env = engine->environment,
        .stdio_count = sizeof stdio / sizeof stdio[0],
        .stdio = stdio,
    };
    engine->process.data = engine;
    return uv_spawn(engine->loop, &engine->process, &options);
}

enum error engine_process_start(struct engine_process *engine, struct failure *failure)
{
    assert(engine->state == ENGINE_PROCESS_IDLE && !engine->closing);
    int control[2] = {-1, -1};
    engine->reason = ENGINE_PROCESS_NONE;
    engine->exit_code = 0;
    engine->device_count = 0;
    engine->up_ns = 0;
    engine->blame = true;
    engine->mismatch = engine->worked = false;
    enum error error = map_shared(engine, failure);
    if (error == ERROR_NONE && queue_lane_create(engine->queue, engine->shared, &engine->engine,
                                                 &engine->lane) != ERROR_NONE)
        error = failure_set(failure, ERROR_FULL, "out of memory for an engine's lanes");
    if (error == ERROR_NONE && pipe2(control, O_CLOEXEC) != 0)
        error = failure_set(failure, ERROR_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    if (error != ERROR_NONE) {
        release(engine);
        return error;
    }
    engine->control_fd = control[1];
    int status = spawn(engine, control[0]);
    close(control[0]);
    if (status != 0) {
        error = failure_set(failure, ERROR_INTERNAL, "cannot start the engine %s: %s", engine->path,
                            uv_strerror(status));
        release(engine);
        engine->closing = true;
        uv_close((uv_handle_t *)&engine->process, on_unspawned_closed);
        return error;
    }
    engine->pid = engine->process.pid;
    engine->started_ns = engine->heartbeat_seen_ns = clock_now_ns();
    engine->heartbeat = 0;
    move(engine, ENGINE_PROCESS_STARTING);
    return ERROR_NONE;
}

bool engine_process_poll(struct engine_process *engine)
{
    if (engine->state == ENGINE_PROCESS_STARTING &&
        atomic_load(&engine->shared->ready) == ENGINE_READY) {
        move(engine, ENGINE_PROCESS_UP);
        engine->up_ns = engine->heartbeat_seen_ns = clock_now_ns();
        log_line(LOG_INFO, "engine started", "device", LOG_STR, engine->engine.device, "pid",
                 LOG_I64, (int64_t)engine->pid, "start_ms", LOG_F64,
                 (double)(engine->up_ns - engine->started_ns) / (double)CLOCK_MS, NULL);
        queue_lane_up(engine->lane);
    }
    return engine->state == ENGINE_PROCESS_UP;
}

void engine_process_kill(struct engine_process *engine, enum engine_process_reason reason,
                         bool blame)
{
    if (engine->state != ENGINE_PROCESS_STARTING && engine->state != ENGINE_PROCESS_UP)
        return;
    engine->reason = reason;
    engine->blame = blame;
    move(engine, ENGINE_PROCESS_ENDING);
    uv_process_kill(&engine->process, SIGKILL);
}
