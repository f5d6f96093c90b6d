/* gpu/host/linalg/identify.h: what kind of matrix is this, and how large is it: norms, strict
 * diagonal dominance, lines of zeros.
 *
 * Every pass goes tile by tile, HOST_IDENTIFY_TILE rows and columns each, and a tile's part is a
 * function of its own (host__identify_tile, host__measure_tile): a tile may
 * lie anywhere, also alone in a buffer that was read from elsewhere. Rows of tiles are pieces of a
 * team's work. A column's sum is added up tile by tile, a row's in sixteen parts, both in an
 * order that the order n alone decides: so are the bits, bitwise independent of the team.
 *
 * Threads: any, each on its own matrix; team may be NULL. Cost: one pass over n^2 numbers each.
 */
#ifndef GPU_HOST_LINALG_IDENTIFY_H
#define GPU_HOST_LINALG_IDENTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/minmax.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/base/team.h"

#define HOST_IDENTIFY_TILE 256

/* Of a matrix A (n x n). Where `finite` is false nothing else holds. */
struct host_identity {
    bool finite; /* no NaN, no infinity */
    struct host_norm norm_1, norm_inf;
    bool dominant;                 /* |a_ii| exceeds the others of its row together, in all rows */
    double dominance;              /* the others by |a_ii|, the largest of all rows */
    int64_t zero_column, zero_row; /* the first that holds zeros alone, from 1; 0: there is none */
    double min;                    /* the smallest sum of the magnitudes of a row or a column */
};

/* Two norms of one pass; not finite when the matrix, or a sum, is not. */
struct host_measure {
    double norm_1, frobenius;
};

/* Lines of n numbers that identify and measure take for their sums: those of the columns for each
 * row of tiles, then the rows' sums, or the squares of rows of tiles. */
static inline int64_t host__identify_lines(int64_t n)
{
    return pieces(n, HOST_IDENTIFY_TILE) + 1;
}

#define REAL_HEADER "gpu/host/linalg/identify.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* lines: host__identify_lines(n) of line_ld numbers. */
struct host_identity R(host__identify)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                                       REAL *lines, int64_t line_ld);
/* Of factor * a. */
struct host_measure R(host__measure)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                                     REAL factor, REAL *lines, int64_t line_ld);

/* A tile's part. column_sums and row_sums, one for each of its columns and rows, grow by the
 * magnitudes of factor * tile. */
void R(host__identify_tile)(const REAL *tile, int64_t ld, int64_t rows, int64_t columns,
                            REAL factor, REAL *column_sums, REAL *row_sums);
/* The same for columns alone; returns the sum of the squares. */
REAL R(host__measure_tile)(const REAL *tile, int64_t ld, int64_t rows, int64_t columns, REAL factor,
                           REAL *column_sums);

#endif
