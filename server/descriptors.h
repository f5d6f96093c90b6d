/* server/descriptors.h: how many file descriptors there may be, and what they are for.
 *
 * The daemon needs some for itself, and keeps some back for engines: one that dies can be replaced
 * whatever clients hold. The rest is shared out among connections, those above connections-max that
 * get a 503, and those that linger until their clients have read the end.
 *
 * Threads: pure functions, but for descriptors_raise: the starting thread.
 */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include <stdint.h>

#include "base/error.h"

#define DESCRIPTORS_SPARE 64    /* connections above the maximum, of all doors */
#define DESCRIPTORS_LINGER 1024 /* that linger, of a door */

/* What it depends on. */
struct descriptors_use {
    int loops, doors, sockets; /* doors and listening sockets: of all loops */
    int64_t connections;       /* as many as may be */
};

struct descriptors_share {
    int64_t connections; /* at least 1, at most as many as may be */
    int spare, linger;   /* as above; at least 1 */
};

/* Fewer than these and nothing works. */
int64_t descriptors_min(const struct descriptors_use *use);
/* As many as are of use. */
int64_t descriptors_max(const struct descriptors_use *use);
/* limit: of open files, at least descriptors_min. */
struct descriptors_share descriptors_share_out(const struct descriptors_use *use, int64_t limit);

/* Raises the process's limit as far as that is of use and allowed, and says what it is then. */
int64_t descriptors_raise(int64_t wanted);

#endif
