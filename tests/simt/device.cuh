/* tests/simt/device.cuh: the words of the CUDA device language for g++, in the SIMT stand-in
 * (simt.h). Included by force before every .cu file. What a warp's lanes do together is a meeting
 * of fibers; its result each lane works out for itself from what the others gave.
 *
 * Calls note where they stand in the source (SIMT_CALL), for reports. Threads: fibers.
 */
#ifndef TESTS_SIMT_DEVICE_CUH
#define TESTS_SIMT_DEVICE_CUH

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

#include "simt.h"

/* ---- Words ---- */

#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/* Static storage, where a function declares it; and `extern` may stand before it. */
#define __shared__ thread_local

/* Of a call: its name, and the place of the caller. */
#define SIMT_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SIMT_CALL (simt_call{__func__, file, line})

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments)
{
    auto body = [=] { kernel((Parameters)arguments...); };
    static_assert(std::is_trivially_copyable<decltype(body)>::value, "it may be kept for later");
    static_assert(sizeof body <= SIMT_CLOSURE_MAX, "a kernel's parameters");
    return simt_launch(
        config, (const void *)kernel,
        [](const void *closure) { (*(const decltype(body) *)closure)(); }, &body, sizeof body);
}

/* ---- Vectors ---- */

#define SIMT_VECTORS(type, name, align)                                                            \
    struct alignas(2 * sizeof(type)) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct alignas(align) name##4                                                                  \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
SIMT_VECTORS(float, float, 16)
SIMT_VECTORS(double, double, 16)
SIMT_VECTORS(int, int, 16)
SIMT_VECTORS(unsigned, uint, 16)

/* ---- Bits and numbers ---- */

template <typename To, typename From> static inline To simt_cast(From from)
{
    static_assert(sizeof(To) <= sizeof(uint64_t) && sizeof(From) <= sizeof(uint64_t), "one word");
    uint64_t word = 0;
    To to;
    memcpy(&word, &from, sizeof from);
    memcpy(&to, &word, sizeof to);
    return to;
}

static inline uint32_t __float_as_uint(float x)
{
    return simt_cast<uint32_t>(x);
}

static inline float __uint_as_float(uint32_t x)
{
    return simt_cast<float>(x);
}

static inline long long __double_as_longlong(double x)
{
    return simt_cast<long long>(x);
}

static inline double __longlong_as_double(long long x)
{
    return simt_cast<double>(x);
}

static inline int __double2hiint(double x)
{
    return (int)(simt_cast<uint64_t>(x) >> 32);
}

static inline int __double2loint(double x)
{
    return (int)simt_cast<uint64_t>(x);
}

static inline double __hiloint2double(int high, int low)
{
    return simt_cast<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

/* Rounded each, never fused. */
static inline double __dmul_rn(double x, double y)
{
    return x * y;
}

static inline float __fmul_rn(float x, float y)
{
    return x * y;
}

static inline double __dadd_rn(double x, double y)
{
    return x + y;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

template <typename T> static constexpr T min(T x, T y)
{
    return y < x ? y : x;
}

template <typename T> static constexpr T max(T x, T y)
{
    return x < y ? y : x;
}

/* ---- Lanes together ---- */

template <typename T> static inline simt_words simt_word(T value)
{
    return simt_words{{simt_cast<uint64_t>(value), 0}};
}

static inline unsigned simt_lane()
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % SIMT_WARP;
}

static inline void __syncwarp(unsigned mask = ~0u, SIMT_CALLER)
{
    simt_meet(SIMT_CALL, mask, simt_words{}, true);
}

/* The lane reads another's value, of its own group of `width` lanes. */
template <typename T>
static inline T simt_shuffle(simt_call call, unsigned mask, T value, unsigned from)
{
    const simt_party *party = simt_meet(call, mask, simt_word(value), false);
    if (!(party->lanes >> from & 1))
        simt_fail(call, "it asks a lane that takes no part");
    return simt_cast<T>(party->given[from].word[0]);
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = SIMT_WARP, SIMT_CALLER)
{
    unsigned group = simt_lane() / (unsigned)width * (unsigned)width;
    return simt_shuffle(SIMT_CALL, mask, value, group + (unsigned)from % (unsigned)width);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = SIMT_WARP,
                                SIMT_CALLER)
{
    unsigned from = simt_lane() ^ (unsigned)bits;
    bool beyond = from / (unsigned)width > simt_lane() / (unsigned)width;
    return simt_shuffle(SIMT_CALL, mask, value, beyond ? simt_lane() : from);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = SIMT_WARP,
                               SIMT_CALLER)
{
    bool beyond = simt_lane() % (unsigned)width < by;
    return simt_shuffle(SIMT_CALL, mask, value, simt_lane() - (beyond ? 0 : by));
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = SIMT_WARP,
                                 SIMT_CALLER)
{
    bool beyond = simt_lane() % (unsigned)width + by >= (unsigned)width;
    return simt_shuffle(SIMT_CALL, mask, value, simt_lane() + (beyond ? 0 : by));
}

static inline unsigned simt_ballot(simt_call call, unsigned mask, bool yes)
{
    const simt_party *party = simt_meet(call, mask, simt_word(yes), false);
    unsigned ballot = 0;
    for (int lane = 0; lane < SIMT_WARP; lane++)
        ballot |= (unsigned)party->given[lane].word[0] << lane;
    return ballot;
}

static inline unsigned __ballot_sync(unsigned mask, int yes, SIMT_CALLER)
{
    return simt_ballot(SIMT_CALL, mask, yes != 0);
}

static inline int __any_sync(unsigned mask, int yes, SIMT_CALLER)
{
    return simt_ballot(SIMT_CALL, mask, yes != 0) != 0;
}

static inline int __all_sync(unsigned mask, int yes, SIMT_CALLER)
{
    return simt_ballot(SIMT_CALL, mask, yes == 0) == 0;
}

template <typename T, typename F>
static inline T simt_reduce(simt_call call, unsigned mask, T value, F join)
{
    const simt_party *party = simt_meet(call, mask, simt_word(value), false);
    T result = value;
    for (unsigned left = party->lanes & ~(1u << simt_lane()); left; left &= left - 1)
        result = join(result, simt_cast<T>(party->given[__builtin_ctz(left)].word[0]));
    return result;
}

#define SIMT_REDUCE(name, type, expression)                                                        \
    static inline type name(unsigned mask, type value, SIMT_CALLER)                                \
    {                                                                                              \
        return simt_reduce(SIMT_CALL, mask, value, [](type x, type y) { return expression; });     \
    }
SIMT_REDUCE(__reduce_max_sync, int, (x > y ? x : y))
SIMT_REDUCE(__reduce_max_sync, unsigned, (x > y ? x : y))
SIMT_REDUCE(__reduce_min_sync, int, (x < y ? x : y))
SIMT_REDUCE(__reduce_min_sync, unsigned, (x < y ? x : y))
SIMT_REDUCE(__reduce_add_sync, int, (int)((unsigned)x + (unsigned)y))
SIMT_REDUCE(__reduce_add_sync, unsigned, x + y)
SIMT_REDUCE(__reduce_or_sync, unsigned, x | y)

static inline void __syncthreads(SIMT_CALLER)
{
    simt_meet_block(SIMT_CALL, false);
}

static inline int __syncthreads_count(int yes, SIMT_CALLER)
{
    return (int)simt_meet_block(SIMT_CALL, yes != 0).word[0];
}

static inline int __syncthreads_or(int yes, SIMT_CALLER)
{
    return simt_meet_block(SIMT_CALL, yes != 0).word[0] != 0;
}

static inline int __syncthreads_and(int yes, SIMT_CALLER)
{
    simt_words votes = simt_meet_block(SIMT_CALL, yes != 0);
    return votes.word[0] == votes.word[1];
}

static inline void __nanosleep(unsigned)
{
    simt_pause();
}

/* Atomics and barriers order memory here. */
static inline void __threadfence()
{
}

/* ---- Atomics ---- */

template <typename T> static inline T atomicAdd(T *to, typename std::common_type<T>::type value)
{
    static_assert(std::is_integral<T>::value, "of whole numbers");
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

template <typename T> static inline T atomicOr(T *to, typename std::common_type<T>::type value)
{
    static_assert(std::is_integral<T>::value, "of whole numbers");
    return __atomic_fetch_or(to, value, __ATOMIC_RELAXED);
}

/* *to becomes the value where it comes before what is there. Returns what was there. */
template <typename T, typename F> static inline T simt_exchange(T *to, T value, F comes_before)
{
    T old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (comes_before(value, old) &&
           !__atomic_compare_exchange_n(to, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return old;
}

template <typename T> static inline T atomicMax(T *to, typename std::common_type<T>::type value)
{
    return simt_exchange(to, value, [](T x, T y) { return x > y; });
}

template <typename T> static inline T atomicMin(T *to, typename std::common_type<T>::type value)
{
    return simt_exchange(to, value, [](T x, T y) { return x < y; });
}

#endif
