/* gpu/host/ism_block.c: the variants of `ism` by blocks (ism.h), made of OpenBLAS's products.
 *
 * A block's step is cut into pieces: lines of earlier blocks, and columns of n. Pieces have fixed
 * sizes, so the bits do not depend on who helps; products are OpenBLAS's gemm, whose bits depend
 * neither on alignment nor on leading dimensions, so inputs are used where they lie.
 *
 * Threads: any; the pieces run on a team. Cost: see ism_types.inc.
 */
#include "gpu/host/speed.h"

#include "gpu/host/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "gpu/host/ism_parts.h"
#include "gpu/host/lapack.h"
#include "gpu/host/large.h"

#define LINES_PIECE 128   /* lines of earlier blocks */
#define COLUMNS_PIECE 256 /* of n */
#define COUPLE_PIECE 64   /* lines of a block */
#define STRIP 8           /* rows of X or Y that are transposed together */

#define REAL_FILE "gpu/host/ism_block.inc"
#include "gpu/host/both.inc"
