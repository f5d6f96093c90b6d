/* gpu/host/iterative/iterative.c: `iterative`: chooses the start and the schemes, watches the
 * residual, and says what came of it.
 *
 * Flow: A is identified and copied to aligned scratch, scaled by a power of two only at the ends of
 * the range, or where a line is so small that the inverse overflows (iteration.h). Then one start
 * after another, until one leads to the inverse: the residual R = I - V A is measured, and a step
 * taken, again and again. The best V so far, the one of the least |R|_F, is copied to the output;
 * it is the answer, whatever the end. An end is one of
 *
 * - reached: |R|_1 is at most the tolerance; without one it is at most ITERATION_GOAL_ULPS eps
 *   |A| |V|, and |R|_F below 1/2. (If A is singular, both are 1 at least.)
 * - stagnant: |R|_F below 1/2 no longer halves: rounding is all that is left. Without a tolerance
 *   the answer is good when |R|_1 keeps the contract.
 * - diverging: |R|_F is above 1 and has grown in two steps running, or is not finite, or V is 0
 * - hopeless: so many steps bring any A with RCOND >= eps down, and |R|_F is still 1/2 or more
 * - cut short: max_iterations, or ITERATION_PRODUCTS_MAX
 *
 * A step that is sure to lead to the goal is the last one (iteration.h): reached, and V is measured
 * after it only for those who want RESIDUAL or its history.
 *
 * A tolerance so near to the measured |R| that the rounding of R could hide on which side it is, is
 * judged with R in twice the precision, or an estimate of what is hidden (iteration.h).
 *
 * Growth below ITERATION_GROWTH_MIN does not count as any: while one singular value of V A is
 * tiny, |R|_F stands still for many steps, but for rounding.
 *
 * Threads: any; products and passes run on a team. Cost: 2 n^3 operations a product, from 2 of them
 * (a good V0) to some 100 (RCOND near eps); eight n x n of scratch.
 */
#include "gpu/host/base/speed.h"

#include "gpu/methods/iterative.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/iterative/shared.h"
#include "gpu/common/iteration.h"

#define STARTS_MAX 5
#define TERMS 64        /* columns whose sums stay in the first cache */
#define SUM_COLUMNS 256 /* which are added up together */

enum ending {
    REACHED,
    STAGNANT,
    DIVERGING,
    HOPELESS,
    CUT_SHORT,
    NO_START
};

/* What the client asked for. */
struct wishes {
    double tolerance;
    int64_t max_iterations;
    enum method_iterative_scheme scheme;
    enum method_iterative_initial initial;
    bool warm; /* there is a V0 */
};

static struct wishes read_options(const struct host_matrix *matrix)
{
    const int64_t *options = matrix->options;
    struct wishes wishes = {
        .max_iterations = options[METHOD_ITERATIVE_MAX_ITERATIONS],
        .scheme = (enum method_iterative_scheme)options[METHOD_ITERATIVE_SCHEME],
        .initial = (enum method_iterative_initial)options[METHOD_ITERATIVE_INITIAL],
        .warm = matrix->inputs[METHOD_ITERATIVE_V0] != NULL};
    memcpy(&wishes.tolerance, &options[METHOD_ITERATIVE_TOLERANCE], sizeof wishes.tolerance);
    return wishes;
}

/* The starts to try, in order; METHOD_ALGORITHM_NONE ends them. */
struct starts {
    enum method_algorithm algorithms[STARTS_MAX + 1];
};

/* By the choice of initial, but for auto. */
static const enum method_algorithm algorithm_of[] = {
    [METHOD_ITERATIVE_LOW_PRECISION] = METHOD_ALGORITHM_LOW_PRECISION_START,
    [METHOD_ITERATIVE_DIAGONAL] = METHOD_ALGORITHM_DIAGONAL_START,
    [METHOD_ITERATIVE_TRANSPOSE] = METHOD_ALGORITHM_TRANSPOSE_START,
    [METHOD_ITERATIVE_SCALED_IDENTITY] = METHOD_ALGORITHM_SCALED_IDENTITY_START,
};

static struct starts choose_starts(const struct wishes *wishes, enum precision precision,
                                   const struct host_identity *identity)
{
    struct starts starts = {{METHOD_ALGORITHM_NONE}};
    int count = 0;
    bool automatic = wishes->initial == METHOD_ITERATIVE_INITIAL_AUTO;
    int first = automatic ? METHOD_ITERATIVE_LOW_PRECISION : (int)wishes->initial;
    if (wishes->warm)
        starts.algorithms[count++] = METHOD_ALGORITHM_WARM_START;
    for (int i = first; i <= METHOD_ITERATIVE_SCALED_IDENTITY; i++) {
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

/* Steps after which |R|_F is below BASIN for every A with RCOND >= eps: from the transpose, 1 - R's
 * least eigenvalue is at least 1 / (n |A| |X|)^2, and a step multiplies it by `growth`. */
static int64_t hopeless_steps(int64_t n, int digits, double growth)
{
    double doublings = 2 * (log2((double)n) + digits);
    return (int64_t)ceil(doublings / log2(growth)) + ITERATION_HOPELESS_MARGIN;
}

/* Does another start follow that leads to more inverses? */
static bool has_better(enum method_algorithm algorithm)
{
    return algorithm != METHOD_ALGORITHM_TRANSPOSE_START &&
           algorithm != METHOD_ALGORITHM_SCALED_IDENTITY_START;
}

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
    (void)n;
    return "host iterative";
}

/* Layout: the matrices, the lines, the history, the pivots. */
static bool lines_bytes(enum precision precision, int64_t n, int64_t *bytes)
{
    int64_t lines;
    return checked_add(host__lines(n), host__identify_lines(n), &lines) &&
           checked_mul(lines, host__ld(precision, n), bytes) &&
           checked_mul(*bytes, precision_bytes(precision), bytes);
}

static int64_t scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    (void)m;
    int64_t bytes, more;
    if (!checked_mul(n, HOST_ITER_MATRICES * precision_bytes(precision), &bytes) ||
        !checked_mul(bytes, host__ld(precision, n), &bytes) || !lines_bytes(precision, n, &more) ||
        !checked_add(bytes, more, &bytes) ||
        !checked_add(bytes, METHOD_ITERATIVE_ITERATIONS_MAX * precision_bytes(precision), &bytes) ||
        !checked_mul(n, sizeof(int32_t), &more) || !checked_add(bytes, more, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

#define REAL_FILE "gpu/host/iterative/iterative.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_iterative = {
    .name = "iterative",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .scratch_bytes = scratch_bytes,
    .kernel = kernel,
};
