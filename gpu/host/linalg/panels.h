/* gpu/host/linalg/panels.h: products of two thin matrices that are packed once, for many tiles.
 *
 * A product by tiles through OpenBLAS packs both factors of every tile anew, which takes as long as
 * an eighth of the work where the factors are thin, and waits for memory. Here each factor is
 * packed once, in the order in which the innermost loop reads it.
 *
 * Threads: any. Cost: see each function; nothing is allocated. Bits do not depend on alignment.
 */
#ifndef GPU_HOST_LINALG_PANELS_H
#define GPU_HOST_LINALG_PANELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"

#define HOST_PANEL_BYTES 192      /* of a panel's line */
#define HOST_PANEL_ROWS 8         /* of a group */
#define HOST_PANEL_COLUMNS_MAX 48 /* of a panel, in any precision, which divide these */

/* Has this processor the instructions for it, and OpenBLAS's kernel family too? Bits are not those
 * of OpenBLAS's products, so --cpu (lapack.h) decides: a family without AVX-512 gives the same bits
 * on all machines. The products below are not to be called where this is false. */
bool host__panels_work(void);

/* Columns of a panel, rows of a group: lines of `inner` of them, one behind the other, for each. */
static inline int64_t host__panel_columns(enum precision precision)
{
    return HOST_PANEL_BYTES / precision_bytes(precision);
}

#define REAL_HEADER "gpu/host/linalg/panels.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* Packs columns first to end - 1 of from (inner x n, ld apart) as panels, into their places in to;
 * columns beyond n are zeros. first: a multiple of the panel's columns. */
void R(host__pack_panels)(int64_t inner, int64_t n, const REAL *from, int64_t ld, int64_t first,
                          int64_t end, REAL *to);
/* The same as groups of HOST_PANEL_ROWS columns, which are rows of the product. */
void R(host__pack_groups)(int64_t inner, int64_t n, const REAL *from, int64_t ld, int64_t first,
                          int64_t end, REAL *to);

/* c (rows x columns) -= groups^T panels, or is set to minus that. groups and panels: the first that
 * the tile takes. 2 rows columns inner operations. */
void R(host__subtract_panels)(int64_t rows, int64_t columns, int64_t inner, const REAL *groups,
                              const REAL *panels, bool sets, REAL *c, int64_t ldc);

#endif
