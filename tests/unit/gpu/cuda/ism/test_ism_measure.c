/* The host's cases of what `ism` measures on request, and of updates of rank 0, through the CUDA
 * engine's kernels: see ism_host.h. Orders are smaller, and random matrices fewer here. */
#define MEASURED_ORDERS 1, 2, 7, 9, 33, 70
#define RANDOM_UPDATES 400

#include "tests/unit/gpu/cuda/ism/ism_host.h"

#include "tests/unit/gpu/host/ism/test_ism_measure.c"
