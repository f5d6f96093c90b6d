/* server/descriptors.c: see descriptors.h. */
#include "server/descriptors.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/minmax.h"
#include "server/engines/supervisor.h"

#define OWN 20    /* standard ones, logs, arena, signals, events, and some more */
#define OF_LOOP 6 /* its set and what wakes it */
#define OF_DOOR 3 /* its sets */
#define ENGINES_MIN                                                                                \
    16 /* one engine, one that is ending, and what starting one takes for a moment */
#define CLIENTS_MIN 16 /* and 2 for each door */

static int64_t own(const struct descriptors_use *use)
{
    return OWN + (int64_t)OF_LOOP * use->loops + (int64_t)OF_DOOR * use->doors + use->sockets;
}

int64_t descriptors_min(const struct descriptors_use *use)
{
    return own(use) + ENGINES_MIN + CLIENTS_MIN + INT64_C(2) * use->doors;
}

int64_t descriptors_max(const struct descriptors_use *use)
{
    return own(use) + SUPERVISOR_FDS + use->connections + DESCRIPTORS_SPARE +
           (int64_t)DESCRIPTORS_LINGER * use->doors;
}

struct descriptors_share descriptors_share_out(const struct descriptors_use *use, int64_t limit)
{
    assert(limit >= descriptors_min(use));
    int64_t engines = min_i64(max_i64((limit - own(use)) / 4, ENGINES_MIN), SUPERVISOR_FDS);
    int64_t clients = limit - own(use) - engines;
    struct descriptors_share share = {
        .spare = (int)min_i64(max_i64(clients / 8, 1), DESCRIPTORS_SPARE),
        .linger = (int)min_i64(max_i64(clients / 4 / use->doors, 1), DESCRIPTORS_LINGER),
    };
    int64_t left = clients - share.spare - (int64_t)share.linger * use->doors;
    share.connections = min_i64(max_i64(left, 1), use->connections);
    return share;
}

int64_t descriptors_raise(int64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (rlim_t)wanted) {
        struct rlimit raised = limit;
        raised.rlim_cur = (rlim_t)wanted <= limit.rlim_max ? (rlim_t)wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > (rlim_t)wanted
               ? wanted
               : (int64_t)limit.rlim_cur;
}
