/* gpu/host/tridiagonal/tridiagonal.h: the inverse of a tridiagonal matrix in O(n) numbers, from
 * which any part of it can be written. Three ways to it, all in double, whatever the answer's
 * precision.
 *
 * A (n x n, n >= 1): dl[i] = A[i+1,i], d[i] = A[i,i], du[i] = A[i,i+1]; X = A^-1. Every number is
 * finite. Arrays have room for n numbers. The norms of X are summed from the O(n) numbers, as
 * Higham does (SIAM J. Sci. Stat. Comput. 7 (1986) 150), so they are the same whether X is written
 * or not.
 *
 * Threads: any, each on its own arrays.
 */
#ifndef GPU_HOST_TRIDIAGONAL_TRIDIAGONAL_H
#define GPU_HOST_TRIDIAGONAL_TRIDIAGONAL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/host.h"
#include "gpu/methods/tridiagonal.h"

/* Its outputs: the descriptor's. */
enum host_tri_output {
    HOST_TRI_INVERSE = METHOD_TRIDIAGONAL_INVERSE,
    HOST_TRI_DIAGONAL = METHOD_TRIDIAGONAL_DIAGONAL,
    HOST_TRI_INFO = METHOD_TRIDIAGONAL_INFO,
    HOST_TRI_RCOND = METHOD_TRIDIAGONAL_RCOND,
    HOST_TRI_ALGORITHM = METHOD_TRIDIAGONAL_ALGORITHM,
    HOST_TRI_GENERATORS = METHOD_TRIDIAGONAL_GENERATORS,
    HOST_TRI_EXPONENTS = METHOD_TRIDIAGONAL_EXPONENTS
};

struct host_tri {
    const double *dl, *d, *du;
    int64_t n;
};

/* ---- Two sweeps: sweep.c ---- */

/* X_jj = diagonal[j]; X_ij = above[i] X_{i+1,j} for i < j; X_ij = below[i] X_{i-1,j} for i > j. */
struct host_tri_sweep {
    double *above, *below, *diagonal;
    double norm;  /* |X| */
    double error; /* |I - X A| is no more than this times |A| |X|, next to rounding */
};

/* |A|, where no sum of a column overflows; else a number that is not finite. *dominant: diagonally,
 * by rows or by columns? A matrix may hold any numbers; of one that is not finite *dominant means
 * nothing. */
double host__tri_look(const struct host_tri *a, bool *dominant);
/* False: a division by zero, or a number that overflows. Safe for dominant matrices. Cost: four
 * divisions a row. */
bool host__tri_sweep(const struct host_tri *a, struct host_tri_sweep *sweep);

/* ---- Merging by Sherman and Morrison's formula: merge.c ---- */

/* The blocks of one level, `size` rows each (the last may have fewer), lie one after the other in
 * every array. X itself is the last level's only block. */
struct host_tri_blocks {
    double *first_row, *last_row, *first_column, *last_column; /* of each block's inverse */
    double *diagonal;
    double *column, *row; /* of a merger: the block's inverse loses column row^T */
    double growth;        /* no entry of a block, and no product column row^T, was larger */
    double *entries;      /* d, or what the splits made of it; then a leaf's two off the diagonal */
};

/* The leaves: blocks of two rows. Entries (0,1) and (1,0) of the inverse of the leaf in rows i and
 * i + 1 are entries[i] and entries[i + 1]. False: a half is singular. */
bool host__tri_leaves(const struct host_tri *a, struct host_tri_blocks *blocks);
/* Merges the blocks in rows first to middle - 1 and middle to end - 1 into one. column and row then
 * hold what was subtracted. False: the formula divides by zero. Cost: O(end - first). */
bool host__tri_merge(const struct host_tri *a, struct host_tri_blocks *blocks, int64_t first,
                     int64_t middle, int64_t end);

/* ---- Generators: generators.c ---- */

/* Numbers mantissa * 2^(64 exponent) that neither over- nor underflow: number.h. */
struct host_tri_line {
    double *mantissa;
    int32_t *exponent;
};

#define HOST_TRI_CHUNK 64 /* columns */

/* X_ij = upper_row[i] upper_column[j] for i <= j, lower_row[i] lower_column[j] for i >= j: every
 * entry of X is a product of two numbers, rounded once, whatever part of X is written. */
struct host_tri_generators {
    struct host_tri_line upper_row, upper_column, lower_row, lower_column;
    /* The largest exponents of each HOST_TRI_CHUNK numbers of upper_column and lower_column. */
    int32_t *upper_max, *lower_max;
};

/* From ratios and diagonal of a sweep that held. Cost: two divisions a row. */
void host__tri_sweep_generators(const struct host_tri_sweep *sweep, int64_t n,
                                const struct host_tri_generators *generators);
/* The last step of making them. Between i and i + 1, where upper_joins[i] or lower_joins[i] is 0,
 * lines may begin anew, and what their product means there is nothing: exponents are moved until it
 * underflows, as X does. Then the largest exponents are found. A zero's exponent should be near its
 * neighbours'. Cost: O(n). */
void host__tri_separate(const struct host_tri_generators *generators, int64_t n,
                        const double *upper_joins, const double *lower_joins);

/* ---- Tiles: tile.c ---- */

#define HOST_TRI_TILE_ROWS 128
#define HOST_TRI_TILE_COLUMNS 4096

/* A part of X: its rows and columns, and where it goes, row-major with ld numbers a row. */
struct host_tri_tile {
    struct method_range rows, columns;
    void *x;
    int64_t ld;
    bool past_caches; /* larger than caches are, so that it had better not go through them */
};

/* ---- Minors: minors.c ---- */

struct host_tri_minors {
    struct host_tri_line sums;
    double *diagonal;
    long double norm; /* |X| */
    double error;     /* the largest magnitude of a diagonal entry of I - A X and of I - X A */
};

/* Returns INFO: 0, or the step of a zero pivot of A's LU factorisation if A is singular. Cost:
 * about a hundred operations a row. */
int64_t host__tri_minors(const struct host_tri *a, struct host_tri_minors *minors,
                         const struct host_tri_generators *generators);

#define REAL_HEADER "gpu/host/tridiagonal/tridiagonal.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* The whole of `tridiagonal`, for methods that meet such a matrix: tridiagonal.c. */
void R(host__tridiagonal)(const struct host_matrix *matrix);
int64_t R(host__tridiagonal_scratch_bytes)(int64_t n, int64_t m);

/* Writes a tile from O(n) numbers alone, none of them another tile's. Any tile will do, and an
 * entry's bits are the same in all that hold it. It is visible to threads that synchronise with the
 * caller. Cost: a product and a store an entry, and a few operations a row and column. */
void R(host__tri_tile)(const struct host_tri_generators *generators, const double *diagonal,
                       const struct host_tri_tile *tile);

#endif
