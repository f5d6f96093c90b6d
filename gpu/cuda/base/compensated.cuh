/* gpu/cuda/base/compensated.cuh: a compensated sum of products, as in double-double: T.
 * Ogita, S. M. Rump and S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3. Device
 * code; 11 operations a product.
 */
#ifndef GPU_CUDA_BASE_COMPENSATED_CUH
#define GPU_CUDA_BASE_COMPENSATED_CUH

#include "gpu/cuda/base/real.cuh"

template <typename T> struct cuda__compensated {
    T sum, errors; /* errors: of all roundings so far */

    /* The product is rounded before it is added: an FMA in its place would not fit its error. */
    __device__ __forceinline__ void add_product(T x, T y)
    {
        const T product = cuda__real<T>::times(x, y), next = sum + product, added = next - sum;
        const T lost = (sum - (next - added)) + (product - added);
        errors += fma(x, y, -product) + lost;
        sum = next;
    }

    __device__ __forceinline__ T value() const
    {
        return sum + errors;
    }

    /* What value() lacks. */
    __device__ __forceinline__ T rest() const
    {
        const T whole = sum + errors, back = whole - sum;
        return (sum - (whole - back)) + (errors - back);
    }
};

#endif
