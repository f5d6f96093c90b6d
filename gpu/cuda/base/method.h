/* gpu/cuda/base/method.h: the methods this engine takes: their launchers, their workspaces, and
 * which output is which.
 *
 * A method is one file of gpu/cuda, C or CUDA C++, that defines `const struct cuda_method
 * cuda_method_NAME[]`: a row for each range of orders, and an empty one behind the last. A method
 * without such a file is the host engine's alone. Threads: any; constant data.
 */
#ifndef GPU_CUDA_BASE_METHOD_H
#define GPU_CUDA_BASE_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/call.h"
#include "gpu/method.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_pool;

typedef cudaError_t cuda_launcher(const struct cuda_call *call, cudaStream_t stream);
/* *worst: the largest residual of the matrices tried, by the contract's measure; as it was where
 * the pool has no room. Blocks. */
typedef cudaError_t cuda_self_tester(struct cuda_pool *pool, struct cuda_products *products,
                                     enum precision precision, cudaStream_t stream, double *worst);

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
    /* Of a row that takes tensors; NULL: none. Others are tried as inverses or factors. */
    cuda_self_tester *self_test;
};

/* The row of method_at(index) that takes matrices of order n; NULL when none does. Cost: a few
 * comparisons. */
const struct cuda_method *cuda_method_find(uint32_t index, enum precision precision, int64_t n);

/* The largest order of method_at(index); 0: it is not taken. */
int64_t cuda_method_n_max(uint32_t index, enum precision precision);

/* Bytes of device memory without which one matrix cannot be done with, recovered or not. */
size_t cuda_method_bytes_min(const struct cuda_method *method, const struct cuda_call *call);

/* All rows, one after the other; NULL behind the last. */
const struct cuda_method *cuda_method_row(int row);

/* The rows of each method that gpu/cuda has: cuda_method_lu[], ... */
#define METHOD(name) extern const struct cuda_method cuda_method_##name[];
#include "cuda_method_list.inc"
#undef METHOD

#ifdef __cplusplus
}
#endif

#endif
