/* gpu/cuda/structured/triangular.h: inverses of upper triangular matrices on the device, one or
 * many of one order.
 *
 * X A = I is solved by substitution: every row of X by itself, from its diagonal to the right. So
 * |I - X A| is small entry by entry whatever A is (Higham, Accuracy and Stability, 14.2), and no
 * answer has to be checked. Panels of CUDA_TRIANGULAR_PANEL columns are solved with a row a thread;
 * what they do to the columns behind them are products (gemm/gemm.h), halves of halves, so that
 * most of the work is in large ones. n alone decides which; the bits of a matrix are its own.
 *
 * Nothing is awaited. Threads: any, each with its own stream and products. Cost: n^3 / 3
 * operations, n / CUDA_TRIANGULAR_PANEL launches and as many products.
 */
#ifndef GPU_CUDA_STRUCTURED_TRIANGULAR_H
#define GPU_CUDA_STRUCTURED_TRIANGULAR_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_TRIANGULAR_PANEL 32
#define CUDA_TRIANGULAR_MATRICES_MAX 65535 /* of a call */

/* n: a multiple of CUDA_TRIANGULAR_PANEL; larger matrices of ones on the diagonal stand for others.
 * Strides and steps: multiples of 16 bytes. */
struct cuda_triangular {
    enum precision precision;
    int64_t n, count;
    struct cuda_matrices a; /* below the diagonal nothing is read; on it there is no zero */
    struct cuda_matrices x; /* the identity goes in, the inverse comes out */
};

/* What cannot be is cudaErrorInvalidValue. */
cudaError_t cuda_triangular_invert(struct cuda_products *products,
                                   const struct cuda_triangular *task, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
