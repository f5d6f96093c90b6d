/* client/progress.h: a line on a terminal that shows how far a request or a job is.
 *
 * It appears after half a second, changes ten times a second at most, and is erased at the end.
 * Threads: one.
 */
#ifndef CLIENT_PROGRESS_H
#define CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum progress_stage {
    PROGRESS_UPLOAD,
    PROGRESS_COMPUTING, /* of a direct request: the server says nothing */
    PROGRESS_WAITING,   /* a job's turn; now: its position, 0: unknown */
    PROGRESS_RUNNING,   /* a job; now: hundredths of a percent, of 10000 */
    PROGRESS_DOWNLOAD,
};

/* Bytes for what travels; a total of 0: not known yet. */
struct progress_state {
    enum progress_stage stage;
    int64_t now, total;
};

struct progress {
    bool wanted, shown;
    uint64_t begun_ns, changed_ns;
};

void progress_begin(struct progress *progress, bool wanted);
/* Writes to stderr. */
void progress_update(struct progress *progress, const struct progress_state *state);
void progress_end(struct progress *progress);
/* Appends the line, of 79 columns at most, of what began so long ago. */
void progress_text(const struct progress_state *state, uint64_t elapsed_ns, struct text *line);

#endif
