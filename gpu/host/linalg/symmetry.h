/* gpu/host/linalg/symmetry.h: is a matrix symmetric to the bit, and its inverse made so.
 *
 * The inverse of a symmetric matrix by a general algorithm is symmetric but for rounding. The mean
 * of it and its transpose is symmetric to the bit. Its residual is the mean of both residuals of X,
 * the one transposed: I - X^T A is (I - A X)^T where A = A^T. So it is small where both are. lu's
 * I - A X is not always: of 6,000 random symmetric matrices of order 11 and conditions of 1e9 to
 * 1e15 eleven had a ratio above 1, one of 379. So the mean is checked (host__keep_symmetry).
 *
 * Threads: any, each on its own matrix; team may be NULL. Cost: a look at the first entries of a
 * matrix that is not symmetric; else a pass over n^2 numbers each. Bits are bitwise independent of
 * the team.
 */
#ifndef GPU_HOST_LINALG_SYMMETRY_H
#define GPU_HOST_LINALG_SYMMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/team.h"

#define REAL_HEADER "gpu/host/linalg/symmetry.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* a: n x n, dense. A NaN is not symmetric. */
bool R(host__is_symmetric)(struct host_team *team, const REAL *a, int64_t n);
/* The same of an x (n x n), zeros with their signs. */
bool R(host__has_mirrored_bits)(const REAL *x, int64_t n);
/* x (n x n, dense) = (x + x^T) / 2. */
void R(host__make_symmetric)(struct host_team *team, REAL *x, int64_t n);

#endif
