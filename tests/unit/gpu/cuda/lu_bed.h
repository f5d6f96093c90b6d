/* tests/unit/gpu/cuda/lu_bed.h: batches for the launchers of gpu/cuda/lu/lu.h, on the SIMT
 * stand-in. A test fails where something goes wrong. One thread.
 */
#ifndef TESTS_UNIT_GPU_CUDA_LU_BED_H
#define TESTS_UNIT_GPU_CUDA_LU_BED_H

#include <stdbool.h>

#include "gpu/cuda/lu/lu.h"

struct lubed {
    enum precision precision;
    int64_t n, count;
    bool factor;
    unsigned char *a, *result, *extra; /* an item a matrix, each at a distance of its own */
    int32_t *info;
    struct cuda_item *items;
    uint32_t unverified;
    void *workspace;
    size_t workspace_bytes;
};

/* Memory that no one has written; for free(). */
unsigned char *lubed_take(size_t bytes);

/* A batch of `count` matrices of order n, of `lu` or `lu_factor`; held: matrices that there is
 * workspace for. For lubed_free(). */
struct lubed lubed_make(enum precision precision, int64_t n, int64_t count, bool factor,
                        int64_t held);
void lubed_free(struct lubed *bed);

/* Matrix k becomes a (n x n), rounded to the bed's precision. */
void lubed_put(const struct lubed *bed, int64_t k, const double *a);
/* to = `count` numbers of the bed's precision. */
void lubed_get(const struct lubed *bed, const void *numbers, int64_t count, double *to);

/* As the engine runs a batch; and nothing beyond a result may be touched. */
void lubed_run(struct lubed *bed, struct cuda_products *products);

#endif
