/* gpu/host/iterative/shared.h: what an iterative inverse is made of: products and sums of matrices
 * over tiles, the schemes that improve an approximate inverse, and the ways to a first one.
 *
 * V is the approximate inverse of A, R = I - V A its residual. A scheme of order p makes a V whose
 * residual is R^p, or nearly. V A is multiplied, not A V: in exact arithmetic the iterates are the
 * same, and it is |I - X A| that the service promises to be small.
 *
 * All matrices are n x n, row-major with one leading dimension, rows aligned to HOST_ALIGN_BYTES.
 * Every pass is cut into tiles whose shape n decides alone, each a piece of a team's work and one
 * call to OpenBLAS, or a loop: the bits do not depend on who helps. A tile needs of a product's
 * factors its rows and its columns only, so it may later be fed from elsewhere.
 *
 * Threads: any, each on its own matrices; team may be NULL. Cost: a product is 2 n^3 operations.
 */
#ifndef GPU_HOST_ITERATIVE_SHARED_H
#define GPU_HOST_ITERATIVE_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/identify.h"
#include "gpu/host/base/progress.h"
#include "gpu/host/base/team.h"
#include "gpu/methods/iterative.h"

#define HOST_ITER_SPARE 5                        /* matrices that a scheme works in */
#define HOST_ITER_MATRICES (3 + HOST_ITER_SPARE) /* A, V, R and those */

/* One matrix on its way. */
struct host_iter_f32 {
    struct host_team *team;
    int64_t n, ld;
    float *a, *v, *r;
    float *spare[HOST_ITER_SPARE];
    float *lines; /* host__lines(n) and host__identify_lines(n) of them, each of ld numbers */
    int32_t *pivots;
    int *products;                  /* counts them */
    struct host_progress *progress; /* told of each; may be NULL */
    int64_t foreseen;               /* products in all; 0: not known */
};
struct host_iter_f64 {
    struct host_team *team;
    int64_t n, ld;
    double *a, *v, *r;
    double *spare[HOST_ITER_SPARE];
    double *lines;
    int32_t *pivots;
    int *products;
    struct host_progress *progress;
    int64_t foreseen;
};

/* ---- Tiles: tiles.c ---- */

/* c += a b, or c -= a b. c is none of the others. */
void host__iter_add_product_f32(const struct host_iter_f32 *iter, const float *a, const float *b,
                                float *c);
void host__iter_add_product_f64(const struct host_iter_f64 *iter, const double *a, const double *b,
                                double *c);
void host__iter_subtract_product_f32(const struct host_iter_f32 *iter, const float *a,
                                     const float *b, float *c);
void host__iter_subtract_product_f64(const struct host_iter_f64 *iter, const double *a,
                                     const double *b, double *c);

/* One term of a sum; matrix NULL: none. */
struct host_iter_term_f32 {
    float factor;
    const float *matrix;
};
struct host_iter_term_f64 {
    double factor;
    const double *matrix;
};
/* to = identity * I + x + y. `to` may be one of the terms' matrices. */
void host__iter_combine_f32(const struct host_iter_f32 *iter, float *to, float identity,
                            struct host_iter_term_f32 x, struct host_iter_term_f32 y);
void host__iter_combine_f64(const struct host_iter_f64 *iter, double *to, double identity,
                            struct host_iter_term_f64 x, struct host_iter_term_f64 y);

/* ---- Schemes: scheme.c ---- */

struct host_iter_scheme {
    int products;  /* that of V A included */
    int order;     /* p */
    double growth; /* while 1 - R's eigenvalues are small, a step multiplies them by so much */
};

/* Of a scheme other than auto. */
const struct host_iter_scheme *host__iter_scheme(enum method_iterative_scheme scheme);
/* auto: the scheme of the next step, for a residual of that size on the way to that goal: the first
 * of the fewest products that get there. From 1 up: the one that grows fastest. */
enum method_iterative_scheme host__iter_plan(double residual, double goal);

/* r = I - v a. Up to ITERATION_TWICE_ORDER_MAX in twice the precision, beyond each column is right
 * to within ITERATION_ROUNDING. */
void host__iter_residual_f32(const struct host_iter_f32 *iter);
void host__iter_residual_f64(const struct host_iter_f64 *iter);
/* One step, after the residual. That and the spare matrices are used up; those change places with
 * v. */
void host__iter_step_f32(struct host_iter_f32 *iter, enum method_iterative_scheme scheme);
void host__iter_step_f64(struct host_iter_f64 *iter, enum method_iterative_scheme scheme);

/* ---- In twice the precision: twice.c ---- */

/* r = I - v a, each entry right to within its own rounding and n^2 eps^2 |a| |v|. */
void host__iter_residual_twice_f32(const struct host_iter_f32 *iter);
void host__iter_residual_twice_f64(const struct host_iter_f64 *iter);

/* What rounding has done to r: estimates of |r - (I - v a)|, the 1-norm from above
 * (ITERATION_SIGNS). n is above ITERATION_WHOLE_FIRST; the spare matrices are used up. */
struct host_iter_rounding {
    double norm_1, frobenius;
};
struct host_iter_rounding host__iter_rounding_f32(const struct host_iter_f32 *iter);
struct host_iter_rounding host__iter_rounding_f64(const struct host_iter_f64 *iter);

/* ---- First approximations: start.c ---- */

/* v becomes a first approximate inverse of a. False: there is none of this kind. algorithm is one
 * of METHOD_ALGORITHM_..._START but for the warm one. */
bool host__iter_start_f32(const struct host_iter_f32 *iter, enum method_algorithm algorithm,
                          const struct host_identity *identity);
bool host__iter_start_f64(const struct host_iter_f64 *iter, enum method_algorithm algorithm,
                          const struct host_identity *identity);

#endif
