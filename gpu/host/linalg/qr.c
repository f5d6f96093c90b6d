/* gpu/host/linalg/qr.c: see qr.h. The precision-dependent part is qr.inc.
 *
 * Flow. A = Q R from left to right by panels, as blocked.c does LU: a step applies panel k to all
 * columns right of it, in pieces, and the piece with the next panel factors it too. Then R^-1 by
 * blocked.h, in place above the vectors V that hold Q. Then X = R^-1 Q^T, from the last panel to
 * the first: its V moves to `lines`, zeros take its place, and every strip of rows of X is a piece.
 * R^-1 as blocked.h has it keeps |R^-1 R - I| small, and orthogonal factors add errors of rounding
 * alone: |I - X A| is n eps |A| |X| or so for any matrix.
 *
 * Two designs were thought of. Complete pivoting, which small orders get (refine.c), keeps elements
 * from growing, but looks through what is left of the matrix at every step, and each step is bound
 * by memory: with n = 2048, FP64 and one thread an inverse that was recovered took 17 s in all,
 * where lu takes 0.55 s (AMD EPYC, 2 cores, 2026-11-21); with QR it takes 2.8 s. QR works in
 * blocks, and cannot meet growth at all. This is the second.
 *
 * Threads: any; the pieces run on a team. Cost: see qr.h; a panel, and the triangle that belongs to
 * it, run on one thread each.
 */
#include "gpu/host/linalg/qr.h"

#include <assert.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"

#define PIECE 128 /* columns, or rows, of a piece */

/* Columns of a panel: V, and the products with it, take so many lines each. */
static int64_t block_of(int64_t n)
{
    return n < 1024 ? 24 : 56;
}

#define REAL_FILE "gpu/host/linalg/qr.inc"
#include "gpu/host/linalg/real.inc"
