/* callback/retry.c: see retry.h. */
#include "callback/retry.h"

#include <assert.h>

#include "base/minmax.h"

int64_t callback_retry(const struct callback_history *history, int64_t now_ms, int64_t first_ms,
                       uint32_t random)
{
    assert(history->attempts >= 1 && first_ms > 0);
    int64_t pause_ms = min_i64(first_ms, CALLBACK_PAUSE_MAX_MS);
    for (int i = 1; i < history->attempts && pause_ms < CALLBACK_PAUSE_MAX_MS; i++)
        pause_ms *= 2;
    pause_ms = min_i64(pause_ms, CALLBACK_PAUSE_MAX_MS);
    int64_t least_ms = pause_ms - pause_ms / 2;
    int64_t next_ms = now_ms + least_ms + (int64_t)random % (pause_ms - least_ms + 1);
    int64_t last_ms = min_i64(history->finished_ms + CALLBACK_TRIED_FOR_MS, history->expires_ms);
    return history->attempts < CALLBACK_ATTEMPTS_MAX && next_ms <= last_ms ? next_ms : -1;
}
