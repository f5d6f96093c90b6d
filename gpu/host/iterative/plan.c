/* gpu/host/iterative/plan.c: what `iterative` tries: the starts, in order, and the scheme of each
 * step; see shared.h.
 *
 * Threads: pure functions. Cost: some hundred powers a step.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/common/iteration.h"
#include "gpu/host/iterative/shared.h"

struct host_iter_wishes host__iter_wishes(const struct host_matrix *matrix)
{
    const int64_t *options = matrix->options;
    struct host_iter_wishes wishes = {
        .max_iterations = options[METHOD_ITERATIVE_MAX_ITERATIONS],
        .scheme = (enum method_iterative_scheme)options[METHOD_ITERATIVE_SCHEME],
        .initial = (enum method_iterative_initial)options[METHOD_ITERATIVE_INITIAL],
        .warm = matrix->inputs[METHOD_ITERATIVE_V0] != NULL};
    memcpy(&wishes.tolerance, &options[METHOD_ITERATIVE_TOLERANCE], sizeof wishes.tolerance);
    return wishes;
}

/* By the choice of initial, but for auto. */
static const enum method_algorithm algorithm_of[] = {
    [METHOD_ITERATIVE_LOW_PRECISION] = METHOD_ALGORITHM_LOW_PRECISION_START,
    [METHOD_ITERATIVE_DIAGONAL] = METHOD_ALGORITHM_DIAGONAL_START,
    [METHOD_ITERATIVE_TRANSPOSE] = METHOD_ALGORITHM_TRANSPOSE_START,
    [METHOD_ITERATIVE_SCALED_IDENTITY] = METHOD_ALGORITHM_SCALED_IDENTITY_START,
};

struct host_iter_starts host__iter_starts(const struct host_iter_wishes *wishes,
                                          enum precision precision,
                                          const struct host_identity *identity)
{
    struct host_iter_starts starts = {{METHOD_ALGORITHM_NONE}};
    int count = 0;
    bool automatic = wishes->initial == METHOD_ITERATIVE_INITIAL_AUTO;
    int first = automatic ? METHOD_ITERATIVE_LOW_PRECISION : (int)wishes->initial;
    if (wishes->warm)
        starts.algorithms[count++] = METHOD_ALGORITHM_WARM_START;
    for (int i = first; i < METHOD_ITERATIVE_INITIALS; i = ITERATION_NEXT_CHOICE(i, first)) {
        bool named = i == (int)wishes->initial, fits = true;
        if (i == METHOD_ITERATIVE_LOW_PRECISION)
            fits = precision == PRECISION_FP64 &&
                   (named || identity->dominance > ITERATION_DOMINANCE_HIGH);
        if (i == METHOD_ITERATIVE_DIAGONAL)
            fits = named || identity->dominant;
        if (fits)
            starts.algorithms[count++] = algorithm_of[i];
    }
    return starts;
}

int64_t host__iter_hopeless_steps(int64_t n, int digits, double growth,
                                  enum method_algorithm algorithm)
{
    double doublings =
        ITERATION_DOUBLINGS_MAX(n, digits, algorithm == METHOD_ALGORITHM_TRANSPOSE_START);
    return (int64_t)ceil(doublings / log2(growth)) + ITERATION_HOPELESS_MARGIN;
}

/* ---- Schemes ---- */

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
