/* server/engines/start_clock.c: see start_clock.h. */
#include "server/engines/start_clock.h"

#include <stdbool.h>

#include "base/clock.h"

/* Long enough that a process which wants a processor gets one among a few others. */
#define WINDOW_NS CLOCK_S
#define SLEEPING_SHARE 20 /* it sleeps, if it uses less than one part in so many */
#define BOUND 4

void start_clock_begin(struct start_clock *clock, uint64_t now_ns)
{
    *clock = (struct start_clock){.began_ns = now_ns, .window_ns = now_ns};
}

static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

uint64_t start_clock_look(struct start_clock *clock, uint64_t now_ns,
                          const struct start_usage *usage)
{
    /* The caller's time may be from before the start, which a tick has in its middle. */
    uint64_t passed_ns = growth(clock->window_ns, now_ns);
    if (passed_ns >= WINDOW_NS) {
        uint64_t used_ns = growth(clock->window_cpu_ns, usage->cpu_ns);
        uint64_t not_ready_ns = growth(growth(clock->window_ready_ns, usage->ready_ns), passed_ns);
        /* Several threads use more than passes. */
        bool counts_whole = used_ns < passed_ns / SLEEPING_SHARE || used_ns > passed_ns;
        uint64_t counted_ns = counts_whole ? passed_ns : used_ns;
        clock->counted_ns += counted_ns < not_ready_ns ? counted_ns : not_ready_ns;
        clock->window_ns = now_ns;
        clock->window_cpu_ns = usage->cpu_ns;
        clock->window_ready_ns = usage->ready_ns;
    }
    uint64_t bound_ns = growth(clock->began_ns, now_ns) / BOUND;
    return clock->counted_ns > bound_ns ? clock->counted_ns : bound_ns;
}
