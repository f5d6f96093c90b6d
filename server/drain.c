/* drain.c: see drain.h. Threads: loop 0's. */
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
/* How long connections without a request may stay once all else is finished. */
#define LINGER_NS (2 * CLOCK_S)

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
    uint64_t since_ns, drain_since_ns;
    uv_timer_t timer;
    uv_signal_t signals[SIGNALS];
};

static void move(struct drain *drain, enum state state)
{
    assert(next_of[drain->state] == state);
    drain->state = state;
    drain->since_ns = clock_now_ns();
    log_line(LOG_INFO, "shutting down", "state", LOG_STR, names[state], NULL);
}

static bool is_finished(const struct drain *drain, bool with_connections)
{
    int64_t left = queue_pending(drain->options.services->queue);
    for (int i = 0; i < drain->options.loop_count; i++)
        left += with_connections ? loop_open(drain->options.loops[i])
                                 : loop_busy(drain->options.loops[i]);
    return left == 0;
}

static void step(struct drain *drain, uint64_t now_ns)
{
    struct drain_options *options = &drain->options;
    uint64_t spent_ns = now_ns - drain->since_ns;
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
        /* Requests that are being refused never end as long as clients come. */
        if (queue_pending(options->services->queue) > 0 ||
            (spent_ns < REFUSE_NS && !is_finished(drain, true)))
            break;
        for (int i = 0; i < options->loop_count; i++)
            loop_quiesce(options->loops[i]);
        move(drain, CLOSING);
        break;
    case CLOSING:
        if (!is_finished(drain, spent_ns < LINGER_NS))
            break;
        move(drain, DONE);
        uv_timer_stop(&drain->timer);
        options->on_done(options->context);
        return;
    default:
        break;
    }
    if (drain->state > DELAY && now_ns - drain->drain_since_ns > (uint64_t)options->timeout_ns)
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
        log_reopen();
        log_line(LOG_INFO, "log opened anew", NULL);
        return;
    }
    if (drain->state != SERVING) {
        drain->options.on_expired(drain->options.context, "a second signal came");
        return;
    }
    atomic_store(&drain->options.services->draining, true);
    move(drain, DELAY);
    uv_timer_start(&drain->timer, on_tick, TICK_MS, TICK_MS);
    step(drain, clock_now_ns());
}

enum error drain_create(const struct drain_options *options, uv_loop_t *uv, struct drain **result,
                        struct failure *failure)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    drain->options = *options;
    uv_timer_init(uv, &drain->timer);
    drain->timer.data = drain;
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(uv, &drain->signals[i]);
        drain->signals[i].data = drain;
        uv_signal_start(&drain->signals[i], on_signal, numbers[i]);
    }
    *result = drain;
    return ERROR_NONE;
}

void drain_close(struct drain *drain)
{
    uv_close((uv_handle_t *)&drain->timer, NULL);
    for (int i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&drain->signals[i], NULL);
}

void drain_free(struct drain **drain)
{
    free(*drain);
    *drain = NULL;
}
