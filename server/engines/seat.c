/* server/engines/seat.c: see seat.h. */
#include "server/engines/seat.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"

#define SPARE_BACKOFF_MAX_NS (100 * CLOCK_MS)
/* A spare engine that ends sooner, without having had any work, is no better than one that fails to
 * start. */
#define SPARE_STEADY_NS CLOCK_S
#define FAILED_STARTS_MAX 5
/* Processes of a seat that may wait to be reaped while another one is started, or takes it. A
 * device can hold them for ever; then no more are made, nor used up. */
#define LEAVING_MAX 2
#define TAKEN_LEAVING_MAX 4
/* An engine in a spare seat that was silent for longer is not given another one. */
#define LIVELY_NS (5 * ENGINE_HEARTBEAT_MS * CLOCK_MS)

static void move(struct seat *seat, enum seat_state to)
{
    static const bool allowed[SEAT_STATES][SEAT_STATES] = {
        [SEAT_EMPTY] = {[SEAT_WANTED] = true},
        [SEAT_WANTED] = {[SEAT_EMPTY] = true, [SEAT_OUT] = true, [SEAT_ABSENT] = true},
        [SEAT_OUT] = {[SEAT_WANTED] = true, [SEAT_EMPTY] = true},
    };
    assert(allowed[seat->state][to]);
    seat->state = to;
}

static bool is_spare(const struct seat *seat)
{
    return seat->role.spare;
}

static void tell_up(struct seat *seat, bool up)
{
    if (!is_spare(seat))
        metric_set(metric_series(seat->metrics, METRIC_DEVICE_UP, seat->name), up);
}

static void count_failures(struct seat *seat, const char *reason, uint64_t count)
{
    metric_add(metric_series(seat->metrics, METRIC_ENGINE_RESTARTS, seat->name, reason), count);
}

void seat_show_failures(struct seat *seat)
{
    const char *reason;
    for (int i = 0; (reason = engine_process_failure_name(seat->role.place, i)) != NULL; i++)
        count_failures(seat, reason, 0);
}

/* ---- Starting ---- */

static void back_off(struct seat *seat, uint64_t max_ns, uint64_t now_ns)
{
    seat->backoff_ns = seat->backoff_ns == 0 ? SEAT_QUICK_NS : 2 * seat->backoff_ns;
    if (seat->backoff_ns > max_ns)
        seat->backoff_ns = max_ns;
    seat->not_before_ns = now_ns + seat->backoff_ns;
}

/* The place does without this device; a new engine is tried now and then. */
static void take_out(struct seat *seat, const char *why, uint64_t now_ns)
{
    if (seat->state == SEAT_WANTED) {
        move(seat, SEAT_OUT);
        log_line(LOG_ERROR, "device out of service", "device", LOG_STR, seat->name, "why", LOG_STR,
                 why, "retry_s", LOG_F64, (double)seat->backoff_max_ns / (double)CLOCK_S, NULL);
    }
    tell_up(seat, false);
    seat->backoff_ns = seat->backoff_max_ns;
    seat->not_before_ns = now_ns + seat->backoff_ns;
}

/* An engine did not come up. Before any ever did, that is the end where the service cannot do
 * without; later it is tried again, for what is wrong (an upgrade half done, say) may pass. */
static void start_failed(struct seat *seat, bool slow, const char *why, uint64_t now_ns)
{
    bool hopeless = ++seat->failed_starts >= FAILED_STARTS_MAX || slow;
    back_off(seat, seat->backoff_max_ns, now_ns);
    if (!hopeless)
        return;
    if (seat->must && !seat->ever_up)
        seat->failure = why;
    else if (seat->role.place != QUEUE_HOST && !is_spare(seat))
        take_out(seat, why, now_ns);
}

static void start(struct seat *seat, uint64_t now_ns)
{
    struct failure failure;
    if (engine_process_start(seat->home, seat->command.arguments[0], seat->command.arguments,
                             &seat->role, &seat->process, &failure) == ERROR_NONE) {
        seat->process->owner = seat;
        return;
    }
    log_line(LOG_ERROR, "engine not started", "device", LOG_STR, seat->name, "why", LOG_STR,
             failure.detail, NULL);
    start_failed(seat, false, "it cannot be started", now_ns);
}

/* Whether whoever is there may take the seat now. */
static bool is_due(const struct seat *seat, uint64_t now_ns)
{
    return seat->process == NULL && seat->failure == NULL && now_ns >= seat->not_before_ns;
}

static bool may_start(const struct seat *seat, uint64_t now_ns)
{
    return is_due(seat, now_ns) && !seat->held && seat->leaving < LEAVING_MAX;
}

bool seat_is_on_the_way(const struct seat *seat)
{
    return seat->process != NULL && seat->process->state == ENGINE_PROCESS_STARTING;
}

bool seat_is_starting(const struct seat *seat, uint64_t now_ns)
{
    return seat_is_on_the_way(seat) || (seat->state == SEAT_WANTED && may_start(seat, now_ns));
}

void seat_want(struct seat *seat, uint64_t now_ns)
{
    if (seat->state != SEAT_EMPTY)
        return;
    move(seat, SEAT_WANTED);
    if (may_start(seat, now_ns))
        start(seat, now_ns);
}

/* ---- Ends ---- */

static bool ended_as(const struct engine_process *process, enum engine_exit code)
{
    return process->reason == ENGINE_PROCESS_NONE && process->exit_code == (int64_t)code;
}

/* There is no device. One that was there may come back. */
static void note_absent(struct seat *seat, uint64_t now_ns)
{
    if (seat->must && !seat->ever_up) {
        seat->failure = "there is no such device, or no driver for it";
    } else if (seat->ever_up || seat->state == SEAT_OUT) {
        take_out(seat, "it is gone", now_ns);
    } else {
        move(seat, SEAT_ABSENT);
        log_line(LOG_INFO, "no such device: the service does without it", "device", LOG_STR,
                 seat->name, NULL);
    }
}

/* The engine's end tells of its device, not of its work. */
static bool note_device(struct seat *seat, const struct engine_process *process, uint64_t now_ns)
{
    if (is_spare(seat))
        return false; /* the main engine of the device finds out by itself */
    if (ended_as(process, ENGINE_EXIT_DEVICE_ABSENT)) {
        note_absent(seat, now_ns);
        return true;
    }
    if (ended_as(process, ENGINE_EXIT_DEVICE_OUT)) {
        if (seat->must && !seat->ever_up)
            seat->failure = "the device is out of order";
        take_out(seat, "the device is out of order", now_ns);
        return true;
    }
    if (process->reason == ENGINE_PROCESS_WRONG_ANSWER && seat->role.place != QUEUE_HOST) {
        take_out(seat, "it computes wrong answers", now_ns);
        return true;
    }
    return false;
}

static void note_mismatch(struct seat *seat)
{
    if (!seat->ever_up && !is_spare(seat))
        seat->failure = "its contract differs from this program's; install both from one build";
    else
        log_line(LOG_ERROR,
                 "the engine on disk is of another build than this program: restart invertd",
                 "path", LOG_STR, seat->command.arguments[0], NULL);
}

/* The next start of an engine that did no work waits twice as long as this one did. A spare engine
 * that dies of its work is what a spare engine is for, and others wait for it: it is not kept
 * waiting for long. */
static void note_life(struct seat *seat, const struct engine_process *process, uint64_t now_ns)
{
    bool steady = !is_spare(seat) || now_ns - process->up_ns >= SPARE_STEADY_NS;
    seat->failed_starts = 0;
    if (process->worked || (process->idle && steady)) {
        seat->backoff_ns = 0;
        seat->not_before_ns = now_ns;
        return;
    }
    bool is_short = is_spare(seat) && !process->idle;
    uint64_t max_ns = seat->backoff_max_ns;
    if (is_short && max_ns > SPARE_BACKOFF_MAX_NS)
        max_ns = SPARE_BACKOFF_MAX_NS;
    back_off(seat, max_ns, now_ns);
}

/* Nobody sits there any more: what that means for who comes next. */
static void judge(struct seat *seat, const struct engine_process *process, uint64_t now_ns)
{
    seat->process = NULL;
    if (seat->ever_up)
        tell_up(seat, false);
    if (seat->state == SEAT_EMPTY) {
        /* Dismissed: whoever comes next starts afresh. */
        seat->backoff_ns = 0;
        seat->not_before_ns = now_ns;
        return;
    }
    if (!ended_as(process, ENGINE_EXIT_DEVICE_ABSENT))
        count_failures(seat, engine_process_end_name(process), 1);
    if (process->mismatch)
        note_mismatch(seat);
    if (seat->failure != NULL || note_device(seat, process, now_ns))
        return;
    bool slow = process->reason == ENGINE_PROCESS_START;
    if (process->up_ns != 0)
        note_life(seat, process, now_ns);
    else
        start_failed(seat, slow,
                     slow ? "it takes too long to come up"
                          : "it ends before it is ready, again and again",
                     now_ns);
}

/* The front ends whoever sits there. */
static void turn_out(struct seat *seat, enum engine_process_reason reason, bool blame,
                     uint64_t now_ns)
{
    struct engine_process *process = seat->process;
    if (process == NULL || process->state == ENGINE_PROCESS_ENDING)
        return; /* nobody, or it has just ended by itself */
    engine_process_kill(process, reason, blame);
    seat->leaving++;
    judge(seat, process, now_ns);
}

void seat_end(struct seat *seat, enum engine_process_reason reason, uint64_t now_ns)
{
    turn_out(seat, reason, false, now_ns);
}

void seat_dismiss(struct seat *seat, uint64_t now_ns)
{
    if (seat->state != SEAT_WANTED && seat->state != SEAT_OUT)
        return;
    move(seat, SEAT_EMPTY);
    turn_out(seat, ENGINE_PROCESS_RETIRED, false, now_ns);
}

void seat_stop(struct seat *seat)
{
    if (seat->state == SEAT_WANTED || seat->state == SEAT_OUT)
        move(seat, SEAT_EMPTY);
    turn_out(seat, ENGINE_PROCESS_STOPPED, false, clock_now_ns());
}

void seat_note_end(struct seat *seat, struct engine_process *process, uint64_t now_ns)
{
    if (seat->process == process)
        judge(seat, process, now_ns);
    else
        seat->leaving--;
    assert(seat->leaving >= 0);
}

/* ---- Watching ---- */

static void watch(struct seat *seat, uint64_t now_ns, bool stalled)
{
    struct engine_process *process = seat->process;
    uint64_t heartbeat = atomic_load(&process->shared->heartbeat);
    if (heartbeat != process->heartbeat || stalled) {
        process->heartbeat = heartbeat;
        process->heartbeat_seen_ns = now_ns;
    }
    if (atomic_load(&process->shared->ready) == ENGINE_LOST)
        turn_out(seat, ENGINE_PROCESS_LOST, true, now_ns);
    else if (now_ns > process->heartbeat_seen_ns + seat->heartbeat_ns)
        turn_out(seat, ENGINE_PROCESS_HEARTBEAT, true, now_ns);
    else if (!stalled && queue_lane_overdue_ns(process->lane, now_ns) > 0)
        turn_out(seat, ENGINE_PROCESS_DEADLINE, true, now_ns);
}

static void note_up(struct seat *seat)
{
    if (seat->state == SEAT_OUT) {
        move(seat, SEAT_WANTED);
        log_line(LOG_INFO, "device in service again", "device", LOG_STR, seat->name, NULL);
    }
    seat->ever_up = true;
    tell_up(seat, true);
}

bool seat_look_after(struct seat *seat, uint64_t now_ns, bool stalled)
{
    struct engine_process *process = seat->process;
    if (process == NULL) {
        bool wanted = seat->state == SEAT_WANTED || seat->state == SEAT_OUT;
        if (wanted && may_start(seat, now_ns))
            start(seat, now_ns);
    } else if (process->state == ENGINE_PROCESS_STARTING) {
        if (engine_process_poll(process)) {
            note_up(seat);
            return true;
        }
        if (now_ns > process->started_ns + seat->start_max_ns)
            turn_out(seat, ENGINE_PROCESS_START, false, now_ns);
    } else if (process->state == ENGINE_PROCESS_UP) {
        watch(seat, now_ns, stalled);
    }
    return false;
}

/* Two that are on the way up are not exchanged for each other, and who is silent may be about to be
 * ended. */
static bool may_take_over(const struct seat *seat, const struct seat *spare, uint64_t now_ns)
{
    bool vacant = seat->state == SEAT_WANTED && seat->leaving < TAKEN_LEAVING_MAX &&
                  (seat_is_on_the_way(seat) || is_due(seat, now_ns));
    if (!vacant || spare->process == NULL)
        return false;
    return seat_is_up(spare) ? now_ns <= spare->process->heartbeat_seen_ns + LIVELY_NS
                             : seat->process == NULL;
}

bool seat_take_over(struct seat *seat, struct seat *spare, uint64_t now_ns)
{
    struct engine_process *comer = spare->process, *starting = seat->process;
    if (!may_take_over(seat, spare, now_ns) || !engine_process_appoint(comer, &seat->role))
        return false;
    if (starting != NULL) {
        bool appointed = engine_process_appoint(starting, &spare->role);
        assert(appointed); /* it has had no work */
        starting->owner = spare;
    }
    seat->process = comer;
    spare->process = starting;
    comer->owner = seat;
    if (!seat_is_up(seat))
        return false;
    note_up(seat);
    return true;
}

/* ---- Looking ---- */

bool seat_is_up(const struct seat *seat)
{
    return seat->process != NULL && seat->process->state == ENGINE_PROCESS_UP;
}

bool seat_is_busy(const struct seat *seat)
{
    bool waits =
        seat->process == NULL && seat->state == SEAT_WANTED && seat->backoff_ns <= SEAT_QUICK_NS;
    return seat_is_on_the_way(seat) || (waits && seat->leaving < LEAVING_MAX);
}

bool seat_is_settled(const struct seat *seat)
{
    return seat->ever_up || seat->state != SEAT_WANTED;
}
