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
 * The last one's sum of nine powers takes two products beside Y^2, in the manner of Pan, Soleymani
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

#define SCHEME(name, products_, order_, growth_)                                                   \
    [METHOD_ITERATIVE_##name] = {.products = (products_), .order = (order_), .growth = (growth_)},
static const struct host_iter_scheme schemes[METHOD_ITERATIVE_SCHEMES] = {
    ITERATION_SCHEMES(SCHEME)};
#undef SCHEME

const struct host_iter_scheme *host__iter_scheme(enum method_iterative_scheme scheme)
{
    assert(scheme > METHOD_ITERATIVE_SCHEME_AUTO && scheme < METHOD_ITERATIVE_SCHEMES);
    return &schemes[scheme];
}

/* The fewest products that bring the residual to the goal in `depth` steps at most, and the scheme
 * to begin with. Where that is not enough, a step more is guessed to cost
 * ITERATION_GUESSED. */
static int plan(double residual, double goal, int depth, enum method_iterative_scheme *first)
{
    int fewest = INT32_MAX;
    for (int s = METHOD_ITERATIVE_NEWTON_SCHULZ; s < METHOD_ITERATIVE_SCHEMES; s++) {
        enum method_iterative_scheme next;
        if (s == METHOD_ITERATIVE_ORDER7_HORNER)
            continue;
        double left = pow(residual, schemes[s].order);
        int products = schemes[s].products;
        if (left > goal)
            products += depth > 1 ? plan(left, goal, depth - 1, &next) : ITERATION_GUESSED;
        if (products < fewest) {
            fewest = products;
            *first = (enum method_iterative_scheme)s;
        }
    }
    return fewest;
}

enum method_iterative_scheme host__iter_plan(double residual, double goal)
{
    enum method_iterative_scheme first = METHOD_ITERATIVE_ORDER19;
    if (residual < ITERATION_RESIDUAL_LARGE)
        (void)plan(residual, goal, ITERATION_PLAN_DEPTH, &first);
    return first;
}

#define REAL_FILE "gpu/host/iterative/scheme.inc"
#include "gpu/host/linalg/real.inc"
