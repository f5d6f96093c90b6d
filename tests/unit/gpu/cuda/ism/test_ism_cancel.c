/* The host's cases of terms that cancel, through the CUDA engine's kernels: see ism_host.h. */
#include "tests/unit/gpu/cuda/ism/ism_host.h"

#define CANCEL_STEP 5 /* the stand-in takes its time */
#include "tests/unit/gpu/host/ism/test_ism_cancel.c"
