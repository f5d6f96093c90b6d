/* gpu/cuda/base/method.h: the methods this engine takes: their launchers, their workspaces, and
 * which output is which.
 *
 * A new method, or a new range of orders, is a row of method.c. Threads: any; constant data.
 */
#ifndef GPU_CUDA_BASE_METHOD_H
#define GPU_CUDA_BASE_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/call.h"
#include "gpu/method.h"

typedef cudaError_t cuda_launcher(const struct cuda_call *call, cudaStream_t stream);

struct cuda_method {
    const char *name;   /* the descriptor's */
    const char *kernel; /* "cuda lu fused" */
    /* The orders of this row: from n_min to n_max, which is 0 where the precision is not taken.
     * The rows of one method leave no order out. */
    int64_t n_min, n_max[PRECISION_COUNT];
    bool takes_tensors;      /* call->tensors is laid out; otherwise call->batch */
    bool takes_products;     /* call->products is there */
    int result, extra, info; /* the outputs that struct cuda_item names so */
    cuda_launcher *launch;
    cuda_launcher *recover; /* follows where matrices were unverified; NULL: none ever is */
    /* Follows when the stream has come to its end and the device has asked for it (call->notes),
     * again and again; NULL: one launch is all. */
    cuda_launcher *again;
    /* Bytes of device memory for the first `matrices` of the call; SIZE_MAX when they are too many
     * to count. NULL: none. The call's pointers may not be looked at. recover_workspace: what
     * `recover` takes for so many unverified ones, its contents undefined; NULL: it goes on in the
     * other. */
    size_t (*workspace)(const struct cuda_call *call, int64_t matrices);
    size_t (*recover_workspace)(const struct cuda_call *call, int64_t matrices);
};

/* The row of method_at(index) that takes matrices of order n; NULL when none does. A walk through a
 * few rows. */
const struct cuda_method *cuda_method_find(uint32_t index, enum precision precision, int64_t n);

/* The largest order of method_at(index); 0: it is not taken. */
int64_t cuda_method_n_max(uint32_t index, enum precision precision);

/* Bytes of device memory without which one matrix cannot be done with, recovered or not. */
size_t cuda_method_bytes_min(const struct cuda_method *method, const struct cuda_call *call);

/* All rows, one after the other; NULL behind the last. */
const struct cuda_method *cuda_method_row(int row);

#endif
