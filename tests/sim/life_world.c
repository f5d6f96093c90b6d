/* tests/sim/life_world.c: what runners stand on in a simulation: nothing happens until the life
 * takes it from the list of what is under way, in any order. An engine negates. */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/life_private.h"

static struct life *life_of(struct runner_world *world)
{
    return ((struct life_runner *)world)->life;
}

void life_say(struct life *life, const char *format, ...)
{
    if (life->trace == NULL)
        return;
    va_list values;
    va_start(values, format);
    fprintf(life->trace, "%10.3f  ", (double)life->now_ns / 1e9);
    vfprintf(life->trace, format, values);
    fputc('\n', life->trace);
    va_end(values);
}

void life_fail(struct life *life, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (life->wrong[0] == '\0')
        vsnprintf(life->wrong, sizeof life->wrong, format, values);
    va_end(values);
    life_say(life, "WRONG: %s", life->wrong);
}

int64_t life_wall_ms(const struct life *life)
{
    return INT64_C(1700000000000) + (int64_t)(life->now_ns / 1000000) + life->wall_offset_ms;
}

static void add(struct runner_world *world, enum life_pending_kind kind, void *what)
{
    struct life *life = life_of(world);
    assert(life->pending_count < LIFE_PENDING);
    life->pending[life->pending_count++] = (struct life_pending){kind, world, what, false};
}

static void take_out(struct life *life, int index)
{
    life->pending[index] = life->pending[--life->pending_count];
}

static uint64_t now_ns(struct runner_world *world)
{
    return life_of(world)->now_ns;
}

static int64_t wall_ms(struct runner_world *world)
{
    return life_wall_ms(life_of(world));
}

static void post(struct runner_world *world, struct desk_call *call)
{
    if (life_of(world)->desk != NULL) /* else the process is ending */
        desk_post(life_of(world)->desk, call);
}

static void work(struct runner_world *world, struct runner_work *work)
{
    add(world, LIFE_WORK, work);
}

static enum error take(struct runner_world *world, struct runner_memory *memory)
{
    if (!life_of(world)->heals && sim_below(&life_of(world)->random, 20) == 0)
        return ERROR_FULL;
    memory->at = malloc((size_t)memory->bytes);
    assert(memory->at != NULL);
    memory->offset_bytes = (uint64_t)(uintptr_t)memory->at;
    add(world, LIFE_MEMORY, memory);
    return ERROR_NONE;
}

static bool stop_taking(struct runner_world *world, struct runner_memory *memory)
{
    struct life *life = life_of(world);
    for (int i = 0; i < life->pending_count; i++)
        if (life->pending[i].what == memory) {
            take_out(life, i);
            return true;
        }
    return false;
}

static void give(struct runner_world *world, struct runner_memory *memory)
{
    (void)world;
    free(memory->at);
    memory->at = NULL;
}

static void submit(struct runner_world *world, struct queue_item *item)
{
    add(world, LIFE_ITEM, item);
}

static void cancel(struct runner_world *world, struct queue_item *item)
{
    struct life *life = life_of(world);
    for (int i = 0; i < life->pending_count; i++)
        if (life->pending[i].what == item)
            life->pending[i].is_cancelled = true;
}

static double predict(struct runner_world *world, const struct queue_item *item)
{
    (void)world;
    return 1e6 * (double)item->batch;
}

static double done(struct runner_world *world, const struct queue_item *item)
{
    (void)world;
    (void)item;
    return 0;
}

static bool has_engine(struct runner_world *world)
{
    struct life *life = life_of(world);
    return life->heals || sim_below(&life->random, 10) != 0;
}

const struct runner_ops life_ops = {
    .now_ns = now_ns,
    .wall_ms = wall_ms,
    .post = post,
    .work = work,
    .take = take,
    .stop_taking = stop_taking,
    .give = give,
    .submit = submit,
    .cancel = cancel,
    .predict = predict,
    .done = done,
    .has_engine = has_engine,
};

/* ---- What is under way ---- */

static void negate(const struct queue_item *item)
{
    const double *from = (const double *)(uintptr_t)item->inputs[0].offset_bytes;
    double *to = (double *)(uintptr_t)item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes;
    for (int64_t k = 0; k < item->batch * item->n * item->n; k++)
        to[k] = -from[k];
}

static void end_item(struct life *life, const struct life_pending *pending)
{
    struct queue_item *item = pending->what;
    int64_t luck = life->heals ? 100 : sim_below(&life->random, 100);
    item->status = pending->is_cancelled ? ERROR_CANCELLED
                   : luck < 3            ? ERROR_NO_ENGINE
                   : luck < 5            ? ERROR_POISON
                                         : ERROR_NONE;
    if (item->status == ERROR_NONE)
        negate(item);
    item->on_done(item);
}

void life_do_pending(struct life *life)
{
    if (life->pending_count == 0)
        return;
    int index = (int)sim_below(&life->random, life->pending_count);
    struct life_pending pending = life->pending[index];
    struct runner_work *work = pending.what;
    struct runner_memory *memory = pending.what;
    take_out(life, index);
    switch (pending.kind) {
    case LIFE_WORK:
        work->run(work);
        mailbox_post(pending.world->mailbox, &work->done);
        break;
    case LIFE_MEMORY:
        mailbox_post(pending.world->mailbox, &memory->ready);
        break;
    case LIFE_ITEM:
        end_item(life, &pending);
        break;
    }
}

/* ---- Jobs ---- */

void life_make_body(struct life_job *job)
{
    const struct job_task *task = &job->fresh.job.task;
    for (int64_t k = 0; k < task->body_bytes / 8; k++) {
        double number = (double)(k % 1013) + 0.25 + (double)job->key[0];
        memcpy(job->body + 8 * k, &number, sizeof number);
    }
}

static uint8_t *read_result(struct life *life, const struct job *job)
{
    int64_t bytes = job->task.result_bytes;
    uint8_t *result = malloc((size_t)bytes);
    assert(result != NULL);
    enum error error = ERROR_NONE;
    struct spool_file *file = NULL;
    if (bytes > JOB_INLINE_MAX) {
        error = spool_read(life->spool, &job->id, job->attempt, bytes, &file, NULL);
        if (error == ERROR_NONE)
            error = spool_get(file, 0, result, bytes, NULL);
        spool_close(&file);
    } else {
        struct desk_call call = {.kind = DESK_READ_RESULT, .in.read = {job->id, result, bytes}};
        life_ask(life, &call);
        error = call.failure.code;
    }
    if (error == ERROR_NONE)
        return result;
    free(result);
    return NULL;
}

void life_check_result(struct life *life, struct life_job *job, const struct job *now)
{
    uint8_t *result = read_result(life, now);
    if (result == NULL) {
        life_fail(life, "job %s: its result is lost", job->key);
        return;
    }
    for (int64_t k = 0; k < job->fresh.job.task.body_bytes; k += 8) {
        double from, to;
        memcpy(&from, job->body + k, sizeof from);
        memcpy(&to, result + k, sizeof to);
        if (to == -from)
            continue;
        life_fail(life, "job %s: byte %lld of its result is wrong", job->key, (long long)k);
        break;
    }
    free(result);
}

/* ---- The disk ---- */

static const struct disk_ops *whole_disk; /* one life at a time */

static int sync_folder_not(struct disk *disk, const char *path)
{
    bool is_spool = strncmp(path, "/spool", strlen("/spool")) == 0;
    return is_spool ? 0 : whole_disk->sync_folder(disk, path);
}

void life_spoil_disk(struct life *life)
{
    struct disk *disk = sim_disk_of(life->sim);
    if (life->mutant != LIFE_NO_FOLDER_SYNC)
        return;
    whole_disk = disk->ops;
    life->disk_ops = *whole_disk;
    life->disk_ops.sync_folder = sync_folder_not;
    disk->ops = &life->disk_ops;
}
