/* gpu/cuda/base/real.cuh: what differs between float and double in a kernel. Device code, any
 * thread. */
#ifndef GPU_CUDA_BASE_REAL_CUH
#define GPU_CUDA_BASE_REAL_CUH

#include <stdint.h>

#include "gpu/cuda/base/ptx.cuh"

template <typename T> struct cuda__real;

template <> struct cuda__real<float> {
    typedef float4 vector; /* 16 bytes */
    static constexpr int width = 4;
    static constexpr float eps = 0x1p-23f;
    static constexpr float largest = 0x1.fffffep127f;
    static constexpr float min_safe = 0x1p-126f; /* of these and above 1/x is finite */
    static constexpr float max_safe = 0x1p126f;  /* of these and below 1/x is normal */
    /* A norm beyond these bounds is scaled by these powers of two before the work. */
    static constexpr float tiny = 0x1p-102f, raise = 0x1p48f;
    static constexpr float huge = 0x1p104f, lower = 0x1p-24f;

    /* The leading 32 bits. */
    static __device__ __forceinline__ uint32_t lead(float x)
    {
        return __float_as_uint(x);
    }
    /* The others. */
    static __device__ __forceinline__ uint32_t rest(float)
    {
        return 0;
    }
    static __device__ __forceinline__ float of(uint32_t lead, uint32_t)
    {
        return __uint_as_float(lead);
    }
    static __device__ __forceinline__ float nan()
    {
        return __uint_as_float(0x7fc00000u);
    }
    /* Rounded, whatever comes behind it: never a part of an FMA. */
    static __device__ __forceinline__ float times(float x, float y)
    {
        return __fmul_rn(x, y);
    }
    /* Within an ulp of 1/x where both are normal numbers; NaN for 0. */
    static __device__ __forceinline__ float reciprocal(float x)
    {
        float r = cuda__estimate_reciprocal(x);
        return fmaf(r, fmaf(-x, r, 1.0f), r);
    }
};

template <> struct cuda__real<double> {
    typedef double2 vector;
    static constexpr int width = 2;
    static constexpr double eps = 0x1p-52;
    static constexpr double largest = 0x1.fffffffffffffp1023;
    static constexpr double min_safe = 0x1p-1022;
    static constexpr double max_safe = 0x1p1022;
    static constexpr double tiny = 0x1p-969, raise = 0x1p106;
    static constexpr double huge = 0x1p971, lower = 0x1p-53;

    static __device__ __forceinline__ uint32_t lead(double x)
    {
        return (uint32_t)__double2hiint(x);
    }
    static __device__ __forceinline__ uint32_t rest(double x)
    {
        return (uint32_t)__double2loint(x);
    }
    static __device__ __forceinline__ double of(uint32_t lead, uint32_t rest)
    {
        return __hiloint2double((int)lead, (int)rest);
    }
    static __device__ __forceinline__ double nan()
    {
        return __longlong_as_double(0x7ff8000000000000ll);
    }
    static __device__ __forceinline__ double times(double x, double y)
    {
        return __dmul_rn(x, y);
    }
    /* From 20 bits to all by one step of third order. */
    static __device__ __forceinline__ double reciprocal(double x)
    {
        double r = cuda__estimate_reciprocal(x);
        double e = fma(-x, r, 1.0);
        return fma(r, fma(e, e, e), r);
    }
};

/* Halves are added, for the sum of two numbers might overflow. The same either way round. */
template <typename T> static __device__ __forceinline__ T cuda__mean(T one, T other)
{
    return one == other ? one : one / 2 + other / 2;
}

#endif
