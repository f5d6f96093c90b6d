/* gpu/host/iterative/iterative.c: `iterative`: chooses the start and the schemes, watches the
 * residual, and says what came of it.
 *
 * Flow: the matrix that was sent is identified and copied to aligned scratch, equilibrated where it
 * is uneven or far out (iteration.h). Then one start after another, until one leads to the inverse:
 * the residual R = I - V A is measured, and a step taken, again and again. The best V so far, the
 * one with the smallest |R|_F, is copied to the output, scaled back; it is the answer, whatever the
 * end. An end is one of
 *
 * - reached: the residual that counts is at most the tolerance; without one |R|_1 is at most
 *   ITERATION_GOAL_ULPS eps |A| |V|, |R|_F is below 1/2, and the residual that counts keeps the
 *   contract. (If A is singular, |R|_1 and |R|_F are 1 at least.)
 * - stagnant: |R|_F below 1/2 no longer halves: rounding is all that is left. Without a tolerance
 *   the answer is good when both residuals keep the contract.
 * - diverging: |R|_F is above 1 and has grown in two steps running, or is not finite, or V is 0
 * - hopeless: so many steps bring any A with RCOND >= eps down, and |R|_F is still 1/2 or more
 * - cut short: max_iterations, or ITERATION_PRODUCTS_MAX, both of this start alone
 *
 * A step that is sure to lead to the goal is the last one (iteration.h): reached, and V is measured
 * after it only where RESIDUAL or its history is wanted.
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

#include "gpu/host/base/by_precision.h"

enum ending {
    REACHED,
    STAGNANT,
    DIVERGING,
    HOPELESS,
    CUT_SHORT,
    NO_START
};

static const char *kernel(int64_t n)
{
    (void)n;
    return "host iterative";
}

/* Numbers of type int32_t: the pivots; the exponents of rows and columns. */
#define INTEGERS(n) (3 * (n))

/* Layout: the matrices, the lines, the history, the integers. */
static bool lines_bytes(int64_t n, int64_t *bytes)
{
    int64_t lines;
    return checked_add(host__lines(n), host__identify_lines(n), &lines) &&
           checked_mul(lines, host__ld(REAL_PRECISION, n), bytes) &&
           checked_mul(*bytes, (int64_t)sizeof(REAL), bytes);
}

static int64_t scratch_bytes(int64_t n, int64_t m)
{
    (void)m;
    int64_t bytes, more;
    if (!checked_mul(n, HOST_ITER_MATRICES * (int64_t)sizeof(REAL), &bytes) ||
        !checked_mul(bytes, host__ld(REAL_PRECISION, n), &bytes) || !lines_bytes(n, &more) ||
        !checked_add(bytes, more, &bytes) ||
        !checked_add(bytes, METHOD_ITERATIVE_ITERATIONS_MAX * (int64_t)sizeof(REAL), &bytes) ||
        !checked_mul(INTEGERS(n), sizeof(int32_t), &more) || !checked_add(bytes, more, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

/* One matrix on its way to an answer. */
struct run {
    const struct host_matrix *matrix;
    struct host_iter_wishes wishes;
    struct R(host_iter) iter;
    struct host_iter_starts starts;
    int start; /* the one under way */
    int products;
    int products_max; /* when it ends */
    bool measures;    /* RESIDUAL is wanted, or its history */
    REAL *history;
    /* The best so far: */
    bool good; /* it is an answer with INFO 0, or n + 1 */
    struct host_iter_sizes sizes;
    enum method_algorithm algorithm;
    int64_t iterations;
};

/* The V under way. */
struct state {
    enum method_algorithm algorithm; /* its start */
    double growth;                   /* of its last step */
    struct host_iter_sizes sizes;
    double last, before_last; /* |R|_F of earlier steps */
    bool ends;                /* V came of a last step */
};

static void lay_out(struct run *run, const struct host_matrix *matrix)
{
    struct R(host_iter) *iter = &run->iter;
    int64_t n = matrix->n, bytes = 0;
    REAL *at = matrix->scratch;
    run->matrix = matrix;
    run->wishes = host__iter_wishes(matrix);
    run->measures =
        matrix->outputs[METHOD_ITERATIVE_RESIDUAL] || matrix->outputs[METHOD_ITERATIVE_HISTORY];
    iter->n = n;
    iter->ld = host__ld(REAL_PRECISION, n);
    iter->products = &run->products;
    iter->progress = matrix->progress;
    iter->team = n >= HOST_TEAM_ORDER_MIN ? matrix->team : NULL;
    REAL **matrices[HOST_ITER_MATRICES] = {&iter->a, &iter->v, &iter->r};
    for (int i = 0; i < HOST_ITER_SPARE; i++)
        matrices[HOST_ITER_MATRICES - HOST_ITER_SPARE + i] = &iter->spare[i];
    for (int i = 0; i < HOST_ITER_MATRICES; i++, at += n * iter->ld)
        *matrices[i] = at;
    iter->lines = at;
    (void)lines_bytes(n, &bytes); /* scratch_bytes has found it in range */
    run->history = at + bytes / (int64_t)sizeof(REAL);
    iter->pivots = (int32_t *)(run->history + METHOD_ITERATIVE_ITERATIONS_MAX);
    iter->equilibrium = (struct host_equilibrium){iter->pivots + n, iter->pivots + 2 * n};
}

/* ---- What goes out ---- */

static void put_real(void *output, REAL value)
{
    if (output)
        *(REAL *)output = value;
}

/* The outputs that other methods do not have. */
static void report(const struct run *run, int64_t iterations, REAL residual)
{
    void *const *outputs = run->matrix->outputs;
    if (outputs[METHOD_ITERATIVE_ITERATIONS])
        *(int32_t *)outputs[METHOD_ITERATIVE_ITERATIONS] = (int32_t)iterations;
    put_real(outputs[METHOD_ITERATIVE_RESIDUAL], residual);
}

/* The history of the start under way, of `count` residuals. */
static void put_history(const struct run *run, int64_t count)
{
    REAL *history = run->matrix->outputs[METHOD_ITERATIVE_HISTORY];
    for (int64_t i = 0; history && i < run->wishes.max_iterations; i++)
        history[i] = i < count ? run->history[i] : (REAL)NAN;
}

static void refuse(const struct run *run, int64_t info)
{
    R(host__refuse)(run->matrix, info, METHOD_ALGORITHM_NONE);
    report(run, 0, (REAL)NAN);
    put_history(run, 0);
}

/* The ways between what was sent, or is returned, and what is worked on. */
enum way {
    MATRIX_IN,
    INVERSE_IN,
    INVERSE_OUT
};

static void move(const struct run *run, const REAL *from, int64_t from_ld, REAL *to, int64_t to_ld,
                 enum way way)
{
    const struct R(host_iter) *iter = &run->iter;
    const struct host_equilibrium *of = &iter->equilibrium;
    const int sign = way == INVERSE_IN ? -1 : 1;
    const struct host_scaling scaling = {.rows = way == MATRIX_IN ? of->rows : of->columns,
                                         .columns = way == MATRIX_IN ? of->columns : of->rows,
                                         .row_sign = sign,
                                         .column_sign = sign};
    if (iter->scaled)
        R(host__scale)(iter->team, from, from_ld, to, to_ld, iter->n, &scaling);
    else
        R(host__copy)(iter->team, from, from_ld, to, to_ld, iter->n, 1);
}

/* V is the best so far. */
static void keep(struct run *run, const struct state *state)
{
    REAL *inverse = run->matrix->outputs[METHOD_ITERATIVE_INVERSE];
    run->sizes = state->sizes;
    run->algorithm = state->algorithm;
    if (inverse)
        move(run, run->iter.v, run->iter.ld, inverse, run->iter.n, INVERSE_OUT);
}

/* ---- One start ---- */

static bool load_start(const struct run *run, enum method_algorithm algorithm)
{
    const struct R(host_iter) *iter = &run->iter;
    if (algorithm != METHOD_ALGORITHM_WARM_START)
        return R(host__iter_start)(iter, algorithm);
    move(run, run->matrix->inputs[METHOD_ITERATIVE_V0], iter->n, iter->v, iter->ld, INVERSE_IN);
    return true;
}

/* Measures R and V, which is that after so many steps. */
static void measure_step(struct run *run, struct state *state, int64_t steps)
{
    struct host_iter_sizes *sizes = &state->sizes;
    state->before_last = state->last;
    state->last = sizes->frobenius;
    R(host__iter_measure)(&run->iter, run->wishes.tolerance, !state->ends, sizes);
    if (steps < run->wishes.max_iterations)
        run->history[steps] = (REAL)ITERATION_REPORTED(sizes->sent + sizes->lost);
}

static bool is_reached(const struct run *run, const struct host_iter_sizes *sizes)
{
    if (run->wishes.tolerance > 0)
        return sizes->residual * ITERATION_SUMMED(run->iter.n, (double)REAL_EPS) <= sizes->goal;
    return sizes->frobenius < ITERATION_BASIN && sizes->residual <= sizes->goal;
}

/* Is the iteration over, by what was measured after `steps` steps? */
static bool is_over(const struct run *run, const struct state *state, int64_t steps,
                    enum ending *ending)
{
    const struct host_iter_sizes *sizes = &state->sizes;
    double frobenius = sizes->frobenius, last = state->last;
    bool finite = isfinite(sizes->residual) && isfinite(frobenius) && sizes->v.finite;
    if (finite && is_reached(run, sizes))
        *ending = REACHED;
    else if (!finite || sizes->v.fraction == 0 ||
             (frobenius > 1 && frobenius > ITERATION_GROWTH_MIN * last &&
              last > ITERATION_GROWTH_MIN * state->before_last))
        *ending = DIVERGING;
    else if (last < ITERATION_BASIN && frobenius > last / 2)
        *ending = STAGNANT;
    else if (frobenius >= ITERATION_BASIN && steps > 0 &&
             steps >=
                 host__iter_hopeless_steps(run->iter.n, REAL_DIG, state->growth, state->algorithm))
        *ending = HOPELESS;
    else
        return false;
    return true;
}

/* Is a step of that scheme the last one, as gpu/common/iteration.h says? Where few columns of R
 * are large |R|^p may be far above |R^p|: where |R|_F gives hope, the norm of |R| |R| is tried too,
 * which takes n^2 operations. */
static bool is_last(const struct run *run, const struct host_iter_sizes *sizes,
                    enum method_iterative_scheme scheme)
{
    const struct R(host_iter) *iter = &run->iter;
    int order = host__iter_scheme(scheme)->order;
    double goal = sizes->goal; /* one that follows from the size has rounding next to it */
    if (run->wishes.tolerance > 0)
        goal -= ITERATION_LAST_ROUNDING * (double)iter->n * (double)REAL_EPS * sizes->size;
    if (scheme == METHOD_ITERATIVE_ORDER7_HORNER || iter->uneven ||
        sizes->size_sent < sizes->size || !(sizes->residual <= ITERATION_LAST_MAX) ||
        !(sizes->frobenius < ITERATION_BASIN))
        return false;
    if (pow(sizes->residual, order) <= goal)
        return true;
    const int pairs = order / 2;
    return pow(sizes->frobenius, order) <= goal &&
           pow(R(host__iter_terms)(iter, iter->r, iter->r, NULL), pairs) *
                   pow(sizes->residual, order % 2) <=
               goal;
}

/* After a last step, of so many: V is the answer. */
static enum ending finish(struct run *run, struct state *state, int64_t steps)
{
    if (run->measures)
        measure_step(run, state, steps);
    else
        R(host__iter_measure_v)(&run->iter, &state->sizes);
    if (!state->sizes.v.finite)
        return DIVERGING;
    keep(run, state);
    return REACHED;
}

/* Does the best V keep the contract? Outside the basin there may be no inverse at all. */
static bool keeps_contract(const struct run *run)
{
    const struct host_iter_sizes *sizes = &run->sizes;
    const double ratio = ITERATION_RATIO_ACCEPTED * (double)run->iter.n * (double)REAL_EPS;
    return sizes->frobenius < ITERATION_BASIN && sizes->residual <= ratio * sizes->size &&
           sizes->sent <= ratio * sizes->size_sent;
}

/* Is the transpose among the starts that follow? */
static bool is_transpose_next(const struct run *run)
{
    const enum method_algorithm *next = &run->starts.algorithms[run->start];
    while (*++next != METHOD_ALGORITHM_NONE) {
        if (*next == METHOD_ALGORITHM_TRANSPOSE_START)
            return true;
    }
    return false;
}

/* Products that are made when the iteration is over, as gpu/common/iteration.h foresees them: R is
 * measured after `steps` steps, and those that follow are of one kind. */
static int64_t foresee(const struct run *run, const struct state *state, int64_t steps,
                       const struct host_iter_scheme *facts)
{
    const struct host_iter_sizes *sizes = &state->sizes;
    const int64_t n = run->iter.n;
    const double steps_max = (double)run->wishes.max_iterations, growth = facts->growth;
    double from = ITERATION_BASIN, more = 0, last = 1, others = 0;
    if (sizes->frobenius < ITERATION_BASIN) {
        from = fmin(sizes->residual, sizes->frobenius);
    } else {
        more = (double)(host__iter_hopeless_steps(n, REAL_DIG, growth, state->algorithm) - steps);
        more = fmax(more, 1);
        if (is_transpose_next(run))
            others = (double)host__iter_hopeless_steps(n, REAL_DIG, growth,
                                                       METHOD_ALGORITHM_TRANSPOSE_START);
    }
    if (from > sizes->goal)
        last = fmax(ceil(log2(log2(sizes->goal) / log2(from)) / log2(facts->order)), 1);
    double products = fmin(more + last, steps_max - (double)steps) * facts->products;
    products = fmin(products, run->products_max - run->products);
    others = fmin(fmin(others, steps_max) * facts->products, ITERATION_PRODUCTS_MAX);
    return run->products + (int64_t)(products + others);
}

/* Iterates from the start whose turn it is. */
static enum ending iterate(struct run *run)
{
    struct R(host_iter) *iter = &run->iter;
    struct state state = {.algorithm = run->starts.algorithms[run->start],
                          .growth = 2,
                          .last = HUGE_VAL,
                          .sizes.frobenius = HUGE_VAL};
    const struct host_iter_sizes *sizes = &state.sizes;
    enum method_iterative_scheme scheme = run->wishes.scheme;
    enum ending ending = CUT_SHORT;
    if (!load_start(run, state.algorithm))
        return NO_START;
    run->products_max = run->products + ITERATION_PRODUCTS_MAX;
    int64_t steps = 0;
    bool best = false; /* of all starts */
    for (;; steps++) {
        measure_step(run, &state, steps);
        bool over = is_over(run, &state, steps, &ending);
        if (sizes->frobenius < run->sizes.frobenius || (over && ending == REACHED)) {
            keep(run, &state);
            best = true;
        }
        if (over && ending == STAGNANT && scheme == METHOD_ITERATIVE_ORDER7_HORNER) {
            /* What is left may be Horner's own rounding, which a plain step does not have. */
            scheme = METHOD_ITERATIVE_NEWTON_SCHULZ;
            over = false;
        }
        if (over || steps == run->wishes.max_iterations)
            break;
        /* FP32's LU is near the inverse, or of no use. */
        if (state.algorithm == METHOD_ALGORITHM_LOW_PRECISION_START && steps == 0 &&
            !(sizes->frobenius < 1)) {
            ending = DIVERGING;
            break;
        }
        if (run->wishes.scheme == METHOD_ITERATIVE_SCHEME_AUTO)
            scheme = host__iter_plan(fmin(sizes->residual, sizes->frobenius), sizes->goal);
        const struct host_iter_scheme *facts = host__iter_scheme(scheme);
        if (run->products + facts->products > run->products_max)
            break;
        state.growth = facts->growth;
        iter->foreseen = foresee(run, &state, steps, facts);
        host_progress_report(iter->progress, run->products, iter->foreseen);
        state.ends = is_last(run, sizes, scheme);
        R(host__iter_step)(iter, scheme);
        if (state.ends) {
            ending = finish(run, &state, ++steps);
            best = best || ending == REACHED;
            break;
        }
    }
    if (best) {
        run->iterations = steps;
        run->good = ending == REACHED ||
                    (ending == STAGNANT && run->wishes.tolerance == 0 && keeps_contract(run));
        put_history(run, steps + 1);
    }
    return ending;
}

/* ---- One matrix ---- */

static void try_starts(struct run *run)
{
    const enum method_algorithm *algorithms = run->starts.algorithms;
    run->starts = host__iter_starts(&run->wishes, REAL_PRECISION, &run->iter.identity);
    for (run->start = 0; algorithms[run->start] != METHOD_ALGORITHM_NONE && !run->good;
         run->start++) {
        enum ending ending = iterate(run);
        /* The transpose leads to every inverse that there is. */
        if (ending == HOPELESS && algorithms[run->start] == METHOD_ALGORITHM_TRANSPOSE_START)
            break;
    }
}

/* Is the input finite? V0 counts as none where a row or a column of it has zeros alone: no scheme
 * fills it. */
static bool is_finite(struct run *run)
{
    const REAL *v0 = run->matrix->inputs[METHOD_ITERATIVE_V0];
    int64_t n = run->iter.n;
    if (!run->iter.identity.finite || !v0)
        return run->iter.identity.finite;
    struct host_identity identity =
        R(host__identify)(run->iter.team, v0, n, n, run->iter.lines, run->iter.ld);
    run->wishes.warm = !identity.zero_column && !identity.zero_row;
    return identity.finite;
}

/* Is the matrix that was sent to be equilibrated? */
static bool is_to_be_scaled(const struct run *run)
{
    const struct R(host_iter) *iter = &run->iter;
    const struct host_norm one = iter->identity.norm_1, inf = iter->identity.norm_inf;
    /* Infinite beyond the range. */
    const double largest =
        fmax(ldexp(one.fraction, one.exponent), ldexp(inf.fraction, inf.exponent));
    return (iter->identity.min < largest / ITERATION_UNEVEN_MAX ||
            ITERATION_IS_FAR_OUT(one.exponent, REAL_MIN_EXP, REAL_MAX_EXP, REAL_DIG)) &&
           !ITERATION_LOSES_TOO_MUCH(R(host__iter_lost)(iter), run->wishes.tolerance);
}

/* What is worked on. Its columns' exponents are mostly all 0. */
static void load_matrix(struct run *run)
{
    struct R(host_iter) *iter = &run->iter;
    const REAL *a = run->matrix->inputs[METHOD_ITERATIVE_A];
    const int64_t n = iter->n;
    iter->sent = iter->identity.norm_1;
    iter->scaled = is_to_be_scaled(run);
    if (iter->scaled)
        R(host__equilibrate)
    (iter->team, a, n, n, &iter->equilibrium, (int32_t *)(void *)iter->lines);
    for (int64_t j = 1; j < n && iter->scaled; j++)
        iter->uneven = iter->uneven || iter->equilibrium.columns[j] != iter->equilibrium.columns[0];
    move(run, a, n, iter->a, iter->ld, MATRIX_IN);
    if (iter->scaled)
        iter->identity = R(host__identify)(iter->team, iter->a, n, iter->ld, iter->lines, iter->ld);
}

static void answer(const struct run *run)
{
    const struct host_iter_sizes *sizes = &run->sizes;
    int64_t n = run->iter.n, info = n + 2;
    void *const *outputs = run->matrix->outputs;
    REAL rcond = R(host__rcond)(run->iter.sent, sizes->x);
    /* Singular to working precision is what is so after equilibration too. */
    REAL rcond_max =
        (REAL)fmax((double)rcond, (double)R(host__rcond)(run->iter.identity.norm_1, sizes->v));
    if (run->good)
        info = rcond_max < REAL_EPS || !sizes->x.finite ? n + 1 : 0;
    if (outputs[METHOD_ITERATIVE_INFO])
        *(int32_t *)outputs[METHOD_ITERATIVE_INFO] = (int32_t)info;
    put_real(outputs[METHOD_ITERATIVE_RCOND], rcond);
    if (outputs[METHOD_ITERATIVE_ALGORITHM])
        *(int32_t *)outputs[METHOD_ITERATIVE_ALGORITHM] = (int32_t)run->algorithm;
    report(run, run->iterations, (REAL)(sizes->sent + sizes->lost));
}

static void run_one(const struct host_matrix *matrix)
{
    struct run run = {.sizes = {.residual = HUGE_VAL, .frobenius = HUGE_VAL}};
    int64_t n = matrix->n;
    lay_out(&run, matrix);
    run.iter.identity = R(host__identify)(run.iter.team, matrix->inputs[METHOD_ITERATIVE_A], n, n,
                                          run.iter.lines, run.iter.ld);
    if (!is_finite(&run)) {
        refuse(&run, -1);
        return;
    }
    /* Certainly singular. Pivoting leaves a row of zeros to the last. */
    if (run.iter.identity.zero_column || run.iter.identity.zero_row) {
        refuse(&run, run.iter.identity.zero_column ? run.iter.identity.zero_column : n);
        return;
    }
    load_matrix(&run);
    try_starts(&run);
    if (isfinite(run.sizes.residual))
        answer(&run);
    else
        refuse(&run, n + 2);
}

const struct host_method R(host_method_iterative) = {
    .name = "iterative",
    .run = run_one,
    .scratch_bytes = scratch_bytes,
    .kernel = kernel,
};
