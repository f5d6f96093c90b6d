/* server/loop.c: see loop.h. */
#include "server/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mailbox.h"

#define TICK_BUSY_MS 10  /* how exactly deadlines are kept while requests are under way */
#define TICK_IDLE_MS 100 /* and otherwise */
#define ROUNDS_MAX 16    /* without looking at sockets, timers and signals */
/* A loop with so few requests at the engines that their answers are likely to come one by one looks
 * out for them instead of sleeping, for so long: being woken takes longer than a small inversion.
 * Where processors are few, they are needed for other things. */
#define LOOKOUT_HELD_MAX 2
#define LOOKOUT_NS (50 * CLOCK_US)
#define LOOKOUT_CORES_MIN 4

/* A door with the handles that report when it has work. */
struct doorway {
    struct loop *loop;
    struct http *http;
    uv_poll_t ready, watch, incoming;
    bool unread;   /* http_drive stopped early */
    bool knocking; /* connections wait to be taken in */
};

struct order {
    struct message message; /* first */
    struct loop *loop;
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t again; /* active when the loop must not sleep */
    uv_async_t wake;
    uv_timer_t tick;
    bool tick_soon; /* it comes within TICK_BUSY_MS */
    uv_poll_t engines, batches;
    int engines_fd;         /* -1: none */
    int batches_fd;         /* a timer, finer than libuv's; -1: none */
    uint64_t batches_at_ns; /* what it is set to; 0: nothing */
    struct mailbox box;
    struct queue *queue;
    struct doorway doorways[LOOP_DOORS_MAX];
    int doorway_count;
    struct order drain, quiesce, close, stop;
    uint64_t quiesce_within_ns;
    sem_t closed; /* the doors are */
    pthread_t thread;
    bool first, started;
    bool waiting;      /* queue_wait_begin is in force */
    bool may_look_out; /* see LOOKOUT_NS */
    bool active;       /* something came since it last asked whether to look out */
    uint64_t look_until_ns;
    _Atomic bool posted;   /* there may be messages */
    _Atomic bool sleeping; /* a post must wake it */
};

/* ---- A round ---- */

/* Runs in the thread that posts the first message. A loop that is awake looks again before it
 * sleeps. It sets `sleeping` before it reads `posted`, and here `posted` is set before `sleeping`
 * is read: one of the two notices. */
static void on_post(void *context)
{
    struct loop *loop = context;
    atomic_store(&loop->posted, true);
    if (atomic_load(&loop->sleeping))
        uv_async_send(&loop->wake);
}

/* The mail itself is found at the next round. */
static void on_wake(uv_async_t *handle)
{
    (void)handle;
}

static void drive(struct doorway *doorway)
{
    doorway->loop->active = true;
    doorway->unread = http_drive(doorway->http);
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct doorway *doorway = handle->data;
    (void)status;
    (void)events;
    drive(doorway);
}

static void on_watch(uv_poll_t *handle, int status, int events)
{
    struct doorway *doorway = handle->data;
    (void)status;
    (void)events;
    http_watch(doorway->http);
}

static void on_incoming(uv_poll_t *handle, int status, int events)
{
    struct doorway *doorway = handle->data;
    (void)status;
    (void)events;
    doorway->knocking = true;
}

/* Connections come in once those are closed whose clients have left: they count no more. */
static void take_in(struct doorway *doorway)
{
    if (doorway->knocking)
        http_accept(doorway->http);
    doorway->knocking = false;
}

static void on_engines(uv_poll_t *handle, int status, int events)
{
    struct loop *loop = handle->data;
    uint64_t count;
    (void)status;
    (void)events;
    /* That it was written is all there is to know; what is finished the queue sees. */
    (void)!read(loop->engines_fd, &count, sizeof count);
}

/* What the timer says is said by its waking the loop: each round sends what is due. */
static void on_batches(uv_poll_t *handle, int status, int events)
{
    struct loop *loop = handle->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(loop->batches_fd, &count, sizeof count);
    loop->batches_at_ns = 0;
}

static int64_t sum(const struct loop *loop, int64_t (*of)(const struct http *http))
{
    int64_t total = 0;
    for (int i = 0; i < loop->doorway_count; i++)
        total += of(loop->doorways[i].http);
    return total;
}

static bool is_busy(const struct loop *loop)
{
    return sum(loop, http_busy) > 0;
}

static void on_tick(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    for (int i = 0; i < loop->doorway_count; i++)
        http_tick(loop->doorways[i].http);
    loop->tick_soon = is_busy(loop);
    uv_timer_start(handle, on_tick, loop->tick_soon ? TICK_BUSY_MS : TICK_IDLE_MS, 0);
}

/* Does what is to be done before sleeping; whether that gave rise to more. */
static bool work(struct loop *loop)
{
    bool more = atomic_load(&loop->posted);
    if (more) {
        loop->active = true;
        atomic_store(&loop->posted, false);
        mailbox_run(&loop->box);
    }
    for (int i = 0; i < loop->doorway_count; i++) {
        if (!http_stirred(loop->doorways[i].http))
            continue;
        more = true;
        drive(&loop->doorways[i]);
    }
    more |= queue_flush(loop->queue);
    if (loop->first || loop->look_until_ns != 0)
        more |= queue_reap(loop->queue);
    return more || atomic_load(&loop->posted);
}

/* While this handle is active, the loop looks at its sockets without sleeping. */
static void on_again(uv_idle_t *handle)
{
    (void)handle;
}

/* Sets the timer to when the next batch has waited for long enough. */
static void set_batch_timer(struct loop *loop)
{
    uint64_t at_ns = queue_next_wake_ns(loop->queue);
    if (at_ns == loop->batches_at_ns)
        return;
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_ns / CLOCK_S), .tv_nsec = (long)(at_ns % CLOCK_S)}};
    if (timerfd_settime(loop->batches_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        loop->batches_at_ns = at_ns;
}

/* Whether the loop should rather look out for answers than sleep. */
static bool looks_out(struct loop *loop)
{
    bool active = loop->active;
    loop->active = false;
    int64_t held = loop->may_look_out ? sum(loop, http_held) : 0;
    if (held == 0 || held > LOOKOUT_HELD_MAX) {
        loop->look_until_ns = 0;
        return false;
    }
    uint64_t now_ns = clock_now_ns();
    if (active)
        loop->look_until_ns = now_ns + LOOKOUT_NS;
    return now_ns < loop->look_until_ns;
}

/* Rounds until nothing is left to do; whether something is nevertheless. */
static bool work_off(struct loop *loop)
{
    bool more = true;
    for (int i = 0; i < ROUNDS_MAX && more; i++)
        more = work(loop);
    if (more || looks_out(loop))
        return true;
    if (loop->first) {
        more = queue_wait_begin(loop->queue);
        loop->waiting = true;
    }
    atomic_store(&loop->sleeping, true);
    return more || atomic_load(&loop->posted);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;
    for (int i = 0; i < loop->doorway_count; i++)
        if (loop->doorways[i].unread)
            drive(&loop->doorways[i]);
    for (int i = 0; i < loop->doorway_count; i++)
        take_in(&loop->doorways[i]);
    bool awake = work_off(loop);
    for (int i = 0; i < loop->doorway_count; i++)
        awake |= loop->doorways[i].unread;
    if (!loop->tick_soon && is_busy(loop)) {
        loop->tick_soon = true;
        uv_timer_start(&loop->tick, on_tick, TICK_BUSY_MS, 0);
    }
    if (loop->batches_fd >= 0)
        set_batch_timer(loop);
    if (awake)
        uv_idle_start(&loop->again, on_again);
    else
        uv_idle_stop(&loop->again);
}

static void on_check(uv_check_t *handle)
{
    struct loop *loop = handle->data;
    atomic_store(&loop->sleeping, false);
    if (loop->waiting)
        queue_wait_end(loop->queue);
    loop->waiting = false;
}

/* ---- Orders from elsewhere ---- */

static void on_drain(struct message *message)
{
    struct loop *loop = ((struct order *)message)->loop;
    for (int i = 0; i < loop->doorway_count; i++)
        http_drain(loop->doorways[i].http);
}

static void on_quiesce(struct message *message)
{
    struct loop *loop = ((struct order *)message)->loop;
    for (int i = 0; i < loop->doorway_count; i++)
        http_quiesce(loop->doorways[i].http, loop->quiesce_within_ns);
}

static void close_doors(struct loop *loop)
{
    for (int i = 0; i < loop->doorway_count; i++) {
        struct doorway *doorway = &loop->doorways[i];
        uv_close((uv_handle_t *)&doorway->ready, NULL);
        uv_close((uv_handle_t *)&doorway->watch, NULL);
        uv_close((uv_handle_t *)&doorway->incoming, NULL);
        http_destroy(&doorway->http);
    }
    loop->doorway_count = 0;
}

static void on_close(struct message *message)
{
    struct loop *loop = ((struct order *)message)->loop;
    close_doors(loop);
    sem_post(&loop->closed);
}

static void on_stop(struct message *message)
{
    uv_stop(&((struct order *)message)->loop->uv);
}

static void give(struct loop *loop, struct order *order, void (*run)(struct message *message))
{
    order->message.run = run;
    order->loop = loop;
    mailbox_post(&loop->box, &order->message);
}

void loop_drain(struct loop *loop)
{
    give(loop, &loop->drain, on_drain);
}

void loop_quiesce(struct loop *loop, uint64_t within_ns)
{
    loop->quiesce_within_ns = within_ns;
    give(loop, &loop->quiesce, on_quiesce);
}

/* ---- Life ---- */

enum error loop_create(struct queue *queue, int number, struct loop **result,
                       struct failure *failure)
{
    struct loop *loop = calloc(1, sizeof *loop);
    bool begun = loop != NULL && uv_loop_init(&loop->uv) == 0;
    if (!begun || uv_async_init(&loop->uv, &loop->wake, on_wake) != 0) {
        if (begun)
            (void)uv_loop_close(&loop->uv);
        free(loop);
        return failure_set(failure, ERROR_INTERNAL, "cannot make an event loop");
    }
    loop->queue = queue;
    loop->first = number == 0;
    loop->may_look_out = sysconf(_SC_NPROCESSORS_ONLN) >= LOOKOUT_CORES_MIN;
    loop->engines_fd = loop->batches_fd = -1;
    sem_init(&loop->closed, 0, 0);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_check_init(&loop->uv, &loop->check);
    uv_idle_init(&loop->uv, &loop->again);
    uv_timer_init(&loop->uv, &loop->tick);
    loop->prepare.data = loop->check.data = loop->tick.data = loop->wake.data = loop;
    mailbox_init(&loop->box, on_post, loop);
    loop->box.number = number;
    *result = loop;
    return ERROR_NONE;
}

static enum error cannot_watch(int code, struct failure *failure)
{
    return failure_set(failure, ERROR_INTERNAL, "an event loop cannot watch a descriptor: %s",
                       uv_strerror(code));
}

enum error loop_add_door(struct loop *loop, struct http_options *options, struct failure *failure)
{
    assert(loop->doorway_count < LOOP_DOORS_MAX);
    struct doorway *doorway = &loop->doorways[loop->doorway_count];
    options->mailbox = &loop->box;
    enum error error = http_create(options, &doorway->http, failure);
    if (error != ERROR_NONE)
        return error;
    doorway->loop = loop;
    uv_poll_t *polls[] = {&doorway->ready, &doorway->watch, &doorway->incoming};
    const int fds[] = {http_fd(doorway->http), http_watch_fd(doorway->http),
                       http_accept_fd(doorway->http)};
    int code = 0, begun = 0;
    while (begun < 3 && code == 0) {
        code = uv_poll_init(&loop->uv, polls[begun], fds[begun]);
        if (code == 0)
            polls[begun++]->data = doorway;
    }
    if (code != 0) {
        while (begun > 0)
            uv_close((uv_handle_t *)polls[--begun], NULL);
        http_destroy(&doorway->http);
        return cannot_watch(code, failure);
    }
    doorway->unread = true;
    loop->doorway_count++;
    return ERROR_NONE;
}

enum error loop_watch_engines(struct loop *loop, int fd, struct failure *failure)
{
    int code = uv_poll_init(&loop->uv, &loop->engines, fd);
    if (code != 0)
        return cannot_watch(code, failure);
    loop->engines_fd = fd;
    loop->engines.data = loop;
    code = uv_poll_start(&loop->engines, UV_READABLE, on_engines);
    return code == 0 ? ERROR_NONE : cannot_watch(code, failure);
}

enum error loop_watch_batches(struct loop *loop, struct failure *failure)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot make a timer: %s", strerror(errno));
    int code = uv_poll_init(&loop->uv, &loop->batches, fd);
    if (code != 0) {
        close(fd);
        return cannot_watch(code, failure);
    }
    loop->batches_fd = fd;
    loop->batches.data = loop;
    code = uv_poll_start(&loop->batches, UV_READABLE, on_batches);
    return code == 0 ? ERROR_NONE : cannot_watch(code, failure);
}

uv_loop_t *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

void loop_run_here(struct loop *loop)
{
    atomic_store(&loop->posted, true); /* what came before */
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    uv_timer_start(&loop->tick, on_tick, TICK_IDLE_MS, 0);
    for (int i = 0; i < loop->doorway_count; i++) {
        uv_poll_start(&loop->doorways[i].ready, UV_READABLE, on_ready);
        uv_poll_start(&loop->doorways[i].watch, UV_READABLE, on_watch);
        uv_poll_start(&loop->doorways[i].incoming, UV_READABLE, on_incoming);
    }
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop_here(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_close_doors(struct loop *loop)
{
    if (!loop->started) {
        close_doors(loop);
        return;
    }
    give(loop, &loop->close, on_close);
    while (sem_wait(&loop->closed) != 0)
        continue; /* a signal */
}

/* On the thread that ran the loop. */
static void close_all(struct loop *loop)
{
    close_doors(loop);
    mailbox_run(&loop->box);
    uv_handle_t *handles[] = {
        (uv_handle_t *)&loop->prepare, (uv_handle_t *)&loop->check, (uv_handle_t *)&loop->again,
        (uv_handle_t *)&loop->tick,    (uv_handle_t *)&loop->wake,
    };
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        uv_close(handles[i], NULL);
    if (loop->engines_fd >= 0)
        uv_close((uv_handle_t *)&loop->engines, NULL);
    if (loop->batches_fd >= 0) {
        uv_close((uv_handle_t *)&loop->batches, NULL);
        close(loop->batches_fd);
    }
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int code = uv_loop_close(&loop->uv);
    assert(code == 0);
}

static void *run_thread(void *argument)
{
    struct loop *loop = argument;
    loop_run_here(loop);
    close_all(loop);
    return NULL;
}

enum error loop_start(struct loop *loop, struct failure *failure)
{
    if (pthread_create(&loop->thread, NULL, run_thread, loop) != 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot start a thread");
    loop->started = true;
    return ERROR_NONE;
}

void loop_destroy(struct loop **result)
{
    struct loop *loop = *result;
    if (loop == NULL)
        return;
    if (loop->started) {
        give(loop, &loop->stop, on_stop);
        pthread_join(loop->thread, NULL);
    } else {
        close_all(loop);
    }
    mailbox_fini(&loop->box);
    sem_destroy(&loop->closed);
    free(loop);
    *result = NULL;
}

int64_t loop_held(const struct loop *loop)
{
    return sum(loop, http_held);
}

int64_t loop_arriving(const struct loop *loop)
{
    return sum(loop, http_arriving);
}

int64_t loop_open(const struct loop *loop)
{
    return sum(loop, http_open);
}

void loop_set_limits(struct loop *loop, const struct http_limits *limits)
{
    for (int i = 0; i < loop->doorway_count; i++)
        http_set_limits(loop->doorways[i].http, limits);
}
