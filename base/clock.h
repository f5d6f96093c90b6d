/* base/clock.h: one monotonic clock for front and engines, in nanoseconds. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC: the same in every process of a machine; never goes back. */
static inline uint64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* The wall clock, for logs and statistics only. */
static inline uint64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000) + (uint64_t)t.tv_nsec / UINT64_C(1000000);
}

#define CLOCK_US UINT64_C(1000)
#define CLOCK_MS UINT64_C(1000000)
#define CLOCK_S UINT64_C(1000000000)

#endif
