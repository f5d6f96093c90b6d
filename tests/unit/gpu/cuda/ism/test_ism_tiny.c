/* The host's cases of a tiny A0, through the CUDA engine's kernels: see ism_host.h. There are fewer
 * random ones here. */
#define RANDOM_MATRICES 800

#include "tests/unit/gpu/cuda/ism/ism_host.h"

#include "tests/unit/gpu/host/ism/test_ism_tiny.c"
