/* gpu/cuda/lu_small/inverse_zeros.cuh: whether a zero pivot of inverse_rows.cuh is in doubt. A
 * pivot is chosen there by leading bits, of which numbers at the lower end of the range have none:
 * they count as zeros. Device code; all lanes of the warp call, where one of its matrices met a
 * zero pivot.
 */
#ifndef GPU_CUDA_LU_SMALL_INVERSE_ZEROS_CUH
#define GPU_CUDA_LU_SMALL_INVERSE_ZEROS_CUH

#include "gpu/cuda/lu_small/lu_small.h"
#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/base/stage.cuh"

/* May a product of numbers of the lane's matrix, a, that the column of the zero met in step `step`
 * was made of have come near the lower end of the range? A step before it multiplies by a quotient
 * of two of them. Sums that cancel are allowed for. A call by itself, lest it costs the kernel
 * registers, which are short. */
template <typename T, typename Shape>
static __device__ __noinline__ bool cuda__hides_numbers(Shape lane, const T *a, int step)
{
    typedef cuda__real<T> real;
    constexpr int min_place = sizeof(T) == sizeof(float) ? -90 : -900;
    constexpr int bias = sizeof(T) == sizeof(float) ? 127 : 1023;
    constexpr int rest = sizeof(T) == sizeof(float) ? 23 : 20; /* bits behind the exponent */
    constexpr int numbers = Shape::n * Shape::n;
    T least = real::largest, largest = 0;
    for (int e = lane.share(numbers); e < numbers; e += Shape::lanes) {
        T size = fabs(a[e]);
        least = size > 0 && size < least ? size : least;
        largest = size > largest ? size : largest;
    }
    least = -lane.max(-least);
    largest = lane.max(largest);
    const int low = (int)(real::lead(least) >> rest) - bias;
    const int high = (int)(real::lead(largest) >> rest) - bias;
    return low + (step - 1) * (low - high) < min_place;
}

/* INFO of the lane's matrix, unverified where it reports a zero pivot that may be none. */
template <typename T, typename Shape>
static __device__ __forceinline__ int cuda__unverified_zero(const Shape &lane,
                                                            const cuda__place<T> &place, int info)
{
    const bool met_zero = info > 0 && info <= Shape::n;
    if (!__any_sync(CUDA__ALL, met_zero))
        return info;
    const bool hides = cuda__hides_numbers(lane, cuda__shuffle_pointer(place.a, lane.matrix), info);
    return info + (met_zero && hides ? CUDA_INFO_UNVERIFIED : 0);
}

#endif
