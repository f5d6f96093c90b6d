/* queue/jobs/run.c: the life of a run. See runner.h. */
#include "queue/jobs/runner_private.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/minmax.h"

#define RUN_OF(member, pointer) ((struct run *)((char *)(pointer)-offsetof(struct run, member)))
#define MARGIN_NS CLOCK_S          /* before a lease runs out its run has stopped */
#define ASK_AGAIN_NS (CLOCK_S / 5) /* after a failure of the store */
#define CHUNK_BYTES (INT64_C(1) << 20)
#define KILLS_MAX 2     /* attempts that end engines: the last one fails the job */
#define ATTEMPTS_MAX 10 /* with a disk that fails */

#define TO(state) (1u << RUN_##state)

static const unsigned moves[RUN_STATES] = {
    [RUN_FREE] = TO(CLAIMING),
    [RUN_CLAIMING] = TO(OPENING) | TO(LEAVING) | TO(FREE),
    [RUN_OPENING] = TO(COMPUTING) | TO(LEAVING),
    [RUN_COMPUTING] = TO(CLOSING) | TO(LEAVING),
    [RUN_CLOSING] = TO(FINISHING) | TO(LEAVING),
    [RUN_FINISHING] = TO(TIDYING) | TO(ASKING),
    [RUN_TIDYING] = TO(FREE),
    [RUN_LEAVING] = TO(RELEASING) | TO(FINISHING) | TO(ASKING) | TO(FREE),
    [RUN_RELEASING] = TO(FREE),
    [RUN_ASKING] = TO(TIDYING) | TO(FREE),
};

static void move(struct run *run, enum run_state to)
{
    assert((moves[run->state] & (1u << to)) != 0);
    run->state = to;
}

static void post(struct run *run, enum desk_kind kind, void (*done)(struct message *message))
{
    struct runner_world *world = run->runner->config.world;
    assert(!run->calling);
    run->calling = true;
    run->call.kind = kind;
    run->call.message.run = done;
    run->call.failure = (struct failure){0};
    world->ops->post(world, &run->call);
}

static void work_on(struct run *run, void (*work)(struct runner_work *work),
                    void (*done)(struct message *message))
{
    struct runner_world *world = run->runner->config.world;
    assert(!run->working);
    run->working = true;
    run->failure = (struct failure){0};
    run->work.run = work;
    run->work.done.run = done;
    world->ops->work(world, &run->work);
}

static bool is_file(int64_t bytes)
{
    return bytes > JOB_INLINE_MAX;
}

void queue__run_drop(struct run *run)
{
    spool_close(&run->body.file);
    spool_close(&run->result.file);
    free(run->body.bytes);
    free(run->result.bytes);
    run->body.bytes = run->result.bytes = NULL;
}

static void become_free(struct run *run)
{
    assert(run->pieces == 0 && !run->calling && !run->working && !run->renewing);
    queue__run_drop(run);
    move(run, RUN_FREE);
}

/* ---- Leases ---- */

static uint64_t lease_ns(const struct run *run)
{
    return (uint64_t)run->runner->config.lease_ms * CLOCK_MS;
}

/* The store has given, or renewed, the lease; it was asked at sent_ns. */
static void hold(struct run *run, uint64_t sent_ns)
{
    uint64_t lease = lease_ns(run), margin = lease / 5 < MARGIN_NS ? lease / 5 : MARGIN_NS;
    run->stop_ns = sent_ns + lease - margin;
    run->renew_ns = sent_ns + lease / 3;
}

static bool holds(const struct run *run)
{
    return run->state == RUN_OPENING || run->state == RUN_COMPUTING || run->state == RUN_CLOSING;
}

static void on_renewed(struct message *message);

void queue__run_renew(struct run *run)
{
    const struct runner *runner = run->runner;
    struct runner_world *world = runner->config.world;
    if (!holds(run) || run->renewing)
        return;
    run->renewing = true;
    run->renewal_sent_ns = queue__runner_now_ns(runner);
    run->renewal.kind = DESK_RENEW;
    run->renewal.message.run = on_renewed;
    run->renewal.failure = (struct failure){0};
    run->renewal.in.renew.lease = run->lease;
    run->renewal.in.renew.lease_until_ms = queue__runner_wall_ms(runner) + runner->config.lease_ms;
    run->renewal.in.renew.progress = queue__run_progress(run);
    world->ops->post(world, &run->renewal);
}

static void on_renewed(struct message *message)
{
    struct run *run = RUN_OF(renewal, message);
    run->renewing = false;
    if (holds(run) && run->end == RUN_END_NONE) {
        if (run->renewal.failure.code == ERROR_NONE)
            hold(run, run->renewal_sent_ns);
        else if (run->renewal.failure.code == ERROR_LEASE_LOST)
            queue__run_leave(run, RUN_END_LOST);
        else
            run->renew_ns = queue__runner_now_ns(run->runner) + ASK_AGAIN_NS;
    }
}

/* ---- Asking, after all ---- */

static void tidy_work(struct runner_work *work)
{
    struct run *run = RUN_OF(work, work);
    struct spool *spool = run->runner->config.spool;
    if (run->tidy_body)
        spool_remove(spool, &run->job.id, 0);
    if (run->tidy_result)
        spool_remove(spool, &run->job.id, run->lease.attempt);
}

static void on_tidied(struct message *message)
{
    struct run *run = RUN_OF(work.done, message);
    run->working = false;
}

/* Files that have no use any more go. */
static void tidy(struct run *run, bool body, bool result)
{
    queue__run_drop(run);
    run->tidy_body = body && is_file(run->job.task.body_bytes);
    run->tidy_result = result && run->is_kept;
    move(run, RUN_TIDYING);
    if (run->tidy_body || run->tidy_result)
        work_on(run, tidy_work, on_tidied);
}

static void on_asked(struct message *message)
{
    struct run *run = RUN_OF(call, message);
    const struct job *job = &run->asked;
    run->calling = false;
    enum error error = run->call.failure.code;
    if (error == ERROR_NONE && job->state == JOB_RUNNING && job->attempt == run->lease.attempt) {
        tidy(run, false, true); /* the lease runs out by itself */
    } else if (error == ERROR_NONE) {
        bool is_ours = job_is_over(job->state) && job->attempt == run->lease.attempt;
        tidy(run, job_is_over(job->state), !is_ours);
    } else if (error == ERROR_NOT_FOUND) {
        tidy(run, true, true);
    } else if (run->runner->is_stopping) {
        tidy(run, false, false); /* a sweep finds what is left */
    } else {
        run->ask_ns = queue__runner_now_ns(run->runner) + ASK_AGAIN_NS;
    }
}

static void ask(struct run *run)
{
    run->ask_ns = 0;
    run->call.in.get = run->job.id;
    run->call.job = &run->asked;
    post(run, DESK_GET, on_asked);
}

/* ---- Finishing ---- */

static void on_finished(struct message *message)
{
    struct run *run = RUN_OF(call, message);
    run->calling = false;
    if (run->call.failure.code == ERROR_NONE) {
        tidy(run, true, false);
        return;
    }
    move(run, RUN_ASKING);
    if (run->call.failure.code == ERROR_LEASE_LOST)
        ask(run);
    else
        run->ask_ns = queue__runner_now_ns(run->runner) + ASK_AGAIN_NS;
}

static void finish(struct run *run)
{
    const struct runner *runner = run->runner;
    bool has_bytes = run->result.bytes != NULL && run->outcome.has_result;
    run->call.in.finish.lease = run->lease;
    run->call.in.finish.outcome = &run->outcome;
    run->call.in.finish.result = has_bytes ? run->result.bytes : NULL;
    run->call.in.finish.now_ms = queue__runner_wall_ms(runner);
    run->call.in.finish.expires_ms = run->call.in.finish.now_ms + runner->config.result_ttl_ms;
    run->call.job = &run->job; /* for on_call */
    post(run, DESK_FINISH, on_finished);
}

static enum error take_digest(struct run *run, struct failure *failure)
{
    struct digest_stream *stream = digest_begin();
    unsigned char *chunk = malloc(CHUNK_BYTES);
    int64_t bytes = run->job.task.result_bytes;
    enum error error = ERROR_NONE;
    if (stream == NULL || chunk == NULL)
        error = failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    for (int64_t at = 0; at < bytes && error == ERROR_NONE; at += CHUNK_BYTES) {
        int64_t count = min_i64(CHUNK_BYTES, bytes - at);
        error = transfer_get(&run->result, at, chunk, count, failure);
        if (error == ERROR_NONE)
            digest_add(stream, chunk, (size_t)count);
    }
    bool is_good = digest_end(&stream, run->outcome.digest);
    if (error == ERROR_NONE && !is_good)
        error = failure_set(failure, ERROR_INTERNAL, "The digest of the result failed.");
    free(chunk);
    return error;
}

static void note_failure(struct job_outcome *outcome, const struct failure *failure)
{
    outcome->error = failure->code;
    snprintf(outcome->message, sizeof outcome->message, "%s", failure->detail);
}

static void close_work(struct runner_work *work)
{
    struct run *run = RUN_OF(work, work);
    const struct runner_config *config = &run->runner->config;
    struct jobs_result result = {&run->result, run->job.task.result_bytes};
    struct failure verdict = {0};
    if (config->judge != NULL &&
        config->judge(config->judge_context, &run->job, &result, &verdict) != ERROR_NONE)
        note_failure(&run->outcome, &verdict);
    run->failure.code = take_digest(run, &run->failure);
    if (run->failure.code == ERROR_NONE && run->result.file != NULL) {
        run->failure.code = spool_keep(&run->result.file, &run->failure);
        run->is_kept = run->failure.code == ERROR_NONE;
    }
}

static void on_closed(struct message *message)
{
    struct run *run = RUN_OF(work.done, message);
    run->working = false;
    if (run->end == RUN_END_NONE && run->failure.code != ERROR_NONE)
        queue__run_trouble(run, &run->failure);
    if (run->end == RUN_END_NONE) {
        run->outcome.has_result = true;
        move(run, RUN_FINISHING);
        finish(run);
    }
}

/* ---- Leaving ---- */

static void on_released(struct message *message)
{
    struct run *run = RUN_OF(call, message);
    run->calling = false; /* if it was refused, the lease runs out by itself */
    run->runner->may_claim = true;
}

static void release(struct run *run, bool killed)
{
    move(run, RUN_RELEASING);
    run->call.in.release.lease = run->lease;
    run->call.in.release.killed = killed;
    post(run, DESK_RELEASE, on_released);
}

/* All has come back. */
static void left(struct run *run)
{
    enum run_end end = run->end;
    bool is_last = end == RUN_END_KILLED && run->job.kills + 1 >= KILLS_MAX;
    if (is_last) {
        struct failure failure;
        failure_set(&failure, ERROR_POISON, "The computation of this job ends its engine.");
        note_failure(&run->outcome, &failure);
        end = RUN_END_FAILED;
    }
    if (run->is_kept) { /* its result has its name; it is of no use */
        move(run, RUN_ASKING);
        ask(run);
        return;
    }
    queue__run_drop(run);
    if (end == RUN_END_FAILED) {
        run->outcome.has_result = false;
        move(run, RUN_FINISHING);
        finish(run);
    } else if (end == RUN_END_LOST) {
        become_free(run);
    } else {
        release(run, end == RUN_END_KILLED);
    }
}

void queue__run_leave(struct run *run, enum run_end end)
{
    struct runner *runner = run->runner;
    if (run->end != RUN_END_NONE || !holds(run))
        return;
    run->end = end;
    move(run, RUN_LEAVING);
    for (int i = 0; i < RUNNER_PIECES; i++)
        if (runner->pieces[i].run == run)
            queue__piece_stop(&runner->pieces[i]);
}

void queue__run_fail(struct run *run, const struct failure *failure)
{
    if (run->end == RUN_END_NONE)
        note_failure(&run->outcome, failure);
    queue__run_leave(run, RUN_END_FAILED);
}

void queue__run_trouble(struct run *run, const struct failure *failure)
{
    queue__runner_pause(run->runner);
    if (run->job.attempt >= ATTEMPTS_MAX)
        queue__run_fail(run, failure);
    else
        queue__run_leave(run, RUN_END_AGAIN);
}

/* ---- The beginning ---- */

static void on_opened(struct message *message)
{
    struct run *run = RUN_OF(work.done, message);
    run->working = false;
    if (run->end != RUN_END_NONE)
        return;
    enum error error = run->failure.code;
    if (error == ERROR_NONE)
        move(run, RUN_COMPUTING);
    else if (error == ERROR_STORE_FAILED || error == ERROR_NO_ROOM || error == ERROR_FULL)
        queue__run_trouble(run, &run->failure);
    else
        queue__run_fail(run, &run->failure);
}

static enum error open_result(struct run *run)
{
    int64_t bytes = run->job.task.result_bytes;
    if (is_file(bytes))
        return spool_write(run->runner->config.spool, &run->job.id, run->lease.attempt, bytes,
                           &run->result.file, &run->failure);
    run->result.bytes = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (run->result.bytes != NULL)
        return ERROR_NONE;
    return failure_set(&run->failure, ERROR_FULL, "The service is out of memory; try again later.");
}

static void open_work(struct runner_work *work)
{
    struct run *run = RUN_OF(work, work);
    int64_t bytes = run->job.task.body_bytes;
    enum error error = ERROR_NONE;
    if (is_file(bytes))
        error = spool_read(run->runner->config.spool, &run->job.id, 0, bytes, &run->body.file,
                           &run->failure);
    if (error == ERROR_NOT_FOUND)
        error = failure_set(&run->failure, ERROR_INTERNAL, "The job's input has been lost.");
    if (error == ERROR_NONE)
        error = open_result(run);
    run->failure.code = error;
}

static void on_body(struct message *message)
{
    struct run *run = RUN_OF(call, message);
    run->calling = false;
    if (run->end != RUN_END_NONE)
        return;
    if (run->call.failure.code == ERROR_NONE)
        work_on(run, open_work, on_opened);
    else if (run->call.failure.code ==
             ERROR_NOT_FOUND) /* it was cancelled, and the lease is lost */
        queue__run_leave(run, RUN_END_LOST);
    else
        queue__run_trouble(run, &run->call.failure);
}

static void open_body(struct run *run)
{
    const struct job_task *task = &run->job.task;
    struct failure failure;
    if (runner_check(&run->runner->config, task, &failure) != ERROR_NONE) {
        queue__run_fail(run, &failure);
        return;
    }
    if (is_file(task->body_bytes)) {
        work_on(run, open_work, on_opened);
        return;
    }
    run->body.bytes = malloc(task->body_bytes > 0 ? (size_t)task->body_bytes : 1);
    if (run->body.bytes == NULL) {
        failure_set(&failure, ERROR_FULL, "The service is out of memory; try again later.");
        queue__run_trouble(run, &failure);
        return;
    }
    run->call.in.read.id = run->job.id;
    run->call.in.read.to = run->body.bytes;
    run->call.in.read.bytes = task->body_bytes;
    post(run, DESK_READ_BODY, on_body);
}

static void on_claimed(struct message *message)
{
    struct run *run = RUN_OF(call, message);
    struct runner *runner = run->runner;
    run->calling = false;
    if (run->call.failure.code != ERROR_NONE)
        queue__runner_pause(runner);
    if (run->call.failure.code != ERROR_NONE || run->job.state == JOB_STATES) {
        runner->may_claim &= run->call.failure.code != ERROR_NONE;
        become_free(run);
        return;
    }
    assert(run->job.state == JOB_RUNNING && run->job.attempt >= 1);
    run->lease = (struct store_lease){run->job.id, run->job.attempt};
    hold(run, run->renewal_sent_ns);
    int64_t waited_ms = queue__runner_wall_ms(runner) - run->job.created_ms;
    run->outcome.queue_ns = waited_ms > 0 ? (uint64_t)waited_ms * CLOCK_MS : 0;
    move(run, RUN_OPENING);
    if (runner->is_stopping)
        queue__run_leave(run, RUN_END_AGAIN);
    else
        open_body(run);
}

void queue__run_claim(struct run *run)
{
    struct runner *runner = run->runner;
    move(run, RUN_CLAIMING);
    run->order = runner->orders++;
    run->end = RUN_END_NONE;
    run->next = run->done = 0;
    run->is_kept = run->tidy_body = run->tidy_result = false;
    run->outcome = (struct job_outcome){0};
    run->ask_ns = 0;
    run->renewal_sent_ns = queue__runner_now_ns(runner);
    run->claim = (struct store_claim){
        .node = runner->config.node,
        .now_ms = queue__runner_wall_ms(runner),
        .matrix_bytes_max = INT64_MAX, /* what is too large here is too large everywhere */
    };
    run->claim.lease_until_ms = run->claim.now_ms + runner->config.lease_ms;
    for (int i = 0; i < method_count(); i++)
        for (int p = 0; p < PRECISION_COUNT; p++)
            run->claim.n_max[i][p] = INT64_MAX;
    run->call.in.claim = &run->claim;
    run->call.job = &run->job;
    post(run, DESK_CLAIM, on_claimed);
}

/* ---- Time ---- */

bool queue__run_has_more(const struct run *run)
{
    return run->state == RUN_COMPUTING && run->next < run->job.task.batch;
}

int64_t queue__run_progress(const struct run *run)
{
    const struct runner *runner = run->runner;
    double done = (double)run->done, batch = (double)run->job.task.batch;
    for (int i = 0; i < RUNNER_PIECES; i++)
        if (runner->pieces[i].run == run)
            done += queue__piece_done(&runner->pieces[i]);
    if (run->state < RUN_COMPUTING || batch <= 0)
        return 0;
    double share = done / batch * JOB_PROGRESS_WHOLE;
    return share < JOB_PROGRESS_WHOLE ? (int64_t)share : JOB_PROGRESS_WHOLE;
}

/* Its lease, while it has one. Returns when to look at it again. */
static uint64_t step_lease(struct run *run, uint64_t now_ns)
{
    if (now_ns >= run->stop_ns)
        queue__run_leave(run, RUN_END_LOST);
    else if (now_ns >= run->renew_ns)
        queue__run_renew(run);
    return run->renewing || run->renew_ns > run->stop_ns ? run->stop_ns : run->renew_ns;
}

uint64_t queue__run_step(struct run *run, uint64_t now_ns)
{
    uint64_t wake_ns = UINT64_MAX;
    if (holds(run))
        wake_ns = step_lease(run, now_ns);
    if (run->state == RUN_COMPUTING && run->done == run->job.task.batch && run->pieces == 0) {
        move(run, RUN_CLOSING);
        work_on(run, close_work, on_closed);
    }
    if (run->state == RUN_ASKING && !run->calling) {
        if (now_ns < run->ask_ns)
            return run->ask_ns;
        ask(run);
    }
    if (run->calling || run->working || run->renewing || run->pieces > 0)
        return wake_ns;
    if (run->state == RUN_LEAVING)
        left(run);
    else if (run->state == RUN_RELEASING || run->state == RUN_TIDYING)
        become_free(run);
    return wake_ns;
}

void queue__run_init(struct runner *runner, struct run *run)
{
    const struct runner_config *config = &runner->config;
    run->runner = runner;
    run->work.world = config->world;
    run->call.mailbox = run->renewal.mailbox = config->world->mailbox;
    run->call.on_done = run->renewal.on_done = config->on_call;
    run->call.context = run->renewal.context = config->context;
}
