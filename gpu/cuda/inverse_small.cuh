/* gpu/cuda/inverse_small.cuh: the launch of the tuned inverse kernel of one size. */
#ifndef GPU_CUDA_INVERSE_SMALL_CUH
#define GPU_CUDA_INVERSE_SMALL_CUH

#include "gpu/cuda/inverse_rows.cuh"
#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/tuning_h200.cuh"

template <typename T, int N> struct cuda__inverse_launch {
    typedef cuda__inverse_tuning<T, N> tuned;

    static cudaError_t launch(const cuda_batch &batch, cudaStream_t stream)
    {
        return cuda__launch(
            cuda__inverse_rows_kernel<T, N, tuned::rows, tuned::block, tuned::rolled, tuned::warps,
                                      tuned::blocks>,
            batch, cuda__rows<T, N, tuned::rows>::held * tuned::warps, tuned::warps * CUDA__WARP,
            sizeof(cuda__inverse_shared<T, N, tuned::rows, tuned::block>) * tuned::warps, stream);
    }
};

template <int N> using cuda__inverse_f32 = cuda__inverse_launch<float, N>;
template <int N> using cuda__inverse_f64 = cuda__inverse_launch<double, N>;

#endif
