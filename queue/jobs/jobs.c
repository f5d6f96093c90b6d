/* queue/jobs/jobs.c: the thread of a runner, and what the server and the handlers ask of jobs. See
 * jobs.h.
 *
 * The thread sleeps until a message comes or something is due. What other threads want of it is
 * noted under one lock: that there may be a job to claim, that one may have been cancelled, that
 * this is the end. Calls of the desk report to on_call, on the desk's thread: from there come news
 * for watches, and the metrics.
 */
#include "queue/jobs/jobs.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "queue/jobs/disk.h"
#include "queue/jobs/jobs_private.h"
#include "queue/jobs/store_sqlite.h"

#define WORKERS 4
#define TASKS_MAX 4096 /* all that a runner has, and files that go */
#define CLEAN_NS (10 * CLOCK_S)
#define TOTALS_NS CLOCK_S
#define REAP_NS (5 * CLOCK_MS) /* while stopping, when no event loop may do it */

/* ---- Waking ---- */

static void wake(void *context)
{
    struct jobs *jobs = context;
    pthread_mutex_lock(&jobs->lock);
    jobs->is_woken = true;
    pthread_cond_signal(&jobs->woken);
    pthread_mutex_unlock(&jobs->lock);
}

void queue__jobs_wake_to_claim(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->may_claim = true;
    pthread_mutex_unlock(&jobs->lock);
    wake(jobs);
}

void queue__jobs_wake_to_look(struct jobs *jobs, const struct job_id *id)
{
    pthread_mutex_lock(&jobs->lock);
    if (jobs->looks < LOOKS_MAX)
        jobs->look[jobs->looks++] = *id;
    else
        jobs->looks_at_all = true;
    pthread_mutex_unlock(&jobs->lock);
    wake(jobs);
}

/* Sleeps until it is woken or time has come; hands on what others have noted. */
static void sleep_until(struct jobs *jobs, uint64_t until_ns)
{
    struct timespec time = {(time_t)(until_ns / CLOCK_S), (long)(until_ns % CLOCK_S)};
    struct job_id look[LOOKS_MAX];
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->is_woken && clock_now_ns() < until_ns)
        pthread_cond_timedwait(&jobs->woken, &jobs->lock, &time);
    bool may_claim = jobs->may_claim, is_stopping = jobs->is_stopping, all = jobs->looks_at_all;
    int looks = jobs->looks;
    memcpy(look, jobs->look, (size_t)looks * sizeof look[0]);
    jobs->is_woken = jobs->may_claim = jobs->looks_at_all = false;
    jobs->looks = 0;
    pthread_mutex_unlock(&jobs->lock);
    if (may_claim)
        runner_wake(jobs->runner);
    if (is_stopping)
        runner_stop(jobs->runner);
    for (int i = 0; i < looks; i++)
        runner_look_after(jobs->runner, &look[i]);
    if (all)
        runner_look_after(jobs->runner, NULL);
}

/* ---- What calls did ---- */

static void on_finished(struct jobs *jobs, const struct desk_call *call)
{
    const struct job_outcome *outcome = call->in.finish.outcome;
    bool is_good = outcome->error == ERROR_NONE;
    if (call->job->callback.state != JOB_CALLBACK_NONE && jobs->config.on_callback != NULL)
        jobs->config.on_callback(jobs->config.callback_context);
    int64_t took_ms = call->in.finish.now_ms - call->job->created_ms;
    metric_observe(jobs->duration[is_good], (uint64_t)max_i64(took_ms, 0) * CLOCK_MS);
    watches_report(&jobs->watches, &call->in.finish.lease.id, is_good ? JOB_SUCCESSFUL : JOB_FAILED,
                   JOB_PROGRESS_WHOLE);
}

/* On the desk's thread. */
static void on_call(void *context, const struct desk_call *call)
{
    struct jobs *jobs = context;
    if (call->failure.code != ERROR_NONE)
        return;
    switch (call->kind) {
    case DESK_CLAIM:
        if (call->job->state == JOB_STATES)
            return;
        if (call->job->attempt > 1)
            metric_add(jobs->retries, 1);
        watches_report(&jobs->watches, &call->job->id, JOB_RUNNING, 0);
        break;
    case DESK_RELEASE:
        watches_report(&jobs->watches, &call->in.release.lease.id, JOB_ACCEPTED, 0);
        break;
    case DESK_FINISH:
        on_finished(jobs, call);
        break;
    default:
        break;
    }
}

static void on_progress(void *context, const struct job_id *id, int64_t progress)
{
    struct jobs *jobs = context;
    watches_report(&jobs->watches, id, JOB_STATES, progress);
}

/* ---- Files that go ---- */

static void remove_files(struct spool *spool, const struct job_id *id, int32_t attempt)
{
    for (int32_t i = 0; i <= attempt; i++)
        spool_remove(spool, id, i);
}

struct removal {
    struct workers_task task;
    struct spool *spool;
    struct job_id id;
    int32_t attempt;
};

static void remove_one(struct workers_task *task)
{
    struct removal *removal = (struct removal *)task;
    remove_files(removal->spool, &removal->id, removal->attempt);
    free(removal);
}

void queue__jobs_remove_later(struct jobs *jobs, const struct job *job)
{
    struct removal *removal = calloc(1, sizeof *removal);
    if (removal == NULL)
        return;
    removal->task.run = remove_one;
    removal->spool = jobs->spool;
    removal->id = job->id;
    removal->attempt = job->attempt;
    if (workers_submit(jobs->workers, &removal->task) != ERROR_NONE)
        free(removal);
}

/* ---- Routines ---- */

static void remove_gone(struct runner_work *work)
{
    struct jobs *jobs = (struct jobs *)work->world;
    int64_t bytes;
    for (int i = 0; i < jobs->gone_count; i++)
        remove_files(jobs->spool, &jobs->gone[i].id, jobs->gone[i].attempt);
    if (spool_free(jobs->spool, &bytes, NULL) == ERROR_NONE)
        jobs->free_bytes = bytes;
}

static void on_removed(struct message *message)
{
    struct jobs *jobs = (struct jobs *)((char *)message - offsetof(struct jobs, removal.done));
    jobs->clean.is_under_way = false;
    if (jobs->gone_is_more)
        jobs->clean.due_ns = 0;
}

static void on_expired(struct message *message)
{
    struct jobs *jobs = (struct jobs *)((char *)message - offsetof(struct jobs, clean.call));
    bool is_good = jobs->clean.call.failure.code == ERROR_NONE;
    jobs->gone_count = is_good ? jobs->clean.call.count : 0;
    jobs->gone_is_more = is_good && jobs->clean.call.is_more;
    jobs->removal.run = remove_gone;
    jobs->removal.done.run = on_removed;
    jobs->removal.world = &jobs->world.runner;
    jobs->world.runner.ops->work(&jobs->world.runner, &jobs->removal);
}

static void on_counted(struct message *message)
{
    struct jobs *jobs = (struct jobs *)((char *)message - offsetof(struct jobs, count.call));
    const struct store_totals *totals = &jobs->count.call.totals;
    jobs->count.is_under_way = false;
    if (jobs->count.call.failure.code != ERROR_NONE)
        return;
    for (int i = 0; i < JOB_STATES; i++)
        metric_set(jobs->states[i], totals->jobs[i]);
    metric_set(jobs->bytes, totals->spool_bytes);
    jobs->used_bytes = totals->spool_bytes;
}

/* Posts a routine's call if it is due. Returns when it is. */
static uint64_t do_routine(struct jobs *jobs, struct routine *routine, enum desk_kind kind,
                           uint64_t every_ns, void (*done)(struct message *message))
{
    uint64_t now_ns = clock_now_ns();
    if (routine->is_under_way || jobs->stops || now_ns < routine->due_ns)
        return routine->is_under_way || jobs->stops ? UINT64_MAX : routine->due_ns;
    struct desk_call *call = &routine->call;
    routine->is_under_way = true;
    routine->due_ns = now_ns + every_ns;
    call->message.run = done;
    call->mailbox = &jobs->mailbox;
    call->kind = kind;
    call->failure = (struct failure){0};
    if (kind == DESK_EXPIRE) {
        call->in.expire.now_ms = jobs_now_ms(jobs);
        call->in.expire.keep_ms = jobs->config.result_ttl_ms;
        call->in.expire.gone = jobs->gone;
        call->in.expire.max = GONE_MAX;
    }
    desk_post(jobs->desk, call);
    return routine->due_ns;
}

/* ---- The thread ---- */

static uint64_t step(struct jobs *jobs)
{
    mailbox_run(&jobs->mailbox);
    uint64_t wake_ns = runner_step(jobs->runner);
    uint64_t clean_ns = do_routine(jobs, &jobs->clean, DESK_EXPIRE, CLEAN_NS, on_expired);
    uint64_t count_ns = do_routine(jobs, &jobs->count, DESK_TOTALS, TOTALS_NS, on_counted);
    wake_ns = clean_ns < wake_ns ? clean_ns : wake_ns;
    return count_ns < wake_ns ? count_ns : wake_ns;
}

static bool is_over(const struct jobs *jobs)
{
    return jobs->stops && runner_is_idle(jobs->runner) && !jobs->clean.is_under_way &&
           !jobs->count.is_under_way;
}

static void *run(void *context)
{
    struct jobs *jobs = context;
    for (;;) {
        uint64_t wake_ns = step(jobs);
        if (is_over(jobs))
            return NULL;
        if (jobs->stops) {
            while (queue_reap(jobs->config.queue))
                continue;
            uint64_t soon_ns = clock_now_ns() + REAP_NS;
            wake_ns = soon_ns < wake_ns ? soon_ns : wake_ns;
        }
        sleep_until(jobs, wake_ns);
    }
}

/* ---- The start ---- */

/* A call that this thread waits for: at the start, and in the end. */
struct question {
    struct desk_call call; /* first */
    sem_t answered;
};

static void on_answer(struct message *message)
{
    sem_post(&((struct question *)message)->answered);
}

static enum error ask(struct desk *desk, struct question *question)
{
    int status = sem_init(&question->answered, 0, 0);
    assert(status == 0);
    question->call.message.run = on_answer;
    question->call.mailbox = NULL;
    desk_post(desk, &question->call);
    while (sem_wait(&question->answered) != 0)
        continue;
    sem_destroy(&question->answered);
    return question->call.failure.code;
}

static bool may_go(void *context, const struct job_id *id, int32_t attempt)
{
    struct jobs *jobs = context;
    struct question *question = calloc(1, sizeof *question);
    struct job *job = calloc(1, sizeof *job);
    bool may = false;
    if (question != NULL && job != NULL) {
        question->call.kind = DESK_GET;
        question->call.in.get = *id;
        question->call.job = job;
        enum error error = attempt < 0 ? ERROR_NOT_FOUND : ask(jobs->desk, question);
        may = runner_file_may_go(error, job, attempt);
    }
    free(question);
    free(job);
    return may;
}

/* What an earlier life has left: its leases, and files that belong to no job. */
static enum error take_over(struct jobs *jobs, struct failure *failure)
{
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for jobs");
    question->call.kind = DESK_END_LEASES;
    question->call.in.node = jobs->folder.node;
    enum error error = ask(jobs->desk, question);
    if (error != ERROR_NONE)
        *failure = question->call.failure;
    free(question);
    return error == ERROR_NONE ? spool_sweep(jobs->spool, 0, may_go, jobs, failure) : error;
}

static enum error open_store(void *context, struct store **store, struct failure *failure)
{
    const struct jobs *jobs = context;
    const struct store_sqlite_config config = {.path = jobs->folder.jobs, .disk = &disk_system};
    return store_sqlite_open(&config, store, failure);
}

static void make_series(struct jobs *jobs)
{
    struct metric_registry *metrics = jobs->config.metrics;
    for (int i = 0; i < JOB_STATES; i++)
        jobs->states[i] = metric_series(metrics, METRIC_JOBS, job_state_name((enum job_state)i));
    jobs->bytes = metric_series(metrics, METRIC_JOB_BYTES);
    jobs->retries = metric_series(metrics, METRIC_JOB_RETRIES);
    for (int i = 0; i < 2; i++)
        jobs->duration[i] = metric_series(metrics, METRIC_JOB_DURATION,
                                          job_state_name(i ? JOB_SUCCESSFUL : JOB_FAILED));
}

enum error jobs_start(struct jobs *jobs, jobs_judge *judge, void *context, struct failure *failure)
{
    const struct jobs_config *config = &jobs->config;
    const struct runner_config runner = {
        .world = &jobs->world.runner,
        .spool = jobs->spool,
        .node = jobs->folder.node,
        .lease_ms = config->lease_ms,
        .result_ttl_ms = config->result_ttl_ms,
        .piece_bytes_max = config->piece_bytes_max,
        .piece_cost_ns = config->piece_cost_ns,
        .arena_bytes = (int64_t)arena_bytes(config->arena),
        .judge = judge,
        .judge_context = context,
        .on_call = on_call,
        .on_progress = on_progress,
        .context = jobs,
    };
    assert(jobs->runner == NULL);
    jobs->runner = runner_create(&runner);
    if (jobs->runner == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for jobs");
    jobs->has_thread = pthread_create(&jobs->thread, NULL, run, jobs) == 0;
    return jobs->has_thread ? ERROR_NONE
                            : failure_set(failure, ERROR_INTERNAL, "no thread for jobs");
}

struct workers_wish {
    struct workers *workers;
    enum error error;
    struct failure *failure;
};

/* Threads have the rank of the one that makes them. */
static void *make_ranked_workers(void *context)
{
    struct workers_wish *wish = context;
    rank_take(RANK_NICE); /* not IDLE: they take locks that serving threads take */
    wish->error = workers_create(WORKERS, TASKS_MAX, &wish->workers, wish->failure);
    return NULL;
}

/* Threads that copy and digest give way to those that serve clients. */
static enum error make_workers(struct jobs *jobs, struct failure *failure)
{
    struct workers_wish wish = {NULL, ERROR_INTERNAL, failure};
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_ranked_workers, &wish) != 0)
        return failure_set(failure, ERROR_INTERNAL, "no thread for jobs");
    pthread_join(thread, NULL);
    jobs->workers = wish.workers;
    return wish.error;
}

static enum error open_all(struct jobs *jobs, struct failure *failure)
{
    const struct desk_opener opener = {open_store, jobs};
    int64_t free_bytes = 0;
    enum error error = folder_open(jobs->config.folder, &jobs->folder, failure);
    if (error == ERROR_NONE)
        error = spool_create(jobs->folder.spool, &disk_system, &jobs->spool, failure);
    if (error == ERROR_NONE)
        error = spool_free(jobs->spool, &free_bytes, failure);
    jobs->free_bytes = free_bytes;
    if (error == ERROR_NONE)
        error = make_workers(jobs, failure);
    if (error == ERROR_NONE)
        error = desk_create(&opener, jobs->config.metrics, &jobs->desk, failure);
    jobs->world.desk = jobs->desk;
    jobs->world.workers = jobs->workers;
    return error == ERROR_NONE ? take_over(jobs, failure) : error;
}

enum error jobs_create(const struct jobs_config *config, struct jobs **result,
                       struct failure *failure)
{
    assert(config->lease_ms > 0 && config->piece_bytes_max > 0 && config->piece_cost_ns > 0);
    struct jobs *jobs = calloc(1, sizeof *jobs);
    *result = NULL;
    if (jobs == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for jobs");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&jobs->lock, NULL);
    mailbox_init(&jobs->mailbox, wake, jobs);
    watches_init(&jobs->watches);
    jobs->config = *config;
    jobs->folder.lock = -1;
    world_init(&jobs->world, config->queue, config->arena, &jobs->mailbox);
    make_series(jobs);
    enum error error = open_all(jobs, failure);
    if (error != ERROR_NONE)
        jobs_destroy(&jobs);
    *result = jobs;
    return error;
}

/* ---- The end ---- */

void jobs_stop(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    jobs->stops = true;
    pthread_mutex_lock(&jobs->lock);
    jobs->is_stopping = true;
    pthread_mutex_unlock(&jobs->lock);
    wake(jobs);
}

void jobs_quiesce(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    jobs_stop(jobs);
    if (jobs->has_thread)
        pthread_join(jobs->thread, NULL);
    jobs->has_thread = false;
    struct question *barrier = calloc(1, sizeof *barrier);
    if (barrier != NULL && jobs->desk != NULL) {
        barrier->call.kind = DESK_TOTALS;
        (void)ask(jobs->desk, barrier);
    }
    free(barrier);
}

void jobs_destroy(struct jobs **jobs_pointer)
{
    struct jobs *jobs = *jobs_pointer;
    if (jobs == NULL)
        return;
    jobs_quiesce(jobs);
    desk_destroy(&jobs->desk);
    workers_destroy(&jobs->workers);
    runner_destroy(&jobs->runner);
    spool_destroy(&jobs->spool);
    folder_close(&jobs->folder);
    watches_fini(&jobs->watches);
    mailbox_fini(&jobs->mailbox);
    pthread_cond_destroy(&jobs->woken);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
    *jobs_pointer = NULL;
}
