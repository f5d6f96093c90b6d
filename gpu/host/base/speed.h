/* gpu/host/base/speed.h: what the compiler needs to know in files whose loops over rows matter.
 * Include it first.
 *
 * Loops are unrolled and vectorised (-O3). Products and sums are never fused, so that the bits are
 * the same with every instruction set. HOST_AVX512, HOST_AVX2, HOST_FMA and HOST_FMA512 mark
 * functions for some of them.
 */
#ifndef GPU_HOST_BASE_SPEED_H
#define GPU_HOST_BASE_SPEED_H

#define HOST_INLINE static inline __attribute__((always_inline))

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#define HOST_AVX512 __attribute__((target("avx512f")))
#define HOST_FMA512 __attribute__((target("avx512f,fma")))
#else
#pragma GCC optimize("O3", "fp-contract=off")
#define HOST_AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
#define HOST_FMA512 __attribute__((target("avx512f,fma,prefer-vector-width=512")))
#endif
#define HOST_AVX2 __attribute__((target("avx2")))
#define HOST_FMA __attribute__((target("avx2,fma"))) /* its fma() is one instruction */

#endif
