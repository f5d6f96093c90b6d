/* gpu/host/linalg/blocked.h: getrf and getri, trtri, potrf and potri by blocks, of a large matrix
 * by a team; see blocked.c.
 *
 * The same contract as lapack.h's, and the same algorithms, cut into blocks of fixed size: the bits
 * depend on the matrix and n, never on the team. Matrices are column-major, a aligned to
 * HOST_ALIGN_BYTES, with ld as host__ld has it.
 *
 * Threads: any, each on its own matrix; team may be NULL. Cost: LAPACK's: 2/3 and
 * 4/3 n^3 operations, 1/3 for trtri, 1/3 and 2/3 for potrf and potri; and no memory beside a and,
 * for inverses, host__large_lines lines of ld.
 */
#ifndef GPU_HOST_LINALG_BLOCKED_H
#define GPU_HOST_LINALG_BLOCKED_H

#include <stdint.h>

#include "gpu/host/base/team.h"

/* Orders from here on are factored, and inverted, by blocks; smaller ones by LAPACK itself. */
#define HOST_LARGE_FACTOR_MIN 256
#define HOST_LARGE_INVERT_MIN 64
#define HOST_LARGE_BLOCK_MAX 128

/* Lines of ld that getri takes for an order. */
int64_t host__large_lines(int64_t n);

/* n >= 1. pivots: n of them, 1-based. Returns LAPACK's info. */
int64_t host__large_getrf_f32(struct host_team *team, int64_t n, float *a, int64_t ld,
                              int32_t *pivots);
int64_t host__large_getrf_f64(struct host_team *team, int64_t n, double *a, int64_t ld,
                              int32_t *pivots);
/* After getrf with info 0. a becomes the inverse. */
void host__large_getri_f32(struct host_team *team, int64_t n, float *a, int64_t ld, int32_t *pivots,
                           float *lines);
void host__large_getri_f64(struct host_team *team, int64_t n, double *a, int64_t ld,
                           int32_t *pivots, double *lines);

/* The same by blocks of so many columns, at most those of getrf and getri: narrower ones leave less
 * to one thread and more to a team, at a lower rate. block: a function of n. */
int64_t host__large_getrf_by_f32(struct host_team *team, int64_t block, int64_t n, float *a,
                                 int64_t ld, int32_t *pivots);
int64_t host__large_getrf_by_f64(struct host_team *team, int64_t block, int64_t n, double *a,
                                 int64_t ld, int32_t *pivots);
void host__large_getri_by_f32(struct host_team *team, int64_t block, int64_t n, float *a,
                              int64_t ld, int32_t *pivots, float *lines);
void host__large_getri_by_f64(struct host_team *team, int64_t block, int64_t n, double *a,
                              int64_t ld, int32_t *pivots, double *lines);

/* Of a lower (uplo 'L') or upper ('U') triangle. Returns LAPACK's info. */
int64_t host__large_trtri_f32(struct host_team *team, char uplo, int64_t n, float *a, int64_t ld,
                              float *lines);
int64_t host__large_trtri_f64(struct host_team *team, char uplo, int64_t n, double *a, int64_t ld,
                              double *lines);

/* Of the lower triangle, n >= 1. Returns LAPACK's info. */
int64_t host__large_potrf_f32(struct host_team *team, int64_t n, float *a, int64_t ld);
int64_t host__large_potrf_f64(struct host_team *team, int64_t n, double *a, int64_t ld);
/* After potrf with info 0. The lower triangle becomes the inverse's. */
void host__large_potri_f32(struct host_team *team, int64_t n, float *a, int64_t ld, float *lines);
void host__large_potri_f64(struct host_team *team, int64_t n, double *a, int64_t ld, double *lines);

#endif
