/* tests/unit/gpu/cuda/flight_bed.h: two flights of a lane, and a batch for each, on the SIMT
 * stand-in. A test fails where something goes wrong. One thread.
 */
#ifndef TESTS_UNIT_GPU_CUDA_FLIGHT_BED_H
#define TESTS_UNIT_GPU_CUDA_FLIGHT_BED_H

#include "gpu/cuda/engine/flight.h"
#include "gpu/cuda/tridiagonal/call.h"

#define FLIGHTBED_N 520 /* a part of the workspace for each matrix */
#define FLIGHTBED_MATRICES 3
#define FLIGHTBED_ARENA_BYTES ((size_t)64 << 20)
#define FLIGHTBED_PART_BYTES                                                                       \
    ((size_t)cuda__tri_part_bytes(FLIGHTBED_N, 0)) /* what one matrix needs */

struct flightbed {
    struct cuda_device device;
    struct cuda_pool *pool;
    struct cuda_flight_lane lane;
    struct cuda_flight flights[2];
    struct engine_batch *batches[2];
    unsigned char *arena;
};

/* bytes_max: the pool's budget. The batches are filled. For flightbed_close(), when every block has
 * come back. */
void flightbed_open(struct flightbed *bed, size_t bytes_max);
void flightbed_close(struct flightbed *bed);

/* Batch `index`, SUBMITTED: (-1, 3, -1) for `tridiagonal`, FLIGHTBED_MATRICES times, in a half of
 * the arena. */
void flightbed_fill(struct flightbed *bed, int index);
void flightbed_assert_done(const struct engine_batch *batch, const struct flightbed *bed);
/* The batch of flight `index` was left, as unwanted. */
void flightbed_assert_stopped(const struct flightbed *bed, int index);

/* cuda_flight_look now. */
bool flightbed_look(struct flightbed *bed, int index);

#endif
