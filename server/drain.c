/* server/drain.c: see drain.h. Threads: loop 0's. */
#include "server/drain.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS 20
/* How long at least new work is answered 503: clients that are just connecting, or whose request
 * is on its way on an idle connection, learn that the service is going. */
#define REFUSE_NS (200 * CLOCK_MS)
/* How long bodies, answers on their way and connections without a request may stay once all else
 * is finished; half of it where drain-timeout is shorter. */
#define CLOSE_NS (2 * CLOCK_S)
#define CUT_NS (100 * CLOCK_MS) /* for the loops to cut them off then */

enum state {
    SERVING,
    DELAY,
    DRAINING,
    CLOSING,
    DONE,
    STATES
};

/* The one state that may follow each. */
static const enum state next_of[STATES] = {
    [SERVING] = DELAY, [DELAY] = DRAINING, [DRAINING] = CLOSING, [CLOSING] = DONE};

static const char *const names[STATES] = {[SERVING] = "serving",
                                          [DELAY] = "unready",
                                          [DRAINING] = "draining",
                                          [CLOSING] = "closing",
                                          [DONE] = "done"};

#define SIGNALS 3

struct drain {
    struct drain_options options;
    enum state state;
    uint64_t since_ns, drain_since_ns, close_ns;
    uv_timer_t timer;
    uv_signal_t signals[SIGNALS];
    int signal_count;
};

static void move(struct drain *drain, enum state state)
{
    assert(next_of[drain->state] == state);
    drain->state = state;
    drain->since_ns = clock_now_ns();
    log_line(LOG_INFO, "shutting down", "state", LOG_STR, names[state], NULL);
}

static int64_t sum(const struct drain *drain, int64_t (*of)(const struct loop *loop))
{
    int64_t total = 0;
    for (int i = 0; i < drain->options.loop_count; i++)
        total += of(drain->options.loops[i]);
    return total;
}

static void step(struct drain *drain, uint64_t now_ns)
{
    struct drain_options *options = &drain->options;
    assert(drain->state != DONE);
    uint64_t spent_ns = now_ns - drain->since_ns;
    bool owes = sum(drain, loop_held) > 0;
    switch (drain->state) {
    case DELAY:
        if (spent_ns < (uint64_t)options->delay_ns)
            break;
        queue_drain(options->services->queue);
        for (int i = 0; i < options->loop_count; i++)
            loop_drain(options->loops[i]);
        move(drain, DRAINING);
        drain->drain_since_ns = now_ns;
        break;
    case DRAINING:
        if (owes || (spent_ns < REFUSE_NS && sum(drain, loop_open) > 0) ||
            (sum(drain, loop_arriving) > 0 &&
             spent_ns + drain->close_ns + CUT_NS < (uint64_t)options->timeout_ns))
            break;
        for (int i = 0; i < options->loop_count; i++)
            loop_quiesce(options->loops[i], drain->close_ns);
        move(drain, CLOSING);
        break;
    case CLOSING:
        if (sum(drain, loop_open) > 0 && (owes || spent_ns < drain->close_ns + CUT_NS))
            break;
        move(drain, DONE);
        uv_timer_stop(&drain->timer);
        options->on_done(options->context);
        return;
    default:
        break;
    }
    if (drain->state > DELAY && owes &&
        now_ns - drain->drain_since_ns > (uint64_t)options->timeout_ns)
        options->on_expired(options->context, "drain-timeout has passed");
}

static void on_tick(uv_timer_t *handle)
{
    step(handle->data, clock_now_ns());
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct drain *drain = handle->data;
    if (number == SIGHUP) {
        drain->options.on_hangup(drain->options.context);
        return;
    }
    if (drain->state != SERVING) {
        drain->options.on_expired(drain->options.context, "a second signal came");
        return;
    }
    atomic_store(&drain->options.services->draining, true);
    move(drain, DELAY);
    drain->options.on_stopping(drain->options.context);
    uv_timer_start(&drain->timer, on_tick, TICK_MS, TICK_MS);
    step(drain, clock_now_ns());
}

void drain_set_times(struct drain *drain, int64_t delay_ns, int64_t timeout_ns)
{
    if (drain->state != SERVING)
        return;
    drain->options.delay_ns = delay_ns;
    drain->options.timeout_ns = timeout_ns;
    uint64_t half_ns = (uint64_t)timeout_ns / 2;
    drain->close_ns = half_ns < CLOSE_NS ? half_ns : CLOSE_NS;
}

enum error drain_create(const struct drain_options *options, uv_loop_t *uv, struct drain **result,
                        struct failure *failure)
{
    assert(options->loop_count >= 1 && options->on_done != NULL && options->on_expired != NULL);
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    drain->options = *options;
    drain_set_times(drain, options->delay_ns, options->timeout_ns);
    uv_timer_init(uv, &drain->timer);
    drain->timer.data = drain;
    int code = 0;
    while (drain->signal_count < SIGNALS && code == 0) {
        uv_signal_t *signal = &drain->signals[drain->signal_count];
        code = uv_signal_init(uv, signal);
        if (code != 0)
            break;
        signal->data = drain;
        code = uv_signal_start(signal, on_signal, numbers[drain->signal_count++]);
    }
    *result = drain;
    if (code != 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot watch signals: %s", uv_strerror(code));
    return ERROR_NONE;
}

void drain_close(struct drain *drain)
{
    uv_close((uv_handle_t *)&drain->timer, NULL);
    for (int i = 0; i < drain->signal_count; i++)
        uv_close((uv_handle_t *)&drain->signals[i], NULL);
}

void drain_free(struct drain **drain)
{
    free(*drain);
    *drain = NULL;
}
