/* queue/jobs/world.c: see world.h. Threads: the runner's, but for on_room. */
#include "queue/jobs/world.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"

/* The reservations of all pieces are one client's. Addresses' numbers are hashes: one that has this
 * number shares with jobs. */
#define JOBS_CLIENT UINT32_MAX

static struct world *of(struct runner_world *world)
{
    return (struct world *)world;
}

static uint64_t now_ns(struct runner_world *world)
{
    (void)world;
    return clock_now_ns();
}

static int64_t wall_ms(struct runner_world *world)
{
    (void)world;
    return (int64_t)clock_wall_ms();
}

static void post(struct runner_world *world, struct desk_call *call)
{
    desk_post(of(world)->desk, call);
}

/* ---- Work ---- */

static void run_task(struct workers_task *task)
{
    struct runner_work *work =
        (struct runner_work *)((char *)task - offsetof(struct runner_work, task));
    struct mailbox *mailbox = work->world->mailbox;
    work->run(work);
    mailbox_post(mailbox, &work->done);
}

static void work(struct runner_world *world, struct runner_work *work)
{
    work->task.run = run_task;
    enum error error = workers_submit(of(world)->workers, &work->task);
    assert(error == ERROR_NONE); /* the pool takes as many tasks as a runner has */
}

/* ---- Memory ---- */

static void settle(struct runner_memory *memory)
{
    struct world *world = of(memory->world);
    struct queue_reservation *reservation = &memory->reservation;
    if (reservation->held_bytes < reservation->need_bytes && !queue_take(world->queue, reservation))
        return;
    while (arena_alloc(world->arena, memory->bytes, &memory->slot) != ERROR_NONE)
        if (!queue_await_piece(world->queue, reservation))
            return;
    memory->offset_bytes = memory->slot.offset_bytes;
    memory->at = arena_base(world->arena) + memory->offset_bytes;
    mailbox_post(world->runner.mailbox, &memory->ready);
}

static void on_room(struct queue_reservation *reservation)
{
    struct runner_memory *memory =
        (struct runner_memory *)((char *)reservation - offsetof(struct runner_memory, reservation));
    mailbox_post(memory->world->mailbox, &memory->room);
}

static void on_room_message(struct message *message)
{
    settle((struct runner_memory *)((char *)message - offsetof(struct runner_memory, room)));
}

static enum error take(struct runner_world *world, struct runner_memory *memory)
{
    memset(&memory->slot, 0, sizeof memory->slot);
    memset(&memory->reservation, 0, sizeof memory->reservation);
    memory->room.run = on_room_message;
    memory->reservation.client = JOBS_CLIENT;
    memory->reservation.arrived_ns = clock_now_ns();
    memory->reservation.need_bytes = memory->reservation.sure_bytes = memory->bytes;
    memory->reservation.on_room = on_room;
    enum error error = queue_enter(of(world)->queue, &memory->reservation, NULL);
    if (error == ERROR_NONE)
        settle(memory);
    return error;
}

static bool stop_taking(struct runner_world *world, struct runner_memory *memory)
{
    return memory->slot.bytes == 0 && queue_stop_waiting(of(world)->queue, &memory->reservation);
}

static void give(struct runner_world *world, struct runner_memory *memory)
{
    arena_free(of(world)->arena, &memory->slot);
    queue_leave(of(world)->queue, &memory->reservation);
}

/* ---- The engines ---- */

static void submit(struct runner_world *world, struct queue_item *item)
{
    struct queue *queue = of(world)->queue;
    queue_submit(queue, item);
    while (queue_flush(queue))
        continue;
}

static void cancel(struct runner_world *world, struct queue_item *item)
{
    queue_cancel(of(world)->queue, item);
}

static double predict(struct runner_world *world, const struct queue_item *item)
{
    return queue_predict_ns(of(world)->queue, item);
}

static double done(struct runner_world *world, const struct queue_item *item)
{
    return queue_matrices_done(of(world)->queue, item);
}

static bool has_engine(struct runner_world *world)
{
    struct queue *queue = of(world)->queue;
    return !queue_is_out(queue, QUEUE_HOST) || !queue_is_out(queue, QUEUE_CUDA);
}

static const struct runner_ops ops = {
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

void world_init(struct world *world, struct queue *queue, struct arena *arena,
                struct mailbox *mailbox)
{
    *world = (struct world){.queue = queue, .arena = arena};
    world->runner.ops = &ops;
    world->runner.mailbox = mailbox;
}
