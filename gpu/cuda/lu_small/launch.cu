/* gpu/cuda/lu_small/launch.cu: the launchers of lu_small.h: from precision and order to the object
 * that has the kernel.
 */
#include "gpu/cuda/lu_small/lu_small.h"

/* The ranges of orders that factor.cu and inverse.cu are compiled for (range.cuh). */
typedef cudaError_t range(int64_t n, const cuda_batch &batch, cudaStream_t stream);
range cuda__inverse_n16_f32, cuda__inverse_n24_f32, cuda__inverse_n32_f32;
range cuda__inverse_n16_f64, cuda__inverse_n24_f64, cuda__inverse_n32_f64;
range cuda__factor_n16_f32, cuda__factor_n24_f32, cuda__factor_n32_f32;
range cuda__factor_n16_f64, cuda__factor_n24_f64, cuda__factor_n32_f64;

struct ranges {
    range *n16, *n24, *n32;
};

static const struct ranges inverse[PRECISION_COUNT] = {
    {cuda__inverse_n16_f32, cuda__inverse_n24_f32, cuda__inverse_n32_f32},
    {cuda__inverse_n16_f64, cuda__inverse_n24_f64, cuda__inverse_n32_f64},
};

static const struct ranges factor[PRECISION_COUNT] = {
    {cuda__factor_n16_f32, cuda__factor_n24_f32, cuda__factor_n32_f32},
    {cuda__factor_n16_f64, cuda__factor_n24_f64, cuda__factor_n32_f64},
};

static cudaError_t launch(const struct ranges *of, enum precision precision, int64_t n,
                          const struct cuda_batch *batch, cudaStream_t stream)
{
    if (precision < 0 || precision >= PRECISION_COUNT || n < 1 || n > CUDA_SMALL_N_MAX)
        return cudaErrorInvalidValue;
    if (batch->matrices < 0 || (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    of += precision;
    range *launcher = n <= 16 ? of->n16 : n <= 24 ? of->n24 : of->n32;
    return launcher(n, *batch, stream);
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
