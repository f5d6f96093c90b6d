/* gpu/host/base/stop.h: leaving the computation of a matrix that is no longer wanted.
 *
 * A worker computes within host_stop_watch and names a word, the one by which the front says that a
 * batch is unwanted. host_stop_check looks at it: where it is set, the computation is left there
 * and then, and host_stop_watch returns. Every step of a team looks (team.h), so an algorithm that
 * is made of steps need do nothing; a loop that runs for long without a step calls
 * host_stop_check by itself, or what is made of it for loops over rows.
 *
 * Two designs were thought of. Steps that do nothing any more let an algorithm run to its end, on
 * numbers that were never computed: but some of those are places in memory (pivots), some decide
 * when a loop ends, and what is not cut into steps takes its whole time. So each algorithm, and
 * each later one, would have to be made for it. The other is to leave from the middle (longjmp),
 * which is safe where a call holds nothing that must be given back. Methods hold nothing: they
 * neither allocate nor lock, scratch is the worker's, and between two steps no helper is at work
 * for them. This is the second. The one that makes a method allocate or lock must not call a step,
 * or host_stop_check, meanwhile.
 *
 * Threads: any. What is watched belongs to the thread that called host_stop_watch, and is not seen
 * by helpers: it is the one thread-local variable of the engine, so that a check needs nothing
 * handed down to it through every call. Cost: a look at a word a step.
 */
#ifndef GPU_HOST_BASE_STOP_H
#define GPU_HOST_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls work(context). False: it was left before its end, for *word was set. Not within another
 * one. word: borrowed until the return, and never cleared before. */
bool host_stop_watch(const _Atomic uint32_t *word, void (*work)(void *context), void *context);

/* Does not return where this thread watches a word that is set. Nothing may be held. */
void host_stop_check(void);

/* What a loop may take between two looks: less than 0.01 s, as a rule. */
#define HOST_STOP_ROWS (INT64_C(1) << 16)

/* For a loop over rows, up or down, in each: looks once in HOST_STOP_ROWS, a short one never. */
static inline void host_stop_check_row(int64_t row)
{
    if (row % HOST_STOP_ROWS == HOST_STOP_ROWS - 1)
        host_stop_check();
}

/* For a loop in which a look would be in the way of the vector unit: looks, unless little is left,
 * and returns how far to go from `first` before the next look. */
static inline int64_t host_stop_part(int64_t first, int64_t end)
{
    if (end - first <= HOST_STOP_ROWS)
        return end;
    host_stop_check();
    return first + HOST_STOP_ROWS;
}

/* The same where each row is itself a loop, over so many numbers. */
static inline int64_t host_stop_part_of(int64_t first, int64_t end, int64_t numbers)
{
    const int64_t rows = numbers < HOST_STOP_ROWS ? HOST_STOP_ROWS / (numbers + 1) + 1 : 1;
    if (end - first <= rows)
        return end;
    host_stop_check();
    return first + rows;
}

/* For what must not be left in the middle. Returns the word that this thread watches, or NULL;
 * until host__stop_resume it watches none. */
const _Atomic uint32_t *host__stop_pause(void);
void host__stop_resume(const _Atomic uint32_t *word); /* what host__stop_pause returned */

#endif
