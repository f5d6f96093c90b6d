/* gpu/host/linalg/identify.c: see identify.h. The precision-dependent part is identify.inc.
 *
 * The loops over a tile are compiled for three widths of vector and chosen by the CPU. All three do
 * the same operations in the same order: LANES sums run side by side in a row, whatever the width.
 *
 * Threads: any; all state is the caller's. Cost: n^2 numbers are read once, from memory as a rule;
 * then the n sums of each row of tiles are added up on the caller's thread.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/identify.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"

#define TILE HOST_IDENTIFY_TILE
#define ROWS 4   /* of a tile added up together */
#define LANES 16 /* sums of a row that run side by side */

/* Rows of tiles. */
static int64_t tiles(int64_t n)
{
    return (n + TILE - 1) / TILE;
}

/* Sums of columns for each row of tiles, then sums of rows, or squares of tile rows. */
int64_t host__identify_lines(int64_t n)
{
    return tiles(n) + 1;
}

#define REAL_FILE "gpu/host/linalg/identify.inc"
#include "gpu/host/linalg/real.inc"
