/* gpu/host/linalg/refine.h: what is done about an inverse that failed its residual check, or an
 * elimination that broke down: element growth under partial pivoting has spoilt it (Wilkinson's,
 * Wright's and Foster's matrices do it), though the matrix itself may be well conditioned.
 *
 * Both residuals, I - X A and I - A X, are measured; from n = 256 on the first alone. Where one is
 * too large, the inverse is made anew: with complete pivoting, where elements hardly grow, or from
 * n = 256 on by QR (qr.h), where they cannot.
 *
 * Threads: any, as dense.h; a large matrix has its team. Cost: rare. 2 n^3 operations for each
 * residual, 2 n^3 slow ones with complete pivoting, 11/3 n^3 by QR.
 */
#ifndef GPU_HOST_LINALG_REFINE_H
#define GPU_HOST_LINALG_REFINE_H

#include <stdbool.h>

#include "gpu/host/linalg/dense.h"

#define REAL_HEADER "gpu/host/linalg/refine.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* work->a: the unverified inverse of 2^scaling A, row-major; it becomes a good one. False: it
 * cannot be had, and work->a holds nothing. */
bool R(host__refine)(const struct host_matrix *matrix, const struct R(host_work) * work,
                     int scaling, struct host_norm norm);

/* The same from A alone. */
bool R(host__invert_anew)(const struct host_matrix *matrix, const struct R(host_work) * work,
                          int scaling, struct host_norm norm);

/* The same with complete pivoting at any order: good on both sides, and slow, for one thread has
 * all of it. */
bool R(host__invert_complete)(const struct host_matrix *matrix, const struct R(host_work) * work,
                              int scaling, struct host_norm norm);

#endif
