/* queue/jobs/runner.c: which runs claim, and whose pieces go next. See runner.h. */
#include "queue/jobs/runner_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"

#define CLAIMS_MAX 8    /* at once */
#define LOOK_NS CLOCK_S /* how often to look for leases that have run out */
#define PAUSE_MIN_NS (CLOCK_S / 5)
#define PAUSE_MAX_NS (10 * CLOCK_S)
#define CUT_AGAIN_NS (20 * CLOCK_MS) /* after memory was refused */
#define PROGRESS_NS (CLOCK_S / 2)

struct runner *runner_create(const struct runner_config *config)
{
    struct runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return NULL;
    runner->config = *config;
    runner->may_claim = true;
    for (int i = 0; i < RUNNER_RUNS; i++)
        queue__run_init(runner, &runner->runs[i]);
    for (int i = 0; i < RUNNER_PIECES; i++)
        queue__piece_init(runner, &runner->pieces[i]);
    return runner;
}

bool runner_is_idle(const struct runner *runner)
{
    for (int i = 0; i < RUNNER_RUNS; i++)
        if (runner->runs[i].state != RUN_FREE)
            return false;
    return true;
}

void runner_destroy(struct runner **runner)
{
    assert(*runner == NULL || runner_is_idle(*runner));
    free(*runner);
    *runner = NULL;
}

void runner_abandon(struct runner **runner)
{
    for (int i = 0; *runner != NULL && i < RUNNER_RUNS; i++)
        queue__run_drop(&(*runner)->runs[i]);
    free(*runner);
    *runner = NULL;
}

bool runner_file_may_go(enum error get, const struct job *job, int32_t attempt)
{
    if (attempt < 0 || get == ERROR_NOT_FOUND)
        return true;
    if (get != ERROR_NONE)
        return false;
    return attempt == 0 ? job_is_over(job->state)
                        : !job_is_over(job->state) || job->attempt != attempt;
}

void queue__runner_pause(struct runner *runner)
{
    uint64_t now_ns = queue__runner_now_ns(runner);
    if (now_ns < runner->pause_until_ns)
        return;
    bool is_new = now_ns > runner->pause_until_ns + 2 * runner->pause_ns;
    uint64_t longer_ns = 2 * runner->pause_ns < PAUSE_MAX_NS ? 2 * runner->pause_ns : PAUSE_MAX_NS;
    runner->pause_ns = is_new || runner->pause_ns == 0 ? PAUSE_MIN_NS : longer_ns;
    runner->pause_until_ns = now_ns + runner->pause_ns;
    runner->may_claim = true;
}

const struct runner_config *runner_config(const struct runner *runner)
{
    return &runner->config;
}

void runner_wake(struct runner *runner)
{
    runner->may_claim = true;
}

void runner_look_after(struct runner *runner, const struct job_id *id)
{
    for (int i = 0; i < RUNNER_RUNS; i++)
        if (id == NULL || memcmp(&runner->runs[i].lease.id, id, sizeof *id) == 0)
            queue__run_renew(&runner->runs[i]);
}

void runner_stop(struct runner *runner)
{
    runner->is_stopping = true;
    for (int i = 0; i < RUNNER_RUNS; i++)
        queue__run_leave(&runner->runs[i], RUN_END_AGAIN);
}

/* ---- Pieces ---- */

/* The oldest run that has matrices left: jobs end one after the other. */
static struct run *next_to_cut(struct runner *runner)
{
    struct run *oldest = NULL;
    for (int i = 0; i < RUNNER_RUNS; i++) {
        struct run *run = &runner->runs[i];
        if (queue__run_has_more(run) && (oldest == NULL || run->order < oldest->order))
            oldest = run;
    }
    return oldest;
}

/* Returns when to try again. */
static uint64_t cut_pieces(struct runner *runner, uint64_t now_ns)
{
    if (now_ns < runner->cut_ns)
        return runner->cut_ns;
    for (int i = 0; i < RUNNER_PIECES; i++) {
        struct piece *piece = &runner->pieces[i];
        struct run *run = piece->state == PIECE_FREE ? next_to_cut(runner) : NULL;
        if (run == NULL || queue__piece_cut(piece, run))
            continue;
        runner->cut_ns = now_ns + CUT_AGAIN_NS;
        return runner->cut_ns;
    }
    return UINT64_MAX;
}

/* ---- Claims ---- */

/* How many jobs more would find pieces. */
static int room(const struct runner *runner)
{
    int free_pieces = 0, waiting = 0, claiming = 0;
    for (int i = 0; i < RUNNER_PIECES; i++)
        free_pieces += runner->pieces[i].state == PIECE_FREE;
    for (int i = 0; i < RUNNER_RUNS; i++) {
        const struct run *run = &runner->runs[i];
        waiting += run->state == RUN_OPENING || queue__run_has_more(run);
        claiming += run->state == RUN_CLAIMING;
    }
    int more = free_pieces - waiting - claiming;
    return more < CLAIMS_MAX - claiming ? more : CLAIMS_MAX - claiming;
}

/* Returns when to look again. */
static uint64_t claim(struct runner *runner, uint64_t now_ns)
{
    struct runner_world *world = runner->config.world;
    if (runner->is_stopping)
        return UINT64_MAX;
    if (now_ns < runner->pause_until_ns)
        return runner->pause_until_ns;
    if (now_ns >= runner->claim_ns) {
        runner->may_claim = true;
        runner->claim_ns = now_ns + LOOK_NS;
    }
    if (!runner->may_claim || !world->ops->has_engine(world))
        return runner->claim_ns;
    int wanted = room(runner);
    for (int i = 0; i < RUNNER_RUNS && wanted > 0; i++)
        if (runner->runs[i].state == RUN_FREE) {
            queue__run_claim(&runner->runs[i]);
            wanted--;
        }
    return runner->claim_ns;
}

/* ---- Progress ---- */

static uint64_t report_progress(struct runner *runner, uint64_t now_ns)
{
    const struct runner_config *config = &runner->config;
    if (config->on_progress == NULL)
        return UINT64_MAX;
    if (now_ns < runner->progress_ns)
        return runner->progress_ns;
    runner->progress_ns = now_ns + PROGRESS_NS;
    bool any = false;
    for (int i = 0; i < RUNNER_RUNS; i++) {
        const struct run *run = &runner->runs[i];
        if (run->state != RUN_COMPUTING)
            continue;
        config->on_progress(config->context, &run->job.id, queue__run_progress(run));
        any = true;
    }
    return any ? runner->progress_ns : UINT64_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t runner_step(struct runner *runner)
{
    uint64_t now_ns = queue__runner_now_ns(runner), wake_ns = UINT64_MAX;
    for (int i = 0; i < RUNNER_RUNS; i++)
        wake_ns = earlier(wake_ns, queue__run_step(&runner->runs[i], now_ns));
    wake_ns = earlier(wake_ns, cut_pieces(runner, now_ns));
    wake_ns = earlier(wake_ns, claim(runner, now_ns));
    return earlier(wake_ns, report_progress(runner, now_ns));
}
