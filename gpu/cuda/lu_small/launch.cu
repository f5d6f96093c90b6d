/* gpu/cuda/lu_small/launch.cu: the launchers of lu_small.h: from precision and size to a range of
 * instances.
 */
#include "gpu/cuda/lu_small/lu_small.h"

#include "gpu/cuda/base/launch.cuh"

struct ranges {
    cuda__range *low, *middle, *high;
};

static const struct ranges inverse[PRECISION_COUNT] = {
    {cuda__inverse_f32_low, cuda__inverse_f32_middle, cuda__inverse_f32_high},
    {cuda__inverse_f64_low, cuda__inverse_f64_middle, cuda__inverse_f64_high},
};

static const struct ranges factor[PRECISION_COUNT] = {
    {cuda__factor_f32_low, cuda__factor_f32_middle, cuda__factor_f32_high},
    {cuda__factor_f64_low, cuda__factor_f64_middle, cuda__factor_f64_high},
};

static cudaError_t launch(const struct ranges *of, enum precision precision, int64_t n,
                          const struct cuda_batch *batch, cudaStream_t stream)
{
    if (precision < 0 || precision >= PRECISION_COUNT || n < 1 || n > CUDA_SMALL_N_MAX)
        return cudaErrorInvalidValue;
    if (batch->matrices < 0 || (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    of += precision;
    cuda__range *range = n <= CUDA__LOW ? of->low : n <= CUDA__MIDDLE ? of->middle : of->high;
    return range(n, *batch, stream);
}

cudaError_t cuda_inverse_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream)
{
    return launch(inverse, precision, n, batch, stream);
}

cudaError_t cuda_factor_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                              cudaStream_t stream)
{
    return launch(factor, precision, n, batch, stream);
}
