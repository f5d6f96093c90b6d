/* gpu/cuda/base/find.cuh: which item of a batch holds a matrix. Device code; any thread. Cost:
 * nothing where every item holds one matrix, else the logarithm of the number of items. */
#ifndef GPU_CUDA_BASE_FIND_CUH
#define GPU_CUDA_BASE_FIND_CUH

#include <stdint.h>

/* The number of the item that holds matrix `index` of `matrices`; an item knows its `first`. */
template <typename Item>
static __device__ __forceinline__ int64_t cuda__item_of(const Item *items, int64_t count,
                                                        int64_t matrices, int64_t index)
{
    int64_t low = 0, high = count;
    if (count == matrices)
        return index;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (items[middle].first <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
