/* gpu/host/linalg/residual.h: how far P Q is from I, P and Q being a matrix and its inverse.
 *
 * Measured in the precision itself: with errors of the products, |I - X A| is off by n eps |A| |X|
 * / 2 at most, by a hundredth of that as a rule.
 *
 * Threads: any; a large matrix has its team. Cost: 2 n^3 operations, through OpenBLAS. Bits depend
 * neither on the team nor on where P and Q lie.
 */
#ifndef GPU_HOST_LINALG_RESIDUAL_H
#define GPU_HOST_LINALG_RESIDUAL_H

#include <stdint.h>

#include "gpu/host/linalg/dense.h"

#define REAL_HEADER "gpu/host/linalg/residual.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* |I - factor P Q| in the 1-norm (n x n, row-major; ldp and ldq numbers from row to row); NaN where
 * the product holds one. lines: host__lines(n) x host__ld numbers of scratch. */
double R(host__residual)(struct host_team *team, int64_t n, REAL factor, const REAL *p, int64_t ldp,
                         const REAL *q, int64_t ldq, REAL *lines);

/* A residual's ratio to n |A| |X| eps, which the contract bounds by 15; infinite where a norm is.
 */
double R(host__residual_ratio)(double residual, int64_t n, struct host_norm a, struct host_norm x);

/* Bytes of scratch of the next one; -1 on overflow. */
int64_t R(host__ratios_bytes)(int64_t n);
/* left: becomes the ratio of |I - X A|, right: that of |I - A X|; NULL: not wanted. NaN where there
 * is no inverse. A: the first input; X: the output INVERSE, which is there. */
void R(host__residual_ratios)(const struct host_matrix *matrix, REAL *left, REAL *right);

#endif
