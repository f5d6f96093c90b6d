/* gpu/cuda/structured/equilibrate.h: power-of-two factors of rows and columns that give them
 * largest entries of one size: gpu/common/equilibrate.h. The matrices are read alone.
 *
 * A matrix has the host engine's exponents, whatever its neighbours.
 *
 * Everything lies on the device. Nothing is awaited. Threads: any, each with its own stream and
 * memory. Cost: a pass reads n^2 numbers; one, or up to EQUILIBRATE_PASSES_... where both rows and
 * columns are uneven. A launch before the first one, and one for each that there may be; or one for
 * all, where there are matrices enough for a block each, or one tile is all of a matrix.
 */
#ifndef GPU_CUDA_STRUCTURED_EQUILIBRATE_H
#define GPU_CUDA_STRUCTURED_EQUILIBRATE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_EQUILIBRATE_MATRICES_MAX 65535
#define CUDA_EQUILIBRATE_N_MAX (1 << 20)

/* Of one matrix. */
struct cuda_equilibrium {
    int32_t wanted;                 /* 0: it is left alone; else 0 when its exponents are there */
    int32_t passes;                 /* that were made */
    int32_t column_min, column_max; /* the exponents of its columns, when they are there */
    uint32_t arrived;
};

/* `count` matrices of order n. Their exponents: of each its rows' n, then its columns' n, so that
 * 2^(rows[i] + columns[j]) a_ij is equilibrated and its inverse is 2^-(columns[i] + rows[j]) x_ij.
 */
struct cuda_equilibration {
    enum precision precision;
    int64_t n;
    struct cuda_matrices a;
    int64_t count;
    struct cuda_equilibrium *states; /* `wanted` is set */
    int32_t *exponents; /* 2 n for each matrix; of those that are left alone as before */
    int32_t *scratch;   /* as many */
};

/* More than CUDA_EQUILIBRATE_MATRICES_MAX matrices, and n below 1 or above CUDA_EQUILIBRATE_N_MAX,
 * are cudaErrorInvalidValue. */
cudaError_t cuda_equilibrate(const struct cuda_equilibration *task, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
