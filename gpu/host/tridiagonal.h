/* gpu/host/tridiagonal.h: the inverse of a tridiagonal matrix in O(n) numbers, from which any part
 * of it can be written. Three ways to it, all in double, whatever the answer's precision.
 *
 * A (n x n, n >= 1): dl[i] = A[i+1,i], d[i] = A[i,i], du[i] = A[i,i+1]; X = A^-1. Every number is
 * finite. Arrays have room for n numbers. The norms of X are summed from the O(n) numbers, as
 * Higham does (SIAM J. Sci. Stat. Comput. 7 (1986) 150), so they are the same whether X is written
 * or not.
 *
 * Threads: any, each on its own arrays.
 */
#ifndef GPU_HOST_TRIDIAGONAL_H
#define GPU_HOST_TRIDIAGONAL_H

#include <stdbool.h>
#include <stdint.h>

struct host_tri {
    const double *dl, *d, *du;
    int64_t n;
};

/* ---- Two sweeps: tri_sweep.c ---- */

/* X_jj = diagonal[j]; X_ij = above[i] X_{i+1,j} for i < j; X_ij = below[i] X_{i-1,j} for i > j. */
struct host_tri_sweep {
    double *above, *below, *diagonal;
    double norm;  /* |X| */
    double error; /* |I - X A| is no more than this times |A| |X|, beside rounding */
};

/* Diagonally dominant by rows or by columns? */
bool host__tri_dominant(const struct host_tri *a);
/* False: a division by zero, or a number that overflows. Safe for dominant matrices. Cost: four
 * divisions a row. */
bool host__tri_sweep(const struct host_tri *a, struct host_tri_sweep *sweep);

/* ---- Merging by Sherman and Morrison's formula: tri_merge.c ---- */

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
 * tell what was subtracted. False: the formula divides by zero. Cost: O(end - first). */
bool host__tri_merge(const struct host_tri *a, struct host_tri_blocks *blocks, int64_t first,
                     int64_t middle, int64_t end);

/* ---- Minors: tri_minors.c ---- */

/* Numbers mantissa * 2^exponent, the mantissa 0 or in [1/2, 1): they neither over- nor underflow.
 */
struct host_tri_line {
    double *mantissa;
    int64_t *exponent;
};

/* X_ij = upper_row[i] upper_column[j] for i <= j, while no du between them is zero (else X_ij = 0);
 * X_ij = lower_row[i] lower_column[j] for i >= j, while no dl between them is zero. */
struct host_tri_minors {
    struct host_tri_line upper_row, upper_column, lower_row, lower_column, sums;
    double *diagonal;
    long double norm; /* |X| */
    double error;     /* the largest magnitude of a diagonal entry of I - A X and of I - X A */
};

/* Returns INFO: 0, or the step of a zero pivot of A's LU factorisation if A is singular. Cost:
 * about a hundred operations a row, most of them on exponents. */
int64_t host__tri_minors(const struct host_tri *a, struct host_tri_minors *minors);

#endif
