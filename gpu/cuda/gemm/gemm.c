/* gpu/cuda/gemm/gemm.c: see gemm.h.
 *
 * A row-major product is cuBLAS's column-major one of the transposes: C^T = op(B)^T op(A)^T.
 *
 * Cost: a launch on our own algorithm. On cuBLAS's one call a matrix, of some 3 us. On the split
 * one two launches a matrix, and one and a call a piece.
 */
#include "gpu/cuda/gemm/gemm.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/cuda/gemm/blas.h"
#include "gpu/cuda/gemm/simt.h"
#include "gpu/cuda/gemm/split_precision.h"
#include "gpu/cuda/base/status.h"
#include "gpu/cuda/tuning/h200/gemm.h"

#define SPLIT_SIDE_MAX (INT64_C(1) << 16) /* quarters of operands are counted in 32 bits */
#define SPLIT_ALIGN 256                   /* bytes */

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
        status = cudaMalloc(&products->d_scratch, CUDA__BLAS_SCRATCH_BYTES);
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

/* ---- cuBLAS's algorithm ---- */

/* Sets the handle's stream and workspace; a new stream takes the workspace back. */
static cudaError_t turn_to(struct cuda_products *with, cudaStream_t stream)
{
    struct library *library = with->library;
    if (library->user == with && library->stream == stream)
        return cudaSuccess;
    library->user = NULL;
    cudaError_t status = status_of(library->blas.set_stream(library->handle, stream), "set stream");
    if (status == cudaSuccess)
        status = status_of(
            library->blas.set_workspace(library->handle, with->d_scratch, CUDA__BLAS_SCRATCH_BYTES),
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

/* ---- The algorithm of parts in TF32 and BF16 ---- */

/* What rows of parts are multiples of: 16 bytes of BF16. */
static int64_t split_rounded(int64_t count)
{
    return (count + 7) / 8 * 8;
}

/* Inner indices of a block, but for the last one, which may have fewer. */
static int64_t split_block(int64_t inner)
{
    return inner < CUDA__SPLIT_BLOCK ? split_rounded(inner) : CUDA__SPLIT_BLOCK;
}

static bool is_shallow(int64_t inner)
{
    return inner <= CUDA__SPLIT_SHALLOW;
}

/* The parts of an operand, `side` being its other side: one of FP32 and two of BF16, or three of
 * FP32; at least as much as products with fewer inner indices need. */
static int64_t split_part_bytes(const struct cuda_product *p, int64_t side)
{
    int64_t block = split_block(p->inner),
            shallow = is_shallow(p->inner) ? block : CUDA__SPLIT_SHALLOW;
    int64_t deep_bytes = block * (int64_t)(sizeof(float) + 2 * sizeof(uint16_t));
    int64_t shallow_bytes = CUDA__SPLIT_PARTS * shallow * (int64_t)sizeof(float);
    return split_rounded(side) * (deep_bytes > shallow_bytes ? deep_bytes : shallow_bytes);
}

/* Of an operand: `depth` inner indices from `first` on, which lie along its rows or are its rows.
 */
static struct cuda__split_side split_side(const struct cuda_matrices *of, bool along, int64_t side,
                                          int64_t first, int64_t depth, bool shallow,
                                          unsigned char *to)
{
    int64_t deep = split_rounded(depth), wide = split_rounded(side);
    int64_t parts = shallow ? CUDA__SPLIT_PARTS : 1;
    struct cuda__split_side result = {.from = (const float *)of->at +
                                              (along ? first : first * of->stride),
                                      .height = along ? side : depth,
                                      .width = along ? depth : side,
                                      .stride = of->stride,
                                      .to_height = along ? side : deep,
                                      .to_width = along ? deep : wide,
                                      .part = along ? deep : deep * wide,
                                      .high = (float *)(void *)to,
                                      .high_stride = along ? parts * deep : wide,
                                      .cross_stride = along ? 2 * deep : wide};
    if (!shallow)
        result.cross = (uint16_t *)(void *)(result.high + deep * wide);
    return result;
}

/* The parts of `depth` inner indices from `first` on; `one` has one matrix of each. */
static struct cuda__split_task split_task(const struct cuda_product *one, int64_t first,
                                          int64_t depth)
{
    unsigned char *start = one->scratch, *a = start + SPLIT_ALIGN;
    unsigned char *b = a + split_part_bytes(one, one->rows);
    bool shallow = is_shallow(one->inner);
    struct cuda__split_task task = {
        .sides = {split_side(&one->a, !one->transpose_a, one->rows, first, depth, shallow, a),
                  split_side(&one->b, one->transpose_b, one->columns, first, depth, shallow, b)},
        .scalars = (struct cuda__split_scalars *)(void *)start,
        .alpha = (float)one->alpha,
        .beta = (float)one->beta};
    task.sides[0].low_first = true;
    return task;
}

/* An operand of cuBLAS's. */
struct split_operand {
    const void *at;
    int64_t stride;
};

/* C = alpha op(A) op(B) + beta C of parts of that type, or alpha op(A) op(B) + C. */
static cudaError_t multiply_parts(const struct library *library, const struct cuda_product *p,
                                  cudaDataType type, int64_t inner, struct split_operand a,
                                  struct split_operand b, bool is_first)
{
    struct cuda__split_scalars *scalars = p->scratch;
    return status_of(library->blas.gemm_ex(
                         library->handle, operation(p->transpose_b), operation(p->transpose_a),
                         p->columns, p->rows, inner, &scalars->alpha, b.at, type, b.stride, a.at,
                         type, a.stride, is_first ? &scalars->beta : &scalars->one, p->c.at,
                         CUDA_R_32F, p->c.stride,
                         type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT),
                     "multiply");
}

static struct split_operand high_of(const struct cuda__split_side *side, bool along, int64_t first)
{
    return (struct split_operand){side->high + (along ? first : first * side->high_stride),
                                  side->high_stride};
}

/* C = ... + C of the inner indices of a task: all at once, or the cross products and then the high
 * ones in pieces. */
static cudaError_t multiply_block(const struct library *library, const struct cuda_product *p,
                                  const struct cuda__split_task *task, int64_t depth, bool is_first)
{
    const struct cuda__split_side *a = &task->sides[0], *b = &task->sides[1];
    int64_t deep = split_rounded(depth);
    if (!a->cross)
        return multiply_parts(library, p, CUDA_R_32F, CUDA__SPLIT_PARTS * deep,
                              (struct split_operand){a->high, a->high_stride},
                              (struct split_operand){b->high, b->high_stride}, is_first);
    cudaError_t status = multiply_parts(
        library, p, CUDA_R_16BF, 2 * deep, (struct split_operand){a->cross, a->cross_stride},
        (struct split_operand){b->cross, b->cross_stride}, is_first);
    for (int64_t k = 0; status == cudaSuccess && k < deep; k += CUDA__SPLIT_DEPTH) {
        int64_t piece = deep - k < CUDA__SPLIT_DEPTH ? deep - k : CUDA__SPLIT_DEPTH;
        status = multiply_parts(library, p, CUDA_R_32F, piece, high_of(a, !p->transpose_a, k),
                                high_of(b, p->transpose_b, k), false);
    }
    return status;
}

static cudaError_t split_one(const struct library *library, const struct cuda_product *one,
                             cudaStream_t stream)
{
    struct cuda__split_task whole = split_task(one, 0, one->inner);
    cudaError_t status = cuda__split_measure(&whole, stream);
    int64_t most = split_block(one->inner);
    for (int64_t k = 0; status == cudaSuccess && k < one->inner; k += most) {
        int64_t depth = one->inner - k < most ? one->inner - k : most;
        struct cuda__split_task task = split_task(one, k, depth);
        status = cuda__split_fill(&task, stream);
        if (status == cudaSuccess)
            status = multiply_block(library, one, &task, depth, k == 0);
    }
    return status;
}

cudaError_t cuda__product_split(struct cuda_products *with, const struct cuda_product *product,
                                cudaStream_t stream)
{
    const struct library *library = with->library;
    cudaError_t status = turn_to(with, stream);
    if (status == cudaSuccess)
        status = status_of(
            library->blas.set_pointer_mode(library->handle, CUBLAS_POINTER_MODE_DEVICE), "point");
    for (int64_t i = 0; status == cudaSuccess && i < product->count; i++) {
        struct cuda_product one = *product;
        one.a.at = matrix(&product->a, PRECISION_FP32, i);
        one.b.at = matrix(&product->b, PRECISION_FP32, i);
        one.c.at = matrix(&product->c, PRECISION_FP32, i);
        status = split_one(library, &one, stream);
    }
    cudaError_t back = status_of(
        library->blas.set_pointer_mode(library->handle, CUBLAS_POINTER_MODE_HOST), "point");
    return status == cudaSuccess ? back : status;
}

size_t cuda__product_split_bytes(const struct cuda_product *p)
{
    return (size_t)(split_part_bytes(p, p->rows) + split_part_bytes(p, p->columns) + SPLIT_ALIGN);
}

/* ---- All algorithms ---- */

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

size_t cuda_product_scratch(const struct cuda_product *p)
{
    const int64_t least = CUDA__SPLIT_SIDE_MIN, most = SPLIT_SIDE_MAX;
    bool fits = p->precision == PRECISION_FP32 && p->rows >= least && p->columns >= least &&
                p->inner >= CUDA__SPLIT_INNER_MIN && p->rows <= most && p->columns <= most &&
                p->inner <= most;
    return fits && p->rows * p->columns >= CUDA__SPLIT_MIN / p->inner ? cuda__product_split_bytes(p)
                                                                      : 0;
}

cudaError_t cuda_product(struct cuda_products *with, const struct cuda_product *product,
                         cudaStream_t stream)
{
    if (!is_valid(product))
        return cudaErrorInvalidValue;
    if (product->rows == 0 || product->columns == 0 || product->count == 0)
        return cudaSuccess;
    bool is_large = product->rows * product->columns * product->inner >= CUDA__BLAS_MIN;
    if (!is_large || !with->library)
        return cuda__product_own(product, stream);
    return product->scratch && product->alpha != 0 && cuda_product_scratch(product) > 0
               ? cuda__product_split(with, product, stream)
               : multiply(with, product, stream);
}
