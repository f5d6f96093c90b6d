/* gpu/cuda/structured/cholesky.h: inverses of symmetric positive definite matrices on the device,
 * one or many of one order.
 *
 * A = L L^T, and A^-1 = M^T M with M = L^-1: LAPACK's potrf, trtri and lauum in one sweep, in
 * place. Columns are taken in groups. When a group is done, the rows and columns up to its end hold
 * the inverse of that part of A; the rows below hold what is still to be multiplied by M's rows,
 * and what Cholesky has left of A. A group's diagonal block becomes its part of M
 * (cholesky.cu); M's other columns of these rows, and L below, are products with that; and
 * with V = M's rows, turned, above the group's end, and -L below it, all that is left is
 * W = W + V V^T in the columns up to the group's end, and W - V V^T behind.
 *
 * There are no pivots to be looked for, so the only chain is that of the diagonal blocks, of L
 * below them and of the next group's columns; it runs in a stream of its own, overlapping V V^T. n
 * alone decides which products there are and who makes them; the bits of a matrix are its own.
 *
 * Nothing is awaited. Threads: any, each with its own stream and products. Cost: n^3 operations,
 * half of those of LU: n^2 for each column.
 */
#ifndef GPU_CUDA_STRUCTURED_CHOLESKY_H
#define GPU_CUDA_STRUCTURED_CHOLESKY_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_CHOLESKY_UNIT 32
#define CUDA_CHOLESKY_CORNER 128         /* rows of a diagonal block that is inverted at once */
#define CUDA_CHOLESKY_MATRICES_MAX 32768 /* of a call */

/* n: a multiple of CUDA_CHOLESKY_UNIT; larger matrices of ones on the diagonal stand for others. */
struct cuda_cholesky {
    enum precision precision;
    int64_t n, count;
    /* The lower triangle of A, of entries no larger than 1, goes in, that of the inverse comes out;
     * the other one has no meaning. Stride and step: multiples of 16 bytes. */
    struct cuda_matrices w;
    int32_t *failed; /* one a matrix: set to 1 where a pivot is not positive; A is then lost */
    void *scratch;   /* cuda_cholesky_scratch() bytes, aligned to 256 */
};

size_t cuda_cholesky_scratch(enum precision precision, int64_t n, int64_t count);
/* What cannot be is cudaErrorInvalidValue. */
cudaError_t cuda_cholesky_invert(struct cuda_products *products, const struct cuda_cholesky *task,
                                 cudaStream_t stream);

/* How it is done. */
struct cuda_cholesky_manner {
    int64_t group; /* columns of a group, a multiple of CUDA_CHOLESKY_CORNER */
    /* Columns of W that a product of gemm/gemm.h updates, a multiple of CUDA_CHOLESKY_CORNER; 0:
     * all are updated together, by tiles of our own. */
    int64_t strip;
};

/* As the order wants it. */
struct cuda_cholesky_manner cuda_cholesky_manner_of(int64_t n);
/* The same two functions in any manner: for tests and benches. */
size_t cuda_cholesky_scratch_as(const struct cuda_cholesky_manner *manner, enum precision precision,
                                int64_t n, int64_t count);
cudaError_t cuda_cholesky_invert_as(const struct cuda_cholesky_manner *manner,
                                    struct cuda_products *products,
                                    const struct cuda_cholesky *task, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
