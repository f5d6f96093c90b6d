/* gpu/cuda/lu_small/factor_small.cuh: the launch of the tuned LU kernel of one size. */
#ifndef GPU_CUDA_LU_SMALL_FACTOR_SMALL_CUH
#define GPU_CUDA_LU_SMALL_FACTOR_SMALL_CUH

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu_small/shapes.cuh"

template <typename T, int N> struct cuda__factor_launch {
    typedef typename cuda__factor_tuning<T, N>::shape shape;

    static cudaError_t launch(const cuda_batch &batch, cudaStream_t stream)
    {
        return cuda__launch(shape::kernel, batch, shape::held, shape::threads, shape::shared_bytes,
                            stream);
    }
};

template <int N> using cuda__factor_f32 = cuda__factor_launch<float, N>;
template <int N> using cuda__factor_f64 = cuda__factor_launch<double, N>;

#endif
