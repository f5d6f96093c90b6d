/* queue/queue_private.h: what the files of this folder share.
 *
 * Everything below is guarded by queue->lock, but for the admission, which has a lock of its own,
 * and for what is atomic. The two locks are never held together. Functions with two underscores
 * expect it held, and never call on_done: a finished item goes to the `done` list, whose items
 * queue__unlock_and_report hands back.
 */
#ifndef QUEUE_QUEUE_PRIVATE_H
#define QUEUE_QUEUE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "queue/account.h"
#include "queue/bucket.h"
#include "queue/queue.h"

#define QUEUE_PRIORITY_NORMAL 2
#define QUEUE_PRIORITIES 5 /* 1..3, and QUEUE_PRIORITY_BACKGROUND */
#define QUEUE_HASH_SIZE 1024
#define QUEUE_SIZE_CLASSES 24 /* of n, by its binary logarithm, for measured rates */
#define QUEUE_POISON_STRIKES 2

/* What the items of a batch have in common. Zeroed before it is filled, so that memcmp serves. */
struct queue_key {
    const struct method *method;
    int64_t device_class;    /* enum queue_class_id */
    int64_t precision, lane; /* lane: enum engine_lane_id */
    int64_t n, m;
    int64_t inputs; /* which are there: a bit each */
    int64_t only_engine;
    int64_t options[METHOD_OPTIONS_MAX];
};

/* All waiting items of a key. */
struct queue_group {
    struct queue_key key;
    struct queue_group *hash_next;
    struct queue_waiting *lists; /* one of a circular list by group_next; the next to serve */
    double cost_ns;              /* predicted, of what waits */
    int64_t matrices, bytes;
};

/* The waiting items of one client, at one priority, for one key, oldest first. */
struct queue_waiting {
    struct queue_group *group;
    int priority;
    uint32_t client;
    struct queue_item *first, *last;
    double deficit_ns; /* what it may still use before others come */
    struct queue_waiting *group_next, *group_previous;
    struct queue_waiting *ring_next,
        *ring_previous; /* of one device class, lane kind and priority */
    struct queue_waiting *hash_next;
};

/* A slice of an item: matrices first .. first + count - 1. */
struct queue_fragment {
    struct queue_item *item;
    int64_t first, count;
};

/* A batch to be sent again as it is. */
struct queue_retry {
    struct queue_retry *next;
    struct queue_key key;
    int count;
    struct queue_fragment fragments[];
};

struct queue_retries {
    struct queue_retry *first, **last;
};

/* How far the front has seen a batch come; it never goes back. */
enum queue_stage {
    QUEUE_STAGE_SENT, /* it may wait for memory */
    QUEUE_STAGE_BEGUN,
    QUEUE_STAGE_WAITING, /* for memory, in the middle */
    QUEUE_STAGE_RESUMED
};

/* The front's own record of a batch that an engine has: nothing here is read from the engine,
 * but for the stage. */
struct queue_slot {
    bool used;
    struct queue_key key;
    uint64_t submitted_ns;
    enum queue_stage stage;
    uint64_t since_ns;           /* when the stage was seen first */
    uint64_t until_ns;           /* while it waits: how long it may, as far as was seen */
    double predicted_ns, max_ns; /* what it is going to take; what it may take */
    int64_t matrices, bytes;     /* of inputs and wanted outputs */
    bool suspected;              /* its engine is ending, and its fragments count as suspected */
    int dropped; /* the first so many fragments are of dropped items; there may be more */
    int count;
    struct queue_fragment fragments[ENGINE_BATCH_ITEMS];
};

struct queue_ring {
    struct engine_lane *shared;
    uint64_t submissions;
    int in_flight;
    uint64_t last_reap_ns;
    struct queue_slot slots[ENGINE_BATCH_SLOTS];
};

struct queue_lane {
    struct queue *queue;
    struct queue_lane *next;
    struct engine_shared *shared;
    enum queue_class_id device_class;
    bool spare, up;
    bool worked; /* see queue_lane_worked */
    uint64_t last_batch_ns;
    int number;
    const char *device;
    struct metric_series *batches, *matrices, *stopped, *busy; /* of its role, once it was up */
    uint64_t busy_until_ns;                                    /* its work is counted until then */
    struct queue_ring rings[ENGINE_LANES];
};

/* What engines of one kind of device share. */
struct queue_class {
    bool known;                                         /* an engine has been up, and n_max holds */
    int64_t n_max[ENGINE_METHODS_MAX][PRECISION_COUNT]; /* the smallest of its engines' */
    bool given_up;                                      /* see queue_give_up */
    _Atomic bool out;                                   /* out of service */
    uint64_t down_since_ns;                             /* no engine is up since; 0: one is */
    uint64_t suspects_since_ns; /* suspects wait and no spare engine is up since; 0: not so */
    bool suspects_left;         /* they have waited long: the host's spare engine takes them too */
    uint64_t last_batch_ns;
    /* Measured over modelled time. */
    double scale[ENGINE_METHODS_MAX][PRECISION_COUNT][QUEUE_SIZE_CLASSES];

    /* what waits */
    struct queue_waiting *rings[ENGINE_LANES][QUEUE_PRIORITIES]; /* the next list to look at */
    struct queue_retries retries[ENGINE_LANES];
    struct queue_retries suspects; /* one fragment each */
};

struct queue_line {
    struct queue_reservation *first, *last;
};

/* One client's requests. */
struct queue_client {
    struct queue_client *next;
    uint32_t client;
    int64_t count; /* requests under way */
    int64_t bytes; /* of the arena, that they hold */
    int64_t staged_bytes;
    struct queue_line line;                               /* those that wait for the arena */
    struct queue_client *next_waiting, *previous_waiting; /* in line, while one waits */
};

/* X(id, label `quota`, help) */
#define QUEUE_QUOTA_TABLE(X)                                                                       \
    X(REQUESTS, "requests", "requests under way")                                                  \
    X(RATE, "rate", "requests a second")                                                           \
    X(BYTES, "bytes", "bytes of the arena, that requests under way need")                          \
    X(DEVICE, "device", "seconds of a device's time a second; above the quota it is overdrawn")

enum queue_quota {
#define QUEUE_QUOTA_ENUM(id, label, help) QUEUE_QUOTA_##id,
    QUEUE_QUOTA_TABLE(QUEUE_QUOTA_ENUM)
#undef QUEUE_QUOTA_ENUM
    QUEUE_QUOTAS
};

/* What is shown of an account. */
struct queue_account_series {
    struct metric_series *answers[6]; /* by the status's first digit; those below 2 are NULL */
    struct metric_series *inversions, *device, *bytes_in, *bytes_out;
    struct metric_series *used[QUEUE_QUOTAS], *limit[QUEUE_QUOTAS]; /* NULL: of "other" */
};

struct queue_account {
    /* Constant once it is linked. */
    char name[CLIENT_NAME_BYTES];
    bool is_shared; /* its clients are known by their addresses, and it has no limits */
    struct queue_account_series series;
    _Atomic(struct queue_account *) next;

    /* Guarded by the admission's lock. */
    struct queue_client client; /* which stays, other than an address's */
    struct client_limits limits;
    int64_t claimed_bytes; /* that requests under way need */

    struct queue_bucket rate, device;
    _Atomic int64_t device_ns; /* limits.device_ns, for charges */
};

struct queue_admission {
    pthread_mutex_t lock; /* guards what follows */
    bool draining;
    int64_t entered;          /* requests entered and not left */
    _Atomic int64_t computed; /* of these, those that need no engine any more; without the lock */
    struct queue_client *clients[QUEUE_HASH_SIZE];

    /* reservation.c */
    int64_t reserved_bytes, small_bytes; /* of the arena: of all; of small ones */
    int64_t staged_bytes;
    struct queue_line staging_line;                  /* those that wait for staging memory */
    struct queue_client *first_client, *last_client; /* in line for the arena */
    int64_t waiting;                                 /* reservations, for either */
    uint64_t returns;                                /* how often memory was given back */
    _Atomic uint64_t short_since_ns;                 /* since when some wait; 0: none */
};

/* account.c. They are made under a lock, and read without. */
struct queue_accounts {
    pthread_mutex_t lock;
    struct queue_account *shared; /* of what found no room; NULL: nothing did */
    _Atomic(struct queue_account *) first;
    struct queue_account *last;
    int count;
};

struct queue_method_series {
    struct metric_series *depth, *duration, *batch_size, *batch_requests, *batch_duration;
    struct metric_series *running, *progress;
};

/* Why a batch closed. X(id, label `reason` of invertd_batches_total, help) */
#define QUEUE_REASON_TABLE(X)                                                                      \
    X(GATHERED, "gathered", "nothing else waited that could join it")                              \
    X(WAITED, "waited", "the same, after it had waited for company")                               \
    X(ITEMS, "items", "it had pieces of as many requests as a batch may have")                     \
    X(MATRICES, "matrices", "it had as many matrices as a batch may have")                         \
    X(BYTES, "bytes", "it had as many bytes as a batch may have")                                  \
    X(COST, "cost", "it was predicted to take as long as a batch may take")                        \
    X(RETRY, "retry", "it was sent again, for its engine ended or had no memory")                  \
    X(SUSPECT, "suspect", "it ran alone, for it may be why an engine ended")

enum queue_reason {
#define QUEUE_REASON_ENUM(id, label, help) QUEUE_REASON_##id,
    QUEUE_REASON_TABLE(QUEUE_REASON_ENUM)
#undef QUEUE_REASON_ENUM
    QUEUE_REASON_COUNT
};

struct queue {
    _Alignas(64) pthread_mutex_t lock;
    struct queue_limits limits;
    struct queue_observer observer;

    _Alignas(64) struct queue_admission admission;
    struct queue_accounts accounts;
    /* Submitted and not yet taken in, newest first, by their next. */
    _Alignas(64) _Atomic(struct queue_item *) inbox;
    _Atomic bool serving; /* see serve() in queue.c */

    /* what waits */
    struct queue_group *groups[QUEUE_HASH_SIZE];
    struct queue_waiting *lists[QUEUE_HASH_SIZE];
    double waiting_cost_ns, running_cost_ns;

    /* engines */
    bool waiting; /* queue_wait_begin is in force */
    struct queue_lane *lanes;
    struct queue_class classes[QUEUE_CLASSES];
    uint64_t sequence;

    /* finished, to be reported */
    struct queue_item *done;
    struct queue_observed {
        const struct method *method;
        int64_t matrices;
        uint64_t compute_ns;
    } observed[8 * ENGINE_LANES * ENGINE_BATCH_SLOTS];
    int observed_count;

    struct metric_registry *metrics;
    struct queue_method_series *series; /* by method index */
    struct metric_series *reasons[QUEUE_REASON_COUNT];
    struct metric_series *retried_died, *retried_memory;
};

/* admission.c */
void queue__admission_init(struct queue_admission *admission);
void queue__admission_fini(struct queue_admission *admission);

/* reservation.c, under the admission's lock; see queue_take and the like. */
void queue__reservation_open(struct queue *queue,
                             struct queue_reservation *reservation); /* its entry is set */
bool queue__reservation_take(struct queue *queue, struct queue_reservation *reservation);
bool queue__reservation_take_staging(struct queue *queue, struct queue_reservation *reservation,
                                     int64_t bytes);
bool queue__reservation_await_piece(struct queue *queue, struct queue_reservation *reservation);
bool queue__reservation_stop_waiting(struct queue *queue, struct queue_reservation *reservation);
enum error queue__reservation_add(struct queue *queue, struct queue_reservation *reservation,
                                  int64_t bytes, struct failure *failure);
void queue__reservation_remove(struct queue *queue, struct queue_reservation *reservation,
                               int64_t bytes);
void queue__reservation_remove_staging(struct queue *queue, struct queue_reservation *reservation);
/* After memory was given back: the reservations that were given some. queue__reservation_report
 * calls their on_room, and needs no lock. */
struct queue_reservation *queue__reservation_serve(struct queue *queue);
void queue__reservation_report(struct queue_reservation *served);

/* quota.c, under the admission's lock: an account's quotas. */
/* May the request come in? Then it is counted but for the client's requests: CLIENT_QUOTA or
 * TOO_LARGE with words, or NONE. */
enum error queue__quota_enter(struct queue_account *account, struct queue_reservation *reservation,
                              int64_t requests_max, struct failure *failure);
void queue__quota_leave(struct queue_account *account, struct queue_reservation *reservation);
/* The same for a request that is going to hold so many bytes in all. */
enum error queue__quota_grow(struct queue_account *account, struct queue_reservation *reservation,
                             int64_t held_bytes, struct failure *failure);
/* It will not hold so many bytes any more. */
void queue__quota_shrink(struct queue_account *account, struct queue_reservation *reservation,
                         int64_t bytes);
void queue__quota_set(struct queue_account *account, const struct client_limits *limits,
                      uint64_t now_ns);
/* Any thread, without a lock: a device has worked for it. */
void queue__quota_charge(struct queue_account *account, uint64_t now_ns, double device_ns);

/* account.c */
void queue__accounts_init(struct queue_accounts *accounts);
void queue__accounts_fini(struct queue_accounts *accounts);
/* Charges the batch's time to those whose matrices it had. */
void queue__accounts_charge(const struct queue_slot *slot, uint64_t duration_ns, uint64_t now_ns);

/* queue.c: moves what was submitted to its waiting lists. */
void queue__take_in(struct queue *queue);

/* item.c: where alone an item's state changes. */
void queue__item_move(struct queue *queue, struct queue_item *item, enum queue_item_state to);
/* Ends an item with status when nothing of it is with an engine or listed for a retry. */
void queue__item_end_if_idle(struct queue *queue, struct queue_item *item);
/* From now on nothing of the item starts, and engines leave batches in which all items have been
 * dropped; status is what on_done will say. */
void queue__item_drop(struct queue *queue, struct queue_item *item, enum error status);
/* A fragment's result is in. alone: it ran as a suspect. */
void queue__item_finish(struct queue *queue, const struct queue_fragment *fragment, bool alone);
/* A fragment will not run again: the item fails with status, unless it was dropped before. */
void queue__item_give_up(struct queue *queue, const struct queue_fragment *fragment,
                         enum error status);
void queue__unlock_and_report(struct queue *queue);

/* waiting.c: the wait queues and the scheduler. */
ERROR_MUST_CHECK enum error queue__waiting_add(struct queue *queue, struct queue_item *item);
/* Inputs and outputs of one matrix: what a batch moves for it. */
int64_t queue__matrix_bytes(const struct queue_item *item);
void queue__waiting_remove(struct queue *queue,
                           struct queue_item *item); /* does nothing to one not in a waiting list */
/* The list of a device class whose turn it is on a lane; NULL when none is ripe. */
struct queue_waiting *queue__waiting_pick(const struct queue_lane *lane,
                                          enum queue_class_id device_class,
                                          enum engine_lane_id kind, uint64_t now_ns);
/* When the next waiting batch will have waited long enough; 0: none waits for that. (Those that
 * have already wait for a lane.) */
uint64_t queue__waiting_ripe_ns(const struct queue *queue, uint64_t now_ns);
/* Ends everything that waits in a waiting list of the device class. */
void queue__waiting_drop_all(struct queue *queue, enum queue_class_id device_class,
                             enum error status);
/* Takes matrices of the picked list's group into fragments; returns the count and the reason why it
 * stopped. */
int queue__waiting_take(struct queue *queue, struct queue_waiting *list,
                        struct queue_fragment *fragments, enum queue_reason *reason);

/* dispatch.c: from queue to lane and back. */
void queue__dispatch(struct queue *queue, uint64_t now_ns);
void queue__reap_lane(struct queue *queue, struct queue_lane *lane, uint64_t now_ns);
/* The engine has the batch no more. */
void queue__slot_release(struct queue *queue, struct queue_ring *ring, struct queue_slot *slot,
                         uint64_t now_ns);
/* Is any of the batch a client's, not the service's own? */
bool queue__has_client(const struct queue_slot *slot);
/* Batches of all its rings. */
int queue__in_flight(const struct queue_lane *lane);
/* Whether the engine has begun with the batch. */
bool queue__has_started(const struct queue_ring *ring, int slot);
/* progress.c: the lane's device worked in this time; what was counted before is not again. */
void queue__note_busy(struct queue_lane *lane, uint64_t started_ns, uint64_t until_ns);

/* suspects.c: batches that run again, and which of them an engine died of. */
/* An ending engine's batches that it has not begun are sent again, and it begins none. blamed: the
 * items of those that it has begun are suspects. */
void queue__take_back_waiting(struct queue_lane *lane, bool blamed, uint64_t now_ns);
/* A dead engine's other batches: they are suspect when the engine is blamed. */
void queue__take_back_rest(struct queue_lane *lane, bool blamed, uint64_t now_ns);
/* Lists each fragment of a batch, to run alone. */
void queue__suspects_add(struct queue *queue, const struct queue_slot *slot);
void queue__retry_add(struct queue *queue, struct queue_retries *list, const struct queue_key *key,
                      const struct queue_fragment *fragments, int count);
/* Ends the items of every batch in the list. */
void queue__retry_drop_all(struct queue *queue, struct queue_retries *list, enum error status);
/* Takes the item's fragments out of all retry lists. */
void queue__retry_forget(struct queue *queue, struct queue_item *item);

/* classes.c: the device classes, and which of them serves what. */
void queue__classes_init(struct queue *queue, uint64_t now_ns);
enum queue_class_id queue__class_route(const struct queue *queue, const struct queue_item *item);
/* Whose spare engine is to run a device class's suspects. */
enum queue_class_id queue__class_of_spare(const struct queue *queue,
                                          enum queue_class_id device_class);
/* Whether a lane, or a spare one, may take what waits for a device class. */
bool queue__class_serves(const struct queue *queue, const struct queue_lane *lane,
                         enum queue_class_id device_class);
/* Called after an engine came up or ended. */
void queue__class_note_up(struct queue *queue, const struct queue_lane *lane);
void queue__class_note_down(struct queue *queue, enum queue_class_id device_class, uint64_t now_ns);
/* Finds which device classes are out of service. */
void queue__classes_check(struct queue *queue, uint64_t now_ns);
/* Ends what waits while an outage lasts: clients may have more luck elsewhere. */
void queue__classes_end_outages(struct queue *queue, uint64_t now_ns);

/* cost.c: predicted time of matrices among many, and of a batch. */
struct queue_work {
    const struct method *method;
    enum precision precision;
    int64_t n, m, matrices;
    int64_t bytes; /* inputs, and outputs that are wanted, of all the matrices */
};
double queue__cost_ns(struct queue *queue, enum queue_class_id device_class,
                      const struct queue_work *work);
double queue__cost_batch_ns(struct queue *queue, enum queue_class_id device_class,
                            const struct queue_work *work);
/* The longest that a batch of difficult matrices may take: what easy ones have taught is left out.
 */
double queue__cost_max_ns(struct queue *queue, enum queue_class_id device_class,
                          const struct queue_work *work);
void queue__cost_learn(struct queue *queue, enum queue_class_id device_class,
                       const struct queue_work *work, uint64_t measured_ns);

#endif
