/* server/engines/process.c: see process.h.
 *
 * Descriptors the child gets (gpu/engine.h): 0 the control socket, whose other end is ours alone
 * and closes with us; 2 our stderr; 3 the arena; 4 the shared lanes; 5 the event descriptor.
 * Everything else is closed on exec.
 */
#include "server/engines/process.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"

static void move(struct engine_process *process, enum engine_process_state to)
{
    /* Each follows the one before it; one that starts may end too. */
    assert(to > process->state);
    process->state = to;
}

/* The memory both sides share, filled in for a new engine. */
static enum error map_shared(struct engine_process *process, struct failure *failure)
{
    size_t bytes = sizeof *process->shared;
    process->shared_fd = memfd_create("invertd-lanes", MFD_CLOEXEC);
    if (process->shared_fd < 0 || ftruncate(process->shared_fd, (off_t)bytes) != 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot make the lanes' shared memory: %s",
                           strerror(errno));
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, process->shared_fd, 0);
    if (map == MAP_FAILED)
        return failure_set(failure, ERROR_INTERNAL, "cannot map the lanes' shared memory: %s",
                           strerror(errno));
    process->shared = map;
    process->shared->contract_hash = engine_contract_hash();
    process->shared->arena_bytes = arena_bytes(process->home->arena);
    process->shared->confine = process->home->confine;
    snprintf(process->shared->front_version, sizeof process->shared->front_version, "%s",
             process->home->version);
    return ERROR_NONE;
}

/* Safe at any point: undoes what start has done so far, but for the object itself. */
static void release(struct engine_process *process)
{
    queue_lane_destroy(&process->lane);
    if (process->shared != NULL)
        munmap(process->shared, sizeof *process->shared);
    process->shared = NULL;
    if (process->shared_fd > 0)
        close(process->shared_fd);
    if (process->control_fd > 0)
        close(process->control_fd);
    process->shared_fd = process->control_fd = 0;
}

/* Its slots in the arena may be used again. The owner first: a successor is not to be given what
 * this one may have died of. */
static void on_closed(uv_handle_t *handle)
{
    struct engine_process *process = handle->data;
    process->home->on_ended(process);
    queue_lane_down(process->lane, process->blame);
    release(process);
    free(process);
}

static const char *const end_names[ENGINE_PROCESS_REASONS] = {
#define END_NAME(id, name, help) [ENGINE_PROCESS_##id] = (name),
    ENGINE_PROCESS_REASON_TABLE(END_NAME)
#undef END_NAME
};
#define FAILURES ENGINE_PROCESS_LOST /* the first that is none */

/* That a device is absent is no failure. */
static const struct {
    enum engine_exit code;
    const char *name;
} device_ends[] = {
#define DEVICE_END(id, name, help) {ENGINE_EXIT_##id, name},
    ENGINE_PROCESS_DEVICE_TABLE(DEVICE_END) DEVICE_END(DEVICE_ABSENT, "device_absent", NULL)
#undef DEVICE_END
};
#define DEVICE_ENDS ((int)(sizeof device_ends / sizeof device_ends[0]))
#define DEVICE_FAILURES (DEVICE_ENDS - 1)

const char *engine_process_end_name(const struct engine_process *process)
{
    for (int i = 0; process->reason == ENGINE_PROCESS_NONE && i < DEVICE_ENDS; i++)
        if (process->exit_code == (int64_t)device_ends[i].code)
            return device_ends[i].name;
    return end_names[process->reason];
}

const char *engine_process_failure_name(enum queue_class_id device_class, int index)
{
    if (index < FAILURES)
        return end_names[index];
    bool has_device = device_class != QUEUE_HOST;
    return has_device && index < FAILURES + DEVICE_FAILURES ? device_ends[index - FAILURES].name
                                                            : NULL;
}

/* Was it ended because it is not needed? By SIGKILL, for nothing of it outlives it: a signal in the
 * log would look like a failure. */
static bool is_expected(const struct engine_process *process)
{
    return process->reason == ENGINE_PROCESS_RETIRED || process->reason == ENGINE_PROCESS_STOPPED;
}

/* From now on it takes nothing more. */
static void begin_to_end(struct engine_process *process)
{
    if (process->state == ENGINE_PROCESS_ENDING)
        return;
    move(process, ENGINE_PROCESS_ENDING);
    process->idle = queue_lane_close(process->lane, process->blame);
    process->worked = queue_lane_worked(process->lane);
}

/* What the engine said of itself, kept for the owner: its memory goes. */
static void note_end(struct engine_process *process, const struct spawner_end *end)
{
    process->mismatch = atomic_load(&process->shared->ready) == ENGINE_MISMATCH;
    process->device_count = process->shared->device_count;
    process->exit_code = end->signal != 0 ? -1 : end->exit_status;
    if (process->reason == ENGINE_PROCESS_NONE && (process->exit_code == ENGINE_EXIT_DEVICE_OUT ||
                                                   process->exit_code == ENGINE_EXIT_DEVICE_ABSENT))
        process->blame = false;
}

/* A child has ended; is it this one? */
static void on_child(uv_signal_t *handle, int number)
{
    struct engine_process *process = handle->data;
    struct spawner_end end;
    (void)number;
    if (!spawner_reap(process->pid, &end))
        return;
    note_end(process, &end);
    begin_to_end(process);
    bool was_absent = process->exit_code == ENGINE_EXIT_DEVICE_ABSENT; /* the owner logs it */
    enum log_level level = was_absent ? LOG_DEBUG : process->blame ? LOG_WARNING : LOG_INFO;
    const char *name = engine_process_end_name(process), *device = process->engine.device;
    if (is_expected(process))
        log_line(LOG_INFO, "engine stopped", "device", LOG_STR, device, "pid", LOG_I64,
                 (int64_t)process->pid, "reason", LOG_STR, name, NULL);
    else
        log_line(level, "engine ended", "device", LOG_STR, device, "pid", LOG_I64,
                 (int64_t)process->pid, "exit", LOG_I64, (int64_t)end.exit_status, "signal",
                 LOG_I64, (int64_t)end.signal, "reason", LOG_STR, name, NULL);
    uv_close((uv_handle_t *)handle, on_closed);
}

static enum error spawn(struct engine_process *process, char **arguments, int control_child_fd,
                        struct failure *failure)
{
    const struct engine_process_home *home = process->home;
    const struct spawner_program program = {
        .path = process->path,
        .arguments = arguments,
        .fds = {[ENGINE_FD_CONTROL] = control_child_fd,
                [1] = -1,
                [2] = STDERR_FILENO,
                [ENGINE_FD_ARENA] = arena_fd(home->arena),
                [ENGINE_FD_SHARED] = process->shared_fd,
                [ENGINE_FD_EVENT] = home->event_fd},
    };
    return spawner_start(home->spawner, &program, &process->pid, failure);
}

static void on_unspawned_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* What must be there before the process is. control: the socket's two ends. */
static enum error prepare(struct engine_process *process, int control[2], struct failure *failure)
{
    enum error error = map_shared(process, failure);
    if (error == ERROR_NONE && queue_lane_create(process->home->queue, process->shared,
                                                 &process->engine, &process->lane) != ERROR_NONE)
        error = failure_set(failure, ERROR_FULL, "out of memory for an engine's lanes");
    return error == ERROR_NONE ? descriptor_pair(control, failure) : error;
}

enum error engine_process_start(const struct engine_process_home *home, const char *path,
                                char **arguments, const struct queue_engine *role,
                                struct engine_process **result, struct failure *failure)
{
    assert(arguments[0] != NULL && home->on_ended != NULL);
    int control[2] = {-1, -1};
    struct engine_process *process = calloc(1, sizeof *process);
    if (process == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory for an engine");
    process->home = home;
    process->path = path;
    process->engine = *role;
    process->blame = true;
    enum error error = prepare(process, control, failure);
    if (error != ERROR_NONE) {
        release(process);
        free(process);
        return error;
    }
    process->control_fd = control[1];
    /* First, so that no end is missed; its callback comes from the loop, when the pid is known. */
    process->child.data = process;
    int status = uv_signal_init(home->loop, &process->child);
    assert(status == 0); /* the loop has watched signals before */
    status = uv_signal_start(&process->child, on_child, SIGCHLD);
    error = status == 0 ? spawn(process, arguments, control[0], failure)
                        : failure_set(failure, ERROR_INTERNAL, "cannot watch signals: %s",
                                      uv_strerror(status));
    close(control[0]);
    if (error != ERROR_NONE) {
        release(process);
        uv_close((uv_handle_t *)&process->child, on_unspawned_closed);
        return error;
    }
    process->started_ns = process->heartbeat_seen_ns = clock_now_ns();
    start_clock_begin(&process->start_clock, process->started_ns);
    *result = process;
    return ERROR_NONE;
}

bool engine_process_poll(struct engine_process *process)
{
    if (process->state == ENGINE_PROCESS_STARTING &&
        atomic_load(&process->shared->ready) == ENGINE_READY) {
        move(process, ENGINE_PROCESS_UP);
        process->up_ns = process->role_ns = process->heartbeat_seen_ns = clock_now_ns();
        log_line(LOG_INFO, "engine started", "device", LOG_STR, process->engine.device, "pid",
                 LOG_I64, (int64_t)process->pid, "start_ms", LOG_F64,
                 (double)(process->up_ns - process->started_ns) / (double)CLOCK_MS, NULL);
        queue_lane_up(process->lane);
    }
    return process->state == ENGINE_PROCESS_UP;
}

/* 0 when the system does not say. */
static uint64_t cpu_ns(int pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * CLOCK_S + (uint64_t)used.tv_nsec;
}

/* The same of how long its main thread was ready and did not run. */
static uint64_t ready_ns(int pid)
{
    char path[40];
    unsigned long long ran = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    bool good = fscanf(file, "%llu %llu", &ran, &waited) == 2;
    (void)fclose(file);
    return good ? waited : 0;
}

uint64_t engine_process_starting_ns(struct engine_process *process, uint64_t now_ns)
{
    assert(process->state == ENGINE_PROCESS_STARTING);
    const struct start_usage usage = {cpu_ns(process->pid), ready_ns(process->pid)};
    return start_clock_look(&process->start_clock, now_ns, &usage);
}

bool engine_process_appoint(struct engine_process *process, const struct queue_engine *role)
{
    if (process->state == ENGINE_PROCESS_ENDING || !queue_lane_appoint(process->lane, role))
        return false;
    process->engine = *role;
    process->role_ns = clock_now_ns();
    return true;
}

void engine_process_kill(struct engine_process *process, enum engine_process_reason reason,
                         bool blame)
{
    assert(reason != ENGINE_PROCESS_NONE && reason < ENGINE_PROCESS_REASONS);
    if (process->state == ENGINE_PROCESS_ENDING)
        return;
    process->reason = reason;
    process->blame = blame;
    spawner_kill(process->pid);
    begin_to_end(process);
}
