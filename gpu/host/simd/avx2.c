/* gpu/host/simd/avx2.c: inversions and updates of small.h with vectors of 32 bytes. Threads: any.
 * Cost: see small.h. */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <immintrin.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/simd/lanes.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define VECTOR_BYTES 32
#define MAX_f32 _mm256_max_ps
#define MAX_f64 _mm256_max_pd
#define LANES_f32 LANES_8
#define LANES_f64 LANES_4

#define REAL_FILE "gpu/host/simd/code.inc"
#include "gpu/host/linalg/real.inc"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

static bool supported(void)
{
    return __builtin_cpu_supports("avx2");
}

const struct host_small_code host__small_avx2 = {
    .kernels =
        {[PRECISION_FP32] = "host lu simd avx2 f32", [PRECISION_FP64] = "host lu simd avx2 f64"},
    .vector_bytes = VECTOR_BYTES,
    .order_max = HOST_SMALL_ORDER_MAX,
    .supported = supported,
    .invert_f32 = invert_f32,
    .invert_f64 = invert_f64,
    .update_f32 = update_f32,
    .update_f64 = update_f64,
};
