/* server/engines/start_clock.h: how long an engine has been starting, for its deadline.
 *
 * On a busy machine an engine waits for a processor, which is not its fault. So time in which it
 * computes counts as processor time, and time in which it sleeps counts as it passes. Time in which
 * its main thread is ready to run and does not run counts for nothing, where the system reports it.
 * So a deadline that no idle machine misses is not missed on a busy one. A bound holds for all: at
 * least a quarter of what has passed counts.
 *
 * Threads: one at a time. Cost: a few instructions a look.
 */
#ifndef SERVER_ENGINES_START_CLOCK_H
#define SERVER_ENGINES_START_CLOCK_H

#include <stdint.h>

struct start_clock {
    uint64_t began_ns;
    uint64_t window_ns, window_cpu_ns, window_ready_ns; /* as they were when the window began */
    uint64_t counted_ns;                                /* in the windows before */
};

void start_clock_begin(struct start_clock *clock, uint64_t now_ns);
/* What the process has had so far. */
struct start_usage {
    uint64_t cpu_ns;
    uint64_t ready_ns; /* the main thread, ready and not running; 0: unknown */
};
/* Returns what counts; it never falls. */
uint64_t start_clock_look(struct start_clock *clock, uint64_t now_ns,
                          const struct start_usage *usage);

#endif
