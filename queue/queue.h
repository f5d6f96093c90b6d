/* queue/queue.h: admission, batching and the lanes to the engines.
 *
 * A request becomes one `struct queue_item`: `batch` matrices of one shape for one method. The
 * queue gathers items of one key (method, precision, n, m, options, outputs wanted) into engine
 * batches, cutting long items into slices, and calls `on_done` once for every item submitted.
 *
 * Batching is natural: queue_flush sends what has gathered as long as a lane has room; while
 * the lanes are busy, items gather. Between keys: deficit round-robin by predicted cost over
 * waiting lists of (priority, client, key), oldest first within one. What waits in the background
 * (jobs) goes to a lane of its own, which gives way to the others in the engine.
 *
 * Device classes: engines of one kind of device form a class, and share what waits for it. An item
 * goes to CUDA when the engines there take its method, precision and order, else to the host, which
 * takes everything. While CUDA is out of service (none of its engines is up, and either the
 * supervisor says that none will be soon, or none has been for 5 s) the host does its work; a
 * shorter absence is waited for, so that a matrix keeps its bits. With limits.shared the host helps
 * at all times.
 *
 * Life of an item (one table, queue/item.c): NEW -> QUEUED -> RUNNING -> DONE. An engine's end
 * leaves an item RUNNING if its batch had not started; that batch is sent again. Else the item
 * becomes a SUSPECT: what was sent of it runs alone in a spare engine, once the other is reaped.
 * Cancel moves QUEUED to DONE at once. A RUNNING item is DONE when its engine lets go of its slots;
 * an engine whose batch has only cancelled items sees `unwanted`, and leaves it.
 *
 * Threads: any thread may call anything here. One mutex, and one for admission; on_done is called
 * outside them, on a thread that called queue_flush, queue_reap, queue_cancel, queue_tick,
 * queue_next_wake_ns, queue_give_up, or queue_lane_up, _appoint, _close or _down. Nothing blocks
 * for long.
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/metric.h"
#include "gpu/engine.h"
#include "gpu/method.h"

#define QUEUE_PRIORITY_BACKGROUND 4 /* of items that no client waits for */

struct queue;
struct queue_lane;
struct queue_waiting;

enum queue_class_id {
    QUEUE_HOST,
    QUEUE_CUDA,
    QUEUE_CLASSES
};

enum queue_item_state {
    QUEUE_NEW,
    QUEUE_QUEUED,
    QUEUE_RUNNING,
    QUEUE_SUSPECT,
    QUEUE_DONE,
    QUEUE_STATES
};

/* Embedded in the submitter's object and zeroed by it. */
struct queue_item {
    /* Filled by the submitter before queue_submit; read-only until on_done. */
    const struct method *method;
    enum precision precision;
    int priority;                  /* 1 (highest) .. 3 (lowest), or BACKGROUND; 0 means 2 */
    uint32_t client;               /* that asks, for fairness: its reservation's */
    struct queue_account *account; /* whom device time is charged to; NULL: no one */
    bool uncounted;                /* the service's own: no metric and no statistic counts it */
    int only_engine; /* queue_engine.number + 1 of the one that is to run it; 0: any. It waits until
                      * that one is up, unless it is sent again after an engine's death */
    int64_t batch, n, m; /* batch >= 1, n >= 1 */
    int64_t options[METHOD_OPTIONS_MAX];
    /* Offset of the first matrix in the arena; region NONE: absent. */
    struct engine_tensor inputs[METHOD_INPUTS_MAX];
    struct engine_tensor outputs[METHOD_OUTPUTS_MAX];
    /* Called exactly once, on any thread; the item and its slots are the submitter's again. Items
     * of one owner (all with the same on_done) that are done at the same time come in one call:
     * the others follow by next. NULL: a call for each. */
    void (*on_done)(struct queue_item *item);
    void *owner;

    /* Results, valid in on_done. */
    /* NONE; CANCELLED; NO_ENGINE: none came back in time; POISON: it kills engines; TOO_LARGE: one
     * matrix of it does not fit the device; FULL: out of the front's memory; INTERNAL. */
    enum error status;
    uint64_t queued_ns, started_ns, finished_ns; /* clock_now_ns; started 0: never ran */
    uint64_t compute_ns; /* while one of its batches ran at least: those that overlap count once */
    char kernel[ENGINE_KERNEL_NAME_MAX];
    int engine; /* queue_engine.number of the engine that ran its last batch */

    /* Private to the queue. */
    enum queue_item_state state;
    struct queue_item *next, *previous; /* next: for on_done, see there */
    struct queue_waiting *list;
    int64_t taken, finished; /* matrices handed to lanes, and answered */
    int running;             /* slices now in lanes */
    uint64_t computed_ns;    /* until when compute_ns has counted */
    int64_t matrix_bytes;    /* inputs and outputs of one matrix */
    int suspected;           /* slices that run alone, or wait to */
    int strikes;             /* engines it killed while alone */
    bool dropped;            /* cancelled or failed: what has not started never will */
    double cost_ns;          /* predicted, of the whole item */
};

/* A reservation that needs no more is small: it holds that from the start, and does not wait for
 * large ones. A connection costs the HTTP library as much again. */
#define QUEUE_RESERVATION_SMALL (INT64_C(40) << 10)

enum queue_waits {
    QUEUE_WAITS_NOT,
    QUEUE_WAITS_WHOLE,  /* for what it lacks of the arena */
    QUEUE_WAITS_PIECE,  /* for any change of the arena */
    QUEUE_WAITS_STAGING /* for staging memory */
};

struct queue_account; /* account.h */
struct queue_client;

struct queue_limits {
    int64_t requests_max;        /* that arrive, wait or run; past it 503 */
    int64_t client_requests_max; /* the same for one client; past it 429; 0: no limit */
    int64_t bytes_max;           /* of the arena, that all requests may hold; 0: no limit */
    int64_t staging_bytes_max;   /* outside the arena, for the first parts of bodies */
    int64_t client_bytes_max;    /* a client's requests that would hold more wait for others' */
    int64_t batch_wait_ns;       /* how long a young batch may wait for more; 0: not at all */
    int64_t batch_matrices_max[QUEUE_CLASSES];
    int64_t batch_bytes_max;   /* of inputs and outputs; one matrix may always have more */
    int64_t batch_cost_ns;     /* predicted cost at which a batch of the short lane closes */
    int64_t long_cost_ns;      /* items predicted to take longer run in slices on the long lane */
    int64_t batch_deadline_ns; /* smallest deadline of a batch; else 20 times its predicted cost */
    int in_flight;             /* batches of a lane under way at once, 1..ENGINE_BATCH_SLOTS */
    bool shared;               /* the host helps with CUDA's work: the same bits are waived */
};

ERROR_MUST_CHECK enum error queue_create(const struct queue_limits *limits,
                                         struct metric_registry *metrics, struct queue **queue,
                                         struct failure *failure);
/* From now on, from any thread: requests_max, client_requests_max and client_bytes_max. */
void queue_set_limits(struct queue *queue, const struct queue_limits *limits);
void queue_destroy(struct queue **queue); /* no item may be left */

/* ---- Clients of the queue (handlers) ---- */

/* What one request holds of memory. The queue counts; taking is the owner's affair. */
struct queue_reservation {
    /* The owner's, set before queue_enter. */
    uint32_t client; /* its address's number; queue_enter makes it its account's, if it has one */
    struct queue_account *account; /* NULL: none */
    uint64_t arrived_ns;           /* for the account; clock_now_ns */
    int64_t need_bytes;            /* of the arena: all it is likely to hold; bytes_max at most */
    int64_t sure_bytes;            /* what it holds in any case: need_bytes at most */
    /* What it waited for is counted: once a wait. Any thread; outside the queue's locks. */
    void (*on_room)(struct queue_reservation *reservation);

    /* What is counted for it: of the arena, of staging memory. The owner may read both while it
     * does not wait. */
    int64_t held_bytes, staged_bytes;
    bool computed; /* set by the owner: see queue_computed */

    /* The queue's own. */
    struct queue_client *entry;
    int64_t claimed_bytes; /* of its account's */
    enum queue_waits waits;
    int64_t staging_wanted_bytes;
    uint64_t returns;
    struct queue_reservation *before, *behind, *next_served;
};

/* Counts a request in, before any memory is taken for it: FULL, DRAINING, NO_ENGINE, CLIENT_QUOTA,
 * TOO_LARGE by a quota, with words, or NONE. A small one is given all it needs, if that is there.
 * The reservation is borrowed until queue_leave, with which every success is paired, and which
 * gives back what it holds. */
ERROR_MUST_CHECK enum error queue_enter(struct queue *queue, struct queue_reservation *reservation,
                                        struct failure *failure);
void queue_leave(struct queue *queue, struct queue_reservation *reservation); /* it does not wait */
/* So many requests have been computed, and their reservations say so. Until they leave they hold
 * memory, but no place: one whose answer waits for its client, or for a busy event loop, keeps none
 * out. Cost: an atomic addition. */
void queue_computed(struct queue *queue, int64_t requests);
/* Takes what the reservation lacks of the arena, all at once. false: it waits, and on_room comes.
 */
ERROR_MUST_CHECK bool queue_take(struct queue *queue, struct queue_reservation *reservation);
/* Waits until more of the arena is given back: for who was given bytes and finds no piece so long.
 * true: some was since. */
ERROR_MUST_CHECK bool queue_await_piece(struct queue *queue, struct queue_reservation *reservation);
/* Takes staging memory: for the first part of a body that has no part of the arena yet. */
ERROR_MUST_CHECK bool queue_take_staging(struct queue *queue, struct queue_reservation *reservation,
                                         int64_t bytes);
void queue_leave_staging(struct queue *queue,
                         struct queue_reservation *reservation); /* gives all of it back */
/* true: on_room will not come. false: it has come, or comes. */
ERROR_MUST_CHECK bool queue_stop_waiting(struct queue *queue,
                                         struct queue_reservation *reservation);
/* Counts more bytes of the arena at once, for what was not foreseen; FULL, CLIENT_QUOTA or
 * TOO_LARGE by a quota, with words. */
ERROR_MUST_CHECK enum error queue_reserve(struct queue *queue,
                                          struct queue_reservation *reservation, int64_t bytes,
                                          struct failure *failure);
/* Gives back some of them before queue_leave: for jobs, whose inputs go before their results do.
 * Requests give all back at their end. */
void queue_unreserve(struct queue *queue, struct queue_reservation *reservation, int64_t bytes);
/* Since when some request has waited for room, without a pause; 0: none waits. Lent for the queue's
 * life, for any thread. */
const _Atomic uint64_t *queue_short_since_ns(const struct queue *queue);
int64_t queue_waiting_for_room(struct queue *queue); /* requests */

/* Borrows the item until on_done. Never fails; starts nothing by itself. */
void queue_submit(struct queue *queue, struct queue_item *item);
/* Sends what has gathered, and takes in what is finished on the way. Event loops call it once a
 * round, others after queue_submit. While another thread does the same it returns at once: that
 * thread does it for both. true: there is more, which waits until the caller, after its own
 * affairs and without sleeping, calls again. */
bool queue_flush(struct queue *queue);
/* How long all of an item is going to take an engine, as far as is known; it need not be submitted,
 * and its tensors may lie anywhere. In nanoseconds. */
double queue_predict_ns(struct queue *queue, const struct queue_item *item);
/* How many matrices of a submitted item are done, with shares of those that run, where their engine
 * says how far it is. */
double queue_matrices_done(struct queue *queue, const struct queue_item *item);
/* The answer is no longer wanted. on_done comes with CANCELLED, perhaps before this returns,
 * perhaps later, when an engine lets go of the item. Does nothing to an item that is done. The
 * caller must know the item is alive, that is: that its own on_done has not run. */
void queue_cancel(struct queue *queue, struct queue_item *item);

/* Seconds a refused client should wait, at least 1: from the predicted work that is queued. */
int queue_retry_after_s(struct queue *queue);

/* Called for every batch that ended well, on the reaping thread, outside the lock. Set before the
 * first submit. */
struct queue_observer {
    void (*on_batch)(void *context, const struct method *method, int64_t matrices,
                     uint64_t compute_ns);
    void *context;
};
void queue_observe(struct queue *queue, struct queue_observer observer);

/* ---- Life (server) ---- */

void queue_drain(struct queue *queue);      /* from now on queue_enter says DRAINING */
int64_t queue_pending(struct queue *queue); /* requests entered and not left */
/* When a batch last ended well in an engine of the device class, or in that of the lane; 0: never.
 */
uint64_t queue_last_batch_ns(struct queue *queue, enum queue_class_id device_class);
uint64_t queue_lane_last_batch_ns(struct queue_lane *lane);

/* Brings up to date what metrics say of the batches that run now: before they are shown. */
void queue_show_running(struct queue *queue);

/* ---- Engines (the supervisor) ---- */

/* Who computes behind a pair of lanes. */
struct queue_engine {
    enum queue_class_id device_class;
    bool spare;         /* takes suspects alone */
    int number;         /* the caller's own; items report it */
    const char *device; /* "cuda:0": a metric label; outlives the lane */
};

/* A new engine's pair of lanes. shared is the front's mapping and outlives the lane. The lane is
 * idle until queue_lane_up, which learns from shared what the engine takes. */
ERROR_MUST_CHECK enum error queue_lane_create(struct queue *queue, struct engine_shared *shared,
                                              const struct queue_engine *engine,
                                              struct queue_lane **lane);
void queue_lane_destroy(struct queue_lane **lane); /* must be down */
void queue_lane_up(struct queue_lane *lane);
/* The engine takes another role, of the same device class. false: it has batches under way, and
 * goes on as it is. */
bool queue_lane_appoint(struct queue_lane *lane, const struct queue_engine *engine);
/* The engine is ending: nothing more is sent to it, and what it has not begun returns to the queue.
 * What it has begun waits for its end; blamed: its items are suspects from now on, and nothing else
 * of them starts. true: it had nothing. */
bool queue_lane_close(struct queue_lane *lane, bool blamed);
/* The engine is dead and reaped. What it had begun returns to the queue, as suspects. With blamed
 * false (the front itself stopped it) none does. */
void queue_lane_down(struct queue_lane *lane, bool blamed);
/* When a batch is past its deadline, how long it has run or waited; 0 when all is well. To be asked
 * often: a deadline counts from when this saw the batch begin, wait or go on. */
uint64_t queue_lane_overdue_ns(struct queue_lane *lane, uint64_t now_ns);
/* It has ended a batch well since it has its role. */
bool queue_lane_worked(struct queue_lane *lane);
/* Or there are going to be some. The supervisor then starts spare engines of that device class. */
bool queue_has_suspects(struct queue *queue, enum queue_class_id device_class);
/* Whether no engine of the device class will be up soon, so that no item should wait for one. */
void queue_give_up(struct queue *queue, enum queue_class_id device_class, bool given_up);
bool queue_is_out(struct queue *queue, enum queue_class_id device_class); /* out of service */

/* Takes in finished batches of all lanes, calls on_done, refills the lanes. true: as queue_flush.
 */
bool queue_reap(struct queue *queue);
/* Before sleeping: asks engines to write their event descriptors; true when there is something
 * to reap after all. After sleeping: no more writes needed. */
bool queue_wait_begin(struct queue *queue);
void queue_wait_end(struct queue *queue);
/* Called at least every 50 ms: batch waits that have ended; an outage of more than 5 s, after which
 * what waits is ended with NO_ENGINE. */
void queue_tick(struct queue *queue, uint64_t now_ns);
/* When a batch that waits for more items will have waited long enough (clock_now_ns), so that
 * queue_flush is useful then; 0: no batch waits for that. What may go already is sent. */
uint64_t queue_next_wake_ns(struct queue *queue);

#endif
