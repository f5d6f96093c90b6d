/* The host's cases of `iterative` with a tolerance, through the CUDA engine's kernels: see
 * iter_host.h. */
#include "tests/unit/gpu/cuda/iter_host.h"

#define host_method_at cudatest_iterative_at
#include "tests/unit/gpu/host/iterate.c"
#include "tests/unit/gpu/host/test_iterative_tolerance.c"
