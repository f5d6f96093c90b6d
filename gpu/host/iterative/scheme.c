/* gpu/host/iterative/scheme.c: the schemes; see shared.h.
 *
 * The hyperpower scheme of order p is V' = (I + R + ... + R^(p-1)) V, whose residual is R^p. What
 * differs is in how few products the sum is had:
 *
 *   p = 2   V + R V                                                  2 products with V A
 *   p = 3   V + R (V + R V)                                          3
 *   p = 5   V + (R + R^2)(I + R^2) V                                 4
 *   p = 7   V + (R + R^4)(I + R + R^2) V                             5
 *   p = 19  V + (R + R^2)(I + Y + ... + Y^8) V, Y = R^2              7
 *
 * The last one's sum of nine powers takes two products next to Y^2, in the manner of Pan, Soleymani
 * and Zhao, who have order 18 in seven products (arXiv 1604.07893); with R + R^2 in front of the
 * sum instead of I + R, the order is 19 for the same seven. order7_horner is the formula of
 * Varalakshmi, Kesarkar and Lopez (2018) after Soleymani: its residual is R^7 (3 I + R)^2 / 16.
 *
 * But for Horner's, a step adds a correction to V: an error in the correction counts only by the
 * correction's size, so late steps lose nothing.
 *
 * Threads: any. Cost: products as above and a few sums a step.
 */
#include "gpu/host/base/speed.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "gpu/host/iterative/shared.h"
#include "gpu/common/iteration.h"

#include "gpu/host/base/by_precision.h"

typedef struct R(host_iter_term) term;

static const term nothing = {0};

void R(host__iter_residual)(const struct R(host_iter) * iter)
{
    if (iter->n <= ITERATION_DD_ORDER_MAX) {
        R(host__iter_residual_dd)(iter);
        ++*iter->products;
        return;
    }
    R(host__iter_combine)(iter, iter->r, 1, nothing, nothing);
    R(host__iter_subtract_product)(iter, iter->v, iter->a, iter->r);
}

/* to = identity * I + factor * x */
static void set(const struct R(host_iter) * iter, REAL *to, REAL identity, REAL factor,
                const REAL *x)
{
    R(host__iter_combine)(iter, to, identity, (term){factor, x}, nothing);
}

/* to = identity * I + x_factor * x + y_factor * y */
static void set_sum(const struct R(host_iter) * iter, REAL *to, REAL identity, REAL x_factor,
                    const REAL *x, REAL y_factor, const REAL *y)
{
    R(host__iter_combine)(iter, to, identity, (term){x_factor, x}, (term){y_factor, y});
}

/* to = a b */
static void set_product(const struct R(host_iter) * iter, REAL *to, const REAL *a, const REAL *b)
{
    R(host__iter_combine)(iter, to, 0, nothing, nothing);
    R(host__iter_add_product)(iter, a, b, to);
}

/* v = v + p v, by way of the spare matrix number `spare`, which holds the old v afterwards. */
static void improve(struct R(host_iter) * iter, const REAL *p, int spare)
{
    REAL *next = iter->spare[spare];
    set(iter, next, 0, 1, iter->v);
    R(host__iter_add_product)(iter, p, iter->v, next);
    iter->spare[spare] = iter->v;
    iter->v = next;
}

static void newton_schulz(struct R(host_iter) * iter)
{
    improve(iter, iter->r, 0);
}

static void chebyshev(struct R(host_iter) * iter)
{
    REAL *once = iter->spare[0], *next = iter->spare[1];
    set(iter, once, 0, 1, iter->v);
    R(host__iter_add_product)(iter, iter->r, iter->v, once);
    set(iter, next, 0, 1, iter->v);
    R(host__iter_add_product)(iter, iter->r, once, next);
    iter->spare[1] = iter->v;
    iter->v = next;
}

static void order5(struct R(host_iter) * iter)
{
    REAL *y = iter->spare[0], *front = iter->spare[1], *sum = iter->spare[2];
    set_product(iter, y, iter->r, iter->r);
    set_sum(iter, front, 0, 1, iter->r, 1, y);
    set(iter, sum, 1, 1, y);
    set_product(iter, iter->spare[3], front, sum);
    improve(iter, iter->spare[3], 4);
}

static void order7(struct R(host_iter) * iter)
{
    REAL *y = iter->spare[0], *sum = iter->spare[1], *front = iter->r;
    set_product(iter, y, iter->r, iter->r);
    set_sum(iter, sum, 1, 1, iter->r, 1, y);
    R(host__iter_add_product)(iter, y, y, front);
    set_product(iter, iter->spare[2], front, sum);
    improve(iter, iter->spare[2], 3);
}

/* The paper's nine products; S = V A. */
static void order7_horner(struct R(host_iter) * iter)
{
    static const REAL coefficients[] = ITERATION_HORNER_OTHERS;
    REAL *s = iter->spare[0], *inner = iter->spare[1], *outer = iter->spare[2];
    set(iter, s, 1, -1, iter->r);
    set(iter, inner, ITERATION_HORNER_FIRST, 1, s);
    for (size_t i = 0; i < sizeof coefficients / sizeof coefficients[0]; i++) {
        set(iter, outer, coefficients[i], 0, s);
        R(host__iter_add_product)(iter, s, inner, outer);
        REAL *old = inner;
        inner = outer;
        outer = old;
    }
    set(iter, inner, 0, (REAL)ITERATION_HORNER_FACTOR, inner);
    REAL *next = iter->spare[3];
    set_product(iter, next, inner, iter->v);
    iter->spare[3] = iter->v;
    iter->v = next;
}

static void order19(struct R(host_iter) * iter)
{
    REAL *y = iter->spare[0], *square = iter->spare[1], *left = iter->spare[2],
         *right = iter->spare[3], *sum = iter->spare[4];
    set_product(iter, y, iter->r, iter->r);
    set_product(iter, square, y, y);
    set_sum(iter, left, 1, (REAL)ITERATION_SUM_A, y, 1, square);
    set_sum(iter, right, 1, (REAL)ITERATION_SUM_B, y, 1, square);
    set_product(iter, sum, left, right); /* M */
    set_sum(iter, left, 0, 1, sum, (REAL)ITERATION_SUM_C, y);
    set_sum(iter, right, 0, 1, sum, (REAL)ITERATION_SUM_D, y);
    set_sum(iter, right, 0, 1, right, (REAL)ITERATION_SUM_E, square);
    set_sum(iter, sum, 0, (REAL)ITERATION_SUM_MU, y, (REAL)ITERATION_SUM_PSI, square);
    R(host__iter_add_product)(iter, left, right, sum);
    set_sum(iter, left, 0, 1, iter->r, 1, y);
    set_product(iter, right, left, sum);
    improve(iter, right, 0);
}

void R(host__iter_step)(struct R(host_iter) * iter, enum method_iterative_scheme scheme)
{
    static void (*const steps[METHOD_ITERATIVE_SCHEMES])(struct R(host_iter) *) = {
        [METHOD_ITERATIVE_NEWTON_SCHULZ] = newton_schulz,
        [METHOD_ITERATIVE_CHEBYSHEV] = chebyshev,
        [METHOD_ITERATIVE_ORDER5] = order5,
        [METHOD_ITERATIVE_ORDER7] = order7,
        [METHOD_ITERATIVE_ORDER7_HORNER] = order7_horner,
        [METHOD_ITERATIVE_ORDER19] = order19,
    };
    assert(scheme > METHOD_ITERATIVE_SCHEME_AUTO && scheme < METHOD_ITERATIVE_SCHEMES);
    steps[scheme](iter);
}
