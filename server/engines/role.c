/* server/engines/role.c: see role.h. */
#include "server/engines/role.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"

#define SPARE_BACKOFF_MAX_NS (100 * CLOCK_MS)
/* A spare engine that ends sooner, without having had any work, is no better than one that fails to
 * start. */
#define SPARE_STEADY_NS CLOCK_S
#define FAILED_STARTS_MAX 5
/* Processes of a role that may wait to be reaped while another one is started, or takes over. A
 * device can hold them for ever; then no more are made, nor used up. */
#define LEAVING_MAX 2
#define TAKEN_LEAVING_MAX 4
/* A spare engine that was silent for longer takes no other role. */
#define LIVELY_NS (5 * ENGINE_HEARTBEAT_MS * CLOCK_MS)

static void move(struct role *role, enum role_state to)
{
    static const bool allowed[ROLE_STATES][ROLE_STATES] = {
        [ROLE_EMPTY] = {[ROLE_WANTED] = true},
        [ROLE_WANTED] = {[ROLE_EMPTY] = true, [ROLE_OUT] = true, [ROLE_ABSENT] = true},
        [ROLE_OUT] = {[ROLE_WANTED] = true, [ROLE_EMPTY] = true},
    };
    assert(allowed[role->state][to]);
    role->state = to;
}

static bool is_spare(const struct role *role)
{
    return role->engine.spare;
}

static void report_up(struct role *role, bool up)
{
    if (is_spare(role))
        return;
    metric_set(metric_series(role->metrics, METRIC_DEVICE_UP, role->name), up);
    metric_set(metric_series(role->metrics, METRIC_SECCOMP, role->name),
               up && role->process->shared->confined != 0);
}

static void count_failures(struct role *role, const char *reason, uint64_t count)
{
    metric_add(metric_series(role->metrics, METRIC_ENGINE_RESTARTS, role->name, reason), count);
}

void role_show_failures(struct role *role)
{
    const char *reason;
    for (int i = 0; (reason = engine_process_failure_name(role->engine.device_class, i)) != NULL;
         i++)
        count_failures(role, reason, 0);
}

/* ---- Starting ---- */

static void back_off(struct role *role, uint64_t max_ns, uint64_t now_ns)
{
    role->backoff_ns = role->backoff_ns == 0 ? ROLE_QUICK_NS : 2 * role->backoff_ns;
    if (role->backoff_ns > max_ns)
        role->backoff_ns = max_ns;
    role->not_before_ns = now_ns + role->backoff_ns;
}

/* The service does without this device; a new engine is tried now and then. */
static void take_out(struct role *role, const char *why, uint64_t now_ns)
{
    if (role->state == ROLE_WANTED) {
        move(role, ROLE_OUT);
        log_line(LOG_ERROR, "device out of service", "device", LOG_STR, role->name, "why", LOG_STR,
                 why, "retry_s", LOG_F64, (double)role->backoff_max_ns / (double)CLOCK_S, NULL);
    }
    report_up(role, false);
    role->backoff_ns = role->backoff_max_ns;
    role->not_before_ns = now_ns + role->backoff_ns;
}

/* An engine did not come up. Before any ever did, that is the end where the service cannot do
 * without; later it is tried again, for what is wrong (an upgrade half done, say) may pass. */
static void start_failed(struct role *role, bool slow, const char *why, uint64_t now_ns)
{
    bool hopeless = ++role->failed_starts >= FAILED_STARTS_MAX || slow;
    back_off(role, role->backoff_max_ns, now_ns);
    if (!hopeless)
        return;
    if (role->must && !role->ever_up)
        role->failure = why;
    else if (role->engine.device_class != QUEUE_HOST && !is_spare(role))
        take_out(role, why, now_ns);
}

static void start(struct role *role, uint64_t now_ns)
{
    assert(role->process == NULL && role->failure == NULL);
    struct failure failure;
    if (engine_process_start(role->home, role->command.arguments[0], role->command.arguments,
                             &role->engine, &role->process, &failure) == ERROR_NONE) {
        role->process->owner = role;
        return;
    }
    log_line(LOG_ERROR, "engine not started", "device", LOG_STR, role->name, "why", LOG_STR,
             failure.detail, NULL);
    start_failed(role, false, "it cannot be started", now_ns);
}

/* Whether a process may take the role now. */
static bool is_due(const struct role *role, uint64_t now_ns)
{
    return role->process == NULL && role->failure == NULL && now_ns >= role->not_before_ns;
}

static bool may_start(const struct role *role, uint64_t now_ns)
{
    return is_due(role, now_ns) && !role->held && role->leaving < LEAVING_MAX;
}

bool role_is_on_the_way(const struct role *role)
{
    return role->process != NULL && role->process->state == ENGINE_PROCESS_STARTING;
}

bool role_is_starting(const struct role *role, uint64_t now_ns)
{
    return role_is_on_the_way(role) || (role->state == ROLE_WANTED && may_start(role, now_ns));
}

void role_want(struct role *role, uint64_t now_ns)
{
    if (role->state != ROLE_EMPTY)
        return;
    move(role, ROLE_WANTED);
    if (may_start(role, now_ns))
        start(role, now_ns);
}

/* ---- Ends ---- */

static bool ended_as(const struct engine_process *process, enum engine_exit code)
{
    return process->reason == ENGINE_PROCESS_NONE && process->exit_code == (int64_t)code;
}

/* There is no device. One that was there may come back. */
static void note_absent(struct role *role, uint64_t now_ns)
{
    if (role->must && !role->ever_up) {
        role->failure = "there is no such device, or no driver for it";
    } else if (role->ever_up || role->state == ROLE_OUT) {
        take_out(role, "it is gone", now_ns);
    } else {
        move(role, ROLE_ABSENT);
        log_line(LOG_INFO, "no such device: the service does without it", "device", LOG_STR,
                 role->name, NULL);
    }
}

/* Whether the engine ended because of its device, not of its work. */
static bool note_device(struct role *role, const struct engine_process *process, uint64_t now_ns)
{
    if (is_spare(role))
        return false; /* the main engine of the device finds out by itself */
    if (ended_as(process, ENGINE_EXIT_DEVICE_ABSENT)) {
        note_absent(role, now_ns);
        return true;
    }
    if (ended_as(process, ENGINE_EXIT_DEVICE_OUT)) {
        if (role->must && !role->ever_up)
            role->failure = "the device is out of order";
        take_out(role, "the device is out of order", now_ns);
        return true;
    }
    if (process->reason == ENGINE_PROCESS_WRONG_ANSWER && role->engine.device_class != QUEUE_HOST) {
        take_out(role, "it computes wrong answers", now_ns);
        return true;
    }
    return false;
}

static void note_mismatch(struct role *role)
{
    if (!role->ever_up && !is_spare(role))
        role->failure = "its contract differs from this program's; install both from one build";
    else
        log_line(LOG_ERROR,
                 "the engine on disk is of another build than this program: restart invertd",
                 "path", LOG_STR, role->command.arguments[0], NULL);
}

/* The next start of an engine that did no work waits twice as long as this one did. A spare engine
 * is there to die of suspects while others wait for it: its pause is short. */
static void note_life(struct role *role, const struct engine_process *process, uint64_t now_ns)
{
    bool steady = !is_spare(role) || now_ns - process->up_ns >= SPARE_STEADY_NS;
    role->failed_starts = 0;
    if (process->worked || (process->idle && steady)) {
        role->backoff_ns = 0;
        role->not_before_ns = now_ns;
        return;
    }
    bool is_short = is_spare(role) && !process->idle;
    uint64_t max_ns = role->backoff_max_ns;
    if (is_short && max_ns > SPARE_BACKOFF_MAX_NS)
        max_ns = SPARE_BACKOFF_MAX_NS;
    back_off(role, max_ns, now_ns);
}

/* The role has no process any more: what that means for the next one. */
static void judge(struct role *role, const struct engine_process *process, uint64_t now_ns)
{
    assert(role->process == process);
    role->process = NULL;
    if (role->ever_up)
        report_up(role, false);
    if (role->state == ROLE_EMPTY) {
        /* Retired: the next process starts afresh. */
        role->backoff_ns = 0;
        role->not_before_ns = now_ns;
        return;
    }
    if (!ended_as(process, ENGINE_EXIT_DEVICE_ABSENT))
        count_failures(role, engine_process_end_name(process), 1);
    if (process->mismatch)
        note_mismatch(role);
    if (role->failure != NULL || note_device(role, process, now_ns))
        return;
    bool slow = process->reason == ENGINE_PROCESS_START;
    if (process->up_ns != 0)
        note_life(role, process, now_ns);
    else
        start_failed(role, slow,
                     slow ? "it takes too long to come up"
                          : "it ends before it is ready, again and again",
                     now_ns);
}

/* The front ends the process. */
static void end_process(struct role *role, enum engine_process_reason reason, bool blame,
                        uint64_t now_ns)
{
    struct engine_process *process = role->process;
    if (process == NULL || process->state == ENGINE_PROCESS_ENDING)
        return; /* none, or it has just ended by itself */
    engine_process_kill(process, reason, blame);
    role->leaving++;
    judge(role, process, now_ns);
}

void role_end(struct role *role, enum engine_process_reason reason, uint64_t now_ns)
{
    end_process(role, reason, false, now_ns);
}

void role_retire(struct role *role, uint64_t now_ns)
{
    if (role->state != ROLE_WANTED && role->state != ROLE_OUT)
        return;
    move(role, ROLE_EMPTY);
    end_process(role, ENGINE_PROCESS_RETIRED, false, now_ns);
}

void role_stop(struct role *role)
{
    if (role->state == ROLE_WANTED || role->state == ROLE_OUT)
        move(role, ROLE_EMPTY);
    end_process(role, ENGINE_PROCESS_STOPPED, false, clock_now_ns());
}

void role_note_end(struct role *role, struct engine_process *process, uint64_t now_ns)
{
    if (role->process == process)
        judge(role, process, now_ns);
    else
        role->leaving--;
    assert(role->leaving >= 0);
}

/* ---- Watching ---- */

static void watch(struct role *role, uint64_t now_ns, bool stalled)
{
    assert(role->process->state == ENGINE_PROCESS_UP);
    struct engine_process *process = role->process;
    uint64_t heartbeat = atomic_load(&process->shared->heartbeat);
    if (heartbeat != process->heartbeat || stalled) {
        process->heartbeat = heartbeat;
        process->heartbeat_seen_ns = now_ns;
    }
    if (atomic_load(&process->shared->ready) == ENGINE_LOST)
        end_process(role, ENGINE_PROCESS_LOST, true, now_ns);
    else if (now_ns > process->heartbeat_seen_ns + role->heartbeat_ns)
        end_process(role, ENGINE_PROCESS_HEARTBEAT, true, now_ns);
    else if (!stalled && queue_lane_overdue_ns(process->lane, now_ns) > 0)
        end_process(role, ENGINE_PROCESS_DEADLINE, true, now_ns);
}

static void note_up(struct role *role)
{
    if (role->state == ROLE_OUT) {
        move(role, ROLE_WANTED);
        log_line(LOG_INFO, "device in service again", "device", LOG_STR, role->name, NULL);
    }
    role->ever_up = true;
    report_up(role, true);
}

bool role_look_after(struct role *role, uint64_t now_ns, bool stalled)
{
    struct engine_process *process = role->process;
    if (process == NULL) {
        bool wanted = role->state == ROLE_WANTED || role->state == ROLE_OUT;
        if (wanted && may_start(role, now_ns))
            start(role, now_ns);
    } else if (process->state == ENGINE_PROCESS_STARTING) {
        if (engine_process_poll(process)) {
            note_up(role);
            return true;
        }
        if (engine_process_starting_ns(process, now_ns) > role->start_max_ns)
            end_process(role, ENGINE_PROCESS_START, false, now_ns);
    } else if (process->state == ENGINE_PROCESS_UP) {
        watch(role, now_ns, stalled);
    }
    return false;
}

/* Two that are coming up are not exchanged for each other, and a silent one may be about to be
 * ended. */
static bool may_take_over(const struct role *role, const struct role *spare, uint64_t now_ns)
{
    bool is_due_now = role->state == ROLE_WANTED && role->leaving < TAKEN_LEAVING_MAX &&
                      (role_is_on_the_way(role) || is_due(role, now_ns));
    if (!is_due_now || spare->process == NULL)
        return false;
    return role_is_up(spare) ? now_ns <= spare->process->heartbeat_seen_ns + LIVELY_NS
                             : role->process == NULL;
}

bool role_take_over(struct role *role, struct role *spare, uint64_t now_ns)
{
    struct engine_process *successor = spare->process, *starting = role->process;
    if (!may_take_over(role, spare, now_ns) || !engine_process_appoint(successor, &role->engine))
        return false;
    if (starting != NULL) {
        bool appointed = engine_process_appoint(starting, &spare->engine);
        assert(appointed); /* it has had no work */
        starting->owner = spare;
    }
    assert(is_spare(spare) && !is_spare(role));
    role->process = successor;
    spare->process = starting;
    successor->owner = role;
    if (!role_is_up(role))
        return false;
    note_up(role);
    return true;
}

/* ---- Looking ---- */

bool role_is_up(const struct role *role)
{
    return role->process != NULL && role->process->state == ENGINE_PROCESS_UP;
}

bool role_is_busy(const struct role *role)
{
    bool waits =
        role->process == NULL && role->state == ROLE_WANTED && role->backoff_ns <= ROLE_QUICK_NS;
    return role_is_on_the_way(role) || (waits && role->leaving < LEAVING_MAX);
}

bool role_is_settled(const struct role *role)
{
    return role->ever_up || role->state != ROLE_WANTED;
}
