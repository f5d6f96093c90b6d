/* tests/unit/gpu/host/iterate.h: one run of `iterative` with all that it takes and gives, on the
 * host's code in this process. Everything is held in double; FP32 cases round it.
 */
#ifndef TESTS_UNIT_GPU_HOST_ITERATE_H
#define TESTS_UNIT_GPU_HOST_ITERATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"
#include "gpu/host/base/team.h"
#include "gpu/methods/iterative.h"

struct host_progress;

struct gputest_iterate {
    enum precision precision;
    int64_t n;
    const double *a, *v0; /* v0 NULL: none */
    double tolerance;
    int64_t max_iterations; /* 0: the default */
    enum method_iterative_scheme scheme;
    enum method_iterative_initial initial;
    struct host_team *team;
    bool bare;                      /* neither INVERSE nor RESIDUAL_HISTORY is wanted */
    bool unmeasured;                /* neither RESIDUAL nor RESIDUAL_HISTORY is wanted */
    struct host_progress *progress; /* NULL: no one is reported */
};

/* History and residual are of no use where they are not wanted. */
struct gputest_iterated {
    double *inverse; /* n x n; zeros when bare */
    double history[METHOD_ITERATIVE_ITERATIONS_MAX];
    int64_t history_length;
    int32_t info, iterations, algorithm;
    double rcond, residual;
};

/* Inputs are aligned to their element only; fails the test when one is changed, or when a byte
 * behind an output is written. */
struct gputest_iterated gputest_iterate(const struct gputest_iterate *task);
void gputest_iterated_free(struct gputest_iterated *result);
/* The same bits in everything? */
bool gputest_iterated_equal(const struct gputest_iterated *a, const struct gputest_iterated *b,
                            int64_t n);

#endif
