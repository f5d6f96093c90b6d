/* gpu/host/iterative/shared.h: what an iterative inverse is made of: products and sums of matrices
 * over tiles, the schemes that improve an approximate inverse, and the ways to a first one.
 *
 * A is the matrix that is worked on, V its approximate inverse, R = I - V A its residual. A scheme
 * of order p makes a V whose residual is R^p, or nearly. V A is multiplied, not A V: in exact
 * arithmetic the iterates are the same, and it is |I - X A| that the service promises to be small.
 *
 * All matrices are n x n, row-major with one leading dimension, rows aligned to HOST_ALIGN_BYTES.
 * Every pass is cut into tiles whose shape n decides alone, each a piece of a team's work and one
 * call to OpenBLAS, or a loop: the bits are independent of the team. A tile needs of a product's
 * factors its rows and its columns only, so it may later be fed from elsewhere.
 *
 * Threads: any, each on its own matrices; team may be NULL. Cost: a product is 2 n^3 operations.
 */
#ifndef GPU_HOST_ITERATIVE_SHARED_H
#define GPU_HOST_ITERATIVE_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/equilibrate.h"
#include "gpu/host/linalg/identify.h"
#include "gpu/host/base/progress.h"
#include "gpu/host/base/team.h"
#include "gpu/methods/iterative.h"

#define HOST_ITER_SPARE 5                        /* matrices that a scheme works in */
#define HOST_ITER_MATRICES (3 + HOST_ITER_SPARE) /* A, V, R and those */

/* ---- What is tried: plan.c ---- */

#define HOST_ITER_STARTS_MAX 5

/* What the client asked for. */
struct host_iter_wishes {
    double tolerance;
    int64_t max_iterations;
    enum method_iterative_scheme scheme;
    enum method_iterative_initial initial;
    bool warm; /* there is a V0 */
};

/* The starts to try, in order; METHOD_ALGORITHM_NONE ends them. */
struct host_iter_starts {
    enum method_algorithm algorithms[HOST_ITER_STARTS_MAX + 1];
};

struct host_iter_wishes host__iter_wishes(const struct host_matrix *matrix);
struct host_iter_starts host__iter_starts(const struct host_iter_wishes *wishes,
                                          enum precision precision,
                                          const struct host_identity *identity);
/* Steps from that start, each of that growth, after which it is given up (iteration.h). */
int64_t host__iter_hopeless_steps(int64_t n, int digits, double growth,
                                  enum method_algorithm algorithm);

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

/* Estimates of a matrix that rounding has left. */
struct host_iter_rounding {
    double norm_1, frobenius;
};

/* What is known of a V. */
struct host_iter_sizes {
    double residual, frobenius; /* |R|_1, |R|_F */
    double sent;                /* the residual that counts, of the matrix that was sent */
    double lost;                /* where X is written */
    double goal;                /* of residual; a tolerance is reached where that is */
    double size, size_sent;     /* |A| |V|, and that of the matrix that was sent and X */
    struct host_norm v, x;      /* |V|_1, |X|_1 */
};

#define REAL_HEADER "gpu/host/iterative/shared.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* One matrix on its way. */
struct R(host_iter) {
    struct host_team *team;
    int64_t n, ld;
    REAL *a, *v, *r;
    REAL *spare[HOST_ITER_SPARE];
    REAL *lines; /* host__lines(n) and host__identify_lines(n) of them, each of ld numbers */
    int32_t *pivots;
    struct host_norm sent;         /* of the matrix that was sent */
    struct host_identity identity; /* of a */
    struct host_equilibrium equilibrium;
    bool scaled;                    /* a is equilibrated; else it is what was sent */
    bool uneven;                    /* the columns' exponents differ: R is not what counts */
    int *products;                  /* counts them */
    struct host_progress *progress; /* takes a report of each; may be NULL */
    int64_t foreseen;               /* products in all; 0: not known */
};

/* ---- Tiles: tiles.c ---- */

/* c += a b, or c -= a b. c is none of the others. */
void R(host__iter_add_product)(const struct R(host_iter) * iter, const REAL *a, const REAL *b,
                               REAL *c);
void R(host__iter_subtract_product)(const struct R(host_iter) * iter, const REAL *a, const REAL *b,
                                    REAL *c);

/* One term of a sum; matrix NULL: none. */
struct R(host_iter_term) {
    REAL factor;
    const REAL *matrix;
};
/* to = identity * I + x + y. `to` may be one of the terms' matrices. */
void R(host__iter_combine)(const struct R(host_iter) * iter, REAL *to, REAL identity,
                           struct R(host_iter_term) x, struct R(host_iter_term) y);

/* The 1-norm of |x| |y|, entry by entry, or with `exponents` of C |x| |y| C^-1, C being the
 * diagonal of 2^exponents[i]. A spare matrix is used up, which is neither x nor y. */
double R(host__iter_terms)(const struct R(host_iter) * iter, const REAL *x, const REAL *y,
                           const int32_t *exponents);

/* ---- Schemes: scheme.c ---- */

/* r = I - v a. Up to ITERATION_DD_ORDER_MAX in double-double, beyond each column is right
 * to within ITERATION_ROUNDING. */
void R(host__iter_residual)(const struct R(host_iter) * iter);
/* One step, after the residual. That and the spare matrices are used up; those change places with
 * v. */
void R(host__iter_step)(struct R(host_iter) * iter, enum method_iterative_scheme scheme);

/* ---- in double-double: double_double.c ---- */

/* r = I - v a, each entry right to within its own rounding and n^2 eps^2 |a| |v|. */
void R(host__iter_residual_dd)(const struct R(host_iter) * iter);

/* What rounding has done to r: estimates of |r - (I - v a)|, the 1-norm from above
 * (ITERATION_SIGNS). n is above ITERATION_WHOLE_FIRST; the spare matrices are used up. */
struct host_iter_rounding R(host__iter_rounding)(const struct R(host_iter) * iter);

/* ---- Sizes: measure.c ---- */

/* Makes R of V, and measures both. tolerance: the client's, or 0; judges: it is judged where
 * rounding could hide on which side the residual is. The spare matrices are used up. */
void R(host__iter_measure)(const struct R(host_iter) * iter, double tolerance, bool judges,
                           struct host_iter_sizes *sizes);
/* Measures V and X alone: v, x, size and size_sent. */
void R(host__iter_measure_v)(const struct R(host_iter) * iter, struct host_iter_sizes *sizes);
/* What may be lost where X is written, if a is equilibrated. */
double R(host__iter_lost)(const struct R(host_iter) * iter);

/* ---- First approximations: start.c ---- */

/* v becomes a first approximate inverse of a. False: there is none of this kind. algorithm is one
 * of METHOD_ALGORITHM_..._START but for the warm one. */
bool R(host__iter_start)(const struct R(host_iter) * iter, enum method_algorithm algorithm);

#endif
