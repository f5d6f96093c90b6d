/* gpu/cuda/norm.cuh: what sums of magnitudes become. Device code; any thread. */
#ifndef GPU_CUDA_NORM_CUH
#define GPU_CUDA_NORM_CUH

#include <math.h>

#include "gpu/cuda/identify.h"
#include "gpu/cuda/real.cuh"

/* The larger of two sums; a NaN stays. */
static __device__ __forceinline__ double cuda__larger(double one, double other)
{
    return other > one || other != other ? other : one;
}

/* The largest sum as a norm of the precision. */
template <typename T> static __device__ __forceinline__ struct cuda_norm cuda__norm_of(double sum)
{
    struct cuda_norm norm = {0, 0, sum <= (double)cuda__real<T>::largest};
    int exponent = 0;
    if (norm.finite)
        norm.fraction = frexp(sum, &exponent);
    norm.exponent = exponent;
    return norm;
}

#endif
