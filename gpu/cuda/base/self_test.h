/* gpu/cuda/base/self_test.h: a quick look at the engine's own answers: before it serves, and for
 * `invertd-cuda --self-test`. */
#ifndef GPU_CUDA_BASE_SELF_TEST_H
#define GPU_CUDA_BASE_SELF_TEST_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "base/datatype.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/engine.h"

struct cuda_products;

/* Runs every method in every precision on some matrices on the open device, and checks residuals:
 * each order to CUDA_SMALL_N_MAX, and of what is larger the first.
 * `prints`: one line for each method and precision to stdout. A device that fails, or answers
 * outside the accuracy contract, is logged. Also the kernels' first run, which is slower than the
 * others. Blocks for some hundredths of a second; main. */
enum engine_exit cuda_self_test(struct cuda_pool *pool, bool prints);

/* For self_test.c: a method in one precision; *worst: the largest residual, by the contract's
 * measure. */
cudaError_t cuda__try_tridiagonal(struct cuda_pool *pool, enum precision precision,
                                  cudaStream_t stream, double *worst);
cudaError_t cuda__try_auto(struct cuda_pool *pool, struct cuda_products *products,
                           enum precision precision, cudaStream_t stream, double *worst);
cudaError_t cuda__try_ism(struct cuda_pool *pool, struct cuda_products *products,
                          enum precision precision, cudaStream_t stream, double *worst);
cudaError_t cuda__try_iterative(struct cuda_pool *pool, struct cuda_products *products,
                                enum precision precision, cudaStream_t stream, double *worst);

#endif
