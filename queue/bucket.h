/* queue/bucket.h: a leaky bucket.
 *
 * It is kept as the time when it will have run empty. What is put in is measured in the time that
 * it takes to leak out. So it needs no tick, and a clock that jumps ahead does no more than empty
 * it.
 *
 * Threads: any, without a lock. Zeroed, it is empty. Cost: an atomic or two.
 */
#ifndef QUEUE_BUCKET_H
#define QUEUE_BUCKET_H

#include <stdatomic.h>
#include <stdint.h>

#define QUEUE_BUCKET_MAX_NS (UINT64_C(1) << 62) /* 146 years: more does not stay in */

struct queue_bucket {
    _Atomic uint64_t empty_ns;
};

/* How long what is in it takes to leak out. */
static inline uint64_t queue__bucket_level_ns(const struct queue_bucket *bucket, uint64_t now_ns)
{
    uint64_t empty_ns = atomic_load_explicit(&bucket->empty_ns, memory_order_relaxed);
    return empty_ns > now_ns ? empty_ns - now_ns : 0;
}

/* What is in it takes factor times as long from now on, for it leaks slower or faster; and add_ns
 * more is put in. */
static inline void queue__bucket_change(struct queue_bucket *bucket, uint64_t now_ns, double factor,
                                        double add_ns)
{
    uint64_t seen = atomic_load_explicit(&bucket->empty_ns, memory_order_relaxed), next;
    do {
        double sum_ns = (seen > now_ns ? (double)(seen - now_ns) * factor : 0) + add_ns;
        uint64_t level_ns =
            sum_ns < (double)QUEUE_BUCKET_MAX_NS ? (uint64_t)sum_ns : QUEUE_BUCKET_MAX_NS;
        next = level_ns > 0 ? now_ns + level_ns : 0;
    } while (!atomic_compare_exchange_weak_explicit(&bucket->empty_ns, &seen, next,
                                                    memory_order_relaxed, memory_order_relaxed));
}

#endif
