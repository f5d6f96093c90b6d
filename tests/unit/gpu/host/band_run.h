/* tests/unit/gpu/host/band_run.h: one run of the host's tridiagonal, on scratch and outputs that
 * start as noise and are guarded at both ends. */
#ifndef TESTS_UNIT_GPU_HOST_BAND_RUN_H
#define TESTS_UNIT_GPU_HOST_BAND_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/team.h"
#include "gpu/method.h"
#include "tests/unit/gpu/host/bands.h"

struct gputest_band_request {
    int variant;
    bool inverse, diagonal, generators; /* which outputs are asked for */
    struct method_range rows, columns;  /* end 0: all of them */
    struct host_team *team;             /* may be NULL */
};

/* What was not asked for is NULL. */
struct gputest_band_answer {
    double *x, *diagonal; /* x: as many rows and columns as were asked for */
    double *generators;   /* 4 n */
    int32_t *exponents;
    int32_t info, algorithm;
    double rcond;
};

struct gputest_band_answer gputest_band_run(const struct gputest_bands *a,
                                            const struct gputest_band_request *request);
void gputest_band_free(struct gputest_band_answer *answer);

/* |A|, in the 1-norm. */
long double gputest_band_norm(const struct gputest_bands *a);
/* The larger ratio of |I - X A| and |I - A X| to n |A| |X| eps, of a whole inverse. */
double gputest_band_ratio(const struct gputest_bands *a, const double *x);
/* The 1-norm of an n x n matrix. */
long double gputest_dense_norm(const double *x, int64_t n);

#endif
