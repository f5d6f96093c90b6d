/* gpu/host/ism/block.c: the variants of `ism` by blocks (ism.h), made of OpenBLAS's products.
 *
 * A block's step is cut into pieces: lines of earlier blocks, columns of n, tiles of the coupling
 * matrix, rows of the factors. What pieces there are follows from n, m and the block, so the bits
 * do not depend on who helps; products are OpenBLAS's gemm, whose bits depend neither on alignment
 * nor on leading dimensions, so inputs are used where they lie. The last product of a single block
 * is panels.h's: (G R)^T and K are packed into places that are done with.
 *
 * Threads: any; the pieces run on a team. Cost: see types.inc.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/ism/parts.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/panels.h"

#define LINES_PIECE 128    /* lines of earlier blocks */
#define COLUMNS_PIECE 256  /* of n, at most */
#define COUPLE_PIECE 64    /* lines of a block */
#define COUPLE_COLUMNS 256 /* of a tile of a block's coupling matrix */
#define COUPLE_PIECES 64   /* of all tiles, about, */
#define COUPLE_DEPTH 128   /* which take so much of n at least */
#define ADD_LINES 16       /* of the sum of their parts */
#define PACK_PIECE (2 * HOST_PANEL_COLUMNS_MAX)
#define ROWS_AT_ONCE 128 /* of a tile: so much of it stays in the second cache */
#define STRIP 8          /* rows of X or Y that are transposed together */

/* Columns of a block of the coupling matrix's inverse: half of what lu takes, for all else waits
 * for it, and it is a small part of the work. */
static int64_t inverse_block(int64_t order)
{
    return order < 1024 ? 32 : 64;
}

static int64_t couple_rows(int64_t count)
{
    return count < 512 ? 64 : 128;
}

/* Columns of n that a piece takes: many pieces, and few of OpenBLAS's packings. */
static int64_t columns_piece(int64_t n)
{
    return n < 2048 ? 64 : n < 8192 ? 128 : COLUMNS_PIECE;
}

#define REAL_FILE "gpu/host/ism/block.inc"
#include "gpu/host/linalg/real.inc"
