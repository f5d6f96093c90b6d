/* queue/cost.c: how long work will take.
 *
 * A batch of k matrices takes scale * (BATCH + k * (BASE + flops / RATE)): what a batch costs
 * whatever it holds, an overhead a matrix, and the descriptor's operations. The first guess is a
 * row for each place; the scale is measured, for each place, precision and size class (binary
 * logarithm of n), from finished batches, as an exponentially weighted mean. A batch teaches by its
 * share of work: on a device where starting takes longer than one matrix, a batch of one says next
 * to nothing of what thousands will cost, and a large batch says it all.
 *
 * An item's cost is its matrices' alone, for a batch is shared. It serves fairness, slicing,
 * deadlines and Retry-After; it never changes an answer's bits. Threads: under the queue's lock.
 */
#include "queue/queue_private.h"

#include <math.h>

#define LEARN_SHARE 0.1
#define SCALE_LEAST 0.01
#define SCALE_MOST 100.0

static const struct {
    double batch_ns, base_ns, flop_per_ns;
} models[QUEUE_PLACES] = {
    [QUEUE_HOST] = {0, 500, 4},
    [QUEUE_CUDA] = {10000, 5, 400},
};

static int size_class(int64_t n)
{
    int class = n < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)n);
    return class < QUEUE_SIZE_CLASSES ? class : QUEUE_SIZE_CLASSES - 1;
}

static double modelled_ns(enum queue_place_id place, const struct method *method, int64_t n,
                          int64_t m)
{
    return models[place].base_ns + method->flops(n, m) / models[place].flop_per_ns;
}

double queue__cost_ns(const struct queue *queue, enum queue_place_id place,
                      const struct method *method, enum precision precision, int64_t n, int64_t m)
{
    return modelled_ns(place, method, n, m) * queue->places[place].scale[precision][size_class(n)];
}

double queue__cost_batch_ns(const struct queue *queue, enum queue_place_id place,
                            const struct queue_key *key, int64_t matrices)
{
    double work_ns = (double)matrices * modelled_ns(place, key->method, key->n, key->m);
    return (models[place].batch_ns + work_ns) *
           queue->places[place].scale[key->precision][size_class(key->n)];
}

void queue__cost_learn(struct queue *queue, enum queue_place_id place, const struct queue_key *key,
                       int64_t matrices, uint64_t measured_ns)
{
    double *scale = &queue->places[place].scale[key->precision][size_class(key->n)];
    double work_ns = (double)matrices * modelled_ns(place, key->method, key->n, key->m);
    double whole_ns = models[place].batch_ns + work_ns;
    double ratio = fmin(fmax((double)measured_ns / whole_ns, SCALE_LEAST), SCALE_MOST);
    *scale += LEARN_SHARE * (work_ns / whole_ns) * (ratio - *scale);
}
