/* gpu/cuda/factor_small.cuh: the launch of the tuned LU kernel of one size. */
#ifndef GPU_CUDA_FACTOR_SMALL_CUH
#define GPU_CUDA_FACTOR_SMALL_CUH

#include "gpu/cuda/factor_rows.cuh"
#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/tuning_h200.cuh"

template <typename T, int N> struct cuda__factor_launch {
    typedef cuda__factor_tuning<T, N> tuned;

    static cudaError_t launch(const cuda_batch &batch, cudaStream_t stream)
    {
        return cuda__launch(
            cuda__factor_rows_kernel<T, N, tuned::rows, tuned::warps, tuned::blocks>, batch,
            cuda__rows<T, N, tuned::rows>::held * tuned::warps, tuned::warps * CUDA__WARP,
            sizeof(cuda__factor_shared<T, N, tuned::rows>) * tuned::warps, stream);
    }
};

template <int N> using cuda__factor_f32 = cuda__factor_launch<float, N>;
template <int N> using cuda__factor_f64 = cuda__factor_launch<double, N>;

#endif
