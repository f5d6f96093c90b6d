/* gpu/cuda/base/batch.h: a batch of methods that take one matrix and return one: where its items
 * are, and what INFO says of an inverse that has yet to be recovered.
 *
 * Threads: constant data; the caller owns the arrays until its stream has come to the end.
 */
#ifndef GPU_CUDA_BASE_BATCH_H
#define GPU_CUDA_BASE_BATCH_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "base/datatype.h"

/* The largest order of the fused kernels (lu_small/lu_small.h). */
#define CUDA_SMALL_N_MAX 32

/* From this order on an inverse is checked on a probe vector: partial pivoting may have spoilt it.
 * One that fails is unverified. Of any order so is one that is not finite, for a denormal pivot may
 * have had no reciprocal, and a zero pivot of a matrix that was scaled down, where a small one may
 * have vanished, or of one whose numbers are far apart, where denormal ones may have been taken for
 * zeros. An unverified inverse has an INFO of CUDA_INFO_UNVERIFIED or up to n more, and
 * cuda_recover_small must follow before the results are used. Items of inverses must have INFO.
 *
 * Scaling is not singularity: an INFO of 1 to n + 1 awaits what the matrix is once equilibrated. It
 * is CUDA_INFO_AWAITING(n) more until then; RCOND and the result are those that go with it. */
#define CUDA_CHECKED_N_MIN 9
#define CUDA_INFO_UNVERIFIED INT32_MIN
#define CUDA_INFO_AWAITING(n) (CUDA_INFO_UNVERIFIED + (int)(n) + 1)

/* Where an item's tensors start, as the device sees them: dense, row-major, matrix after matrix,
 * aligned to their elements at least. NULL: an output that is not wanted. */
struct cuda_item {
    const void *a; /* n x n */
    void *result;  /* n x n: the inverse, or LU of A as written */
    void *extra;   /* inverse: RCOND, one number of the precision. LU: pivots, n of int32, from 1 */
    int32_t *info; /* one number a matrix */
    int64_t first; /* matrices of all items before this one */
};

/* items is read by the device; item k holds matrices items[k].first up to items[k + 1].first. */
struct cuda_batch {
    const struct cuda_item *items;
    int64_t item_count;
    int64_t matrices;
    uint32_t *unverified; /* the device adds the number of unverified inverses; NULL: not counted */
};

#endif
