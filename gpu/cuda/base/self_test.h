/* gpu/cuda/base/self_test.h: a quick look at the engine's own answers: before it serves, and for
 * `invertd-cuda --self-test`. */
#ifndef GPU_CUDA_BASE_SELF_TEST_H
#define GPU_CUDA_BASE_SELF_TEST_H

#include <stdbool.h>

#include "gpu/cuda/base/pool.h"
#include "gpu/engine.h"

/* Runs every method in every precision on some matrices on the open device, and checks residuals:
 * each order to CUDA_SMALL_N_MAX, and of what is larger the first.
 * `prints`: one line for each method and precision to stdout. A device that fails, or answers
 * outside the accuracy contract, is logged. Also the kernels' first run, which is slower than the
 * others. Blocks for some hundredths of a second; main. */
enum engine_exit cuda_self_test(struct cuda_pool *pool, bool prints);

#endif
