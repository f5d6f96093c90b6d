/* gpu/host/iterative/tiles.c: products and sums of matrices, tile by tile; see shared.h.
 *
 * A tile of a product takes whole rows of one factor and whole columns of the other in one call, so
 * that OpenBLAS blocks the inner dimension as it likes: for one order always in the same way.
 *
 * Threads: any; tiles run on a team. Cost: 2 n^3 operations a product; a sum reads each term once.
 */
#include "gpu/host/base/speed.h"

#include <string.h>

#include "base/minmax.h"
#include "gpu/host/iterative/shared.h"
#include "gpu/host/linalg/lapack.h"

/* Rows and columns of a tile of a product: enough of them for a team, large enough for OpenBLAS. */
#define TILE_SMALL 256
#define TILE_LARGE 512
#define TILE_LARGE_MIN 2048
#define SUM_ROWS 64 /* of a tile of a sum, as wide as the matrix */

static int64_t tile_of(int64_t n)
{
    return n < TILE_LARGE_MIN ? TILE_SMALL : TILE_LARGE;
}

#define REAL_FILE "gpu/host/iterative/tiles.inc"
#include "gpu/host/linalg/real.inc"
