/* queue/classes.c: the device classes, which of them serves what, and what happens while one is
 * out.
 *
 * The host takes everything. CUDA takes what all of its engines that have been up take, by method,
 * precision, order and options, so that any of them can serve the device class's work. CUDA out of
 * service: new items go to the host, with the host's costs, and the host's engines take over what
 * waits for CUDA. The host out of service: what waits for it ends with NO_ENGINE, and so does what
 * waits for CUDA when that is out too.
 *
 * Threads: under the queue's lock. Cost: a route is a table look-up.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

#define DOWN_TOLERATED_NS                                                                          \
    (5 * CLOCK_S) /* without an engine, before a device class is out of service */

void queue__classes_init(struct queue *queue, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        struct queue_class *device_class = &queue->classes[p];
        device_class->down_since_ns = now_ns;
        device_class->suspects.last = &device_class->suspects.first;
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            device_class->retries[kind].last = &device_class->retries[kind].first;
        double *scales = &device_class->scale[0][0][0];
        for (size_t i = 0; i < sizeof device_class->scale / sizeof *scales; i++)
            scales[i] = 1.0;
    }
}

enum queue_class_id queue__class_route(const struct queue *queue, const struct queue_item *item)
{
    /* Only its engine may take it, so it waits where that engine looks. */
    for (const struct queue_lane *lane = queue->lanes; lane != NULL && item->only_engine != 0;
         lane = lane->next)
        if (lane->number + 1 == item->only_engine)
            return lane->device_class;
    const struct queue_class *cuda = &queue->classes[QUEUE_CUDA];
    int method = method_index(item->method);
    if (!cuda->known || cuda->out || item->n > cuda->n_max[method][item->precision])
        return QUEUE_HOST;
    return QUEUE_CUDA;
}

bool queue__class_serves(const struct queue *queue, const struct queue_lane *lane,
                         enum queue_class_id device_class)
{
    assert(device_class < QUEUE_CLASSES);
    if (lane->device_class == device_class)
        return true;
    bool helps = lane->spare ? queue->classes[device_class].suspects_left : queue->limits.shared;
    return lane->device_class == QUEUE_HOST && (queue->classes[device_class].out || helps);
}

enum queue_class_id queue__class_of_spare(const struct queue *queue, enum queue_class_id id)
{
    const struct queue_class *device_class = &queue->classes[id];
    return device_class->out || device_class->suspects_left ? QUEUE_HOST : id;
}

/* The device class takes what all of its engines take. */
static void learn(struct queue_class *device_class, const struct engine_shared *shared)
{
    if (!device_class->known)
        memcpy(device_class->n_max, shared->n_max, sizeof device_class->n_max);
    device_class->known = true;
    for (int i = 0; i < ENGINE_METHODS_MAX; i++) {
        for (int p = 0; p < PRECISION_COUNT; p++)
            if (shared->n_max[i][p] < device_class->n_max[i][p])
                device_class->n_max[i][p] = shared->n_max[i][p];
    }
}

void queue__class_note_up(struct queue *queue, const struct queue_lane *lane)
{
    struct queue_class *device_class = &queue->classes[lane->device_class];
    for (int p = 0; p < QUEUE_CLASSES && lane->spare; p++)
        if (queue__class_serves(queue, lane, (enum queue_class_id)p))
            queue->classes[p].suspects_since_ns = 0;
    if (lane->spare)
        return;
    learn(device_class, lane->shared);
    device_class->down_since_ns = 0;
    device_class->out = false;
}

void queue__class_note_down(struct queue *queue, enum queue_class_id id, uint64_t now_ns)
{
    struct queue_class *device_class = &queue->classes[id];
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        if (lane->device_class == id && lane->up && !lane->spare)
            return;
    if (device_class->down_since_ns == 0)
        device_class->down_since_ns = now_ns;
    queue__classes_check(queue, now_ns);
}

void queue__classes_check(struct queue *queue, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        struct queue_class *device_class = &queue->classes[p];
        device_class->out =
            device_class->down_since_ns != 0 &&
            (device_class->given_up || now_ns > device_class->down_since_ns + DOWN_TOLERATED_NS);
    }
}

/* Suspects wait for a spare engine no longer than others for theirs. Then the host's may take those
 * of CUDA, and they wait as long for that. */
static void end_suspects(struct queue *queue, enum queue_class_id id, uint64_t now_ns)
{
    struct queue_class *device_class = &queue->classes[id];
    bool spare_up = false;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        spare_up |= lane->spare && lane->up && queue__class_serves(queue, lane, id);
    bool late = device_class->suspects_since_ns != 0 &&
                now_ns > device_class->suspects_since_ns + DOWN_TOLERATED_NS;
    if (device_class->suspects.first == NULL)
        device_class->suspects_left = false;
    if (device_class->suspects.first == NULL || spare_up) {
        device_class->suspects_since_ns = 0;
    } else if (device_class->suspects_since_ns == 0) {
        device_class->suspects_since_ns = now_ns;
    } else if (late && (id == QUEUE_HOST || device_class->suspects_left)) {
        queue__retry_drop_all(queue, &device_class->suspects, ERROR_NO_ENGINE);
    } else if (late) {
        device_class->suspects_left = true;
        device_class->suspects_since_ns = now_ns;
    }
}

void queue__classes_end_outages(struct queue *queue, uint64_t now_ns)
{
    queue__classes_check(queue, now_ns);
    for (int p = 0; p < QUEUE_CLASSES; p++) {
        struct queue_class *device_class = &queue->classes[p];
        if (device_class->out && queue->classes[QUEUE_HOST].out) {
            queue__waiting_drop_all(queue, (enum queue_class_id)p, ERROR_NO_ENGINE);
            for (int kind = 0; kind < ENGINE_LANES; kind++)
                queue__retry_drop_all(queue, &device_class->retries[kind], ERROR_NO_ENGINE);
        }
        end_suspects(queue, (enum queue_class_id)p, now_ns);
    }
}
