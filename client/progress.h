/* client/progress.h: a line on a terminal that shows how far a transfer is.
 *
 * It appears after half a second, changes ten times a second at most, and is erased at the end.
 * Threads: one.
 */
#ifndef CLIENT_PROGRESS_H
#define CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct progress {
    bool wanted, shown;
    uint64_t begun_ns, changed_ns;
};

/* Of bodies, so far and in all; a total of 0: not known yet. */
struct progress_bytes {
    int64_t sent, to_send, received, to_receive;
};

void progress_begin(struct progress *progress, bool wanted);
/* Writes to stderr. */
void progress_update(struct progress *progress, const struct progress_bytes *bytes);
void progress_end(struct progress *progress);
/* Appends the line, of 79 columns at most, for a try that began so long ago. */
void progress_text(const struct progress_bytes *bytes, uint64_t elapsed_ns, struct text *line);

#endif
