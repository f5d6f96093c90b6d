/* The host's cases of a tiny A0, through the CUDA engine's kernels: see ism_host.h. There are fewer
 * random ones here. */
#define RANDOM_MATRICES 800
/* A GPU does not scale A0: below it some matrices have INFO n+1, or a zero pivot. */
#define TINIEST_F32 (-68)
#define TINIEST_F64 (-840)
#define SIZES_SHARE 1024
#define OVERFLOWS_TO_LU

#include "tests/unit/gpu/cuda/ism/ism_host.h"

#include "tests/unit/gpu/host/ism/test_ism_tiny.c"
