/* tests/unit/server/role_bed.h: a role, and the processes that sit there, played by the test: they
 * come up, work and end when it says so.
 */
#ifndef TESTS_UNIT_SERVER_ROLE_BED_H
#define TESTS_UNIT_SERVER_ROLE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/clock.h"
#include "server/engines/role.h"

#define MS_NS UINT64_C(1000000)
#define MAX_NS (10 * CLOCK_S)
#define NOW_NS (1000 * CLOCK_S)

/* ---- Processes ---- */

#define PROCESSES 64

static struct engine_shared *shared;
static struct engine_process processes[PROCESSES];
static int starts, kills;
static enum error start_error;
static bool comes_up, has_work;
static uint64_t overdue_ns, clock_ns;

enum error engine_process_start(const struct engine_process_home *home, const char *path,
                                char **arguments, const struct queue_engine *role,
                                struct engine_process **result, struct failure *failure)
{
    (void)arguments;
    starts++;
    if (start_error != ERROR_NONE)
        return failure_set(failure, start_error, "cannot start");
    assert_true(starts < PROCESSES);
    struct engine_process *process = &processes[starts];
    *process = (struct engine_process){.home = home,
                                       .path = path,
                                       .engine = *role,
                                       .state = ENGINE_PROCESS_STARTING,
                                       .started_ns = clock_ns,
                                       .heartbeat_seen_ns = clock_ns,
                                       .shared = shared};
    *result = process;
    return ERROR_NONE;
}

bool engine_process_poll(struct engine_process *process)
{
    if (process->state == ENGINE_PROCESS_STARTING && comes_up) {
        process->state = ENGINE_PROCESS_UP;
        process->up_ns = process->heartbeat_seen_ns = clock_ns;
    }
    return process->state == ENGINE_PROCESS_UP;
}

uint64_t engine_process_starting_ns(struct engine_process *process, uint64_t now_ns)
{
    return now_ns - process->started_ns;
}

bool engine_process_appoint(struct engine_process *process, const struct queue_engine *role)
{
    if (process->state == ENGINE_PROCESS_ENDING || (process->up_ns != 0 && has_work))
        return false;
    process->engine = *role;
    return true;
}

void engine_process_kill(struct engine_process *process, enum engine_process_reason reason,
                         bool blame)
{
    (void)blame;
    if (process->state == ENGINE_PROCESS_ENDING)
        return;
    kills++;
    process->reason = reason;
    process->state = ENGINE_PROCESS_ENDING;
}

const char *engine_process_end_name(const struct engine_process *process)
{
    (void)process;
    return "ended";
}

const char *engine_process_failure_name(enum queue_class_id device_class, int index)
{
    static const char *const names[] = {"ended", "melted"};
    (void)device_class;
    return index < 2 ? names[index] : NULL;
}

uint64_t queue_lane_overdue_ns(struct queue_lane *lane, uint64_t now_ns)
{
    (void)lane;
    (void)now_ns;
    return overdue_ns;
}

/* ---- The bench ---- */

struct bench {
    struct metric_registry *metrics;
    struct role role;
};

static inline struct bench bench_open(enum queue_class_id device_class, bool must)
{
    struct bench bench = {.metrics = metric_registry_create()};
    shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    starts = kills = 0;
    start_error = ERROR_NONE;
    comes_up = true;
    has_work = false;
    overdue_ns = 0;
    clock_ns = NOW_NS;
    bench.role = (struct role){.must = must,
                               .name = "device",
                               .metrics = bench.metrics,
                               .start_max_ns = 20 * CLOCK_S,
                               .heartbeat_ns = 2 * CLOCK_S,
                               .backoff_max_ns = MAX_NS};
    bench.role.engine.device_class = device_class;
    return bench;
}

static inline void bench_close(struct bench *bench)
{
    metric_registry_destroy(&bench->metrics);
    free(shared);
}

static inline bool tick(struct bench *bench, uint64_t after_ns)
{
    clock_ns += after_ns;
    return role_look_after(&bench->role, clock_ns, false);
}

/* The process in the role ends by itself: with work under way that it has not ended, or not. */
static inline void end_with(struct role *role, int64_t code, bool worked, bool idle)
{
    struct engine_process *process = role->process;
    assert_non_null(process);
    assert_true(process->owner == role);
    process->state = ENGINE_PROCESS_ENDING;
    process->exit_code = code;
    process->worked = worked;
    process->idle = idle;
    role_note_end(role, process, clock_ns);
    assert_null(role->process);
}

static inline void end(struct bench *bench, int64_t code, bool worked)
{
    end_with(&bench->role, code, worked, false);
}

static inline void come_up(struct bench *bench)
{
    role_want(&bench->role, clock_ns);
    assert_true(tick(bench, MS_NS));
    assert_true(role_is_up(&bench->role));
}

static inline int64_t device_up(const struct bench *bench)
{
    return (int64_t)metric_value(metric_series(bench->metrics, METRIC_DEVICE_UP, "device"));
}

#endif
