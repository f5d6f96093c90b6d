/* tests/unit/cuda/ism_truth.h: the error of an update of a known inverse, in more than twice the
 * precision. */
#ifndef TESTS_UNIT_CUDA_ISM_TRUTH_H
#define TESTS_UNIT_CUDA_ISM_TRUTH_H

#include "tests/unit/gpu/ism.h"

/* |A0^-1 - Z M| / (n eps |Z| (1 + |M - I|)), M = I + X Y^T A0^-1; of a problem with A0_INVERSE. */
double ismtest_update_ratio(const struct ismtest_problem *problem, const double *inverse);

#endif
