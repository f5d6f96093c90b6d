/* queue/lane.c: engines coming and going: their lanes, their deadlines, their suspects.
 *
 * Threads: any; each function takes the one lock, and answers finished items after letting it go.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define DEADLINE_FACTOR 20.0
/* What gives way to all others may stand still for long. One that hangs holds up its lane alone. */
#define BACKGROUND_FACTOR 100.0

static void take_role(struct queue_lane *lane, const struct queue_engine *engine)
{
    assert(engine->device_class < QUEUE_CLASSES && engine->number >= 0 && engine->device != NULL);
    lane->device_class = engine->device_class;
    lane->spare = engine->spare;
    lane->number = engine->number;
    lane->device = engine->device;
    lane->worked = false;
}

enum error queue_lane_create(struct queue *queue, struct engine_shared *shared,
                             const struct queue_engine *engine, struct queue_lane **result)
{
    struct queue_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return ERROR_FULL;
    lane->queue = queue;
    lane->shared = shared;
    take_role(lane, engine);
    pthread_mutex_lock(&queue->lock);
    for (int kind = 0; kind < ENGINE_LANES; kind++) {
        lane->rings[kind].shared = &shared->lanes[kind];
        atomic_store(&shared->lanes[kind].front_waits, queue->waiting);
    }
    lane->next = queue->lanes;
    queue->lanes = lane;
    pthread_mutex_unlock(&queue->lock);
    *result = lane;
    return ERROR_NONE;
}

int queue__in_flight(const struct queue_lane *lane)
{
    int count = 0;
    for (int kind = 0; kind < ENGINE_LANES; kind++)
        count += lane->rings[kind].in_flight;
    return count;
}

void queue_lane_destroy(struct queue_lane **lane_pointer)
{
    struct queue_lane *lane = *lane_pointer;
    if (lane == NULL)
        return;
    struct queue *queue = lane->queue;
    pthread_mutex_lock(&queue->lock);
    assert(!lane->up && queue__in_flight(lane) == 0);
    struct queue_lane **link = &queue->lanes;
    while (*link != lane)
        link = &(*link)->next;
    *link = lane->next;
    pthread_mutex_unlock(&queue->lock);
    free(lane);
    *lane_pointer = NULL;
}

/* Series are looked up without the queue's lock, for that takes one of its own. */
struct role_series {
    struct metric_series *batches, *matrices, *stopped, *busy;
};

static struct role_series series_of(const struct queue *queue, const char *device)
{
    return (struct role_series){
        .batches = metric_series(queue->metrics, METRIC_DEVICE_BATCHES, device),
        .matrices = metric_series(queue->metrics, METRIC_DEVICE_MATRICES, device),
        .stopped = metric_series(queue->metrics, METRIC_DEVICE_STOPPED, device),
        .busy = metric_series(queue->metrics, METRIC_DEVICE_BUSY, device),
    };
}

/* The lane begins to serve in its role. */
static void go_up(struct queue_lane *lane, struct role_series series, uint64_t now_ns)
{
    lane->batches = series.batches;
    lane->matrices = series.matrices;
    lane->stopped = series.stopped;
    lane->busy = series.busy;
    lane->up = true;
    lane->last_batch_ns = 0;
    for (int kind = 0; kind < ENGINE_LANES; kind++)
        lane->rings[kind].last_reap_ns = now_ns;
    queue__class_note_up(lane->queue, lane);
    queue__dispatch(lane->queue, now_ns);
}

void queue_lane_up(struct queue_lane *lane)
{
    struct queue *queue = lane->queue;
    struct role_series series = series_of(queue, lane->device);
    pthread_mutex_lock(&queue->lock);
    assert(!lane->up && queue__in_flight(lane) == 0);
    go_up(lane, series, clock_now_ns());
    queue__unlock_and_report(queue);
}

bool queue_lane_appoint(struct queue_lane *lane, const struct queue_engine *engine)
{
    struct queue *queue = lane->queue;
    uint64_t now_ns = clock_now_ns();
    struct role_series series = series_of(queue, engine->device);
    assert(engine->device_class == lane->device_class);
    pthread_mutex_lock(&queue->lock);
    queue__reap_lane(queue, lane, now_ns);
    bool is_idle = queue__in_flight(lane) == 0;
    assert(queue__in_flight(lane) <= ENGINE_LANES * ENGINE_BATCH_SLOTS);
    if (is_idle)
        take_role(lane, engine);
    if (is_idle && lane->up)
        go_up(lane, series, now_ns);
    queue__unlock_and_report(queue);
    return is_idle;
}

/* Nothing more is sent to it, what it has not begun is sent again, and another engine may take over
 * its work. true: it had nothing. */
static bool shut(struct queue_lane *lane, bool blamed, uint64_t now_ns)
{
    struct queue *queue = lane->queue;
    queue__reap_lane(queue, lane, now_ns);
    bool idle = queue__in_flight(lane) == 0;
    lane->up = false;
    queue__take_back_waiting(lane, blamed, now_ns);
    if (!lane->spare)
        queue__class_note_down(queue, lane->device_class, now_ns);
    return idle;
}

bool queue_lane_close(struct queue_lane *lane, bool blamed)
{
    struct queue *queue = lane->queue;
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&queue->lock);
    bool idle = shut(lane, blamed, now_ns);
    queue__dispatch(queue, now_ns);
    queue__unlock_and_report(queue);
    return idle;
}

void queue_lane_down(struct queue_lane *lane, bool blamed)
{
    struct queue *queue = lane->queue;
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&queue->lock);
    (void)shut(lane, blamed, now_ns);
    queue__take_back_rest(lane, blamed, now_ns);
    assert(queue__in_flight(lane) == 0);
    queue__dispatch(queue, now_ns);
    queue__unlock_and_report(queue);
}

static double allowed_ns(const struct queue *queue, const struct queue_slot *slot)
{
    double min_ns = (double)queue->limits.batch_deadline_ns;
    double most_ns =
        DEADLINE_FACTOR * slot->max_ns > min_ns ? DEADLINE_FACTOR * slot->max_ns : min_ns;
    return slot->key.lane == ENGINE_LANE_BACKGROUND ? BACKGROUND_FACTOR * most_ns : most_ns;
}

/* The longest time that a batch of the ring is allowed that has come to a stage, `slot` left out;
 * 0: there is none. */
static double max_allowed_ns(const struct queue *queue, const struct queue_ring *ring,
                             enum queue_stage min, const struct queue_slot *slot)
{
    double max_ns = 0;
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        const struct queue_slot *other = &ring->slots[i];
        if (other->used && other != slot && other->stage >= min &&
            allowed_ns(queue, other) > max_ns)
            max_ns = allowed_ns(queue, other);
    }
    return max_ns;
}

/* How much longer the oldest batch of a ring may take that waits for memory. The other ring's
 * batches may hold it, those of its own that have begun, or, of a device, another engine. */
static double extra_ns(const struct queue_lane *lane, int kind, const struct queue_slot *slot)
{
    double max_ns = lane->device_class == QUEUE_HOST ? 0 : (double)ENGINE_MEMORY_WAIT_NS;
    for (int ring = 0; ring < ENGINE_LANES; ring++)
        max_ns += max_allowed_ns(lane->queue, &lane->rings[ring],
                                 ring == kind ? QUEUE_STAGE_BEGUN : QUEUE_STAGE_SENT, slot);
    return max_ns;
}

/* The engine's word is taken once: one that says for ever that it waits, or again and again, is
 * found out. */
static enum queue_stage stage_of(const struct queue_ring *ring, int index)
{
    enum queue_stage before = ring->slots[index].stage;
    const struct engine_batch *batch = &ring->shared->batches[index];
    if (!queue__has_started(ring, index))
        return before;
    if (before <= QUEUE_STAGE_WAITING &&
        atomic_load_explicit(&batch->waits, memory_order_relaxed) != 0)
        return QUEUE_STAGE_WAITING;
    return before < QUEUE_STAGE_WAITING ? QUEUE_STAGE_BEGUN : QUEUE_STAGE_RESUMED;
}

static void note_stages(struct queue_ring *ring, uint64_t now_ns)
{
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct queue_slot *slot = &ring->slots[i];
        enum queue_stage stage = stage_of(ring, i);
        if (!slot->used || stage == slot->stage)
            continue;
        slot->stage = stage;
        slot->since_ns = now_ns;
        slot->until_ns = 0;
    }
}

static uint64_t ring_overdue_ns(struct queue_lane *lane, int kind, uint64_t now_ns)
{
    struct queue_ring *ring = &lane->rings[kind];
    struct queue_slot *oldest = NULL;
    note_stages(ring, now_ns);
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct queue_slot *slot = &ring->slots[i];
        if (slot->used && (oldest == NULL || slot->submitted_ns < oldest->submitted_ns))
            oldest = slot;
    }
    if (oldest == NULL)
        return 0;
    /* Its turn came when it was sent or when the batch before it was done, and its time begins anew
     * with a stage, whichever was later. */
    uint64_t since_ns =
        oldest->since_ns > ring->last_reap_ns ? oldest->since_ns : ring->last_reap_ns;
    bool waits = oldest->stage == QUEUE_STAGE_SENT || oldest->stage == QUEUE_STAGE_WAITING;
    double allowed = allowed_ns(lane->queue, oldest);
    allowed += waits ? extra_ns(lane, kind, oldest) : 0;
    uint64_t running_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    uint64_t until_ns = since_ns + (uint64_t)allowed;
    /* What it has waited for may have ended a moment ago: its time is not up for that. */
    if (waits && oldest->until_ns > until_ns)
        until_ns = oldest->until_ns;
    oldest->until_ns = waits ? until_ns : 0;
    return now_ns > until_ns ? running_ns : 0;
}

uint64_t queue_lane_overdue_ns(struct queue_lane *lane, uint64_t now_ns)
{
    struct queue *queue = lane->queue;
    uint64_t max_ns = 0;
    pthread_mutex_lock(&queue->lock);
    for (int kind = 0; kind < ENGINE_LANES && lane->up; kind++) {
        uint64_t overdue_ns = ring_overdue_ns(lane, kind, now_ns);
        max_ns = overdue_ns > max_ns ? overdue_ns : max_ns;
    }
    pthread_mutex_unlock(&queue->lock);
    return max_ns;
}

uint64_t queue_lane_last_batch_ns(struct queue_lane *lane)
{
    pthread_mutex_lock(&lane->queue->lock);
    uint64_t last_ns = lane->last_batch_ns;
    pthread_mutex_unlock(&lane->queue->lock);
    return last_ns;
}

bool queue_lane_worked(struct queue_lane *lane)
{
    pthread_mutex_lock(&lane->queue->lock);
    bool worked = lane->worked;
    pthread_mutex_unlock(&lane->queue->lock);
    return worked;
}

/* Whether it has suspects, or is ending with what may be some. */
static bool has_suspects(const struct queue_lane *lane)
{
    bool suspected = false;
    for (int kind = 0; kind < ENGINE_LANES; kind++)
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
            const struct queue_slot *slot = &lane->rings[kind].slots[i];
            suspected |= slot->used && slot->suspected;
        }
    return suspected || (lane->spare && queue__in_flight(lane) > 0);
}

bool queue_has_suspects(struct queue *queue, enum queue_class_id device_class)
{
    bool suspects = false;
    pthread_mutex_lock(&queue->lock);
    for (int p = 0; p < QUEUE_CLASSES; p++)
        suspects |= queue->classes[p].suspects.first != NULL &&
                    queue__class_of_spare(queue, (enum queue_class_id)p) == device_class;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        suspects |= lane->device_class == device_class && has_suspects(lane);
    pthread_mutex_unlock(&queue->lock);
    return suspects;
}

void queue_give_up(struct queue *queue, enum queue_class_id device_class, bool given_up)
{
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&queue->lock);
    if (queue->classes[device_class].given_up != given_up) {
        queue->classes[device_class].given_up = given_up;
        queue__classes_check(queue, now_ns);
        queue__dispatch(queue, now_ns);
    }
    queue__unlock_and_report(queue);
}

bool queue_is_out(struct queue *queue, enum queue_class_id device_class)
{
    pthread_mutex_lock(&queue->lock);
    bool is_out = queue->classes[device_class].out;
    pthread_mutex_unlock(&queue->lock);
    return is_out;
}
