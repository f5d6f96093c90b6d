/* gpu/cuda/base/norm.cuh: what sums of magnitudes become. Device code; any thread. */
#ifndef GPU_CUDA_BASE_NORM_CUH
#define GPU_CUDA_BASE_NORM_CUH

#include <math.h>

#include "gpu/cuda/base/real.cuh"

/* A norm as fraction * 2^exponent, fraction in [1/2, 1) or 0. */
struct cuda_norm {
    double fraction;
    int32_t exponent;
    int32_t finite; /* 0: a sum is beyond the precision's range, or an entry is not finite */
};

/* The larger of two sums; a NaN stays. */
static __device__ __forceinline__ double cuda__larger(double one, double other)
{
    return other > one || other != other ? other : one;
}

/* Is a sum within the precision's range? */
template <typename T> static __device__ __forceinline__ bool cuda__norm_is_finite(double sum)
{
    return sum <= (double)cuda__real<T>::largest;
}

/* The largest sum as a norm of the precision. */
template <typename T> static __device__ __forceinline__ struct cuda_norm cuda__norm_of(double sum)
{
    struct cuda_norm norm = {0, 0, cuda__norm_is_finite<T>(sum)};
    int exponent = 0;
    if (norm.finite)
        norm.fraction = frexp(sum, &exponent);
    norm.exponent = exponent;
    return norm;
}

#endif
