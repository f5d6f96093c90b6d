/* gpu/host/linalg/transpose.h: the transpose of a matrix that may lie anywhere, by shares of its
 * rows.
 *
 * Whole lines of the cache are written where the AVX-512 code runs, from large matrices also where
 * the rows of the result do not begin with one; what comes out is the same without it.
 *
 * Threads: any; shares of one transpose may be made at the same time. Cost: each number is read
 * once, or twice where rows of the result do not begin with a line, and written once.
 */
#ifndef GPU_HOST_LINALG_TRANSPOSE_H
#define GPU_HOST_LINALG_TRANSPOSE_H

#include <stdint.h>

#define HOST_TRANSPOSE_ROWS 64 /* of a share */

/* How the result is written. It has no part in an answer's bits. */
enum host_writes {
    HOST_WRITES_NEAR,    /* it is in a core's own caches, or soon will be */
    HOST_WRITES_FETCHED, /* its lines are fetched a while before they are written */
    HOST_WRITES_PAST     /* it had better not go through the caches; whole lines do not */
};

#define REAL_HEADER "gpu/host/linalg/transpose.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* The share of HOST_TRANSPOSE_ROWS rows of `from`, or of what is left, from row `first` on, a
 * multiple of HOST_TRANSPOSE_ROWS, in to (columns x rows) = factor * from^T (from: rows x columns).
 * All shares together are the result; one may leave the last numbers of its rows, less than a line,
 * to the next. */
void R(host__transpose_rows)(const REAL *from, int64_t from_ld, int64_t rows, int64_t columns,
                             REAL *to, int64_t to_ld, REAL factor, enum host_writes writes,
                             int64_t first);

#endif
