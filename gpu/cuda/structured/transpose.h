/* gpu/cuda/structured/transpose.h: transposes of matrices on the device, tile by tile through
 * shared memory, so that reads and writes both run along rows.
 *
 * Nothing is awaited. Threads: any, each with its own stream. Cost: every number read and written
 * once.
 */
#ifndef GPU_CUDA_STRUCTURED_TRANSPOSE_H
#define GPU_CUDA_STRUCTURED_TRANSPOSE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to (columns x rows) = from^T, `count` times; they do not overlap. factors: two for each matrix,
 * by which it is multiplied, one after the other, so that their product may be beyond range; NULL:
 * none. More than 65535 matrices are cudaErrorInvalidValue. */
struct cuda_transposition {
    enum precision precision;
    int64_t rows, columns;
    struct cuda_matrices from, to;
    int64_t count;
    const double *factors;
};

cudaError_t cuda_transpose(const struct cuda_transposition *task, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
