/* The host's cases of the starts of `iterative`, through the CUDA engine's kernels: see
 * iter_host.h.
 */
#include "tests/unit/gpu/cuda/iter_host.h"

#define host_method_at cudatest_iterative_at
#define FAMILY 100 /* the stand-in takes its time */
#include "tests/unit/gpu/host/iterate.c"
#include "tests/unit/gpu/host/test_iterative_starts.c"
