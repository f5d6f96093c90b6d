/* gpu/host/linalg/qr.h: the inverse of a large matrix by Householder's QR, for those whose elements
 * grow in an elimination; see qr.c.
 *
 * Threads: any, each on its own matrix; team may be NULL, and has no part in the bits. Cost: 11/3
 * n^3 operations, and no memory beside what it is lent.
 */
#ifndef GPU_HOST_LINALG_QR_H
#define GPU_HOST_LINALG_QR_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/team.h"

#define HOST_QR_ORDER_MIN 256

/* a: n x n, column-major, aligned to HOST_ALIGN_BYTES, with ld as host__ld has it. It becomes its
 * inverse X, with |I - X a| small. taus: n numbers; lines: host__lines(n) of ld. False: R has a
 * zero on its diagonal, and a holds nothing. */
bool host__qr_invert_f32(struct host_team *team, int64_t n, float *a, int64_t ld, float *taus,
                         float *lines);
bool host__qr_invert_f64(struct host_team *team, int64_t n, double *a, int64_t ld, double *taus,
                         double *lines);

#endif
