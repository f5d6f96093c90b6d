/* gpu/cuda/base/self_test.h: a quick look at the engine's own answers: before it serves, and for
 * `invertd-cuda --self-test`. */
#ifndef GPU_CUDA_BASE_SELF_TEST_H
#define GPU_CUDA_BASE_SELF_TEST_H

#include <stdbool.h>

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/engine.h"

/* Runs every method in every precision on some matrices on the open device, and checks residuals:
 * each order to CUDA_SMALL_N_MAX, and of what is larger the first.
 * `prints`: one line for each method and precision to stdout. A device that fails, or answers
 * outside the accuracy contract, is logged. Also the kernels' first run, which is slower than the
 * others. Blocks for some hundredths of a second; main. */
enum engine_exit cuda_self_test(struct cuda_pool *pool, bool prints);

/* A case of a method that takes tensors, about to run. */
struct cuda__self_case {
    void *h_bench, *d_bench; /* the room's struct: pinned, and as the device sees it */
    int64_t options[METHOD_OPTIONS_MAX];
    struct cuda_call call; /* of item_count 1; options are those above */
};

/* The self-test of a room: `cases` calls of so many matrices each. */
struct cuda__self_rows {
    size_t bench_bytes;
    int cases;
    int64_t matrices;
    /* Case k: its order, options, tensors and what they hold, NaN-like bytes in the outputs. */
    void (*fill)(struct cuda__self_case *of, int k);
    /* The residual of a matrix, by the contract's measure; HUGE_VAL: there is no answer, or another
     * algorithm's. */
    double (*ratio)(const struct cuda__self_case *of, int64_t matrix);
    size_t (*workspace)(const struct cuda_call *call, int64_t matrices);
    cuda_launcher *launch, *again; /* again: NULL where one launch is all */
};

/* A cuda_self_tester by rows. A case that the pool can never hold is left out. */
cudaError_t cuda__self_test(const struct cuda__self_rows *rows, struct cuda_pool *pool,
                            struct cuda_products *products, enum precision precision,
                            cudaStream_t stream, double *worst);

#endif
