/* gpu/host/linalg/blocked.h: getrf and getri, trtri, potrf and potri by blocks, of a large matrix
 * by a team; see blocked.c.
 *
 * The same contract as lapack.h's, and the same algorithms, cut into blocks of fixed size: the bits
 * depend on the matrix and n, never on the team. Matrices are column-major, a aligned to
 * HOST_ALIGN_BYTES, with ld as host__ld has it.
 *
 * Threads: any, each on its own matrix; team may be NULL. Cost: LAPACK's: 2/3 and
 * 4/3 n^3 operations, 1/3 for trtri, 1/3 and 2/3 for potrf and potri; and no memory next to a and,
 * for inverses, host__large_block lines of ld.
 */
#ifndef GPU_HOST_LINALG_BLOCKED_H
#define GPU_HOST_LINALG_BLOCKED_H

#include <stdint.h>

#include "gpu/host/base/progress.h"
#include "gpu/host/base/team.h"

/* Orders from here on are factored, and inverted, by blocks; smaller ones by LAPACK itself. */
#define HOST_LARGE_FACTOR_MIN 256
#define HOST_LARGE_INVERT_MIN 64
#define HOST_LARGE_BLOCK_MAX 128

/* Columns of a block and rows of a piece: small enough for many pieces, large enough for OpenBLAS.
 * A function of n alone. An inverse takes as many lines of ld. */
static inline int64_t host__large_block(int64_t n)
{
    return n < HOST_LARGE_FACTOR_MIN ? 32 : n < 1024 ? 64 : HOST_LARGE_BLOCK_MAX;
}

#define REAL_HEADER "gpu/host/linalg/blocked.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* n >= 1. pivots: n of them, 1-based. Returns LAPACK's info. */
int64_t R(host__large_getrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                             int32_t *pivots);
/* After getrf with info 0. a becomes the inverse. */
void R(host__large_getri)(struct host_team *team, int64_t n, REAL *a, int64_t ld, int32_t *pivots,
                          REAL *lines);

/* The same two, for a matrix whose inverse is all the work: they report how much of it is done. The
 * inverse is made by both, a third of it by getrf. progress may be NULL. */
int64_t R(host__reporting_getrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                                 int32_t *pivots, struct host_progress *progress);
void R(host__reporting_getri)(struct host_team *team, int64_t n, REAL *a, int64_t ld,
                              int32_t *pivots, REAL *lines, struct host_progress *progress);

/* The same by blocks of so many columns, at most those of getrf and getri: narrower ones leave less
 * to one thread and more to a team, at a lower rate. block: a function of n. */
int64_t R(host__large_getrf_by)(struct host_team *team, int64_t block, int64_t n, REAL *a,
                                int64_t ld, int32_t *pivots);
void R(host__large_getri_by)(struct host_team *team, int64_t block, int64_t n, REAL *a, int64_t ld,
                             int32_t *pivots, REAL *lines);

/* Of a lower (uplo 'L') or upper ('U') triangle. Returns LAPACK's info. */
int64_t R(host__large_trtri)(struct host_team *team, char uplo, int64_t n, REAL *a, int64_t ld,
                             REAL *lines);

/* Of the lower triangle, n >= 1. Returns LAPACK's info. */
int64_t R(host__large_potrf)(struct host_team *team, int64_t n, REAL *a, int64_t ld);
/* After potrf with info 0. The lower triangle becomes the inverse's. */
void R(host__large_potri)(struct host_team *team, int64_t n, REAL *a, int64_t ld, REAL *lines);

#endif
