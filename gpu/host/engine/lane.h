/* gpu/host/engine/lane.h: serves one lane of the engine contract with a pool of worker threads.
 *
 * A batch is cut into chunks of a few matrices, which workers take in order; the worker that
 * finishes a batch's last chunk reports it done. Batches start in the order of submission, and the
 * next one starts as soon as a worker finds no chunk left to take, so that none idles at a
 * batch's tail. Which worker takes what never touches an answer's bits.
 *
 * Threads: create and destroy from one thread. Everything else happens on the lane's own workers.
 */
#ifndef GPU_HOST_ENGINE_LANE_H
#define GPU_HOST_ENGINE_LANE_H

#include <stdint.h>

#include "base/error.h"
#include "base/rank.h"
#include "base/region.h"
#include "gpu/engine.h"
#include "gpu/host/base/scratch.h"
#include "gpu/process/fault.h"

struct host_lane;

struct host_lane_options {
    struct engine_lane *lane; /* borrowed, as is the arena, until destroy */
    struct region_map arena;
    int event_fd;
    int threads;                /* >= 1 */
    enum rank rank;             /* the workers' */
    int64_t spin_ns;            /* how long one worker polls for the next batch before it sleeps */
    struct host_budget *budget; /* of scratch; borrowed; lanes may share it */
    struct host_team *team;     /* helps with large matrices; borrowed; or NULL */
    const struct process_faults *faults; /* borrowed; NULL: none */
};

/* Batches that are waiting in the lane already are served too. */
ERROR_MUST_CHECK enum error host_lane_create(const struct host_lane_options *options,
                                             struct host_lane **lane, struct failure *failure);
/* Lets the workers finish the chunks they hold, joins them and nulls *lane. */
void host_lane_destroy(struct host_lane **lane);

#endif
