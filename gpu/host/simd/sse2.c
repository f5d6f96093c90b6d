/* gpu/host/simd/sse2.c: inversions and updates of small.h with vectors of 16 bytes, which every
 * x86-64 has. Threads: any. Cost: see small.h. */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <emmintrin.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/simd/lanes.h"

#define VECTOR_BYTES 16
#define MAX_f32 _mm_max_ps
#define MAX_f64 _mm_max_pd
#define LANES_f32 LANES_4
#define LANES_f64 LANES_2

#define REAL_FILE "gpu/host/simd/code.inc"
#include "gpu/host/linalg/real.inc"

static bool supported(void)
{
    return true;
}

const struct host_small_code host__small_sse2 = {
    .kernels =
        {[PRECISION_FP32] = "host lu simd sse2 f32", [PRECISION_FP64] = "host lu simd sse2 f64"},
    .vector_bytes = VECTOR_BYTES,
    .order_max = HOST_SMALL_ORDER_MAX,
    .supported = supported,
    .invert_f32 = invert_f32,
    .invert_f64 = invert_f64,
    .update_f32 = update_f32,
    .update_f64 = update_f64,
};
