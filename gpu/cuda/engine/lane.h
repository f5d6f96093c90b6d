/* gpu/cuda/engine/lane.h: serves one lane of the engine contract on the device, with one thread.
 *
 * It takes submitted batches in order, launches each at once on its slot's own stream, and reports
 * them in the order they end. Batches of the short lane go before those of the long one, and these
 * before the background's, where they wait for room on the device: that is the streams' priority.
 *
 * Idle it polls for a little while and then sleeps on the lane's futex. While something runs it
 * polls for a little while, and then looks with pauses that grow with the time since anything
 * happened; a new batch ends a pause.
 */
#ifndef GPU_CUDA_ENGINE_LANE_H
#define GPU_CUDA_ENGINE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "gpu/cuda/engine/device.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/engine.h"
#include "gpu/process/fault.h"

struct cuda_lane_options {
    struct engine_lane *lane;     /* borrowed for ever, like all of these */
    struct engine_shared *engine; /* whose lane it is */
    const struct cuda_device *device;
    struct region_map d_arena;
    struct cuda_pool *pool;
    int event_fd;
    enum engine_lane_id kind;
    int64_t spin_ns;                     /* how long it polls before it sleeps */
    const struct process_faults *faults; /* NULL: none */
};

/* Starts the thread, which serves until the process ends. Batches that are waiting already are
 * served too. What fails is logged. */
enum engine_exit cuda_lane_start(const struct cuda_lane_options *options);

#endif
