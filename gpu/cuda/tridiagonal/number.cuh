/* gpu/cuda/tridiagonal/number.cuh: numbers with an exponent of their own, for quantities that leave
 * the range of double: minors and products of many ratios. Device code, any thread.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_NUMBER_CUH
#define GPU_CUDA_TRIDIAGONAL_NUMBER_CUH

#include <stdint.h>

#include "gpu/cuda/base/real.cuh"

/* mantissa * 2^exponent; the mantissa is 0 or of a magnitude in [1/2, 1). */
struct __align__(16) cuda__number
{
    double mantissa;
    int64_t exponent;
};

/* A factor in place of zero, for generators are divided by it: so small that what holds it once
 * comes out as zero, whatever else it holds. A chain of 2^24 of them fits an exponent. */
#define CUDA__NOTHING (INT64_C(1) << 38)
#define CUDA__EXPONENT_BIAS 1023

/* 2^exponent, -1022 <= exponent <= 1023. */
static __device__ __forceinline__ double cuda__power_of_two(int exponent)
{
    return __hiloint2double((exponent + CUDA__EXPONENT_BIAS) << 20, 0);
}

/* x * 2^exponent for -2000 <= exponent <= 2000: only the last product rounds. */
static __device__ __forceinline__ double cuda__scale(double x, int exponent)
{
    int half = exponent / 2;
    return x * cuda__power_of_two(half) * cuda__power_of_two(exponent - half);
}

/* The biased exponent, 0 for zeros and subnormal numbers. */
static __device__ __forceinline__ int cuda__biased(double x)
{
    return __double2hiint(x) >> 20 & 0x7ff;
}

/* Of any finite double. */
static __device__ __forceinline__ cuda__number cuda__normal(double x, int64_t exponent)
{
    if (cuda__biased(x) == 0) {
        x *= 0x1p64;
        exponent -= 64;
    }
    if (x == 0)
        return {0, 0};
    int high = __double2hiint(x);
    exponent += (high >> 20 & 0x7ff) - (CUDA__EXPONENT_BIAS - 1);
    high = (high & ~0x7ff00000) | (CUDA__EXPONENT_BIAS - 1) << 20;
    return {__hiloint2double(high, __double2loint(x)), exponent};
}

static __device__ __forceinline__ cuda__number cuda__times(cuda__number a, cuda__number b)
{
    return cuda__normal(a.mantissa * b.mantissa, a.exponent + b.exponent);
}

static __device__ __forceinline__ cuda__number cuda__over(cuda__number a, cuda__number b)
{
    return cuda__normal(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

/* 1 / a, within an ulp. */
static __device__ __forceinline__ cuda__number cuda__inverse(cuda__number a)
{
    return cuda__normal(cuda__real<double>::reciprocal(a.mantissa), -a.exponent);
}

static __device__ __forceinline__ cuda__number cuda__plus(cuda__number a, cuda__number b)
{
    if (a.mantissa == 0 || (b.mantissa != 0 && b.exponent > a.exponent)) {
        cuda__number swapped = a;
        a = b;
        b = swapped;
    }
    int64_t down = a.exponent - b.exponent;
    double small = b.mantissa == 0 || down > 200 ? 0 : cuda__scale(b.mantissa, -(int)down);
    return cuda__normal(a.mantissa + small, a.exponent);
}

static __device__ __forceinline__ cuda__number cuda__magnitude(cuda__number a)
{
    return {fabs(a.mantissa), a.exponent};
}

/* Of numbers that are not negative. */
static __device__ __forceinline__ bool cuda__is_larger(cuda__number a, cuda__number b)
{
    if (a.mantissa == 0 || b.mantissa == 0)
        return a.mantissa > b.mantissa;
    return a.exponent != b.exponent ? a.exponent > b.exponent : a.mantissa > b.mantissa;
}

/* As a double: 0 or infinite where it is out of range. */
static __device__ __forceinline__ double cuda__assemble(double mantissa, int64_t exponent)
{
    if (exponent < -2000)
        return 0;
    return cuda__scale(mantissa, exponent > 2000 ? 2000 : (int)exponent);
}

/* a * b as a double, rounded once; zeros have its sign. */
static __device__ __forceinline__ double cuda__product(cuda__number a, cuda__number b)
{
    int64_t exponent = a.exponent + b.exponent;
    if (exponent < -2000)
        return copysign(0.0, a.mantissa * b.mantissa);
    int all = exponent > 2000 ? 2000 : (int)exponent, half = all / 2;
    return a.mantissa * cuda__power_of_two(half) * (b.mantissa * cuda__power_of_two(all - half));
}

#endif
