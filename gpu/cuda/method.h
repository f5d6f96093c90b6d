/* gpu/cuda/method.h: the methods this engine takes: their launchers, and which output is which.
 *
 * A new method, or a new range of orders, is a row of method.c. Threads: any; constant data.
 */
#ifndef GPU_CUDA_METHOD_H
#define GPU_CUDA_METHOD_H

#include <stdint.h>

#include "gpu/cuda/kernels.h"
#include "gpu/method.h"

typedef cudaError_t cuda_launcher(enum precision precision, int64_t n,
                                  const struct cuda_batch *batch, cudaStream_t stream);

struct cuda_method {
    const char *name;   /* the descriptor's */
    const char *kernel; /* "cuda lu fused" */
    int64_t n_max;
    int result, extra, info; /* the outputs that struct cuda_item names so */
    cuda_launcher *launch;
    cuda_launcher *mend; /* follows where matrices were doubtful; NULL: none ever is */
};

/* The row of method_at(index); NULL when this engine does not take that method, or there is none.
 * A walk through a few rows. */
const struct cuda_method *cuda_method_at(uint32_t index);

#endif
