/* gpu/host/linalg/dense.h: what the methods that invert a dense matrix have in common: norms,
 * scaling, copies, and the rules of INFO and RCOND.
 *
 * Threads: any; everything works on the caller's matrix and scratch. Cost: one or two passes over
 * n^2 numbers each. Sums run down the columns row by row, whatever the alignment.
 */
#ifndef GPU_HOST_LINALG_DENSE_H
#define GPU_HOST_LINALG_DENSE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/base/host.h"
#include "gpu/host/base/team.h"
#include "gpu/host/linalg/blocked.h"

/* An inverse of a smaller order is not tried: elements grow by 2^(n-1) at most, too little to break
 * the contract. */
#define HOST_CHECKED_ORDER_MIN 9
/* The same of I - A X, which graded matrices spoil from order 6 on. */
#define HOST_CHECKED_RIGHT_MIN 6
/* While no entry of U has grown beyond this multiple of |A|, LAPACK's bound holds and a zero pivot
 * is believed. */
#define HOST_GROWTH_MAX 8
/* Larger symmetric matrices are not inverted with complete pivoting: it would take too long. */
#define HOST_SYMMETRIC_COMPLETE_MAX 1024
/* The same of methods that leave no U behind and see its entries pass by. Beyond it an inverse is
 * unverified, though its check may say otherwise: errors can cancel in a check. */
#define HOST_GROWTH_PASSING_MAX 2

/* The outputs of every method that answers with an inverse, in their descriptors' order. */
enum host_inverse_output {
    HOST_INVERSE = METHOD_OUTPUT_INVERSE,
    HOST_INFO = METHOD_OUTPUT_INFO,
    HOST_RCOND = METHOD_OUTPUT_RCOND,
    HOST_ALGORITHM = METHOD_OUTPUT_ALGORITHM /* auto alone */
};

/* A 1-norm as fraction * 2^exponent, fraction in [1/2, 1) or 0: it cannot over- or underflow. */
struct host_norm {
    double fraction;
    int exponent;
    bool finite; /* false: the matrix holds a NaN or an infinity */
};

/* Orders below this one are left to one thread: waking another costs as much. It has no part in an
 * answer's bits. */
#define HOST_TEAM_ORDER_MIN 256

/* The leading dimension of scratch, in elements: rows start aligned to HOST_ALIGN_BYTES, and do
 * not all meet in the same few sets of the cache. */
static inline int64_t host__ld(enum precision precision, int64_t n)
{
    const int64_t unit = HOST_ALIGN_BYTES / precision_bytes(precision);
    const int64_t ld = (n + unit - 1) / unit * unit;
    return ld % (8 * unit) == 0 ? ld + unit : ld;
}

/* Lines of scratch that a dense inverse has; at least HOST_LINES. */
#define HOST_LINES 64
static inline int64_t host__lines(int64_t n)
{
    const int64_t lines = host__large_block(n);
    return lines > HOST_LINES ? lines : HOST_LINES;
}

enum host_order {
    HOST_ROW_MAJOR,
    HOST_COLUMN_MAJOR
};

enum host_trust {
    HOST_CHECK,      /* by a probe vector on either side, n^2 operations each, below n = 256; from
                        there on on the left alone. What fails is recovered (refine.h). Orders that
                        are too small are trusted */
    HOST_CHECK_MEAN, /* the same; below n = 256 what fails on the left is made anew at once, for a
                        bad side of the inverse has spoilt the mean of both */
    HOST_UNVERIFIED, /* measured and recovered whatever a check says */
    HOST_TRUST       /* it goes out as it is */
};

struct host_answered {
    double rcond;
    bool lost; /* recovery failed, and INVERSE, which would have kept the inverse, is not there */
};

#define REAL_HEADER "gpu/host/linalg/dense.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* Scratch of a dense inverse, carved from host_matrix.scratch, and the team. */
struct R(host_work) {
    int64_t ld;
    REAL *a;            /* n x ld */
    REAL *lines;        /* host__lines(n) x ld */
    int32_t *pivots;    /* 2 n */
    int32_t *exponents; /* 2 n: of rows and columns that are equilibrated (lu.c) */
    struct host_team *team;
};

/* -1 on overflow. m does not matter. */
int64_t R(host__dense_scratch_bytes)(int64_t n, int64_t m);
struct R(host_work) R(host__work)(const struct host_matrix *matrix);

/* A method that needs room for an inverse, asked for or not, has it behind `bytes` of its scratch.
 * Those bytes and the room; -1 where they are, or on overflow. */
int64_t R(host__bytes_with_inverse)(int64_t bytes, int64_t n, bool wanted);
struct host_matrix R(host__with_inverse)(const struct host_matrix *matrix, int64_t bytes);

/* The 1-norm of a (n x n, row-major). sums: n numbers of scratch. team here and below: may help. */
struct host_norm R(host__norm)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                               REAL *sums);

/* The power of two by which a matrix of that norm is multiplied before it is inverted, so that
 * nothing over- or underflows on the way: 0 but at the ends of the range. */
int R(host__scaling)(struct host_norm norm);

/* to = factor * from^T (n x n). */
void R(host__transpose)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                        int64_t to_ld, int64_t n, REAL factor);
void R(host__transpose_in_place)(struct host_team *team, REAL *a, int64_t n, int64_t ld);
/* to = factor * from (n x n). to == from is allowed. */
void R(host__copy)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                   int64_t to_ld, int64_t n, REAL factor);

void R(host__fill_nan)(REAL *a, int64_t count);

/* Answers with 2^scaling times the matrix in work->a, and with the INFO and RCOND that follow.
 * Unless it is trusted, INFO 0 always means a good inverse. What cannot be recovered is answered as
 * it was, where its RCOND is below eps, else with NaN. Where INVERSE is not asked for work->a has
 * what it would have, row-major, unless that is lost; all other scratch is used up. */
struct host_answered R(host__answer)(const struct host_matrix *matrix,
                                     const struct R(host_work) * work, enum host_order order,
                                     int scaling, struct host_norm norm,
                                     enum method_algorithm algorithm, enum host_trust trust);

/* RCOND, (1 / |A|) / |X|; 0 where X is not finite. */
REAL R(host__rcond)(struct host_norm a, struct host_norm x);

/* The INFO and RCOND of an inverse that was put in its place and found good. */
void R(host__report)(const struct host_matrix *matrix, REAL rcond, enum method_algorithm algorithm);

/* What lu has answered for A = A^T, to the bit, becomes symmetric too (symmetry.h), and is judged
 * as it is then: INFO and RCOND are those of the mean, and one that fails its check is recovered.
 * Without an INVERSE, in scratch or asked for, lu's answer stays. All scratch is used up. Cost: a
 * look at the first entries of another A; else some ten passes over n^2 numbers. */
void R(host__keep_symmetry)(const struct host_matrix *matrix);

/* What is said of a matrix, as it is. */
void R(host__report_info)(const struct host_matrix *matrix, int64_t info, REAL rcond,
                          enum method_algorithm algorithm);

/* No inverse: INVERSE is filled with NaN. info -1: RCOND NaN; an exact zero pivot: RCOND 0. */
void R(host__refuse)(const struct host_matrix *matrix, int64_t info,
                     enum method_algorithm algorithm);

/* The whole of `lu`, for a finite matrix whose norm is known: lu.c. */
void R(host__lu)(const struct host_matrix *matrix, struct host_norm norm);
/* The whole of `lu` by LAPACK, for any matrix of any order: lu.c. Where INVERSE is not asked for,
 * what it would have is left in scratch (host__work, a), row-major, and the matrix is not
 * equilibrated. */
void R(host__lu_alone)(const struct host_matrix *matrix);

/* Scaling is not singularity: what is done about a matrix that had another answer than INFO 0
 * (lu.c). It is equilibrated by powers of two and inverted by lu, and its inverse is scaled back.
 * False: that is no good either, or rows and columns were even before. INVERSE, which has to be
 * there, is used up then, if *spoilt, and the first answer has to be given again. norm: the
 * matrix's, finite. */
bool R(host__lu_equilibrated)(const struct host_matrix *matrix, struct host_norm norm,
                              bool *spoilt);

#endif
