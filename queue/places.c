/* queue/places.c: the places, which of them serves what, and what happens while one is out.
 *
 * The host takes everything. CUDA takes what all of its engines that have been up take, by method,
 * precision, order and options, so that any of them can serve the place's work. CUDA out of
 * service: new items go to the host, with the host's costs, and the host's engines take over what
 * waits for CUDA. The host out of service: what waits for it ends with NO_ENGINE, and so does what
 * waits for CUDA when that is out too.
 *
 * Threads: under the queue's lock. Cost: a route is a table look-up.
 */
#include "queue/queue_private.h"

#include <string.h>

#include "base/clock.h"

#define DOWN_TOLERATED_NS (5 * CLOCK_S) /* without an engine, before a place is out of service */

void queue__places_init(struct queue *queue, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_PLACES; p++) {
        struct queue_place *place = &queue->places[p];
        place->down_since_ns = now_ns;
        place->suspects.last = &place->suspects.first;
        for (int kind = 0; kind < ENGINE_LANES; kind++)
            place->retries[kind].last = &place->retries[kind].first;
        double *scales = &place->scale[0][0][0];
        for (size_t i = 0; i < sizeof place->scale / sizeof *scales; i++)
            scales[i] = 1.0;
    }
}

enum queue_place_id queue__place_route(const struct queue *queue, const struct queue_item *item)
{
    /* Nobody but its engine may take it, so it waits where that engine looks. */
    for (const struct queue_lane *lane = queue->lanes; lane != NULL && item->only_engine != 0;
         lane = lane->next)
        if (lane->number + 1 == item->only_engine)
            return lane->place;
    const struct queue_place *cuda = &queue->places[QUEUE_CUDA];
    int method = method_index(item->method);
    if (!cuda->known || cuda->out || item->n > cuda->n_max[method][item->precision])
        return QUEUE_HOST;
    return QUEUE_CUDA;
}

bool queue__place_serves(const struct queue *queue, const struct queue_lane *lane,
                         enum queue_place_id place)
{
    if (lane->place == place)
        return true;
    bool helps = lane->spare ? queue->places[place].suspects_left : queue->limits.shared;
    return lane->place == QUEUE_HOST && (queue->places[place].out || helps);
}

enum queue_place_id queue__place_of_spare(const struct queue *queue, enum queue_place_id id)
{
    const struct queue_place *place = &queue->places[id];
    return place->out || place->suspects_left ? QUEUE_HOST : id;
}

/* The place takes what all of its engines take. */
static void learn(struct queue_place *place, const struct engine_shared *shared)
{
    if (!place->known)
        memcpy(place->n_max, shared->n_max, sizeof place->n_max);
    place->known = true;
    for (int i = 0; i < ENGINE_METHODS_MAX; i++) {
        for (int p = 0; p < PRECISION_COUNT; p++)
            if (shared->n_max[i][p] < place->n_max[i][p])
                place->n_max[i][p] = shared->n_max[i][p];
    }
}

void queue__place_note_up(struct queue *queue, const struct queue_lane *lane)
{
    struct queue_place *place = &queue->places[lane->place];
    for (int p = 0; p < QUEUE_PLACES && lane->spare; p++)
        if (queue__place_serves(queue, lane, (enum queue_place_id)p))
            queue->places[p].suspects_since_ns = 0;
    if (lane->spare)
        return;
    learn(place, lane->shared);
    place->down_since_ns = 0;
    place->out = false;
}

void queue__place_note_down(struct queue *queue, enum queue_place_id id, uint64_t now_ns)
{
    struct queue_place *place = &queue->places[id];
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        if (lane->place == id && lane->up && !lane->spare)
            return;
    if (place->down_since_ns == 0)
        place->down_since_ns = now_ns;
    queue__places_check(queue, now_ns);
}

void queue__places_check(struct queue *queue, uint64_t now_ns)
{
    for (int p = 0; p < QUEUE_PLACES; p++) {
        struct queue_place *place = &queue->places[p];
        place->out = place->down_since_ns != 0 &&
                     (place->given_up || now_ns > place->down_since_ns + DOWN_TOLERATED_NS);
    }
}

/* Suspects wait for a spare engine no longer than others for theirs. Then the host's may take those
 * of CUDA, and they wait as long for that. */
static void end_suspects(struct queue *queue, enum queue_place_id id, uint64_t now_ns)
{
    struct queue_place *place = &queue->places[id];
    bool spare_up = false;
    for (const struct queue_lane *lane = queue->lanes; lane != NULL; lane = lane->next)
        spare_up |= lane->spare && lane->up && queue__place_serves(queue, lane, id);
    bool late =
        place->suspects_since_ns != 0 && now_ns > place->suspects_since_ns + DOWN_TOLERATED_NS;
    if (place->suspects.first == NULL)
        place->suspects_left = false;
    if (place->suspects.first == NULL || spare_up) {
        place->suspects_since_ns = 0;
    } else if (place->suspects_since_ns == 0) {
        place->suspects_since_ns = now_ns;
    } else if (late && (id == QUEUE_HOST || place->suspects_left)) {
        queue__retry_drop_all(queue, &place->suspects, ERROR_NO_ENGINE);
    } else if (late) {
        place->suspects_left = true;
        place->suspects_since_ns = now_ns;
    }
}

void queue__places_end_outages(struct queue *queue, uint64_t now_ns)
{
    queue__places_check(queue, now_ns);
    for (int p = 0; p < QUEUE_PLACES; p++) {
        struct queue_place *place = &queue->places[p];
        if (place->out && queue->places[QUEUE_HOST].out) {
            queue__flow_drop_all(queue, (enum queue_place_id)p, ERROR_NO_ENGINE);
            for (int kind = 0; kind < ENGINE_LANES; kind++)
                queue__retry_drop_all(queue, &place->retries[kind], ERROR_NO_ENGINE);
        }
        end_suspects(queue, (enum queue_place_id)p, now_ns);
    }
}
