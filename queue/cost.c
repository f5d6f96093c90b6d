/* queue/cost.c: how long work will take.
 *
 * A batch of k matrices takes scale * (BATCH + k * (BASE + flops / RATE) + bytes / BANDWIDTH): what
 * a batch costs whatever it holds, an overhead a matrix, the descriptor's operations, and the bytes
 * of the inputs and of the outputs that are wanted. The first guess is a row for each device class;
 * the scale is measured, for each device class, method, precision and size class (binary logarithm
 * of n), from finished batches, as an exponentially weighted mean. A batch teaches by its share of
 * work: on a device where starting takes longer than one matrix, a batch of one says next to
 * nothing of what thousands will cost, and a large batch says it all.
 *
 * Memory that is used for the first time since the start is taken from the system page by page, by
 * the engine that writes it, which takes many times what the computation does. Deadlines allow for
 * it: a page may be new to any batch.
 *
 * An item's cost is its matrices' alone, for a batch is shared. It serves fairness, slicing,
 * deadlines and Retry-After; it never changes an answer's bits. Threads: under the queue's lock.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <math.h>

#define LEARN_SHARE 0.1
#define SCALE_MIN 0.01
#define SCALE_MAX 100.0

static const struct {
    double batch_ns, base_ns, flops_per_ns, bytes_per_ns;
    double new_bytes_per_ns; /* of memory that is new; CUDA engines pin all of it at their start */
} models[QUEUE_CLASSES] = {
    [QUEUE_HOST] = {0, 500, 4, 4, 0.5},
    [QUEUE_CUDA] = {10000, 5, 400, 40, INFINITY},
};

static int size_class(int64_t n)
{
    int class = n < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)n);
    return class < QUEUE_SIZE_CLASSES ? class : QUEUE_SIZE_CLASSES - 1;
}

typedef double flops_of(int64_t n, int64_t m);

static double modelled_ns(enum queue_class_id device_class, const struct queue_work *work,
                          flops_of *flops)
{
    assert(work->matrices >= 1 && work->bytes >= 0);
    double each_ns =
        models[device_class].base_ns + flops(work->n, work->m) / models[device_class].flops_per_ns;
    return (double)work->matrices * each_ns +
           (double)work->bytes / models[device_class].bytes_per_ns;
}

static double *scale_of(struct queue *queue, enum queue_class_id device_class,
                        const struct queue_work *work)
{
    return &queue->classes[device_class]
                .scale[method_index(work->method)][work->precision][size_class(work->n)];
}

double queue__cost_ns(struct queue *queue, enum queue_class_id device_class,
                      const struct queue_work *work)
{
    return modelled_ns(device_class, work, work->method->flops) *
           *scale_of(queue, device_class, work);
}

double queue__cost_batch_ns(struct queue *queue, enum queue_class_id device_class,
                            const struct queue_work *work)
{
    return (models[device_class].batch_ns + modelled_ns(device_class, work, work->method->flops)) *
           *scale_of(queue, device_class, work);
}

double queue__cost_max_ns(struct queue *queue, enum queue_class_id device_class,
                          const struct queue_work *work)
{
    const struct method *method = work->method;
    flops_of *max = method->flops_max != NULL ? method->flops_max : method->flops;
    double work_ns = models[device_class].batch_ns + modelled_ns(device_class, work, max);
    double new_ns = (double)work->bytes / models[device_class].new_bytes_per_ns;
    return work_ns * fmax(*scale_of(queue, device_class, work), 1) + new_ns;
}

void queue__cost_learn(struct queue *queue, enum queue_class_id device_class,
                       const struct queue_work *work, uint64_t measured_ns)
{
    double *scale = scale_of(queue, device_class, work);
    double work_ns = modelled_ns(device_class, work, work->method->flops);
    double whole_ns = models[device_class].batch_ns + work_ns;
    double ratio = fmin(fmax((double)measured_ns / whole_ns, SCALE_MIN), SCALE_MAX);
    *scale += LEARN_SHARE * (work_ns / whole_ns) * (ratio - *scale);
}
