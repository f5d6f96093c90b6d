/* server/engines/probe.c: see probe.h. The matrix is [[4, 7], [2, 6]], whose inverse is
 * [[0.6, -0.7], [-0.2, 0.4]]. */
#include "server/engines/probe.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-14

/* How the probe lies in its arena slot. */
struct probe_data {
    double a[4], inverse[4];
    double rcond;
    int32_t info;
};

struct probe {
    struct queue_item item; /* first: on_done finds the probe by it */
    struct queue *queue;
    struct arena *arena;
    const struct method *method;
    struct arena_slot slot;
    _Atomic int state;
};

static struct probe_data *probe_data(const struct probe *probe)
{
    void *data =
        region_at(arena_map(probe->arena), probe->slot.offset_bytes, sizeof(struct probe_data));
    assert(data != NULL);
    return data;
}

enum error probe_create(struct queue *queue, struct arena *arena, const char *method,
                        struct probe **result, struct failure *failure)
{
    struct probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory for the probe");
    probe->queue = queue;
    probe->arena = arena;
    probe->method = method_find(method);
    assert(probe->method != NULL);
    if (arena_alloc(arena, sizeof(struct probe_data), &probe->slot) != ERROR_NONE) {
        free(probe);
        return failure_set(failure, ERROR_FULL, "the arena is too small for the probe");
    }
    *result = probe;
    return ERROR_NONE;
}

void probe_destroy(struct probe **probe_pointer)
{
    struct probe *probe = *probe_pointer;
    if (probe == NULL)
        return;
    assert(!probe_is_running(probe));
    arena_free(probe->arena, &probe->slot);
    free(probe);
    *probe_pointer = NULL;
}

static void on_done(struct queue_item *item)
{
    static const double expected[4] = {0.6, -0.7, -0.2, 0.4};
    struct probe *probe = (struct probe *)item;
    const struct probe_data *data = probe_data(probe);
    enum probe_state state = item->status == ERROR_NONE ? PROBE_RIGHT : PROBE_FAILED;
    for (int i = 0; i < 4 && state == PROBE_RIGHT; i++)
        if (!(fabs(data->inverse[i] - expected[i]) <= TOLERANCE) || data->info != 0)
            state = PROBE_WRONG;
    atomic_store(&probe->state, state);
}

/* Where a member of the probe's data lies in the arena. */
static struct engine_tensor tensor_of(const struct probe *probe, size_t offset)
{
    return (struct engine_tensor){.offset_bytes = probe->slot.offset_bytes + offset,
                                  .region = ENGINE_REGION_ARENA};
}

void probe_start(struct probe *probe, int engine)
{
    assert(!probe_is_running(probe));
    static const double a[4] = {4, 7, 2, 6};
    const struct method *method = probe->method;
    struct probe_data *data = probe_data(probe);
    memset(data, 0, sizeof *data);
    memcpy(data->a, a, sizeof a);
    data->info = -2; /* must be overwritten */

    struct queue_item *item = &probe->item;
    memset(item, 0, sizeof *item);
    item->method = method;
    item->precision = PRECISION_FP64;
    item->priority = 1;
    item->uncounted = true;
    item->only_engine = engine + 1;
    item->batch = 1;
    item->n = 2;
    item->on_done = on_done;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        item->inputs[i].region = ENGINE_REGION_NONE;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        item->outputs[i].region = ENGINE_REGION_NONE;
    item->inputs[method_input_find(method, "A")] = tensor_of(probe, offsetof(struct probe_data, a));
    item->outputs[method_output_find(method, "INVERSE")] =
        tensor_of(probe, offsetof(struct probe_data, inverse));
    item->outputs[method_output_find(method, "INFO")] =
        tensor_of(probe, offsetof(struct probe_data, info));
    item->outputs[method_output_find(method, "RCOND")] =
        tensor_of(probe, offsetof(struct probe_data, rcond));
    atomic_store(&probe->state, PROBE_RUNNING);
    queue_submit(probe->queue, item);
    (void)queue_flush(probe->queue); /* this thread's loop flushes again before it sleeps */
}

void probe_cancel(struct probe *probe)
{
    if (probe_is_running(probe))
        queue_cancel(probe->queue, &probe->item);
}

bool probe_is_running(const struct probe *probe)
{
    return probe != NULL && atomic_load(&probe->state) == PROBE_RUNNING;
}

enum probe_state probe_take(struct probe *probe)
{
    int state = atomic_load(&probe->state);
    if (state == PROBE_RUNNING)
        return PROBE_IDLE;
    atomic_store(&probe->state, PROBE_IDLE);
    return (enum probe_state)state;
}

int probe_engine(const struct probe *probe)
{
    return probe->item.engine;
}
