/* tests/unit/gpu/host/ism.h: problems for `ism`, one run of the host's code on one, and the
 * measures of its answer. Everything is held in double; FP32 problems hold rounded numbers.
 */
#ifndef TESTS_UNIT_GPU_HOST_ISM_H
#define TESTS_UNIT_GPU_HOST_ISM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"
#include "gpu/host/base/team.h"
#include "gpu/methods/ism.h"

/* What is given next to X and Y; ALONE: A in place of all. */
enum ismtest_kind {
    ISMTEST_DEFAULT,
    ISMTEST_SCALE,
    ISMTEST_DIAGONAL,
    ISMTEST_INVERSE,
    ISMTEST_INVERSE_AND_A0,
    ISMTEST_ALONE,
    ISMTEST_KINDS
};

struct ismtest_problem {
    enum precision precision;
    enum ismtest_kind kind;
    int64_t n, m;
    int64_t variant, block_size;
    double *x, *y; /* n x m */
    double *a0;    /* n x n */
    double *b;     /* n x n: A0_INVERSE, or NULL */
    double *a;     /* n x n: A0 + X Y^T, rounded once */
};

/* Well conditioned; A0 is what the kind has, and A alone has m = n. */
struct ismtest_problem ismtest_problem(enum precision precision, enum ismtest_kind kind, int64_t n,
                                       int64_t m, uint64_t seed);
/* All zero but A0 = I. The caller fills it and calls ismtest_complete. */
struct ismtest_problem ismtest_blank(enum precision precision, enum ismtest_kind kind, int64_t n,
                                     int64_t m);
/* Rounds what is given to the precision; sets a, and b by lu where the kind has it. */
void ismtest_complete(struct ismtest_problem *problem);
/* Makes a the sum to 113 bits, rounded to double: where terms cancel, no A formed in the precision
 * or in long double is near enough. */
void ismtest_sum_exactly(struct ismtest_problem *problem);
void ismtest_free(struct ismtest_problem *problem);

struct ismtest_answer {
    double *inverse;      /* n x n; NULL: unwanted */
    double *u, *r, *v;    /* NULL: unwanted */
    unsigned char *bytes; /* the inverse's own bits */
    int64_t byte_count;
    int64_t touched_bytes; /* of scratch, by pages that were written */
    int64_t scratch_bytes;
    int32_t info, algorithm;
    double rcond, det_ratio;
    double residual, rcond_capacitance; /* where they are wanted */
};

#define ISMTEST_INVERSE_WANTED 1
#define ISMTEST_FACTORS_WANTED 2
#define ISMTEST_DET_RATIO_UNWANTED 4
#define ISMTEST_MEASURES_WANTED 8
/* Tensors lie off their alignment; fails the test when an input is changed or a byte beyond an
 * output is written. */
struct ismtest_answer ismtest_run(const struct ismtest_problem *problem, int wanted,
                                  struct host_team *team);
void ismtest_forget(struct ismtest_answer *answer);

/* One number, or both are NaN. */
static inline bool ismtest_same(double one, double other)
{
    return one == other || (isnan(one) && isnan(other));
}

/* How many answers were wrong: tests that try many tell of each, and fail at the end. */
extern int ismtest_wrongs;
void ismtest_tell(const struct ismtest_problem *problem, const char *what, double value);

/* Updates an A0^-1 so small that A0 would overflow: its numbers have a digit or two, and no answer
 * may count as good. */
void ismtest_too_small(enum precision precision, int64_t n, int64_t m);

/* det(A) / det(A0), in double. */
double ismtest_det_ratio(const struct ismtest_problem *problem);
/* |A0 Z A0 - (A0 - U R V^T)| / (n |A0|^2 |Z| eps) */
double ismtest_factors_ratio(const struct ismtest_problem *problem,
                             const struct ismtest_answer *answer);
/* Of an update of A0^-1 alone: |A0^-1 - Z M| / (n |Z| (1 + |M - I|) eps), M = I + X Y^T A0^-1. */
double ismtest_solution_ratio(const struct ismtest_problem *problem, const double *z);

#endif
