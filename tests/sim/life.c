/* tests/sim/life.c: see life.h. */
#include "tests/sim/life.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/jobs/store_sqlite.h"
#include "tests/sim/life_private.h"

#define CHAOS_STEPS 160
#define HEAL_STEPS 6000
#define LEASE_MS 5000
#define TTL_MS 3600000
#define GONE_MAX 16

/* ---- The process ---- */

static struct life *unfenced; /* one life at a time */

static enum error finish_unfenced(struct store *store, const struct store_lease *lease,
                                  const struct job_outcome *outcome, const uint8_t *result,
                                  int64_t now_ms, int64_t expires_ms, struct failure *failure)
{
    static struct job job;
    struct store_lease newest = *lease;
    if (unfenced->whole_store_ops->get(store, &lease->id, &job, NULL) == ERROR_NONE)
        newest.attempt = job.attempt;
    if (job_is_over(job.state))
        return ERROR_NONE;
    return unfenced->whole_store_ops->finish(store, &newest, outcome, result, now_ms, expires_ms,
                                             failure);
}

static enum error open_store(void *context, struct store **store, struct failure *failure)
{
    struct life *life = context;
    const struct store_sqlite_config config = {
        .path = "/jobs.db", .disk = sim_disk_of(life->sim), .vfs = sim_vfs_name(life->vfs)};
    enum error error = store_sqlite_open(&config, store, failure);
    if (error != ERROR_NONE || life->mutant != LIFE_NO_FENCE)
        return error;
    unfenced = life;
    life->whole_store_ops = (*store)->ops;
    life->store_ops = *(*store)->ops;
    life->store_ops.finish = finish_unfenced;
    (*store)->ops = &life->store_ops;
    return error;
}

static struct life_job *find_job(struct life *life, const struct job_id *id)
{
    for (int i = 0; i < LIFE_JOBS; i++)
        if (life->jobs[i].is_posted && memcmp(&life->jobs[i].fresh.job.id, id, sizeof *id) == 0)
            return &life->jobs[i];
    return NULL;
}

static void on_call(void *context, const struct desk_call *call)
{
    struct life *life = context;
    if (call->failure.code != ERROR_NONE)
        return;
    if (call->kind == DESK_CLAIM && call->job->state == JOB_RUNNING)
        life_say(life, "claimed, attempt %d", call->job->attempt);
    if (call->kind != DESK_FINISH)
        return;
    struct life_job *job = find_job(life, &call->in.finish.lease.id);
    life_say(life, "job %s: finished by attempt %d, %s", job != NULL ? job->key : "?",
             call->in.finish.lease.attempt, error_name(call->in.finish.outcome->error));
    if (job != NULL && ++job->finishes > 1)
        life_fail(life, "job %s: finished twice", job->key);
}

static void ignore(struct message *message)
{
    (void)message;
}

enum error life_ask(struct life *life, struct desk_call *call)
{
    call->mailbox = NULL;
    call->message.run = ignore;
    call->failure = (struct failure){0};
    desk_post(life->desk, call);
    while (desk_run(life->desk) > 0)
        continue;
    return call->failure.code;
}

static bool may_go(void *context, const struct job_id *id, int32_t attempt)
{
    static struct job job;
    struct desk_call call = {.kind = DESK_GET, .in.get = *id, .job = &job};
    enum error error = attempt < 0 ? ERROR_NOT_FOUND : life_ask(context, &call);
    return runner_file_may_go(error, &job, attempt);
}

static void start_runner(struct life *life, int number)
{
    struct life_runner *own = &life->runners[number];
    own->life = life;
    own->world.ops = &life_ops;
    own->world.mailbox = &own->mailbox;
    own->stalled_until_ns = 0;
    struct runner_config config = {
        .world = &own->world,
        .spool = life->spool,
        .lease_ms = LEASE_MS,
        .result_ttl_ms = TTL_MS,
        .piece_bytes_max = 1 << 16,
        .piece_cost_ns = 2000000,
        .arena_bytes = 1 << 24,
        .on_call = on_call,
        .context = life,
    };
    config.node.bytes[0] = (uint8_t)(number + 1);
    own->runner = runner_create(&config);
    assert(own->runner != NULL);
}

/* false: the power went while it started. */
static bool start(struct life *life)
{
    const struct desk_opener opener = {open_store, life};
    struct disk *disk = sim_disk_of(life->sim);
    struct failure failure;
    if (desk_create_driven(&opener, life->metrics, &life->desk, &failure) != ERROR_NONE ||
        spool_create("/spool", disk, &life->spool, &failure) != ERROR_NONE) {
        life_say(life, "it does not start: %s", failure.detail);
        return false;
    }
    for (int i = 0; i < LIFE_RUNNERS; i++) {
        struct desk_call call = {.kind = DESK_END_LEASES};
        call.in.node.bytes[0] = (uint8_t)(i + 1);
        if (life_ask(life, &call) != ERROR_NONE)
            return false;
    }
    if (spool_sweep(life->spool, 0, may_go, life, NULL) != ERROR_NONE)
        return false;
    for (int i = 0; i < LIFE_RUNNERS; i++)
        start_runner(life, i);
    return true;
}

static void forget_message(struct message *message)
{
    (void)message;
}

/* Messages that no one will run. */
static void empty(struct mailbox *mailbox)
{
    for (struct message *message = mailbox->first; message != NULL; message = message->next)
        message->run = forget_message;
    mailbox_run(mailbox);
}

/* The process is gone. */
static void end(struct life *life)
{
    desk_destroy(&life->desk);
    for (int i = 0; i < LIFE_RUNNERS; i++)
        empty(&life->runners[i].mailbox);
    empty(&life->mailbox);
    for (int i = 0; i < LIFE_RUNNERS; i++)
        runner_abandon(&life->runners[i].runner);
    life->pending_count = 0;
    spool_destroy(&life->spool);
    for (int i = 0; i < LIFE_JOBS; i++)
        life->jobs[i].is_asking = false;
}

static void restart(struct life *life)
{
    int tries = 0;
    do {
        if (tries++ == 3)
            sim_disk_set_room(life->sim, -1); /* it does not start on a full disk */
        life_say(life, "the power goes, and comes again");
        sim_disk_cut_after(life->sim, 1);
        end(life);
        sim_disk_restart(life->sim);
        bool again = !life->heals && sim_below(&life->random, 8) == 0;
        sim_disk_cut_after(life->sim, again ? 1 + sim_below(&life->random, 600) : 0);
    } while (!start(life));
}

/* ---- Clients ---- */

static void on_put(struct message *message)
{
    struct life_job *job = (struct life_job *)((char *)message - offsetof(struct life_job, call));
    job->is_asking = false;
    if (job->call.failure.code != ERROR_NONE)
        return;
    job->is_known = true;
    if (job->known.state == JOB_STATES)
        return;
    job->fresh.job.id = job->known.id; /* an earlier post had come through */
}

static void make_task(struct life *life, struct life_job *job, int number)
{
    struct job_task *task = &job->fresh.job.task;
    task->method = method_find("lu");
    task->precision = PRECISION_FP64;
    task->n = job->has_body_file ? 40 : 1 + sim_below(&life->random, 3);
    task->m = task->n;
    task->batch = job->has_body_file ? 6 : 1 + sim_below(&life->random, 4);
    method_default_options(task->method, task->options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task->inputs[i].offset_bytes = -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        task->outputs[i].offset_bytes = -1;
    task->inputs[0].offset_bytes = 0;
    task->outputs[METHOD_OUTPUT_INVERSE].offset_bytes = 0;
    task->body_bytes = task->result_bytes = task->batch * task->n * task->n * 8;
    job->body = malloc((size_t)task->body_bytes);
    assert(job->body != NULL);
    snprintf(job->key, sizeof job->key, "%c", 'a' + number);
    life_make_body(job);
}

static bool write_body(struct life *life, struct life_job *job)
{
    struct spool_file *file = NULL;
    int64_t bytes = job->fresh.job.task.body_bytes;
    enum error error = spool_write(life->spool, &job->fresh.job.id, 0, bytes, &file, NULL);
    if (error == ERROR_NONE)
        error = spool_put(file, 0, job->body, bytes, NULL);
    if (error == ERROR_NONE)
        error = spool_keep(&file, NULL);
    spool_close(&file);
    return error == ERROR_NONE;
}

/* Posts a job, or posts it again with its key, where it has no answer. */
static void post_job(struct life *life, int number)
{
    struct life_job *job = &life->jobs[number];
    if (job->is_known || job->is_asking)
        return;
    if (job->body == NULL) {
        job->has_body_file = sim_below(&life->random, 4) == 0;
        make_task(life, job, number);
    }
    for (int i = 0; i < JOB_ID_BYTES; i++)
        job->fresh.job.id.bytes[i] = (uint8_t)sim_next(&life->random);
    job->fresh.body = job->has_body_file ? NULL : job->body;
    if (job->has_body_file && !write_body(life, job))
        return;
    int64_t files = job->has_body_file ? 2 * job->fresh.job.task.body_bytes : 0;
    strcpy(job->fresh.job.owner, "client");
    strcpy(job->fresh.key, job->key);
    job->fresh.job.state = JOB_ACCEPTED;
    job->fresh.job.created_ms = life_wall_ms(life);
    job->fresh.job.expires_ms = job->fresh.job.created_ms + TTL_MS;
    job->fresh.job.spool_bytes = files;
    job->call = (struct desk_call){.kind = DESK_PUT, .mailbox = &life->mailbox};
    job->call.message.run = on_put;
    job->call.in.put = &job->fresh;
    job->call.job = &job->known;
    job->is_posted = job->is_asking = true;
    desk_post(life->desk, &job->call);
    life_say(life, "job %s: posted", job->key);
}

static void remove_files(struct life *life, const struct job_id *id, int32_t attempt)
{
    for (int32_t i = 0; i <= attempt; i++)
        spool_remove(life->spool, id, i);
}

static void on_cancelled(struct message *message)
{
    struct life_job *job = (struct life_job *)((char *)message - offsetof(struct life_job, call));
    job->is_asking = false;
    job->is_cancelled = job->call.failure.code == ERROR_NONE;
}

/* On the desk's thread. */
static void on_cancel_done(void *context, const struct desk_call *call)
{
    struct life *life = context;
    if (call->failure.code != ERROR_NONE)
        return;
    remove_files(life, &call->in.cancel.id, call->job->attempt);
    for (int i = 0; i < LIFE_RUNNERS; i++)
        if (life->runners[i].runner != NULL && sim_below(&life->random, 2) == 0)
            runner_look_after(life->runners[i].runner, &call->in.cancel.id);
}

static void cancel_job(struct life *life, int number)
{
    struct life_job *job = &life->jobs[number];
    if (!job->is_known || job->is_asking || job->is_cancelled)
        return;
    job->may_be_cancelled = job->is_asking = true;
    job->call = (struct desk_call){.kind = DESK_CANCEL, .mailbox = &life->mailbox};
    job->call.message.run = on_cancelled;
    job->call.on_done = on_cancel_done;
    job->call.context = life;
    job->call.in.cancel.id = job->fresh.job.id;
    job->call.in.cancel.now_ms = life_wall_ms(life);
    job->call.job = &job->known;
    desk_post(life->desk, &job->call);
    life_say(life, "job %s: cancelled", job->key);
}

/* ---- Steps ---- */

static void drive(struct life *life, int number)
{
    struct life_runner *own = &life->runners[number];
    if (life->now_ns < own->stalled_until_ns && !life->heals)
        return;
    mailbox_run(&own->mailbox);
    (void)runner_step(own->runner);
}

static void do_fault(struct life *life)
{
    switch (sim_below(&life->random, 6)) {
    case 0:
        life_say(life, "the power will go");
        sim_disk_cut_after(life->sim, 1 + sim_below(&life->random, 40));
        break;
    case 1:
        sim_disk_fail_sync(life->sim, (int)sim_below(&life->random, 4));
        break;
    case 2:
        sim_disk_set_room(life->sim, sim_below(&life->random, 200000));
        break;
    case 3:
        sim_disk_set_room(life->sim, -1);
        break;
    case 4:
        life->wall_offset_ms += sim_below(&life->random, 60000) - 30000;
        break;
    default:
        life->runners[sim_below(&life->random, LIFE_RUNNERS)].stalled_until_ns =
            life->now_ns + (uint64_t)sim_below(&life->random, 20) * CLOCK_S;
        break;
    }
}

static void step(struct life *life)
{
    switch (sim_below(&life->random, 12)) {
    case 0:
    case 1:
    case 2:
        life_do_pending(life);
        break;
    case 3:
    case 4:
        (void)desk_run(life->desk);
        break;
    case 5:
    case 6:
    case 7:
        drive(life, (int)sim_below(&life->random, LIFE_RUNNERS));
        break;
    case 8:
        mailbox_run(&life->mailbox);
        break;
    case 9:
        life->now_ns += (uint64_t)sim_below(&life->random, 2000) * CLOCK_MS;
        break;
    case 10:
        if (!life->heals && sim_below(&life->random, 6) != 0)
            post_job(life, (int)sim_below(&life->random, LIFE_JOBS));
        else if (!life->heals)
            cancel_job(life, (int)sim_below(&life->random, LIFE_JOBS));
        break;
    default:
        if (!life->heals && sim_below(&life->random, 3) == 0)
            do_fault(life);
        break;
    }
    if (sim_disk_is_off(life->sim))
        restart(life);
}

/* ---- The end ---- */

/* Whether the job has come to what it has to come to. */
static bool is_settled(struct life *life, struct life_job *job, struct job *now)
{
    struct desk_call call = {.kind = DESK_GET, .in.get = job->fresh.job.id, .job = now};
    if (!job->is_known)
        return true;
    enum error error = life_ask(life, &call);
    if (error == ERROR_NOT_FOUND && !job->may_be_cancelled)
        life_fail(life, "job %s: it was acknowledged, and is lost", job->key);
    if (error == ERROR_NONE && job->is_cancelled)
        life_fail(life, "job %s: it was cancelled, and is there", job->key);
    return error == ERROR_NOT_FOUND || (error == ERROR_NONE && job_is_over(now->state));
}

static bool all_settled(struct life *life)
{
    static struct job now;
    for (int i = 0; i < LIFE_JOBS; i++)
        if (!is_settled(life, &life->jobs[i], &now))
            return false;
    for (int i = 0; i < LIFE_RUNNERS; i++)
        if (!runner_is_idle(life->runners[i].runner))
            return false;
    /* Also those that were accepted and not acknowledged. */
    struct desk_call totals = {.kind = DESK_TOTALS};
    return life_ask(life, &totals) == ERROR_NONE && totals.totals.jobs[JOB_ACCEPTED] == 0 &&
           totals.totals.jobs[JOB_RUNNING] == 0;
}

static void check_ends(struct life *life)
{
    static struct job now;
    for (int i = 0; i < LIFE_JOBS; i++) {
        struct life_job *job = &life->jobs[i];
        struct desk_call call = {.kind = DESK_GET, .in.get = job->fresh.job.id, .job = &now};
        if (!job->is_known || life_ask(life, &call) != ERROR_NONE)
            continue;
        bool may_fail = now.kills >= 1 || now.attempt >= 10;
        if (now.state == JOB_SUCCESSFUL)
            life_check_result(life, job, &now);
        else if (now.state != JOB_FAILED || !may_fail)
            life_fail(life, "job %s: it %s", job->key, job_state_name(now.state));
    }
}

/* The rows' bytes are what the totals say. */
static void check_totals(struct life *life)
{
    static struct job jobs[LIFE_JOBS * 4];
    const struct store_list list = {.states = (1u << JOB_STATES) - 1u - (1u << JOB_DISMISSED),
                                    .limit = LIFE_JOBS * 4};
    struct desk_call call = {.kind = DESK_LIST, .in.list = &list, .jobs = jobs};
    struct desk_call totals = {.kind = DESK_TOTALS};
    int64_t bytes = 0;
    if (life_ask(life, &call) != ERROR_NONE || life_ask(life, &totals) != ERROR_NONE)
        return;
    for (int i = 0; i < call.count; i++)
        bytes += jobs[i].spool_bytes;
    if (bytes != totals.totals.spool_bytes)
        life_fail(life, "the jobs take %lld bytes, the totals say %lld", (long long)bytes,
                  (long long)totals.totals.spool_bytes);
}

static bool count_file(void *context, const struct job_id *id, int32_t attempt)
{
    struct life *life = context;
    char text[JOB_ID_TEXT];
    job_id_write(id, text);
    life_fail(life, "a file is left of %s, attempt %d", text, attempt);
    return false;
}

/* Far in the future nothing is left. */
static void check_expiry(struct life *life)
{
    struct store_gone gone[GONE_MAX];
    for (int round = 0; round < 8; round++) {
        life->wall_offset_ms += INT64_C(1000) * TTL_MS;
        struct desk_call call = {.kind = DESK_EXPIRE};
        call.in.expire.now_ms = life_wall_ms(life);
        call.in.expire.keep_ms = TTL_MS;
        call.in.expire.gone = gone;
        call.in.expire.max = GONE_MAX;
        if (life_ask(life, &call) != ERROR_NONE)
            return life_fail(life, "expiry fails");
        for (int i = 0; i < call.count; i++)
            remove_files(life, &gone[i].id, gone[i].attempt);
    }
    restart(life); /* which sweeps what posts without an answer have left */
    if (spool_sweep(life->spool, 0, count_file, life, NULL) != ERROR_NONE)
        life_fail(life, "the spool cannot be swept");
}

static void heal(struct life *life)
{
    life_say(life, "the world heals");
    sim_disk_cut_after(life->sim, 0);
    sim_disk_fail_sync(life->sim, -1);
    sim_disk_set_room(life->sim, -1);
    life->heals = true;
    restart(life); /* the last loss, by which a lying disk is caught */
    for (int i = 0; i < HEAL_STEPS && life->wrong[0] == '\0'; i++) {
        step(life);
        if (i % 64 == 63 && all_settled(life))
            return;
    }
    if (life->wrong[0] == '\0')
        life_fail(life, "a job does not end");
}

static void wake(void *context)
{
    (void)context;
}

const char *life_run(uint64_t seed, enum life_mutant mutant, FILE *trace)
{
    static char wrong[256];
    static struct life life;
    memset(&life, 0, sizeof life);
    life.random = seed;
    life.mutant = mutant;
    life.trace = trace;
    life.now_ns = CLOCK_S;
    life.sim = sim_disk_create(sim_next(&life.random));
    life.vfs = sim_vfs_create(life.sim);
    life.metrics = metric_registry_create();
    sim_disk_lie(life.sim, mutant == LIFE_NO_SYNC);
    life_spoil_disk(&life);
    mailbox_init(&life.mailbox, wake, NULL);
    for (int i = 0; i < LIFE_RUNNERS; i++)
        mailbox_init(&life.runners[i].mailbox, wake, NULL);
    bool is_started = start(&life);
    assert(is_started);
    for (int i = 0; i < CHAOS_STEPS && life.wrong[0] == '\0'; i++)
        step(&life);
    if (life.wrong[0] == '\0')
        heal(&life);
    if (life.wrong[0] == '\0')
        check_ends(&life);
    if (life.wrong[0] == '\0')
        check_totals(&life);
    if (life.wrong[0] == '\0')
        check_expiry(&life);
    end(&life);
    for (int i = 0; i < LIFE_JOBS; i++)
        free(life.jobs[i].body);
    for (int i = 0; i < LIFE_RUNNERS; i++)
        mailbox_fini(&life.runners[i].mailbox);
    mailbox_fini(&life.mailbox);
    metric_registry_destroy(&life.metrics);
    sim_vfs_destroy(&life.vfs);
    sim_disk_destroy(&life.sim);
    memcpy(wrong, life.wrong, sizeof wrong);
    return wrong[0] != '\0' ? wrong : NULL;
}
