/* server/engines/supervisor.c: see supervisor.h.
 *
 * A table of roles: the host's and a spare one, and for each CUDA device its own and spare ones. A
 * clock looks after all of them, after the probes and after readiness.
 *
 * Devices: those of --engine are wanted at the start; the engine that comes up reports how many
 * there are, and with `all` the others are wanted then. A device class none of whose devices is in
 * service is given up in the queue, so that the host takes over at once.
 *
 * Spare engines: a CUDA engine takes seconds to come up, so --cuda-spares of them are kept up on
 * each device in service, and a new one is started for each that is gone. Two things are asked of
 * them. Suspects are theirs at once, as their lanes take nothing else. And one that has no work
 * takes the role of the device's own engine when that one ends (role_take_over). Where fewer than
 * two are kept, the others are started when there are suspects, on the device whose engine died
 * last: a spare engine is going to be killed by the item that killed the first one, and meanwhile
 * the other one goes on with the suspects that did nothing wrong.
 *
 * Probes: one for each engine but the spare ones, of a method that it serves, when it comes up or
 * takes over, and whenever it has had nothing to do for a while. A wrong answer ends the engine
 * that gave it, and the service is unready until a probe of that class is right again, or the class
 * is out of service.
 */
#include "server/engines/supervisor.h"

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
#include "server/engines/probe.h"
#include "server/engines/roster.h"

#define TICK_MS 20
#define TICK_BUSY_MS 2            /* while an engine starts */
#define STALL_NS (500 * CLOCK_MS) /* a clock this late: the machine slept, not the engine */
#define SPARE_IDLE_NS (5 * CLOCK_S)
#define READY_WITHIN_NS (5 * CLOCK_S)
#define PROBE_EVERY_NS (2 * CLOCK_S)

#define SUSPECTS_SPARES 2 /* CUDA engines that suspects need: see above */

/* What the supervisor keeps of a device class. */
struct class_watch {
    uint64_t spare_used_ns; /* when suspects were last seen */
    bool distrusted;        /* the last probe's answer was wrong */
};

struct probing {
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
    struct roster roster;
    struct probing probings[ROSTER_ROLES];
    struct class_watch classes[QUEUE_CLASSES];
    int last_died; /* the CUDA device */
};

/* Every engine takes it. */
static const char probe_method[] = "lu";

/* Of an engine that is there: its spare ones are there for the first failure, too. */
static void show_failures(struct supervisor *supervisor, struct role *role)
{
    role_show_failures(role);
    if (!roster_is_own(role)) {
        role_show_failures(&supervisor->roster.roles[ROSTER_SPARE_HOST]);
        return;
    }
    int kept = supervisor->options.cuda_spares;
    for (int i = 0; i < (kept > SUSPECTS_SPARES ? kept : SUSPECTS_SPARES); i++)
        role_show_failures(roster_spare(&supervisor->roster, role->device, i));
    metric_add(metric_series(role->metrics, METRIC_ENGINE_TAKEOVERS, role->name), 0);
}

/* ---- Engines ---- */

static void fail(struct supervisor *supervisor, const struct role *role, const char *why)
{
    if (supervisor->failed || supervisor->stopping)
        return;
    supervisor->failed = true;
    log_line(LOG_ERROR, "the engine cannot be used", "device", LOG_STR, role->name, "why", LOG_STR,
             why, "path", LOG_STR, role->command.arguments[0], NULL);
    supervisor->options.on_failed(supervisor->options.context);
}

/* An engine has reported how many devices there are. */
static void note_devices(struct supervisor *supervisor, const struct role *role, int count,
                         uint64_t now_ns)
{
    if (!roster_is_own(role) || !supervisor->options.engines.all || supervisor->stopping)
        return;
    for (int device = 0; device < count && device < ENGINE_DEVICES_MAX; device++)
        role_want(roster_own(&supervisor->roster, device), now_ns);
}

/* Reports to the queue whether a CUDA engine is there or comes soon. */
static void note_places(struct supervisor *supervisor)
{
    bool hope = false;
    for (int device = 0; device < ENGINE_DEVICES_MAX; device++)
        hope |= roster_own(&supervisor->roster, device)->state == ROLE_WANTED;
    queue_give_up(supervisor->options.queue, QUEUE_CUDA, !hope);
}

static void check_stopped(struct supervisor *supervisor)
{
    for (int i = 0; i < ROSTER_ROLES; i++)
        if (supervisor->roster.roles[i].process != NULL || supervisor->roster.roles[i].leaving > 0)
            return;
    if (supervisor->stopping && supervisor->timer_closed)
        supervisor->options.on_stopped(supervisor->options.context);
}

static void schedule(struct supervisor *supervisor);

/* A device out of service runs nothing: what is wrong with it may be its answers. */
static void retire_spares(struct supervisor *supervisor, const struct role *role, uint64_t now_ns)
{
    for (int i = 0; i < SUPERVISOR_SPARES_MAX; i++)
        role_retire(roster_spare(&supervisor->roster, role->device, i), now_ns);
}

/* The role's engine has ended, or has been ended. */
static void note_left(struct supervisor *supervisor, struct role *role, uint64_t now_ns)
{
    struct probe *probe = supervisor->probings[role->engine.number].probe;
    /* No other engine may answer it, or be judged by it, nor may the one that takes over. */
    probe_cancel(probe);
    if (probe != NULL && !probe_is_running(probe))
        (void)probe_take(probe);
    if (roster_is_own(role))
        supervisor->last_died = role->device;
    if (roster_is_own(role) && role->state != ROLE_WANTED)
        retire_spares(supervisor, role, now_ns);
    if (role->failure != NULL)
        fail(supervisor, role, role->failure);
}

/* The same bits on several machines are what --cpu is for: nothing else will do. */
static void check_cpu(struct supervisor *supervisor, const struct role *role, const char *model)
{
    const char *wanted = supervisor->options.cpu;
    if (wanted == NULL || strcasecmp(wanted, model) == 0)
        return;
    log_line(LOG_ERROR, "OpenBLAS has no such kernel family for this CPU", "cpu", LOG_STR, wanted,
             "took", LOG_STR, model, NULL);
    fail(supervisor, role, "its kernels are not those that --cpu asks for");
}

/* The engine says what it runs on. */
static void note_up(struct supervisor *supervisor, struct role *role, uint64_t now_ns)
{
    struct metric_registry *metrics = supervisor->options.metrics;
    char model[ENGINE_NAME_MAX];
    snprintf(model, sizeof model, "%.*s", ENGINE_NAME_MAX - 1, role->process->shared->model);
    note_devices(supervisor, role, role->process->shared->device_count, now_ns);
    note_places(supervisor);
    if (role->engine.spare)
        return;
    show_failures(supervisor, role);
    metric_set(metric_series(metrics, METRIC_DEVICE_INFO, role->name, model), 1);
    if (role != &supervisor->roster.roles[ROSTER_HOST])
        return;
    metric_set(metric_series(metrics, METRIC_BUILD_INFO, supervisor->options.version, model), 1);
    check_cpu(supervisor, role, model);
}

/* A spare engine that is up takes the role of the device's own engine where that is vacant. Where
 * none is up, one that is starting does. */
static bool fill_role(struct supervisor *supervisor, struct role *role, uint64_t now_ns)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < SUPERVISOR_SPARES_MAX; i++) {
            struct role *spare = roster_spare(&supervisor->roster, role->device, i);
            if (role_is_up(spare) == (pass == 0) && role_take_over(role, spare, now_ns))
                return true;
        }
    return false;
}

static void fill_roles(struct supervisor *supervisor, uint64_t now_ns)
{
    for (int device = 0; device < ENGINE_DEVICES_MAX; device++) {
        struct role *role = roster_own(&supervisor->roster, device);
        if (role->state != ROLE_WANTED || role_is_up(role) || !fill_role(supervisor, role, now_ns))
            continue;
        metric_add(metric_series(role->metrics, METRIC_ENGINE_TAKEOVERS, role->name), 1);
        log_line(LOG_INFO, "a spare engine takes over", "device", LOG_STR, role->name, "pid",
                 LOG_I64, (int64_t)role->process->pid, NULL);
        note_up(supervisor, role, now_ns);
    }
}

static void on_ended(struct engine_process *process)
{
    struct supervisor *supervisor = process->home->context;
    struct role *role = process->owner;
    uint64_t now_ns = clock_now_ns();
    bool by_itself = role->process == process;
    role_note_end(role, process, now_ns);
    if (supervisor->stopping) {
        check_stopped(supervisor);
        return;
    }
    if (by_itself)
        note_left(supervisor, role, now_ns);
    note_devices(supervisor, role, process->device_count, now_ns);
    fill_roles(supervisor, now_ns);
    note_places(supervisor);
    schedule(supervisor);
}

/* Engines that start together on one device slow each other down (bench/results/engine.md). So a
 * spare engine waits for the device's own and for the spare ones before it. */
static void hold_spare(struct supervisor *supervisor, struct role *spare, uint64_t now_ns)
{
    spare->held = false;
    if (spare->engine.device_class != QUEUE_CUDA)
        return;
    spare->held = role_is_starting(roster_own(&supervisor->roster, spare->device), now_ns);
    for (int i = 0; i < SUPERVISOR_SPARES_MAX; i++) {
        const struct role *other = roster_spare(&supervisor->roster, spare->device, i);
        spare->held |= other < spare ? role_is_starting(other, now_ns)
                                     : other != spare && role_is_on_the_way(other);
    }
}

/* Where the spare engines of suspects are started: on the device whose engine died last, or another
 * in service; -1: there is none. */
static int device_of_suspects(struct supervisor *supervisor)
{
    for (int i = 0; i < ENGINE_DEVICES_MAX; i++) {
        int device = (supervisor->last_died + i) % ENGINE_DEVICES_MAX;
        if (roster_own(&supervisor->roster, device)->state == ROLE_WANTED)
            return device;
    }
    return -1;
}

/* Whether the spare role is to have a process. */
static bool is_spare_wanted(struct supervisor *supervisor, const struct role *spare, bool suspects)
{
    if (spare->engine.device_class == QUEUE_HOST)
        return suspects;
    const struct role *main = roster_own(&supervisor->roster, spare->device);
    int index = roster_spare_index(spare);
    bool in_service = main->state == ROLE_WANTED && main->ever_up;
    return (in_service && index < supervisor->options.cuda_spares) ||
           (suspects && index < SUSPECTS_SPARES && device_of_suspects(supervisor) == spare->device);
}

/* Spare engines that are not kept come with the first suspect and go some time after the last;
 * those of a device that goes out of service have gone with it. */
static void look_after_spares(struct supervisor *supervisor, enum queue_class_id device_class,
                              uint64_t now_ns)
{
    struct class_watch *watch = &supervisor->classes[device_class];
    bool suspects = queue_has_suspects(supervisor->options.queue, device_class);
    if (suspects)
        watch->spare_used_ns = now_ns;
    bool unused = now_ns - watch->spare_used_ns > SPARE_IDLE_NS;
    for (int i = 0; i < ROSTER_ROLES; i++) {
        struct role *role = &supervisor->roster.roles[i];
        if (!role->engine.spare || role->engine.device_class != device_class)
            continue;
        hold_spare(supervisor, role, now_ns);
        bool is_out = device_class == QUEUE_CUDA &&
                      roster_own(&supervisor->roster, role->device)->state != ROLE_WANTED;
        if (is_spare_wanted(supervisor, role, suspects))
            role_want(role, now_ns);
        else if (unused || is_out)
            role_retire(role, now_ns);
    }
}

static void count_spares(struct supervisor *supervisor)
{
    for (int device = 0; device < ENGINE_DEVICES_MAX; device++) {
        const struct role *role = roster_own(&supervisor->roster, device);
        int up = 0;
        for (int i = 0; i < SUPERVISOR_SPARES_MAX; i++)
            up += role_is_up(roster_spare(&supervisor->roster, device, i));
        if (role->ever_up)
            metric_set(metric_series(role->metrics, METRIC_DEVICE_SPARES, role->name), up);
    }
}

/* ---- Readiness ---- */

/* A right answer that another engine gave, after the role's had ended, is none of the role's. */
static void judge(struct supervisor *supervisor, struct class_watch *watch, struct probe *probe,
                  enum roster_id id, uint64_t now_ns)
{
    enum probe_state verdict = probe_take(probe);
    if (verdict == PROBE_RIGHT && probe_engine(probe) == (int)id)
        watch->distrusted = false;
    if (verdict != PROBE_WRONG)
        return;
    struct role *role = &supervisor->roster.roles[probe_engine(probe)];
    watch->distrusted = true;
    if (role->process == NULL)
        return;
    log_line(LOG_ERROR, "the engine computes wrong answers", "device", LOG_STR, role->name, "pid",
             LOG_I64, (int64_t)role->process->pid, NULL);
    role_end(role, ENGINE_PROCESS_WRONG_ANSWER, now_ns);
    note_left(supervisor, role, now_ns);
}

/* Where the arena is full, an engine is probed a little later. */
static bool has_probe(struct supervisor *supervisor, struct probing *probing)
{
    const struct supervisor_options *options = &supervisor->options;
    struct failure failure;
    return probing->probe != NULL || probe_create(options->queue, options->arena, probe_method,
                                                  &probing->probe, &failure) == ERROR_NONE;
}

static void look_after_probe(struct supervisor *supervisor, enum roster_id id, uint64_t now_ns)
{
    const struct role *role = &supervisor->roster.roles[id];
    struct probing *probing = &supervisor->probings[id];
    struct class_watch *watch = &supervisor->classes[role->engine.device_class];
    if (probing->probe != NULL)
        judge(supervisor, watch, probing->probe, id, now_ns);
    if (role->engine.spare || !role_is_up(role) || !has_probe(supervisor, probing))
        return;
    uint64_t last_ns = queue_lane_last_batch_ns(role->process->lane);
    bool is_new = probing->started_ns < role->process->role_ns;
    bool is_idle = now_ns > last_ns + PROBE_EVERY_NS || watch->distrusted;
    bool due = is_new || (is_idle && now_ns > probing->started_ns + PROBE_EVERY_NS);
    if (due && !probe_is_running(probing->probe)) {
        probing->started_ns = now_ns;
        probe_start(probing->probe, id);
    }
}

static void look_after_readiness(struct supervisor *supervisor, uint64_t now_ns)
{
    bool settled = true, fresh = false, trusted = true;
    for (int i = 0; i < ROSTER_ROLES; i++)
        settled &= supervisor->roster.roles[i].engine.spare ||
                   role_is_settled(&supervisor->roster.roles[i]);
    supervisor->settled |= settled;
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        enum queue_class_id device_class = (enum queue_class_id)p;
        uint64_t last_ns = queue_last_batch_ns(supervisor->options.queue, device_class);
        fresh |= last_ns != 0 && now_ns < last_ns + READY_WITHIN_NS;
        trusted &= !supervisor->classes[p].distrusted ||
                   queue_is_out(supervisor->options.queue, device_class);
    }
    atomic_store(supervisor->options.ready, supervisor->settled && fresh && trusted);
}

/* ---- The clock ---- */

static void look_after_role(struct supervisor *supervisor, struct role *role, uint64_t now_ns,
                            bool stalled)
{
    bool had_engine = role->process != NULL;
    if (role_look_after(role, now_ns, stalled))
        note_up(supervisor, role, now_ns);
    if (had_engine && role->process == NULL) {
        note_left(supervisor, role, now_ns);
        fill_roles(supervisor, now_ns); /* before a spare engine has a suspect */
    }
    if (role->failure != NULL)
        fail(supervisor, role, role->failure);
}

static void on_tick(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    uint64_t now_ns = clock_now_ns();
    bool stalled = now_ns - supervisor->last_tick_ns > STALL_NS;
    supervisor->last_tick_ns = now_ns;
    fill_roles(supervisor, now_ns);
    for (int p = 0; p < QUEUE_CLASSES; p++)
        look_after_spares(supervisor, (enum queue_class_id)p, now_ns);
    for (int i = 0; i < ROSTER_ROLES; i++)
        look_after_role(supervisor, &supervisor->roster.roles[i], now_ns, stalled);
    count_spares(supervisor);
    for (int i = 0; i < ROSTER_ROLES; i++)
        look_after_probe(supervisor, (enum roster_id)i, now_ns);
    note_places(supervisor);
    look_after_readiness(supervisor, now_ns);
    queue_tick(supervisor->options.queue, now_ns);
    schedule(supervisor);
}

static void schedule(struct supervisor *supervisor)
{
    bool busy = false;
    for (int i = 0; i < ROSTER_ROLES; i++)
        busy |= role_is_busy(&supervisor->roster.roles[i]);
    for (int i = 0; i < ROSTER_ROLES; i++) /* readiness is a batch away */
        busy |= !*supervisor->options.ready && probe_is_running(supervisor->probings[i].probe);
    if (!supervisor->stopping)
        uv_timer_start(&supervisor->timer, on_tick, busy ? TICK_BUSY_MS : TICK_MS, 0);
}

/* ---- Life ---- */

enum error supervisor_create(const struct supervisor_options *options, struct supervisor **result,
                             struct failure *failure)
{
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (supervisor == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for the supervisor");
    supervisor->options = *options;
    supervisor->timer_closed = true;
    supervisor->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum error error = ERROR_NONE;
    if (supervisor->event_fd < 0)
        error = failure_set(failure, ERROR_INTERNAL, "cannot make an eventfd: %s", strerror(errno));
    if (error == ERROR_NONE)
        error = roster_make(&supervisor->roster, &supervisor->options, supervisor->event_fd,
                            on_ended, supervisor, failure);
    if (error != ERROR_NONE) {
        supervisor_destroy(&supervisor);
        return error;
    }
    metric_set(metric_series(options->metrics, METRIC_DEVICE_UP, "host"), 0);
    show_failures(supervisor, &supervisor->roster.roles[ROSTER_HOST]);
    uv_timer_init(options->loop, &supervisor->timer);
    supervisor->timer.data = supervisor;
    supervisor->timer_closed = false;
    uint64_t now_ns = supervisor->last_tick_ns = clock_now_ns();
    role_want(&supervisor->roster.roles[ROSTER_HOST], now_ns);
    for (int device = 0; device < ENGINE_DEVICES_MAX; device++)
        if (supervisor->options.engines.devices[device])
            role_want(roster_own(&supervisor->roster, device), now_ns);
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
    for (int i = 0; i < ROSTER_ROLES; i++)
        probe_cancel(supervisor->probings[i].probe);
    uv_timer_stop(&supervisor->timer);
    uv_close((uv_handle_t *)&supervisor->timer, on_timer_closed);
    for (int i = 0; i < ROSTER_ROLES; i++)
        role_stop(&supervisor->roster.roles[i]);
}

void supervisor_destroy(struct supervisor **supervisor_pointer)
{
    struct supervisor *supervisor = *supervisor_pointer;
    if (supervisor == NULL)
        return;
    assert(supervisor->timer_closed);
    for (int i = 0; i < ROSTER_ROLES; i++)
        probe_destroy(&supervisor->probings[i].probe);
    if (supervisor->event_fd >= 0)
        close(supervisor->event_fd);
    free(supervisor);
    *supervisor_pointer = NULL;
}
