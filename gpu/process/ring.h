/* gpu/process/ring.h: the engine's side of a lane's ring: which batch is the next, sleeping until
 * there is one, notifying the front that one is done. gpu/engine.h has the rules.
 *
 * Threads: any; an engine sees to it that one thread at a time takes batches.
 */
#ifndef GPU_PROCESS_RING_H
#define GPU_PROCESS_RING_H

#include <stdint.h>

#include "gpu/engine.h"

#define PROCESS_RING_FOR_EVER (-1)

/* How many batches were taken before us: those that are SUBMITTED are the last in the ring. */
uint32_t process_ring_first(const struct engine_lane *lane);

/* SUBMITTED to RUNNING. Does not return where the front has taken the batch back: that it does when
 * this process is ending. */
void process_ring_begin(struct engine_batch *batch);

/* Sleeps while lane->submitted is `seen`, timeout_ns at most. Returns early at times. */
void process_ring_sleep(struct engine_lane *lane, uint32_t seen, int64_t timeout_ns);
/* Ends every sleep in process_ring_sleep. */
void process_ring_wake(struct engine_lane *lane);

/* Call after DONE has been stored, with sequential consistency: the front's own sleep is decided by
 * that state and front_waits together. */
void process_ring_notify(struct engine_lane *lane, int event_fd);

#endif
