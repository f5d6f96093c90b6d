/* gpu/cuda/tridiagonal/call.h: what the kernels of `tridiagonal` are given, and the entry to them
 * in each precision. Between tridiagonal.c, which reads the method's options, and the kernels.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_CALL_H
#define GPU_CUDA_TRIDIAGONAL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/method.h"
#include "gpu/method.h"
#include "gpu/methods/tridiagonal.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA__TRI_BLOCK_N_MAX 512 /* to this order a block of threads does all of a matrix */
/* To this order a block of threads does many that are dominant; which one it is decides the bits.
 */
#define CUDA__TRI_SERIAL_N_MAX 128
#define CUDA__TRI_LEFT_BYTES 256 /* of `left` for a part */
#define CUDA__TRI_FOUND_HELD 16  /* matrices of `found` for a part */

/* Matrices first to first + count - 1 of the batch. Each has a part of the workspace: all of them,
 * or to CUDA__TRI_BLOCK_N_MAX each block of threads one for its matrices. */
struct cuda__tri_call {
    const struct cuda_tensors *tensors;
    int64_t item_count, matrices, n;
    int64_t first, count;
    unsigned char *workspace;
    int64_t parts, part_bytes;
    int32_t variant;
    int32_t levels;                    /* of merging that a part has room for; 0: none */
    struct method_range rows, columns; /* of X, that are wanted */
    bool keeps_levels;                 /* there is room for all levels */
    bool writes;                       /* X is wanted */
    /* Of many at a time: of each matrix, whether it is left over; or, where they are to be merged
     * yet, n + 1 numbers: |X|, or -1 if it is left over, and the diagonal of X. NULL: there is no
     * such kernel. */
    unsigned char *left;
    double *found;
};

int64_t cuda__tri_part_bytes(int64_t n, int levels);

typedef cudaError_t cuda__tri_launcher(const struct cuda__tri_call *call, cudaStream_t stream);
cuda__tri_launcher cuda__tri_launch_f32, cuda__tri_launch_f64;

cuda_self_tester cuda__try_tridiagonal; /* self_test.c */

#ifdef __cplusplus
}
#endif

#endif
