/* gpu/host/linalg/qr.h: the inverse of a large matrix by Householder's QR, for those whose elements
 * grow in an elimination; see qr.c.
 *
 * Threads: any, each on its own matrix; team may be NULL, and has no part in the bits. Cost: 11/3
 * n^3 operations, and no memory next to what it is lent.
 */
#ifndef GPU_HOST_LINALG_QR_H
#define GPU_HOST_LINALG_QR_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/team.h"

#define HOST_QR_ORDER_MIN 256

#define REAL_HEADER "gpu/host/linalg/qr.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* a: n x n, column-major, aligned to HOST_ALIGN_BYTES, with ld as host__ld has it. It becomes its
 * inverse X, with |I - X a| small. taus: n numbers; lines: host__lines(n) of ld. False: R has a
 * zero on its diagonal, and a holds nothing. */
bool R(host__qr_invert)(struct host_team *team, int64_t n, REAL *a, int64_t ld, REAL *taus,
                        REAL *lines);

#endif
