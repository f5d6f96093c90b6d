/* tests/unit/gpu/cuda/ism/ism_host.h: the CUDA engine's `ism`, run on the CPU, in the place of the
 * host's, so that the host's cases check it too. */
#ifndef TESTS_UNIT_GPU_CUDA_ISM_ISM_HOST_H
#define TESTS_UNIT_GPU_CUDA_ISM_ISM_HOST_H

#include "gpu/cuda/base/call.h"
#include "gpu/host/base/host.h"
#include "tests/unit/gpu/host/ism.h"

/* The one that includes this before the host's tests has them run the CUDA engine. */
#define host_method_ism_f32 cudatest_method_ism_f32
#define host_method_ism_f64 cudatest_method_ism_f64

extern const struct host_method cudatest_method_ism_f32, cudatest_method_ism_f64;

/* Recovers call->to_recover matrices, in a workspace of its own; the test fails where that does. */
void cudatest_recover_ism(struct cuda_call *call);

/* Runs a problem with A0_INVERSE alone, and frees it: INFO is 0, INVERSE right, RCOND NaN, and
 * METHOD as given, or METHOD_ALGORITHM_NONE: any. */
void cudatest_check_solution(struct ismtest_problem *problem, enum method_algorithm algorithm);

#endif
