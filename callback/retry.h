/* callback/retry.h: when a callback that failed is tried again: later each time, up to an hour,
 * each time by chance a little earlier, for a day. Threads: pure functions.
 */
#ifndef CALLBACK_RETRY_H
#define CALLBACK_RETRY_H

#include <stdint.h>

#define CALLBACK_TRIED_FOR_MS (INT64_C(24) * 3600 * 1000) /* from the job's end */
#define CALLBACK_PAUSE_MAX_MS (INT64_C(3600) * 1000)
#define CALLBACK_ATTEMPTS_MAX 64

struct callback_history {
    int64_t finished_ms; /* when the job ended */
    int64_t expires_ms;  /* when its result goes, and its callback with it */
    int attempts;        /* so far; the last has just failed; 1 or more */
};

/* The time of the next attempt; -1: there is none any more. first_ms: the pause after the first
 * attempt, doubled after each. random: any bits; half of the pause is left to them. */
int64_t callback_retry(const struct callback_history *history, int64_t now_ms, int64_t first_ms,
                       uint32_t random);

#endif
