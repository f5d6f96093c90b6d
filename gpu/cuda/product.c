/* gpu/cuda/product.c: see product.h.
 *
 * A row-major product is cuBLAS's column-major one of the transposes: C^T = op(B)^T op(A)^T.
 *
 * Cost: a launch on our own road. On cuBLAS's one call a matrix, of some 3 us.
 */
#include "gpu/cuda/product.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/cuda/blas.h"
#include "gpu/cuda/product_own.h"
#include "gpu/cuda/status.h"

/* What cuBLAS asks for on Hopper; less may cost it its fastest kernels for few tiles. */
#define SCRATCH_BYTES ((size_t)32 << 20)

/* Multiplications of one matrix from which on cuBLAS is called. By counting, 2026-11-21: 512 x 512
 * x 512 is 64 tiles of our own, half of a large device, and cuBLAS has as few. */
#define LARGE_LEAST (INT64_C(1) << 28)

/* A cuBLAS handle, and who used it last. */
struct library {
    struct cuda__blas blas;
    cublasHandle_t handle;
    const struct cuda_products *user;
    cudaStream_t stream;
    int users;
};

struct cuda_products {
    struct library *library; /* NULL: the machine has none */
    void *d_scratch;
    struct cuda_side side;
};

/* cuBLAS's status as the runtime's, which asks for the same; what failed is logged. */
static cudaError_t status_of(cublasStatus_t status, const char *doing)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        log_line(LOG_ERROR, "cuBLAS failed", "doing", LOG_STR, doing, "code", LOG_I64,
                 (int64_t)status, NULL);
    return cuda_status_of_cublas(status);
}

/* ---- Life ---- */

static cudaError_t open_library(struct library **result)
{
    struct library *library = calloc(1, sizeof *library);
    if (!library)
        return cudaErrorMemoryAllocation;
    if (!cuda__blas_open(&library->blas)) {
        free(library);
        return cudaSuccess;
    }
    cudaError_t status = status_of(library->blas.create(&library->handle), "make a handle");
    if (status == cudaSuccess)
        status = status_of(library->blas.set_math_mode(library->handle, CUBLAS_DEFAULT_MATH),
                           "fix the precision");
    if (status == cudaSuccess) {
        *result = library;
        return cudaSuccess;
    }
    if (library->handle)
        (void)library->blas.destroy(library->handle);
    free(library);
    return status;
}

static cudaError_t create_side(struct cuda_side *side)
{
    int low = 0, high = 0;
    cudaEvent_t *events[] = {&side->forked, &side->begun, &side->joined};
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&low, &high);
    if (status == cudaSuccess)
        status = cudaStreamCreateWithPriority(&side->stream, cudaStreamNonBlocking, high);
    for (size_t i = 0; status == cudaSuccess && i < sizeof events / sizeof events[0]; i++)
        status = cudaEventCreateWithFlags(events[i], cudaEventDisableTiming);
    return status;
}

static void destroy_side(struct cuda_side *side)
{
    cudaEvent_t events[] = {side->forked, side->begun, side->joined};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i])
            (void)cudaEventDestroy(events[i]);
    }
    if (side->stream)
        (void)cudaStreamDestroy(side->stream);
}

cudaError_t cuda_products_create(struct cuda_products *neighbour, struct cuda_products **result)
{
    cudaError_t status = cudaSuccess;
    struct cuda_products *products = calloc(1, sizeof *products);
    if (!products)
        return cudaErrorMemoryAllocation;
    if (neighbour)
        products->library = neighbour->library;
    else
        status = open_library(&products->library);
    if (products->library)
        products->library->users++;
    if (status == cudaSuccess && products->library)
        status = cudaMalloc(&products->d_scratch, SCRATCH_BYTES);
    if (status == cudaSuccess)
        status = create_side(&products->side);
    if (status != cudaSuccess)
        cuda_products_destroy(&products);
    *result = products;
    return status;
}

void cuda_products_destroy(struct cuda_products **products)
{
    struct cuda_products *old = *products;
    if (!old)
        return;
    *products = NULL;
    if (old->library && old->library->user == old)
        old->library->user = NULL;
    if (old->library && --old->library->users == 0) {
        (void)old->library->blas.destroy(old->library->handle);
        free(old->library);
    }
    (void)cudaFree(old->d_scratch);
    destroy_side(&old->side);
    free(old);
}

const struct cuda_side *cuda_products_side(const struct cuda_products *with)
{
    return &with->side;
}

/* ---- cuBLAS's road ---- */

/* Sets the handle's stream and workspace; a new stream takes the workspace back. */
static cudaError_t turn_to(struct cuda_products *with, cudaStream_t stream)
{
    struct library *library = with->library;
    if (library->user == with && library->stream == stream)
        return cudaSuccess;
    library->user = NULL;
    cudaError_t status = status_of(library->blas.set_stream(library->handle, stream), "set stream");
    if (status == cudaSuccess)
        status =
            status_of(library->blas.set_workspace(library->handle, with->d_scratch, SCRATCH_BYTES),
                      "set workspace");
    if (status != cudaSuccess)
        return status;
    library->user = with;
    library->stream = stream;
    return cudaSuccess;
}

static cublasOperation_t operation(bool transposed)
{
    return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static char *matrix(const struct cuda_matrices *of, enum precision precision, int64_t index)
{
    return (char *)of->at + index * of->step * precision_bytes(precision);
}

static cublasStatus_t multiply_one(const struct library *library, const struct cuda_product *p,
                                   int64_t index)
{
    void *a = matrix(&p->a, p->precision, index), *b = matrix(&p->b, p->precision, index);
    void *c = matrix(&p->c, p->precision, index);
    cublasOperation_t of_a = operation(p->transpose_a), of_b = operation(p->transpose_b);
    if (p->precision == PRECISION_FP32) {
        float alpha = (float)p->alpha, beta = (float)p->beta;
        return library->blas.sgemm(library->handle, of_b, of_a, p->columns, p->rows, p->inner,
                                   &alpha, b, p->b.stride, a, p->a.stride, &beta, c, p->c.stride);
    }
    return library->blas.dgemm(library->handle, of_b, of_a, p->columns, p->rows, p->inner,
                               &p->alpha, b, p->b.stride, a, p->a.stride, &p->beta, c, p->c.stride);
}

static cudaError_t multiply(struct cuda_products *with, const struct cuda_product *product,
                            cudaStream_t stream)
{
    cudaError_t status = turn_to(with, stream);
    for (int64_t i = 0; status == cudaSuccess && i < product->count; i++)
        status = status_of(multiply_one(with->library, product, i), "multiply");
    return status;
}

/* ---- Both roads ---- */

static bool holds(const struct cuda_matrices *of, int64_t rows, int64_t columns, bool transposed)
{
    return of->stride >= (transposed ? rows : columns) && of->step >= 0;
}

static bool is_valid(const struct cuda_product *p)
{
    int64_t volume;
    return p->precision >= 0 && p->precision < PRECISION_COUNT && p->rows >= 0 && p->columns >= 0 &&
           p->inner >= 0 && p->count >= 0 && holds(&p->a, p->rows, p->inner, p->transpose_a) &&
           holds(&p->b, p->inner, p->columns, p->transpose_b) &&
           holds(&p->c, p->rows, p->columns, false) && checked_mul(p->rows, p->columns, &volume) &&
           checked_mul(volume, p->inner, &volume);
}

cudaError_t cuda_product(struct cuda_products *with, const struct cuda_product *product,
                         cudaStream_t stream)
{
    if (!is_valid(product))
        return cudaErrorInvalidValue;
    if (product->rows == 0 || product->columns == 0 || product->count == 0)
        return cudaSuccess;
    bool is_large = product->rows * product->columns * product->inner >= LARGE_LEAST;
    return is_large && with->library ? multiply(with, product, stream)
                                     : cuda__product_own(product, stream);
}
