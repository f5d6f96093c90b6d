/* gpu/host/linalg/blocked.c: see blocked.h. The precision-dependent part is blocked.inc.
 *
 * Flow. getrf goes from left to right by panels of a block's columns. Step k applies panel k to
 * every block of columns right of it: exchange rows, solve with the panel's triangle, subtract a
 * product. A block of columns is a piece of work of its own. Piece 0 is the next panel, which is
 * factored in the same piece, so that the others hide it. The blocks left of a panel get its row
 * exchanges at the end. getri is LAPACK's: U^-1 by block columns from the left, then X = U^-1 L^-1
 * by block columns from the right, then the columns change places. A block column of U or L moves
 * to `lines` before it is overwritten; then every tile of rows of X is a piece of its own. potrf
 * goes as getrf does, less the exchanges; potri inverts L by block columns from the right, as getri
 * does U from the left, and makes L^-T L^-1 by block rows from the top, whose tiles are pieces.
 *
 * Two designs for the inverse were thought of. Tiles of rows of X may go through U^-1 and L^-1
 * alone from end to end, without a barrier, but then factors and inverse need an n x n each beside
 * the output. LAPACK's order needs a barrier for each block column, but works in place. This is the
 * second. Either solves for rows of X, so |I - X A| is as small as getri's.
 *
 * Pieces have fixed sizes and addresses aligned alike, and OpenBLAS runs each on one thread; what
 * is measured about the sizes is in bench/results/host-large.md.
 *
 * Threads: any; the pieces run on a team. Cost: see blocked.h; the panels, n^2 operations times
 * half a block's columns at a lower rate, run on one thread each.
 */
#include "gpu/host/linalg/blocked.h"

#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"

/* Small enough for many pieces, large enough for OpenBLAS: columns of a block and rows of a piece.
 * A function of n alone. */
static int64_t block_of(int64_t n)
{
    return n < HOST_LARGE_FACTOR_MIN ? 32 : n < 1024 ? 64 : HOST_LARGE_BLOCK_MAX;
}

int64_t host__large_lines(int64_t n)
{
    return block_of(n);
}

#define REAL_FILE "gpu/host/linalg/blocked.inc"
#include "gpu/host/linalg/real.inc"
