/* tests/unit/gpu/host/matrices.h: matrices of known difficulty, one run of a method on one of them,
 * and the measure of its answer. Everything is held in double; FP32 cases hold rounded numbers.
 */
#ifndef TESTS_UNIT_GPU_HOST_MATRICES_H
#define TESTS_UNIT_GPU_HOST_MATRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/datatype.h"
#include "gpu/method.h"

#define GPUTEST_RATIO_MAX 15.0
#define GPUTEST_DGE_TYPES 11

double gputest_eps(enum precision precision);
/* Uniform in (-1, 1). */
double gputest_random(uint64_t *seed);
double *gputest_numbers(int64_t count); /* zeroed; free() */

/* Type 1..11 of LAPACK's dlatb4 for general matrices. mode: see tests/support/latms.h. */
void gputest_dge(int type, int mode, enum precision precision, int64_t n, uint64_t seed, double *a);
const char *gputest_dge_name(int type);
bool gputest_dge_singular(int type, int64_t n);

/* What a method of a dense A answered. inverse: its first output, where that is n x n; else zeros.
 */
struct gputest_answer {
    double *inverse; /* n x n */
    int32_t *pivots; /* n */
    int32_t info, algorithm;
    double rcond;
    double residuals[2]; /* by enum method_side: the outputs RESIDUAL_LEFT and _RIGHT; or 0 */
    int64_t n;
};

/* The methods that invert a dense A (gpu/method.h), by the order of their names: so many, and the
 * name of each. */
size_t gputest_inverters(void);
const char *gputest_inverter(size_t place);
/* May it not converge? */
bool gputest_iterates(const char *method);

/* A function that the host engine has for each precision. */
#define GPUTEST_OF(precision, name) ((precision) == PRECISION_FP32 ? name##_f32 : name##_f64)

/* Does the engine that gputest_run asks take this? The host's own code takes everything. */
bool gputest_takes(const char *method, enum precision precision, int64_t n);
/* The algorithm its `auto` takes where the host's takes `of_host`. */
enum method_algorithm gputest_algorithm(enum method_algorithm of_host, int64_t n);
/* Runs a method on one matrix, on the engine process that the environment's INVERTD_ENGINE names
 * (a path) or else by the host's code in this process. The numbers must suit the precision. Inputs
 * and outputs are aligned to their element only; fails the test when the input is changed or a
 * byte beyond an output is written. */
struct gputest_answer gputest_run(const char *method, enum precision precision, int64_t n,
                                  const double *a, bool spd);
void gputest_free(struct gputest_answer *answer);

/* |I - X A| to 113 bits: at a condition of 1e6 long double would not do. */
double gputest_exact_residual(int64_t n, const double *x, const double *a);
/* |I - X A| / (n |A| |X| eps) */
double gputest_inverse_ratio(enum precision precision, int64_t n, const double *a, const double *x);
/* |P A - L U| / (n |A| eps) */
double gputest_factor_ratio(enum precision precision, int64_t n, const double *a,
                            const struct gputest_answer *answer);

#endif
