/* gpu/cuda/engine/lane.c: see lane.h. Cost: one thread, asleep while nothing is under way; a batch
 * costs it the writing of its table, a launch and a word.
 *
 * Threads: the lane's own, which alone touches struct cuda_lane once it runs.
 */
#include "gpu/cuda/base/failed.h"
#include "gpu/cuda/engine/lane.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/cuda/engine/flight.h"
#include "gpu/process/ring.h"

/* Polls between two looks at the clock. */
#define SPIN_POLLS 16
/* The pause between two looks at what runs: this part of the time since anything happened, so that
 * a batch is reported late by that part of its own time at most. */
#define PAUSE_PART 8
#define PAUSE_MIN_NS 2000
#define PAUSE_MAX_NS 200000
/* How long the pool keeps memory that no lane uses. */
#define KEEP_NS (5 * (int64_t)CLOCK_S)

struct cuda_lane {
    struct cuda_lane_options options;
    uint32_t taken;    /* batches taken: the number of the next one */
    int flying;        /* flights that are not idle */
    uint64_t event_ns; /* when the last batch was taken or ended */
    bool keeps;        /* the pool may hold unused memory */
    struct cuda_flight_lane shared;
    struct cuda_flight flights[ENGINE_BATCH_SLOTS];
};

static bool batch_waits(const struct cuda_lane *lane)
{
    return atomic_load(&lane->options.lane->submitted) != lane->taken;
}

static void tell_front(const struct cuda_lane *lane)
{
    process_ring_notify(lane->options.lane, lane->options.event_fd);
}

/* Launches what waits; false when nothing did. */
static bool take_batches(struct cuda_lane *lane)
{
    bool any = false;
    for (; batch_waits(lane); lane->taken++) {
        uint32_t slot = lane->taken % ENGINE_BATCH_SLOTS;
        struct engine_batch *batch = &lane->options.lane->batches[slot];
        any = lane->keeps = true;
        if (cuda_flight_launch(&lane->flights[slot], batch))
            lane->flying++;
        else
            tell_front(lane);
    }
    return any;
}

/* Reports what is over; false when nothing is, nor has gone on. */
static bool reap_batches(struct cuda_lane *lane, uint64_t now_ns)
{
    bool any = false;
    for (int i = 0; lane->flying > 0 && i < ENGINE_BATCH_SLOTS; i++) {
        struct cuda_flight *flight = &lane->flights[i];
        uint32_t launches = flight->launches;
        if (flight->state == CUDA_FLIGHT_IDLE)
            continue;
        bool over = cuda_flight_look(flight, now_ns);
        any = any || over || flight->launches != launches;
        if (!over)
            continue;
        lane->flying--;
        tell_front(lane);
    }
    return any;
}

/* Nothing has happened: a short rest, or a long one. A new batch ends either. A spare engine would
 * keep what a few suspects needed from the one at work. */
static void rest(struct cuda_lane *lane, uint64_t now_ns)
{
    int64_t quiet_ns = (int64_t)(now_ns - lane->event_ns);
    if (quiet_ns < lane->options.spin_ns) {
        for (int i = 0; i < SPIN_POLLS && !batch_waits(lane); i++)
            __builtin_ia32_pause();
        return;
    }
    int64_t pause_ns = quiet_ns / PAUSE_PART;
    pause_ns = pause_ns < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause_ns;
    pause_ns = pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause_ns;
    if (lane->flying == 0 && lane->keeps && quiet_ns >= KEEP_NS)
        lane->keeps = cuda_pool_trim(lane->options.pool, KEEP_NS);
    if (lane->flying == 0)
        pause_ns = lane->keeps ? KEEP_NS : PROCESS_RING_FOR_EVER;
    process_ring_sleep(lane->options.lane, lane->taken, pause_ns);
}

static void *serve(void *context)
{
    struct cuda_lane *lane = context;
    enum engine_exit how = cuda_device_enter(lane->options.device);
    if (how != ENGINE_EXIT_OK)
        _exit(how);
    /* Pauses of microseconds; the usual slack would make each one 50 us longer. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        bool took = take_batches(lane);
        uint64_t now_ns = clock_now_ns();
        if (reap_batches(lane, now_ns) || took)
            lane->event_ns = now_ns;
        else
            rest(lane, now_ns);
    }
    return NULL;
}

enum engine_exit cuda_lane_start(const struct cuda_lane_options *options)
{
    int low = 0, high = 0;
    pthread_t thread;
    struct cuda_lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        log_line(LOG_ERROR, "no memory for a lane", NULL);
        return ENGINE_EXIT_FAILURE;
    }
    lane->options = *options;
    lane->shared = (struct cuda_flight_lane){.device = options->device,
                                             .engine = options->engine,
                                             .d_arena = options->d_arena,
                                             .pool = options->pool,
                                             .faults = options->faults,
                                             .kind = options->kind};
    lane->taken = process_ring_first(options->lane);
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&low, &high);
    enum engine_exit how =
        status == cudaSuccess ? ENGINE_EXIT_OK : cuda__failed(status, "ask for priorities");
    const int priorities[ENGINE_LANES] = {high, (high + low) / 2, low}; /* high: the least number */
    for (int i = 0; how == ENGINE_EXIT_OK && i < ENGINE_BATCH_SLOTS; i++)
        how = cuda_flight_create(&lane->flights[i], &lane->shared, priorities[options->kind]);
    if (how == ENGINE_EXIT_OK && pthread_create(&thread, NULL, serve, lane) != 0) {
        log_line(LOG_ERROR, "cannot start a thread", NULL);
        how = ENGINE_EXIT_FAILURE;
    }
    return how;
}
