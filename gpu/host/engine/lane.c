/* gpu/host/engine/lane.c: see lane.h. The workers, and where each of them sleeps.
 *
 * At most one idle worker leads: it polls and then sleeps on lane.submitted, the futex that the
 * front wakes. The other idle workers follow: they sleep on `epoch`, a futex of ours. A leader that
 * opened a batch worth company wakes followers; one that goes away for long gives up the lead and
 * wakes a follower to take it. For a short chunk it keeps the lead, so that a stream of small
 * batches runs on one thread and wakes no other; a batch that comes meanwhile waits for
 * that chunk, which was predicted to take LEAD_AWAY_NS at most.
 *
 * No wake is lost: a follower reads the epoch, announces itself, looks once more for work or a
 * vacant lead, and only then sleeps if the epoch is still the same; a worker that makes work or a
 * vacancy does so before raising the epoch. Both sides are sequentially consistent.
 *
 * Shared state: `opened`, changed under `opening`; jobs, see job.h; the atomics below.
 */
#include "gpu/host/engine/lane.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "gpu/host/engine/job.h"
#include "gpu/process/ring.h"

#define LEAD_AWAY_NS 50000.0
/* A batch predicted to take less is not worth waking anybody for. */
#define COMPANY_NS 60000.0
/* Polls between two looks at the clock. */
#define SPIN_POLLS 64

struct worker {
    struct host_lane *lane;
    pthread_t thread;
    bool leads;
    struct host_scratch scratch;
};

struct host_lane {
    struct host_lane_options options;
    pthread_mutex_t opening;
    int started; /* workers with a thread */
    struct worker *workers;
    _Atomic bool stopping;
    _Alignas(64) _Atomic uint32_t opened; /* batches opened: the number of the next one */
    _Alignas(64) _Atomic uint32_t led;    /* 1 while a worker leads */
    _Atomic uint32_t epoch, followers, alive;
    struct host_job jobs[ENGINE_BATCH_SLOTS];
};

/* Call after what there is to see has been stored. */
static void wake_followers(struct host_lane *lane, uint32_t count)
{
    atomic_fetch_add(&lane->epoch, 1);
    if (atomic_load(&lane->followers) > 0)
        futex_wake(&lane->epoch, count);
}

static bool batch_waits(const struct host_lane *lane)
{
    return atomic_load(&lane->options.lane->submitted) != atomic_load(&lane->opened);
}

static bool chunk_waits(struct host_lane *lane)
{
    uint32_t opened = atomic_load(&lane->opened);
    for (uint32_t number = opened - ENGINE_BATCH_SLOTS; number != opened; number++) {
        if (host__job_has(&lane->jobs[number % ENGINE_BATCH_SLOTS], number))
            return true;
    }
    return false;
}

/* The oldest batch's next chunk. */
static struct host_job *take_chunk(struct host_lane *lane, uint32_t *chunk)
{
    uint32_t opened = atomic_load(&lane->opened);
    for (uint32_t number = opened - ENGINE_BATCH_SLOTS; number != opened; number++) {
        struct host_job *job = &lane->jobs[number % ENGINE_BATCH_SLOTS];
        if (host__job_take(job, number, chunk))
            return job;
    }
    return NULL;
}

/* Opens the next submitted batch, if there is one. */
static bool open_batch(struct host_lane *lane)
{
    if (!batch_waits(lane))
        return false;
    pthread_mutex_lock(&lane->opening);
    bool waits = batch_waits(lane);
    uint32_t helpers = 0;
    if (waits) {
        uint32_t number = atomic_load(&lane->opened), slot = number % ENGINE_BATCH_SLOTS;
        struct engine_batch *batch = &lane->options.lane->batches[slot];
        struct host_job *job = &lane->jobs[slot];
        host__job_open(job, batch, number);
        if (job->chunk_ns * job->chunks > COMPANY_NS)
            helpers = job->chunks - 1;
        atomic_store(&lane->opened, number + 1);
    }
    pthread_mutex_unlock(&lane->opening);
    if (helpers > 0 && lane->options.threads > 1)
        wake_followers(lane, helpers);
    return waits;
}

static void give_up_lead(struct worker *worker)
{
    worker->leads = false;
    atomic_store(&worker->lane->led, 0);
    wake_followers(worker->lane, 1);
}

/* Polls for spin_ns, then sleeps, until a batch waits or the lane stops. */
static void lead(struct host_lane *lane)
{
    _Atomic uint32_t *submitted = &lane->options.lane->submitted;
    uint64_t until =
        lane->options.spin_ns > 0 ? clock_now_ns() + (uint64_t)lane->options.spin_ns : 0;
    while (until > 0 && clock_now_ns() < until) {
        for (int i = 0; i < SPIN_POLLS; i++) {
            if (batch_waits(lane))
                return;
            __builtin_ia32_pause();
        }
    }
    for (;;) {
        uint32_t seen = atomic_load(submitted);
        if (seen != atomic_load(&lane->opened) || atomic_load(&lane->stopping))
            return;
        process_ring_sleep(lane->options.lane, seen, PROCESS_RING_FOR_EVER);
    }
}

static void follow(struct host_lane *lane)
{
    atomic_fetch_add(&lane->followers, 1);
    uint32_t epoch = atomic_load(&lane->epoch);
    if (!chunk_waits(lane) && atomic_load(&lane->led) && !atomic_load(&lane->stopping))
        futex_wait(&lane->epoch, epoch);
    atomic_fetch_sub(&lane->followers, 1);
}

static void idle(struct worker *worker)
{
    uint32_t vacant = 0;
    if (!worker->leads)
        worker->leads = atomic_compare_exchange_strong(&worker->lane->led, &vacant, 1);
    if (worker->leads)
        lead(worker->lane);
    else
        follow(worker->lane);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct host_lane *lane = worker->lane;
    rank_take(lane->options.rank);
    while (!atomic_load(&lane->stopping)) {
        uint32_t chunk;
        struct host_job *job = take_chunk(lane, &chunk);
        if (!job) {
            if (!open_batch(lane))
                idle(worker);
            continue;
        }
        if (worker->leads && job->chunk_ns > LEAD_AWAY_NS)
            give_up_lead(worker);
        if (host__job_run(job, chunk, &worker->scratch))
            process_ring_notify(lane->options.lane, lane->options.event_fd);
    }
    host__scratch_free(&worker->scratch);
    atomic_fetch_sub(&lane->alive, 1);
    return NULL;
}

enum error host_lane_create(const struct host_lane_options *options, struct host_lane **result,
                            struct failure *failure)
{
    assert(options->threads >= 1 && options->budget);
    struct host_lane *lane = aligned_alloc(_Alignof(struct host_lane), sizeof *lane);
    struct worker *workers = calloc((size_t)options->threads, sizeof *workers);
    if (!lane || !workers) {
        free(lane);
        free(workers);
        return failure_set(failure, ERROR_INTERNAL, "no memory for %d workers", options->threads);
    }
    memset(lane, 0, sizeof *lane);
    lane->options = *options;
    lane->workers = workers;
    pthread_mutex_init(&lane->opening, NULL);
    atomic_store(&lane->opened, process_ring_first(options->lane));
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        lane->jobs[i].arena = options->arena;
        lane->jobs[i].budget = options->budget;
        lane->jobs[i].team = options->team;
        lane->jobs[i].faults = options->faults;
    }
    for (; lane->started < options->threads; lane->started++) {
        struct worker *worker = &workers[lane->started];
        worker->lane = lane;
        atomic_fetch_add(&lane->alive, 1);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
            atomic_fetch_sub(&lane->alive, 1);
            host_lane_destroy(&lane);
            return failure_set(failure, ERROR_INTERNAL, "cannot start %d worker threads",
                               options->threads);
        }
    }
    *result = lane;
    return ERROR_NONE;
}

void host_lane_destroy(struct host_lane **lane)
{
    struct host_lane *old = *lane;
    if (!old)
        return;
    atomic_store(&old->stopping, true);
    /* A leader between its last look and its sleep misses a wake: wake until all have gone. */
    while (atomic_load(&old->alive) > 0) {
        atomic_fetch_add(&old->epoch, 1);
        futex_wake(&old->epoch, UINT32_MAX >> 1);
        process_ring_wake(old->options.lane);
        usleep(100);
    }
    for (int i = 0; i < old->started; i++)
        pthread_join(old->workers[i].thread, NULL);
    pthread_mutex_destroy(&old->opening);
    free(old->workers);
    free(old);
    *lane = NULL;
}
