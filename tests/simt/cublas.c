/* tests/simt/cublas.c: cuBLAS in the SIMT stand-in (simt.h): products by plain loops.
 *
 * Stricter than the library: a workspace must be set behind each change of the stream, as one must
 * do whose streams overlap, and sizes and distances are looked at. Threads: any, a handle each.
 */
#include "cublas_v2.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "simt.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    int has_mode;
    cublasPointerMode_t pointers;
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

static cublasStatus_t set_pointer_mode(cublasHandle_t handle, cublasPointerMode_t mode)
{
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* A matrix of rows x columns, column-major, lies at a distance of ld. */
static int lies_well(int64_t rows, int64_t columns, int64_t ld, cublasOperation_t operation)
{
    return ld >= 1 && ld >= (operation == CUBLAS_OP_N ? rows : columns);
}

static cublasStatus_t check(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                            cublasPointerMode_t pointers)
{
    if (simt_lost() != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!handle->workspace || handle->pointers != pointers || !handle->has_mode || m < 0 || n < 0 ||
        k < 0 || !lies_well(m, k, lda, of_a) || !lies_well(k, n, ldb, of_b) ||
        !lies_well(m, n, ldc, CUBLAS_OP_N))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* C = alpha op(A) op(B) + beta C, column-major: a column of C at a time. */
#define SIMT_GEMM(name, type)                                                                      \
    struct name {                                                                                  \
        cublasOperation_t of_a, of_b;                                                              \
        int64_t m, n, k, lda, ldb, ldc;                                                            \
        type alpha, beta;                                                                          \
        const type *a, *b;                                                                         \
        type *c;                                                                                   \
    };                                                                                             \
    static void multiply_##name(const void *context)                                               \
    {                                                                                              \
        const struct name *g = context;                                                            \
        for (int64_t j = 0; simt_lost() == cudaSuccess && j < g->n; j++) {                         \
            type *to = g->c + j * g->ldc;                                                          \
            for (int64_t i = 0; i < g->m; i++)                                                     \
                to[i] = g->beta == 0 ? 0 : g->beta * to[i];                                        \
            for (int64_t l = 0; l < g->k; l++) {                                                   \
                int64_t at = g->of_b == CUBLAS_OP_N ? l + j * g->ldb : j + l * g->ldb;             \
                type x = g->alpha * g->b[at];                                                      \
                const type *from = g->of_a == CUBLAS_OP_N ? g->a + l * g->lda : g->a + l;          \
                int64_t step = g->of_a == CUBLAS_OP_N ? 1 : g->lda;                                \
                for (int64_t i = 0; i < g->m; i++)                                                 \
                    to[i] += from[i * step] * x;                                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static cublasStatus_t name(cublasHandle_t handle, cublasOperation_t of_a,                      \
                               cublasOperation_t of_b, int64_t m, int64_t n, int64_t k,            \
                               const type *alpha, const type *a, int64_t lda, const type *b,       \
                               int64_t ldb, const type *beta, type *c, int64_t ldc)                \
    {                                                                                              \
        const struct name g = {of_a, of_b, m, n, k, lda, ldb, ldc, *alpha, *beta, a, b, c};        \
        cublasStatus_t status =                                                                    \
            check(handle, of_a, of_b, m, n, k, lda, ldb, ldc, CUBLAS_POINTER_MODE_HOST);           \
        if (status == CUBLAS_STATUS_SUCCESS)                                                       \
            simt_put(handle->stream, multiply_##name, &g, sizeof g);                               \
        return status;                                                                             \
    }
SIMT_GEMM(sgemm, float)
SIMT_GEMM(dgemm, double)

/* ---- TF32 and BF16 ---- */

/* A number of an operand as tensor cores see it: FP32 without the bits that TF32 has not, or BF16.
 */
static double operand_at(const void *operand, cudaDataType type, int64_t index)
{
    uint32_t bits;
    float x;
    if (type == CUDA_R_16BF)
        bits = (uint32_t)((const uint16_t *)operand)[index] << 16;
    else
        bits = ((const uint32_t *)operand)[index] & ~UINT32_C(0x1fff);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x as FP32, cut off and not rounded. */
static float cut_sum(double x)
{
    float near = (float)x;
    return fabs((double)near) > fabs(x) ? nextafterf(near, 0) : near;
}

/* Indices that tensor cores add up together, exactly here. */
#define TOGETHER 4

/* A line of an operand. */
struct line {
    const void *at;
    int64_t first, step;
};

static float dot(struct line a, struct line b, cudaDataType type, int64_t k)
{
    float sum = 0;
    for (int64_t first = 0; first < k; first += TOGETHER) {
        double piece = sum;
        for (int64_t l = first; l < k && l < first + TOGETHER; l++)
            piece += operand_at(a.at, type, a.first + l * a.step) *
                     operand_at(b.at, type, b.first + l * b.step);
        sum = cut_sum(piece);
    }
    return sum;
}

struct gemm_ex {
    cublasOperation_t of_a, of_b;
    int64_t m, n, k, lda, ldb, ldc;
    cudaDataType type;
    const float *alpha, *beta;
    const void *a, *b;
    float *c;
};

static void multiply_gemm_ex(const void *context)
{
    const struct gemm_ex *g = context;
    const bool plain_a = g->of_a == CUBLAS_OP_N, plain_b = g->of_b == CUBLAS_OP_N;
    const int64_t next_a = plain_a ? 1 : g->lda, step_a = plain_a ? g->lda : 1;
    const int64_t next_b = plain_b ? g->ldb : 1, step_b = plain_b ? 1 : g->ldb;
    if (simt_lost() != cudaSuccess)
        return;
    const float by = *g->alpha, keep = *g->beta;
    for (int64_t j = 0; j < g->n; j++) {
        for (int64_t i = 0; i < g->m; i++) {
            float *to = g->c + j * g->ldc + i;
            float sum = dot((struct line){g->a, i * next_a, step_a},
                            (struct line){g->b, j * next_b, step_b}, g->type, g->k);
            *to = keep == 0 ? by * sum : fmaf(by, sum, keep * *to);
        }
    }
}

/* FP32 matrices multiplied in TF32, or BF16's in BF16; alpha and beta are read from the device.
 * Rows of operands must begin at 16 bytes, or a device might take another kernel for them. */
static cublasStatus_t gemm_ex(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                              cudaDataType type_a, int64_t lda, const void *b, cudaDataType type_b,
                              int64_t ldb, const void *beta, void *c, cudaDataType type_c,
                              int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    const struct gemm_ex g = {of_a, of_b, m, n, k, lda, ldb, ldc, type_a, alpha, beta, a, b, c};
    int64_t bytes = type_a == CUDA_R_16BF ? 2 : 4;
    cublasStatus_t status =
        check(handle, of_a, of_b, m, n, k, lda, ldb, ldc, CUBLAS_POINTER_MODE_DEVICE);
    if (type_a != type_b || type_c != CUDA_R_32F || algorithm != CUBLAS_GEMM_DEFAULT ||
        compute != (bytes == 2 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32) ||
        ((uintptr_t)a | (uintptr_t)b | (uintptr_t)(lda * bytes) | (uintptr_t)(ldb * bytes)) % 16)
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        simt_put(handle->stream, multiply_gemm_ex, &g, sizeof g);
    return status;
}

/* ---- What dlfcn.h finds ---- */

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"cublasCreate_v2", (void *)create},
    {"cublasDestroy_v2", (void *)destroy},
    {"cublasSetStream_v2", (void *)set_stream},
    {"cublasSetWorkspace_v2", (void *)set_workspace},
    {"cublasSetMathMode", (void *)set_math_mode},
    {"cublasSgemm_v2_64", (void *)sgemm},
    {"cublasDgemm_v2_64", (void *)dgemm},
    {"cublasGemmEx_64", (void *)gemm_ex},
    {"cublasSetPointerMode_v2", (void *)set_pointer_mode},
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
