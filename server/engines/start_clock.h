/* server/engines/start_clock.h: how long an engine has been starting, for its deadline.
 *
 * On a busy machine an engine waits for a processor, which is not its fault. So time in which it
 * computes counts as processor time, and time in which it sleeps counts as it passes: a deadline
 * that no idle machine misses is not missed on a busy one either. A bound holds for all: the time
 * that counts is at least a quarter of what has passed.
 *
 * Threads: one at a time. Cost: a few instructions a look.
 */
#ifndef SERVER_ENGINES_START_CLOCK_H
#define SERVER_ENGINES_START_CLOCK_H

#include <stdint.h>

struct start_clock {
    uint64_t began_ns;
    uint64_t window_ns, window_cpu_ns; /* when the window began, and the processor time by then */
    uint64_t counted_ns;               /* in the windows before */
};

void start_clock_begin(struct start_clock *clock, uint64_t now_ns);
/* cpu_ns: what the process has used so far. Returns what counts; it never falls. */
uint64_t start_clock_look(struct start_clock *clock, uint64_t now_ns, uint64_t cpu_ns);

#endif
