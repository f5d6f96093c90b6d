/* handlers/jobs/prefer.h: the Prefer header (RFC 7240), as far as answers later go. Pure. */
#ifndef HANDLERS_JOBS_PREFER_H
#define HANDLERS_JOBS_PREFER_H

#include <stdbool.h>

#define PREFER_WAIT_MAX_S 3600 /* a longer wait is cut to this */

struct prefer {
    bool respond_async, has_wait;
    int wait_s; /* 0: none, or one that is no number */
};

/* Adds what a line of the field says; prefer begins zeroed. What is unknown is passed over, and of
 * a preference that stands there twice the first counts, as the RFC wants it. */
void handlers__prefer(struct prefer *prefer, const char *value);

/* Whole seconds of digits alone, cut to PREFER_WAIT_MAX_S; -1: anything else. */
int handlers__wait_seconds(const char *text, int length);

#endif
