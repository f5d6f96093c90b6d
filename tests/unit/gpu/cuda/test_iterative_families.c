/* The host's families of random matrices for `iterative`, through the CUDA engine's kernels: see
 * iter_host.h. */
#include "tests/unit/gpu/cuda/iter_host.h"

#define host_method_at cudatest_iterative_at
#define FAMILY 150 /* the stand-in takes its time */
#define LARGE 66
#include "tests/unit/gpu/host/iterate.c"
#include "tests/unit/gpu/host/test_iterative_families.c"
