/* gpu/cuda/tridiagonal/f64.cu: `tridiagonal` in FP64. */
#include "gpu/cuda/tridiagonal/kernels.cuh"

cudaError_t cuda__tri_launch_f64(const struct cuda__tri_call *call, cudaStream_t stream)
{
    return cuda__tri_launch<double>(*call, stream);
}

int64_t cuda__tri_part_bytes(int64_t n, int levels)
{
    int64_t arrays = levels > 0 ? (int)CUDA__TRI_MERGERS + 2 * levels : (int)CUDA__TRI_ARRAYS;
    int64_t row_bytes = arrays * (int64_t)sizeof(double);
    if (n > CUDA__TRI_BLOCK_N_MAX)
        row_bytes += CUDA__TRI_TAIL_BYTES;
    return CUDA__TRI_ANSWER_BYTES + cuda__tri_pitch(n) * row_bytes;
}
