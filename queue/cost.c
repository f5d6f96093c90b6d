/* queue/cost.c: how long work will take.
 *
 * time = scale * (BASE + flops / RATE): the descriptor's operations, a fixed overhead a matrix,
 * and a scale measured for each precision and size class (binary logarithm of n) from finished
 * batches, as an exponentially weighted mean. It serves fairness, slicing, deadlines and
 * Retry-After; it never changes an answer's bits. Threads: under the queue's lock.
 */
#include "queue/queue_private.h"

#include <math.h>

#define BASE_NS 500.0
#define RATE_FLOP_PER_NS 4.0
#define LEARN_SHARE 0.1
#define SCALE_LEAST 0.01
#define SCALE_MOST 100.0

static int size_class(int64_t n)
{
    int class = n < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)n);
    return class < QUEUE_SIZE_CLASSES ? class : QUEUE_SIZE_CLASSES - 1;
}

static double modelled_ns(const struct method *method, int64_t n, int64_t m)
{
    return BASE_NS + method->flops(n, m) / RATE_FLOP_PER_NS;
}

double queue__cost_ns(const struct queue *queue, const struct method *method,
                      enum precision precision, int64_t n, int64_t m)
{
    return modelled_ns(method, n, m) * queue->scale[precision][size_class(n)];
}

void queue__cost_learn(struct queue *queue, const struct queue_key *key, int64_t matrices,
                       uint64_t measured_ns)
{
    double *scale = &queue->scale[key->precision][size_class(key->n)];
    double ratio =
        (double)measured_ns / ((double)matrices * modelled_ns(key->method, key->n, key->m));
    ratio = fmin(fmax(ratio, SCALE_LEAST), SCALE_MOST);
    *scale += LEARN_SHARE * (ratio - *scale);
}
