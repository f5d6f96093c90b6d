/* queue/jobs/piece.c: a piece of a run: some whole matrices on their way through an engine.
 *
 *     FREE -> TAKING -> READING -> COMPUTING -> WRITING -> FREE
 *
 * A piece takes all memory that it needs at once and gives it back at its end, by the rules that
 * direct requests go by. Its size is bounded in bytes and in predicted time, so that a direct
 * request waits a few milliseconds for it at most. Threads: see runner.h.
 */
#include "queue/jobs/runner_private.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/minmax.h"

#define PIECE_OF(member, pointer)                                                                  \
    ((struct piece *)((char *)(pointer)-offsetof(struct piece, member)))

static const enum piece_state next_of[PIECE_STATES] = {[PIECE_FREE] = PIECE_TAKING,
                                                       [PIECE_TAKING] = PIECE_READING,
                                                       [PIECE_READING] = PIECE_COMPUTING,
                                                       [PIECE_COMPUTING] = PIECE_WRITING,
                                                       [PIECE_WRITING] = PIECE_FREE};

static void move(struct piece *piece, enum piece_state to)
{
    assert(to == PIECE_FREE || next_of[piece->state] == to);
    piece->state = to;
}

static struct runner_world *world_of(const struct piece *piece)
{
    return piece->runner->config.world;
}

/* It is over, well or not. */
static void end(struct piece *piece)
{
    struct run *run = piece->run;
    world_of(piece)->ops->give(world_of(piece), &piece->memory);
    move(piece, PIECE_FREE);
    piece->run = NULL;
    assert(run->pieces > 0);
    run->pieces--;
}

static void fail(struct piece *piece)
{
    if (piece->failure.code == ERROR_STORE_FAILED || piece->failure.code == ERROR_FULL)
        queue__run_trouble(piece->run, &piece->failure);
    else
        queue__run_fail(piece->run, &piece->failure);
    end(piece);
}

/* ---- Work: on another thread ---- */

static void read_piece(struct runner_work *work)
{
    struct piece *piece = PIECE_OF(work, work);
    piece->failure.code = transfer_read(&piece->run->job.task, &piece->layout, piece->first,
                                        &piece->run->body, piece->memory.at, &piece->failure);
}

static void write_piece(struct runner_work *work)
{
    struct piece *piece = PIECE_OF(work, work);
    piece->failure.code = transfer_write(&piece->run->job.task, &piece->layout, piece->first,
                                         &piece->run->result, piece->memory.at, &piece->failure);
}

static void work_on(struct piece *piece, enum piece_state state,
                    void (*run)(struct runner_work *work))
{
    move(piece, state);
    piece->failure = (struct failure){0};
    piece->work.run = run;
    world_of(piece)->ops->work(world_of(piece), &piece->work);
}

/* ---- The engines ---- */

static void on_done(struct queue_item *item)
{
    struct piece *piece = item->owner;
    mailbox_post(world_of(piece)->mailbox, &piece->computed);
}

static uint32_t client_of(const struct job *job)
{
    uint32_t hash = 2166136261u; /* FNV-1a: clients take turns by it */
    for (const char *at = job->owner; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash;
}

/* All but where its tensors lie in the arena: those that are there lie at 0. */
static void fill_item(struct queue_item *item, const struct job *job,
                      const struct transfer_layout *layout, uint64_t base)
{
    const struct engine_tensor absent = {.region = ENGINE_REGION_NONE};
    const struct job_task *task = &job->task;
    memset(item, 0, sizeof *item);
    item->method = task->method;
    item->precision = task->precision;
    item->priority = QUEUE_PRIORITY_BACKGROUND;
    item->client = client_of(job);
    item->batch = layout->matrices;
    item->n = task->n;
    item->m = task->m;
    memcpy(item->options, task->options, sizeof item->options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        item->inputs[i] = absent;
        if (layout->inputs[i] >= 0)
            item->inputs[i] =
                (struct engine_tensor){base + (uint64_t)layout->inputs[i], ENGINE_REGION_ARENA, 0};
    }
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        item->outputs[i] = absent;
        if (layout->outputs[i] >= 0)
            item->outputs[i] =
                (struct engine_tensor){base + (uint64_t)layout->outputs[i], ENGINE_REGION_ARENA, 0};
    }
}

static void compute(struct piece *piece)
{
    move(piece, PIECE_COMPUTING);
    fill_item(&piece->item, &piece->run->job, &piece->layout, piece->memory.offset_bytes);
    piece->item.on_done = on_done;
    piece->item.owner = piece;
    world_of(piece)->ops->submit(world_of(piece), &piece->item);
}

/* What the engines have said, for the job's outcome. */
static void note_times(struct piece *piece)
{
    const struct queue_item *item = &piece->item;
    struct job_outcome *outcome = &piece->run->outcome;
    if (piece->first == 0 && item->started_ns > item->queued_ns)
        outcome->queue_ns += item->started_ns - item->queued_ns;
    outcome->compute_ns += item->compute_ns;
    memcpy(outcome->kernel, item->kernel, sizeof outcome->kernel);
}

static void not_computed(struct piece *piece)
{
    struct run *run = piece->run;
    struct failure *failure = &piece->failure;
    switch (piece->item.status) {
    case ERROR_CANCELLED:
        assert(run->end != RUN_END_NONE);
        end(piece);
        return;
    case ERROR_NO_ENGINE:
    case ERROR_FULL:
        queue__runner_pause(piece->runner);
        queue__run_leave(run, RUN_END_AGAIN);
        end(piece);
        return;
    case ERROR_POISON:
        queue__run_leave(run, RUN_END_KILLED);
        end(piece);
        return;
    case ERROR_TOO_LARGE:
        failure_set(failure, ERROR_TOO_LARGE,
                    "A matrix of order %lld does not fit the memory of the device.",
                    (long long)run->job.task.n);
        break;
    default:
        failure_set(failure, ERROR_INTERNAL, "The engine failed.");
        break;
    }
    fail(piece);
}

/* ---- Messages ---- */

static void on_ready(struct message *message)
{
    struct piece *piece = PIECE_OF(memory.ready, message);
    assert(piece->state == PIECE_TAKING);
    if (piece->run->end != RUN_END_NONE)
        end(piece);
    else
        work_on(piece, PIECE_READING, read_piece);
}

static void on_worked(struct message *message)
{
    struct piece *piece = PIECE_OF(work.done, message);
    struct run *run = piece->run;
    assert(piece->state == PIECE_READING || piece->state == PIECE_WRITING);
    if (run->end != RUN_END_NONE) {
        end(piece);
    } else if (piece->failure.code != ERROR_NONE) {
        fail(piece);
    } else if (piece->state == PIECE_READING) {
        compute(piece);
    } else {
        run->done += piece->layout.matrices;
        end(piece);
    }
}

static void on_computed(struct message *message)
{
    struct piece *piece = PIECE_OF(computed, message);
    assert(piece->state == PIECE_COMPUTING);
    if (piece->item.status != ERROR_NONE) {
        not_computed(piece);
    } else if (piece->run->end != RUN_END_NONE) {
        end(piece);
    } else {
        note_times(piece);
        work_on(piece, PIECE_WRITING, write_piece);
    }
}

/* ---- Cutting ---- */

enum error runner_check(const struct runner_config *config, const struct job_task *task,
                        struct failure *failure)
{
    struct transfer_layout one;
    if (task->n > task->method->n_max)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The order is %lld; this method takes up to %lld.", (long long)task->n,
                           (long long)task->method->n_max);
    if (!transfer_lay_out(task, 1, &one))
        return failure_set(failure, ERROR_TOO_LARGE, "The size of a matrix overflows.");
    if (one.bytes <= config->arena_bytes)
        return ERROR_NONE;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "A matrix and its answer need %lld bytes, the whole arena has %lld; ask for "
                       "less of the answer, or start invertd with a larger --arena-size.",
                       (long long)one.bytes, (long long)config->arena_bytes);
}

/* How many matrices: as many as are left, but for the bounds of bytes and of time. */
static int64_t count_of(const struct runner *runner, const struct run *run)
{
    struct transfer_layout one;
    struct queue_item item;
    struct runner_world *world = runner->config.world;
    int64_t count = run->job.task.batch - run->next;
    bool fits = transfer_lay_out(&run->job.task, 1, &one);
    assert(fits && count >= 1); /* runner_check has seen it */
    fill_item(&item, &run->job, &one, 0);
    double each_ns = world->ops->predict(world, &item);
    int64_t by_bytes = runner->config.piece_bytes_max / max_i64(one.bytes, 1);
    double by_cost = each_ns > 0 ? (double)runner->config.piece_cost_ns / each_ns : (double)count;
    count = min_i64(count, by_bytes);
    count = by_cost < (double)count ? (int64_t)by_cost : count;
    return max_i64(count, 1);
}

bool queue__piece_cut(struct piece *piece, struct run *run)
{
    assert(piece->state == PIECE_FREE && queue__run_has_more(run));
    struct runner_world *world = piece->runner->config.world;
    bool fits = transfer_lay_out(&run->job.task, count_of(piece->runner, run), &piece->layout);
    assert(fits);
    piece->run = run;
    piece->first = run->next;
    piece->memory.bytes = max_i64(piece->layout.bytes, 1);
    move(piece, PIECE_TAKING);
    if (world->ops->take(world, &piece->memory) != ERROR_NONE) {
        piece->run = NULL;
        move(piece, PIECE_FREE);
        return false;
    }
    run->next += piece->layout.matrices;
    run->pieces++;
    return true;
}

void queue__piece_stop(struct piece *piece)
{
    struct runner_world *world = world_of(piece);
    if (piece->state == PIECE_COMPUTING)
        world->ops->cancel(world, &piece->item);
    else if (piece->state == PIECE_TAKING && world->ops->stop_taking(world, &piece->memory))
        end(piece);
}

double queue__piece_done(const struct piece *piece)
{
    struct runner_world *world = world_of(piece);
    if (piece->state == PIECE_WRITING)
        return (double)piece->layout.matrices;
    return piece->state == PIECE_COMPUTING ? world->ops->done(world, &piece->item) : 0;
}

void queue__piece_init(struct runner *runner, struct piece *piece)
{
    piece->runner = runner;
    piece->memory.ready.run = on_ready;
    piece->memory.world = piece->work.world = runner->config.world;
    piece->work.done.run = on_worked;
    piece->computed.run = on_computed;
}
