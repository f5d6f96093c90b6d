/* tests/unit/cuda/ism_host.h: the CUDA engine's `ism`, run on the CPU, in the place of the host's,
 * so that the host's cases try it too. */
#ifndef TESTS_UNIT_CUDA_ISM_HOST_H
#define TESTS_UNIT_CUDA_ISM_HOST_H

#include "gpu/host/host.h"

/* Whoever includes this before the host's tests has them try the CUDA engine. */
#define host_method_ism cudatest_method_ism

extern const struct host_method cudatest_method_ism;

#endif
