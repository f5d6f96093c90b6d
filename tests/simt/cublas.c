/* tests/simt/cublas.c: cuBLAS in the SIMT stand-in (simt.h): products by plain loops, at once.
 *
 * Stricter than the library: a workspace must be set behind each change of the stream, as one must
 * do whose streams overlap, and sizes and distances are looked at. Threads: any, a handle each.
 */
#include "cublas_v2.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "simt.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    int has_mode;
};

static cublasStatus_t create(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
    free(handle);
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if ((uintptr_t)workspace % 256 != 0 || bytes == 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_math_mode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->has_mode = 1;
    return mode == CUBLAS_DEFAULT_MATH ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* A matrix of rows x columns, column-major, lies at a distance of ld. */
static int lies_well(int64_t rows, int64_t columns, int64_t ld, cublasOperation_t operation)
{
    return ld >= 1 && ld >= (operation == CUBLAS_OP_N ? rows : columns);
}

static cublasStatus_t check(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc)
{
    if (simt_lost() != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!handle->workspace || !handle->has_mode || m < 0 || n < 0 || k < 0 ||
        !lies_well(m, k, lda, of_a) || !lies_well(k, n, ldb, of_b) ||
        !lies_well(m, n, ldc, CUBLAS_OP_N))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* C = alpha op(A) op(B) + beta C, column-major: a column of C at a time. */
#define SIMT_GEMM(name, type)                                                                      \
    static cublasStatus_t name(cublasHandle_t handle, cublasOperation_t of_a,                      \
                               cublasOperation_t of_b, int64_t m, int64_t n, int64_t k,            \
                               const type *alpha, const type *a, int64_t lda, const type *b,       \
                               int64_t ldb, const type *beta, type *c, int64_t ldc)                \
    {                                                                                              \
        cublasStatus_t status = check(handle, of_a, of_b, m, n, k, lda, ldb, ldc);                 \
        for (int64_t j = 0; status == CUBLAS_STATUS_SUCCESS && j < n; j++) {                       \
            type *to = c + j * ldc;                                                                \
            for (int64_t i = 0; i < m; i++)                                                        \
                to[i] = *beta == 0 ? 0 : *beta * to[i];                                            \
            for (int64_t l = 0; l < k; l++) {                                                      \
                type x = *alpha * (of_b == CUBLAS_OP_N ? b[l + j * ldb] : b[j + l * ldb]);         \
                const type *from = of_a == CUBLAS_OP_N ? a + l * lda : a + l;                      \
                int64_t step = of_a == CUBLAS_OP_N ? 1 : lda;                                      \
                for (int64_t i = 0; i < m; i++)                                                    \
                    to[i] += from[i * step] * x;                                                   \
            }                                                                                      \
        }                                                                                          \
        return status;                                                                             \
    }
SIMT_GEMM(sgemm, float)
SIMT_GEMM(dgemm, double)

/* ---- What dlfcn.h finds ---- */

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"cublasCreate_v2", (void *)create},          {"cublasDestroy_v2", (void *)destroy},
    {"cublasSetStream_v2", (void *)set_stream},   {"cublasSetWorkspace_v2", (void *)set_workspace},
    {"cublasSetMathMode", (void *)set_math_mode}, {"cublasSgemm_v2_64", (void *)sgemm},
    {"cublasDgemm_v2_64", (void *)dgemm},
};

static int is_hidden;

void simt_hide_library(bool hidden)
{
    is_hidden = hidden;
}

void *simt_library(const char *name)
{
    return !is_hidden && strcmp(name, "libcublas.so.13") == 0 ? (void *)functions : NULL;
}

void *simt_library_function(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    }
    return NULL;
}
