/* gpu/cuda/gemm/blas.h: cuBLAS, found when the engine runs and not linked with it, so that an
 * engine starts without it: what it needs of it then is missing, nothing else. Private to the
 * folder; only gemm.c includes it.
 *
 * Threads: blas_open once each handle's thread; a handle is one thread's.
 */
#ifndef GPU_CUDA_GEMM_BLAS_H
#define GPU_CUDA_GEMM_BLAS_H

#include <cublas_v2.h>
#include <stdbool.h>
#include <stdint.h>

/* What is called of cuBLAS. */
struct cuda__blas {
    cublasStatus_t (*create)(cublasHandle_t *handle);
    cublasStatus_t (*destroy)(cublasHandle_t handle);
    cublasStatus_t (*set_stream)(cublasHandle_t handle, cudaStream_t stream);
    cublasStatus_t (*set_workspace)(cublasHandle_t handle, void *workspace, size_t bytes);
    cublasStatus_t (*set_math_mode)(cublasHandle_t handle, cublasMath_t mode);
    cublasStatus_t (*set_pointer_mode)(cublasHandle_t handle, cublasPointerMode_t mode);
    cublasStatus_t (*sgemm)(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int64_t m, int64_t n, int64_t k, const float *alpha, const float *a,
                            int64_t lda, const float *b, int64_t ldb, const float *beta, float *c,
                            int64_t ldc);
    cublasStatus_t (*dgemm)(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int64_t m, int64_t n, int64_t k, const double *alpha, const double *a,
                            int64_t lda, const double *b, int64_t ldb, const double *beta,
                            double *c, int64_t ldc);
    cublasStatus_t (*gemm_ex)(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                              cudaDataType type_a, int64_t lda, const void *b, cudaDataType type_b,
                              int64_t ldb, const void *beta, void *c, cudaDataType type_c,
                              int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
};

/* Loads the library; false when the machine has none that fits, which is logged. It stays loaded:
 * CUDA's libraries cannot be unloaded safely. */
bool cuda__blas_open(struct cuda__blas *blas);

#endif
