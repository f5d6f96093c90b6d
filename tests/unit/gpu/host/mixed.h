/* tests/unit/gpu/host/mixed.h: a batch whose items want RESIDUAL_LEFT, RESIDUAL_RIGHT, both or
 * none, and the measure of what they got. Its matrices are random, singular, such that partial
 * pivoting spoils their inverse, and such that one residual is far larger than the other.
 */
#ifndef TESTS_UNIT_GPU_HOST_MIXED_H
#define TESTS_UNIT_GPU_HOST_MIXED_H

#include "tests/unit/gpu/host/bed.h"

struct gputest_mixed {
    const char *method;
    enum precision precision;
    int64_t n;
};

/* The next batch of the lane, filled. */
struct engine_batch *gputest_mixed_next(struct gputest_bed *bed, enum engine_lane_id lane,
                                        const struct gputest_mixed *row);
/* The test fails where a residual is off by more than `slack` and a hundredth. Returns how far
 * apart the two of a matrix were, at most: much, of `lu` from n = 20 on. */
double gputest_mixed_check(const struct gputest_bed *bed, const struct engine_batch *batch,
                           double slack);

#endif
