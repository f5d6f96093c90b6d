/* gpu/cuda/structured/identify.h: what kind of matrix is this, and how large is it: norms, strict
 * diagonal dominance, lines of zeros, which parts hold anything, symmetry. One pass over the
 * matrix.
 *
 * The pass goes by pairs of tiles on either side of the diagonal; a tile's sums go to lines of
 * their own, which are then added up in an order that n and the precision decide, in double. So a
 * matrix's answer does not depend on its neighbours.
 *
 * Everything lies on the device. Nothing is awaited. Threads: any, each with its own stream and
 * scratch. Cost: n^2 numbers read once, and n^2 / 16 of sums, of large orders n^2 / 32 or n^2 / 64,
 * written and read; two launches.
 */
#ifndef GPU_CUDA_STRUCTURED_IDENTIFY_H
#define GPU_CUDA_STRUCTURED_IDENTIFY_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_IDENTIFY_MATRICES_MAX 32767 /* of a call, all sets together */

#define CUDA_NO_LINE INT32_MAX /* behind all lines */

/* What a matrix has other than zeros. */
enum cuda_part {
    CUDA_PART_BELOW = 1,        /* below the diagonal */
    CUDA_PART_ABOVE = 2,        /* above it */
    CUDA_PART_OFF_BAND = 4,     /* beyond the two diagonals next to the main one */
    CUDA_PART_ASYMMETRIC = 8,   /* a_ij other than a_ji */
    CUDA_PART_NOT_FINITE = 16,  /* a NaN or an infinity */
    CUDA_PART_NOT_POSITIVE = 32 /* on the diagonal, zero or less */
};

/* Of a matrix A (n x n). With CUDA_PART_NOT_FINITE all else means nothing. */
struct cuda_identity {
    double norm_1, norm_inf;       /* NaN or beyond the precision's range: so is a sum */
    double frobenius;              /* infinite where the sum of the squares is beyond range */
    double dominance;              /* the others of a row by |a_ii|, the largest of all rows */
    double min;                    /* the least sum of the magnitudes of a row or a column */
    int32_t dominant;              /* |a_ii| exceeds the others of its row together, in all rows */
    int32_t zero_column, zero_row; /* the first of zeros alone, from 1; or CUDA_NO_LINE */
    uint32_t parts;                /* enum cuda_part */
};

/* `sets` times `count` matrices of order n; set s begins set_step elements behind set s - 1. */
struct cuda_identification {
    enum precision precision;
    int64_t n;
    struct cuda_matrices a;
    int64_t count, sets, set_step;
    const double *factors;    /* two for each of `count`: the first multiplies its matrices; NULL */
    struct cuda_identity *to; /* matrix k of set s: to[s * to_step + k] */
    int64_t to_step;
    void *scratch; /* cuda_identify_bytes() of them, aligned to 256 */
};

size_t cuda_identify_bytes(enum precision precision, int64_t n, int64_t matrices);
/* More than CUDA_IDENTIFY_MATRICES_MAX matrices, no rows, or a stride above INT32_MAX, is
 * cudaErrorInvalidValue. */
cudaError_t cuda_identify(const struct cuda_identification *task, cudaStream_t stream);
/* For tests: the same by strips of 1, 2 or 4 tiles. Other numbers, and fewer than cuda_identify
 * takes for n, by which scratch is sized, are cudaErrorInvalidValue. */
cudaError_t cuda_identify_by(const struct cuda_identification *task, int tiles,
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
