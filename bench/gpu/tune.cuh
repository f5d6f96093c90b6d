/* bench/gpu/tune.cuh: how the files that tune.py writes list the shapes they hold. */
#ifndef BENCH_GPU_TUNE_CUH
#define BENCH_GPU_TUNE_CUH

#include "bench/gpu/lu.h"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu_small/shape.cuh"

/* One kernel of one shape. */
struct tune_shape {
    enum lu_kind kernel;
    enum precision precision;
    int n;
    const char
        *shape; /* as the tables write it, behind n; after "per thread " that of a _PER_THREAD */
    const void *function;
    int threads, held; /* of a block */
    size_t shared_bytes;
    cudaError_t (*launch)(const cuda_batch &batch);
};

/* Before main; keeps the address. */
void tune_add(const struct tune_shape *shape);

#define TUNE__SHAPE(Kernel, T, N, Shape, ...)                                                      \
    namespace                                                                                      \
    {                                                                                              \
    struct TUNE__NAME(tune_one_, __LINE__) {                                                       \
        typedef __VA_ARGS__ shape;                                                                 \
        static cudaError_t launch(const cuda_batch &batch)                                         \
        {                                                                                          \
            return cuda__launch(shape::kernel, batch, shape::held, shape::threads,                 \
                                shape::shared_bytes, nullptr);                                     \
        }                                                                                          \
        struct tune_shape of = {Kernel,      number<T>::precision,        N,                       \
                                Shape,       (const void *)shape::kernel, shape::threads,          \
                                shape::held, shape::shared_bytes,         launch};                 \
        TUNE__NAME(tune_one_, __LINE__)()                                                          \
        {                                                                                          \
            tune_add(&of);                                                                         \
        }                                                                                          \
    } TUNE__NAME(tune_this_, __LINE__);                                                            \
    }
#define TUNE__NAME(a, b) TUNE__NAME_OF(a, b)
#define TUNE__NAME_OF(a, b) a##b

/* The shapes, written as in the tables. */
#define CUDA__INVERSE(T, N, ...)                                                                   \
    TUNE__SHAPE(LU_INVERSE, T, N, #__VA_ARGS__, cuda__inverse_shape<T, N, __VA_ARGS__>)
#define CUDA__FACTOR(T, N, ...)                                                                    \
    TUNE__SHAPE(LU_FACTOR, T, N, #__VA_ARGS__, cuda__factor_shape<T, N, __VA_ARGS__>)
#define CUDA__INVERSE_PER_THREAD(T, N, ...)                                                        \
    TUNE__SHAPE(LU_INVERSE, T, N, "per thread " #__VA_ARGS__,                                      \
                cuda__inverse_per_thread_shape<T, N, __VA_ARGS__>)
#define CUDA__FACTOR_PER_THREAD(T, N, ...)                                                         \
    TUNE__SHAPE(LU_FACTOR, T, N, "per thread " #__VA_ARGS__,                                       \
                cuda__factor_per_thread_shape<T, N, __VA_ARGS__>)

#endif
