/* gpu/cuda/gemm/gemm.h: C = alpha op(A) op(B) + beta C for dense matrices on the device, row-major,
 * one or many of one shape. The engine's one door to cuBLAS.
 *
 * Three algorithms: a batched kernel of our own for small and middle shapes, and cuBLAS, one matrix
 * after the other, for large ones; and for larger ones in FP32, where the caller lends a workspace
 * for it, products in TF32 and BF16 whose sum is as good as one in FP32 (split_precision.h). Which
 * one is taken follows from the precision, the shape (rows, columns, inner, transposition) and
 * whether the caller wants the third, never from the count, and cuBLAS gets a workspace of its own
 * for each stream: the bits of a matrix do not depend on its batch. FP32 is never multiplied in
 * TF32 alone.
 *
 * The bits may depend on whether rows begin at 16 bytes. Operands whose places the caller chooses
 * (a workspace; strides a multiple of 16 bytes) are as fast as they can be and have one answer;
 * others are right at any alignment to their elements. C may not overlap A or B, nor one C another;
 * A and B may be the same. With beta 0, C is not read, with alpha 0 neither are A and B.
 *
 * Nothing is awaited. cuBLAS is loaded by cuda_products_create, and where the machine has none our
 * own kernel takes every shape: slower from some 1000 rows on.
 *
 * Threads: any, each with its own struct cuda_products; and one of them serves one stream at a
 * time: what it was given before must be over, or in the same stream.
 */
#ifndef GPU_CUDA_GEMM_GEMM_H
#define GPU_CUDA_GEMM_GEMM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/datatype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the products of one stream need: a cuBLAS handle and its workspace. */
struct cuda_products;

/* Matrices of one shape. */
struct cuda_matrices {
    void *at;       /* the first element of the first one; A and B are only read */
    int64_t stride; /* elements from row to row */
    int64_t step;   /* elements from matrix to matrix; 0: the same one for all (not C) */
};

struct cuda_product {
    enum precision precision;
    int64_t rows, columns, inner;  /* op(A): rows x inner, op(B): inner x columns */
    bool transpose_a, transpose_b; /* A is stored as inner x rows; B as columns x inner */
    double alpha, beta;            /* rounded to the precision */
    struct cuda_matrices a, b, c;
    int64_t count; /* of matrices; 0: none */
    void *
        scratch; /* cuda_product_scratch bytes of the device's, for the split-precision GEMM,
                  * aligned to 256 bytes; free again behind the product. NULL: not that algorithm */
};

/* What the split-precision GEMM needs for a product, however many matrices it has: at most 16 KiB a
 * row and a column. 0: it is not taken for this shape. Any thread. */
size_t cuda_product_scratch(const struct cuda_product *product);

/* The device must be open, and current to the thread. neighbour: of the same thread, whose handle
 * is used along; it must live as long. NULL: a handle of its own, which takes some 0.3 s the first
 * time. */
cudaError_t cuda_products_create(struct cuda_products *neighbour, struct cuda_products **products);
/* What it was given must be over. */
void cuda_products_destroy(struct cuda_products **products);

/* Another stream, of high priority, and events, for launchers that let two things overlap: it
 * begins and ends with the one that is served. */
struct cuda_side {
    cudaStream_t stream;
    cudaEvent_t forked, begun, joined;
};

/* Lent for the life of `with`. */
const struct cuda_side *cuda_products_side(const struct cuda_products *with);

/* Puts the product into the stream. A shape or stride that cannot be is cudaErrorInvalidValue; no
 * rows, columns or matrices is no launch. Any size: 64-bit addresses throughout. */
cudaError_t cuda_product(struct cuda_products *with, const struct cuda_product *product,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
