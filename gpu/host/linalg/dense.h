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

/* An inverse of a smaller order is not tried: elements grow by 2^(n-1) at most, too little to break
 * the contract. */
#define HOST_TRIED_ORDER_MIN 9
/* While no entry of U has grown beyond this multiple of |A|, LAPACK's bound holds and a zero pivot
 * is believed. */
#define HOST_GROWTH_MAX 8
/* The same of methods that leave no U behind and see its entries pass by. Beyond it an inverse is
 * unverified, though its trial may say otherwise: errors can cancel in a trial. */
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

/* Scratch of a dense inverse, carved from host_matrix.scratch, and who helps. HOST_LINES: at least
 * so many. */
#define HOST_LINES 64
struct host_work_f32 {
    int64_t ld;
    float *a;        /* n x ld */
    float *lines;    /* host__lines(n) x ld */
    int32_t *pivots; /* 2 n */
    struct host_team *team;
};
struct host_work_f64 {
    int64_t ld;
    double *a;
    double *lines;
    int32_t *pivots;
    struct host_team *team;
};

/* The leading dimension of scratch, in elements: rows start aligned to HOST_ALIGN_BYTES, and do
 * not all meet in the same few sets of the cache. */
int64_t host__ld(enum precision precision, int64_t n);
int64_t host__lines(int64_t n);
int64_t host__dense_scratch_bytes(enum precision precision, int64_t n, int64_t m);

struct host_work_f32 host__work_f32(const struct host_matrix *matrix);
struct host_work_f64 host__work_f64(const struct host_matrix *matrix);

/* The 1-norm of a (n x n, row-major). sums: n numbers of scratch. team here and below: may help. */
struct host_norm host__norm_f32(struct host_team *team, const float *a, int64_t n, int64_t ld,
                                float *sums);
struct host_norm host__norm_f64(struct host_team *team, const double *a, int64_t n, int64_t ld,
                                double *sums);

/* The power of two by which a matrix of that norm is multiplied before it is inverted, so that
 * nothing over- or underflows on the way: 0 but at the ends of the range. */
int host__scaling_f32(struct host_norm norm);
int host__scaling_f64(struct host_norm norm);

/* to = factor * from^T (n x n). */
void host__transpose_f32(struct host_team *team, const float *from, int64_t from_ld, float *to,
                         int64_t to_ld, int64_t n, float factor);
void host__transpose_f64(struct host_team *team, const double *from, int64_t from_ld, double *to,
                         int64_t to_ld, int64_t n, double factor);
void host__transpose_in_place_f32(struct host_team *team, float *a, int64_t n, int64_t ld);
void host__transpose_in_place_f64(struct host_team *team, double *a, int64_t n, int64_t ld);
/* to = factor * from (n x n). to == from is allowed. */
void host__copy_f32(struct host_team *team, const float *from, int64_t from_ld, float *to,
                    int64_t to_ld, int64_t n, float factor);
void host__copy_f64(struct host_team *team, const double *from, int64_t from_ld, double *to,
                    int64_t to_ld, int64_t n, double factor);

void host__fill_nan_f32(float *a, int64_t count);
void host__fill_nan_f64(double *a, int64_t count);

enum host_order {
    HOST_ROW_MAJOR,
    HOST_COLUMN_MAJOR
};

enum host_trust {
    HOST_TRY, /* on a vector, at n^2 operations; what fails is measured and recovered (refine.h) */
    HOST_DOUBT, /* measured and recovered whatever a trial says */
    HOST_TRUST  /* it goes out as it is */
};

struct host_answered {
    double rcond;
    bool lost; /* recovery failed, and INVERSE, which would have kept the inverse, is not there */
};

/* Answers with 2^scaling times the matrix in work->a, and with the INFO and RCOND that follow.
 * Unless it is trusted, INFO 0 always means a good inverse. What cannot be recovered is answered as
 * it was, where its RCOND is below eps, else with NaN. Where INVERSE is not asked for work->a has
 * what it would have, row-major, unless that is lost; all other scratch is used up. */
struct host_answered host__answer_f32(const struct host_matrix *matrix,
                                      const struct host_work_f32 *work, enum host_order order,
                                      int scaling, struct host_norm norm,
                                      enum method_algorithm algorithm, enum host_trust trust);
struct host_answered host__answer_f64(const struct host_matrix *matrix,
                                      const struct host_work_f64 *work, enum host_order order,
                                      int scaling, struct host_norm norm,
                                      enum method_algorithm algorithm, enum host_trust trust);

/* RCOND, (1 / |A|) / |X|; 0 where X is not finite. */
float host__rcond_f32(struct host_norm a, struct host_norm x);
double host__rcond_f64(struct host_norm a, struct host_norm x);

/* The INFO and RCOND of an inverse that was put in its place and found good. */
void host__report_f32(const struct host_matrix *matrix, float rcond,
                      enum method_algorithm algorithm);
void host__report_f64(const struct host_matrix *matrix, double rcond,
                      enum method_algorithm algorithm);

/* No inverse: INVERSE is filled with NaN. info -1: RCOND NaN; an exact zero pivot: RCOND 0. */
void host__refuse_f32(const struct host_matrix *matrix, int64_t info,
                      enum method_algorithm algorithm);
void host__refuse_f64(const struct host_matrix *matrix, int64_t info,
                      enum method_algorithm algorithm);

/* The whole of `lu`, for a finite matrix whose norm is known: lu.c. */
void host__lu_f32(const struct host_matrix *matrix, struct host_norm norm);
void host__lu_f64(const struct host_matrix *matrix, struct host_norm norm);
/* The whole of `lu` by LAPACK, for any matrix of any order: lu.c. Where INVERSE is not asked for,
 * what it would have is left in scratch (host__work, a), row-major. */
void host__lu_alone_f32(const struct host_matrix *matrix);
void host__lu_alone_f64(const struct host_matrix *matrix);

#endif
