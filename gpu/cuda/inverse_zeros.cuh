/* gpu/cuda/inverse_zeros.cuh: whether a zero pivot of inverse_rows.cuh is in doubt. A pivot is
 * chosen there by leading bits, of which numbers at the lower end of the range have none: they
 * count as zeros. Device code; all lanes of the warp call, where one of its matrices met a zero
 * pivot.
 */
#ifndef GPU_CUDA_INVERSE_ZEROS_CUH
#define GPU_CUDA_INVERSE_ZEROS_CUH

#include "gpu/cuda/real.cuh"

/* Are the numbers of the lane's matrix, a, so far apart that products of them come near the lower
 * end of the range? Others keep their sums far from it. A call by itself, lest it costs the kernel
 * registers, which are short. */
template <typename T, typename Shape>
static __device__ __noinline__ bool cuda__hides_numbers(Shape lane, const T *a)
{
    constexpr T least_product = sizeof(T) == sizeof(float) ? T(0x1p-75) : T(0x1p-500);
    constexpr int numbers = Shape::n * Shape::n;
    T least = cuda__real<T>::largest, largest = 0;
    for (int e = lane.share(numbers); e < numbers; e += Shape::lanes) {
        T size = fabs(a[e]);
        least = size > 0 && size < least ? size : least;
        largest = size > largest ? size : largest;
    }
    least = -lane.most(-least);
    largest = lane.most(largest);
    return least / largest * least < least_product;
}

#endif
