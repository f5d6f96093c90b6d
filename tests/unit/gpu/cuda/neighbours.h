/* tests/unit/gpu/cuda/neighbours.h: batches of items for a launcher of gpu/cuda/base/call.h, and
 * each of their matrices alone: neighbours must not show in any bit, and nothing but the results
 * may be written. On the SIMT stand-in. One thread. Every matrix is run twice.
 */
#ifndef TESTS_UNIT_GPU_CUDA_NEIGHBOURS_H
#define TESTS_UNIT_GPU_CUDA_NEIGHBOURS_H

#include "gpu/cuda/base/call.h"

#define CUDATEST_ITEMS_MAX 7

/* Matrices of one shape, in items; every tensor of an item is a piece of memory of its own, which
 * begins `late` numbers behind a multiple of 16 bytes. */
struct cudatest_bed {
    const struct method *method;
    enum precision precision;
    int64_t n, m;
    int64_t options[METHOD_OPTIONS_MAX];
    int64_t counts[CUDATEST_ITEMS_MAX];
    int late;
    int64_t at_once;   /* matrices that the workspace is for; 0: all of them */
    uint32_t inputs;   /* that are given: 1 << index */
    uint32_t unwanted; /* outputs that every second item leaves out: 1 << index */
    bool by_all;       /* that all items do */
    int kind;          /* this and `products` are the test's own */
    struct cuda_products *products;
    /* Writes the inputs of matrix k, which is number `index` of an item. */
    void (*set_matrix)(const struct cudatest_bed *bed, int item, int64_t index, int64_t k);
    /* Runs the call to its end, with a workspace for `at_once` matrices, which is not 0. */
    void (*run)(const struct cudatest_bed *bed, struct cuda_call *call, int64_t at_once);
    unsigned char *inputs_memory[CUDATEST_ITEMS_MAX][METHOD_INPUTS_MAX];
    unsigned char *outputs_memory[CUDATEST_ITEMS_MAX][METHOD_OUTPUTS_MAX];
    struct cuda_tensors items[CUDATEST_ITEMS_MAX];
};

/* Where matrix `index` of an item has that input or output; lent until cudatest_release. */
unsigned char *cudatest_input(const struct cudatest_bed *bed, int item, int64_t index, int input);
unsigned char *cudatest_output(const struct cudatest_bed *bed, int item, int64_t index, int output);

/* Writes every step-th of the numbers, `count` of them. */
void cudatest_put(enum precision precision, unsigned char *to, const double *from, int64_t count,
                  int64_t step);

/* Item i gets counts[i] matrices, which are number first, first + 1, ... Once filled a bed must be
 * released. */
void cudatest_fill(struct cudatest_bed *bed, int items, int64_t first);
void cudatest_run(const struct cudatest_bed *bed, int items);
void cudatest_release(struct cudatest_bed *bed, int items);

/* All of it: fails where a matrix of the batch gets another answer than alone. */
void cudatest_try_neighbours(struct cudatest_bed *bed, int items, int64_t first);

#endif
