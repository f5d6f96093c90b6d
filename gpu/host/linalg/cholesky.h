/* gpu/host/linalg/cholesky.h: the algorithm of `auto` for symmetric positive definite matrices.
 *
 * Threads: any, as dense.h. Cost: one pass for most of the matrices that are none; n^3 operations,
 * half of lu's, for one that is; n^3 / 3 for a factor that was of no use; rarely, n^3 for an
 * inverse that was none.
 */
#ifndef GPU_HOST_LINALG_CHOLESKY_H
#define GPU_HOST_LINALG_CHOLESKY_H

#include <stdbool.h>

#include "gpu/host/linalg/dense.h"

#define REAL_HEADER "gpu/host/linalg/cholesky.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* norm: the matrix's, finite. averaged: halves that differ by rounding count as equal, and their
 * mean is inverted. False: the matrix is no case for Cholesky, and the answer is lu's to give. */
bool R(host__cholesky)(const struct host_matrix *matrix, struct host_norm norm, bool averaged);

#endif
