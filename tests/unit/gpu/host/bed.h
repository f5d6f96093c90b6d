/* tests/unit/gpu/host/bed.h: plays the front: an arena, a pair of lanes, an event descriptor,
 * batches.
 *
 * Serves a lane in this process (host_lane_create) and an engine process alike. One thread.
 */
#ifndef TESTS_UNIT_GPU_HOST_BED_H
#define TESTS_UNIT_GPU_HOST_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/engine.h"

struct gputest_bed {
    int arena_fd, shared_fd, event_fd;
    unsigned char *arena;
    uint64_t arena_bytes, used_bytes;
    struct engine_shared *shared;
    uint32_t submitted[ENGINE_LANES];
};

void gputest_bed_create(struct gputest_bed *bed, uint64_t arena_bytes);
void gputest_bed_destroy(struct gputest_bed *bed);
/* New lanes over the old arena, as the front makes them when an engine has died. */
void gputest_bed_renew(struct gputest_bed *bed);

/* Takes bytes of the arena, never given back but by reset. Aligned to `align`, and to no more. */
uint64_t gputest_bed_take(struct gputest_bed *bed, int64_t bytes, int64_t align);
void gputest_bed_reset(struct gputest_bed *bed);

/* The lane's next batch, which must be FREE: zeroed but for its place. */
struct engine_batch *gputest_bed_next(struct gputest_bed *bed, enum engine_lane_id lane,
                                      const char *method, enum precision precision, int64_t n);
/* Adds an item of `count` matrices with every tensor in fresh arena memory, but optional inputs,
 * which are absent; outputs are poisoned with 0xA5. Returns it. */
struct engine_item *gputest_bed_item(struct gputest_bed *bed, struct engine_batch *batch,
                                     int64_t count);
/* An item goes without an output, and without those that are made of it. */
void gputest_bed_drop(const struct engine_batch *batch, struct engine_item *item, int output);
void gputest_bed_submit(struct gputest_bed *bed, enum engine_lane_id lane,
                        struct engine_batch *batch);
/* Waits as the front does: asks for the event, looks once more, reads the event. False after
 * timeout_ms. */
bool gputest_bed_wait(struct gputest_bed *bed, enum engine_lane_id lane, struct engine_batch *batch,
                      int timeout_ms);
/* Back to FREE. */
void gputest_bed_release(struct engine_batch *batch);

#endif
