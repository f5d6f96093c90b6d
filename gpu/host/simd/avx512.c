/* gpu/host/simd/avx512.c: inversions and updates of small.h with vectors of 64 bytes. Threads:
 * any. Cost: see small.h. */
#include "gpu/host/base/speed.h"

#include <float.h>
#include <math.h>
#include <immintrin.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/simd/lanes.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,prefer-vector-width=512")
#endif

#define VECTOR_BYTES 64
#define MAX_f32 _mm512_max_ps
#define MAX_f64 _mm512_max_pd
#define LANES_f32 LANES_16
#define LANES_f64 LANES_8

#define REAL_FILE "gpu/host/simd/code.inc"
#include "gpu/host/linalg/real.inc"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

const struct host_small_code host__small_avx512 = {
    .kernels = {[PRECISION_FP32] = "host lu simd avx512 f32",
                [PRECISION_FP64] = "host lu simd avx512 f64"},
    .vector_bytes = VECTOR_BYTES,
    .order_max = 8,
    .supported = supported,
    .invert_f32 = invert_f32,
    .invert_f64 = invert_f64,
    .update_f32 = update_f32,
    .update_f64 = update_f64,
};
