/* gpu/cuda/lu_small/inverse_small.cuh: the launch of the tuned inverse kernel of one size. */
#ifndef GPU_CUDA_LU_SMALL_INVERSE_SMALL_CUH
#define GPU_CUDA_LU_SMALL_INVERSE_SMALL_CUH

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu_small/shapes.cuh"

template <typename T, int N> struct cuda__inverse_launch {
    typedef typename cuda__inverse_tuning<T, N>::shape shape;

    static cudaError_t launch(const cuda_batch &batch, cudaStream_t stream)
    {
        return cuda__launch(shape::kernel, batch, shape::held, shape::threads, shape::shared_bytes,
                            stream);
    }
};

template <int N> using cuda__inverse_f32 = cuda__inverse_launch<float, N>;
template <int N> using cuda__inverse_f64 = cuda__inverse_launch<double, N>;

#endif
