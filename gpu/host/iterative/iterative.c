/* gpu/host/iterative/iterative.c: `iterative`: chooses the start and the schemes, watches the
 * residual, and says what came of it.
 *
 * Flow: A is identified and copied to aligned scratch, scaled by a power of two only at the ends of
 * the range, or where a line is so small that the inverse overflows (iteration.h). Then one start
 * after another, until one leads to the inverse: the residual R = I - V A is measured, and a step
 * taken, again and again. The best V so far, the one with the smallest |R|_F, is copied to the
 * output; it is the answer, whatever the end. An end is one of
 *
 * - reached: |R|_1 is at most the tolerance; without one it is at most ITERATION_GOAL_ULPS eps
 *   |A| |V|, and |R|_F below 1/2. (If A is singular, both are 1 at least.)
 * - stagnant: |R|_F below 1/2 no longer halves: rounding is all that is left. Without a tolerance
 *   the answer is good when |R|_1 keeps the contract.
 * - diverging: |R|_F is above 1 and has grown in two steps running, or is not finite, or V is 0
 * - hopeless: so many steps bring any A with RCOND >= eps down, and |R|_F is still 1/2 or more
 * - cut short: max_iterations, or ITERATION_PRODUCTS_MAX, both of this start alone
 *
 * A step that is sure to lead to the goal is the last one (iteration.h): reached, and V is measured
 * after it only where RESIDUAL or its history is wanted.
 *
 * A tolerance so near to the measured |R| that the rounding of R could hide on which side it is, is
 * judged with R in double-double, or an estimate of what is hidden (iteration.h).
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

/* Layout: the matrices, the lines, the history, the pivots. */
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
        !checked_mul(n, sizeof(int32_t), &more) || !checked_add(bytes, more, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

/* One matrix on its way to an answer. */
struct run {
    const struct host_matrix *matrix;
    struct host_iter_wishes wishes;
    struct R(host_iter) iter;
    struct host_identity identity; /* of iter.a */
    int scaling;                   /* iter.a is 2^scaling A */
    bool overflows;                /* the inverse, for certain */
    struct host_iter_starts starts;
    int start; /* the one under way */
    int products;
    int products_max; /* when it ends */
    bool measures;    /* RESIDUAL is wanted, or its history */
    REAL *history;
    /* The best so far: */
    bool good; /* it is an answer with INFO 0, or n + 1 */
    double residual, frobenius;
    double lost;           /* by its writing, as gpu/common/iteration.h has it */
    struct host_norm norm; /* of its V */
    enum method_algorithm algorithm;
    int64_t iterations;
};

/* What is known of the V under way. */
struct state {
    enum method_algorithm algorithm;               /* its start */
    double growth;                                 /* of its last step */
    double residual, frobenius, last, before_last; /* |R|_1; |R|_F, and those of earlier steps */
    double lost;                                   /* where V is written */
    double goal;                                   /* of |R|_1 */
    double size;                                   /* |A| |V| */
    bool wished;                                   /* the goal is of the client's tolerance */
    bool ends;                                     /* V came of a last step */
    struct host_norm norm;                         /* |V|_1 */
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

/* V is the best so far. */
static void keep(struct run *run, const struct state *state)
{
    const struct R(host_iter) *iter = &run->iter;
    REAL *inverse = run->matrix->outputs[METHOD_ITERATIVE_INVERSE];
    run->residual = state->residual;
    run->frobenius = state->frobenius;
    run->lost = state->lost;
    run->norm = state->norm;
    run->norm.exponent += run->scaling;
    run->algorithm = state->algorithm;
    if (inverse)
        R(host__copy)
    (iter->team, iter->v, iter->ld, inverse, iter->n, iter->n, REAL_LDEXP(1, run->scaling));
}

/* ---- One start ---- */

static bool load_start(struct run *run, enum method_algorithm algorithm)
{
    const struct R(host_iter) *iter = &run->iter;
    if (algorithm != METHOD_ALGORITHM_WARM_START)
        return R(host__iter_start)(iter, algorithm, &run->identity);
    R(host__copy)
    (iter->team, run->matrix->inputs[METHOD_ITERATIVE_V0], iter->n, iter->v, iter->ld, iter->n,
     REAL_LDEXP(1, -run->scaling));
    return true;
}

static void measure_residual(const struct R(host_iter) * iter, struct state *state)
{
    struct host_measure measure =
        R(host__measure)(iter->team, iter->r, iter->n, iter->ld, 1, iter->lines, iter->ld);
    state->residual = measure.norm_1;
    state->frobenius = measure.frobenius;
}

/* Is R so near to the tolerance that double-double does not show on which side, the rounding
 * of the norm next to it? */
static bool is_finest(const struct R(host_iter) * iter, double size, const struct state *state)
{
    return state->wished &&
           fabs(state->residual - state->goal) <= 2 * ITERATION_UNSEEN(iter->n, size);
}

/* R was measured in double-double, which does not see everything: that is the least, and is
 * added where it could hide on which side of the tolerance R is. finest: it may. */
static void count_unseen(const struct R(host_iter) * iter, bool finest, struct state *state)
{
    double unseen = ITERATION_UNSEEN(iter->n, R(host__iter_terms)(iter, iter->v, iter->a));
    if (finest)
        state->residual += unseen;
    state->residual = state->residual < unseen ? unseen : state->residual;
    state->frobenius = state->frobenius < unseen ? unseen : state->frobenius;
}

/* Measures R anew where its rounding may hide on which side of the tolerance it is. size: |A| |V|.
 * A tolerance is 1/2 at most, so that an R within it is that of an inverse, however large |R|_F. */
static void judge(const struct R(host_iter) * iter, double size, struct state *state)
{
    double rounding = ITERATION_ROUNDING(iter->n, (double)REAL_EPS, size);
    if (!(fabs(state->residual - state->goal) < rounding))
        return;
    if (iter->n > ITERATION_WHOLE_FIRST) {
        struct host_iter_rounding hidden = R(host__iter_rounding)(iter);
        bool refuses = state->residual - state->goal >= hidden.norm_1;
        if (refuses || iter->n > ITERATION_WHOLE_MAX) {
            state->residual += hidden.norm_1;
            state->frobenius = hypot(state->frobenius, hidden.frobenius);
            return;
        }
    }
    R(host__iter_residual_dd)(iter);
    measure_residual(iter, state);
}

static void measure_v(const struct R(host_iter) * iter, struct state *state)
{
    state->norm = R(host__norm)(iter->team, iter->v, iter->n, iter->ld, iter->lines);
}

/* What is lost where V is written, if A is scaled so. */
static double lost_by_writing(const struct run *run, int scaling)
{
    struct host_norm norm = run->identity.norm_1; /* of 2^run->scaling A */
    return ITERATION_LOST(run->iter.n, scaling, norm.fraction, norm.exponent - run->scaling,
                          REAL_MIN_EXP - REAL_DIG, (double)REAL_EPS);
}

/* Measures R and V, which is that after so many steps. */
static void measure_step(struct run *run, struct state *state, int64_t steps)
{
    struct R(host_iter) *iter = &run->iter;
    int64_t n = iter->n;
    R(host__iter_residual)(iter);
    state->before_last = state->last;
    state->last = state->frobenius;
    measure_residual(iter, state);
    measure_v(iter, state);
    double size = ldexp(run->identity.norm_1.fraction * state->norm.fraction,
                        run->identity.norm_1.exponent + state->norm.exponent);
    state->size = size;
    state->wished = run->wishes.tolerance > 0;
    state->lost = lost_by_writing(run, run->scaling);
    state->goal = state->wished ? run->wishes.tolerance - state->lost
                                : ITERATION_GOAL_ULPS * (double)REAL_EPS * size;
    if (n > ITERATION_DD_ORDER_MAX && state->wished && !state->ends)
        judge(iter, size, state);
    bool finest = is_finest(iter, size, state);
    if (finest || (n <= ITERATION_DD_ORDER_MAX && ITERATION_MAY_BE_UNSEEN(size)))
        count_unseen(iter, finest, state);
    if (steps < run->wishes.max_iterations)
        run->history[steps] = (REAL)ITERATION_REPORTED(state->residual + state->lost);
}

static bool is_reached(const struct state *state, int64_t n)
{
    if (state->wished)
        return state->residual * ITERATION_SUMMED(n, (double)REAL_EPS) <= state->goal;
    return state->frobenius < ITERATION_BASIN && state->residual <= state->goal;
}

/* Is the iteration over, by what was measured after `steps` steps? */
static bool is_over(const struct state *state, int64_t n, int64_t steps, enum ending *ending)
{
    double frobenius = state->frobenius, last = state->last;
    bool finite = isfinite(state->residual) && isfinite(frobenius) && state->norm.finite;
    if (finite && is_reached(state, n))
        *ending = REACHED;
    else if (!finite || state->norm.fraction == 0 ||
             (frobenius > 1 && frobenius > ITERATION_GROWTH_MIN * last &&
              last > ITERATION_GROWTH_MIN * state->before_last))
        *ending = DIVERGING;
    else if (last < ITERATION_BASIN && frobenius > last / 2)
        *ending = STAGNANT;
    else if (frobenius >= ITERATION_BASIN && steps > 0 &&
             steps >= host__iter_hopeless_steps(n, REAL_DIG, state->growth, state->algorithm))
        *ending = HOPELESS;
    else
        return false;
    return true;
}

/* Is a step of that scheme the last one, as gpu/common/iteration.h says? Where few columns of R
 * are large |R|^p may be far above |R^p|: where |R|_F gives hope, the norm of |R| |R| is tried too,
 * which takes n^2 operations. */
static bool is_last(const struct R(host_iter) * iter, const struct state *state,
                    enum method_iterative_scheme scheme)
{
    int order = host__iter_scheme(scheme)->order;
    double goal = state->goal; /* one that follows from the size has rounding next to it */
    if (state->wished)
        goal -= ITERATION_LAST_ROUNDING * (double)iter->n * (double)REAL_EPS * state->size;
    if (scheme == METHOD_ITERATIVE_ORDER7_HORNER || !(state->residual <= ITERATION_LAST_MAX) ||
        !(state->frobenius < ITERATION_BASIN))
        return false;
    if (pow(state->residual, order) <= goal)
        return true;
    const int pairs = order / 2;
    return pow(state->frobenius, order) <= goal &&
           pow(R(host__iter_terms)(iter, iter->r, iter->r), pairs) *
                   pow(state->residual, order % 2) <=
               goal;
}

/* After a last step, of so many: V is the answer. */
static enum ending finish(struct run *run, struct state *state, int64_t steps)
{
    if (run->measures)
        measure_step(run, state, steps);
    else
        measure_v(&run->iter, state);
    if (!state->norm.finite)
        return DIVERGING;
    keep(run, state);
    return REACHED;
}

/* Does the best V keep the contract? Outside the basin there may be no inverse at all. */
static bool keeps_contract(const struct run *run)
{
    double size = ldexp(run->identity.norm_1.fraction * run->norm.fraction,
                        run->identity.norm_1.exponent - run->scaling + run->norm.exponent);
    double residual_max = ITERATION_RATIO_ACCEPTED * (double)run->iter.n * (double)REAL_EPS * size;
    return run->frobenius < ITERATION_BASIN && run->residual <= residual_max;
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
    const int64_t n = run->iter.n;
    const double steps_max = (double)run->wishes.max_iterations, growth = facts->growth;
    double from = ITERATION_BASIN, more = 0, last = 1, others = 0;
    if (state->frobenius < ITERATION_BASIN) {
        from = fmin(state->residual, state->frobenius);
    } else {
        more = (double)(host__iter_hopeless_steps(n, REAL_DIG, growth, state->algorithm) - steps);
        more = fmax(more, 1);
        if (is_transpose_next(run))
            others = (double)host__iter_hopeless_steps(n, REAL_DIG, growth,
                                                       METHOD_ALGORITHM_TRANSPOSE_START);
    }
    if (from > state->goal)
        last = fmax(ceil(log2(log2(state->goal) / log2(from)) / log2(facts->order)), 1);
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
                          .frobenius = HUGE_VAL};
    enum method_iterative_scheme scheme = run->wishes.scheme;
    enum ending ending = CUT_SHORT;
    if (!load_start(run, state.algorithm))
        return NO_START;
    run->products_max = run->products + ITERATION_PRODUCTS_MAX;
    int64_t steps = 0;
    bool best = false; /* of all starts */
    for (;; steps++) {
        measure_step(run, &state, steps);
        bool over = is_over(&state, iter->n, steps, &ending);
        if (state.frobenius < run->frobenius || (over && ending == REACHED)) {
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
            !(state.frobenius < 1)) {
            ending = DIVERGING;
            break;
        }
        if (run->wishes.scheme == METHOD_ITERATIVE_SCHEME_AUTO)
            scheme = host__iter_plan(fmin(state.residual, state.frobenius), state.goal);
        const struct host_iter_scheme *facts = host__iter_scheme(scheme);
        if (run->products + facts->products > run->products_max)
            break;
        state.growth = facts->growth;
        iter->foreseen = foresee(run, &state, steps, facts);
        host_progress_report(iter->progress, run->products, iter->foreseen);
        state.ends = is_last(iter, &state, scheme);
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

/* Tries one start after another on 2^scaling A. */
static void try_starts(struct run *run, int scaling)
{
    const struct host_matrix *matrix = run->matrix;
    const enum method_algorithm *algorithms = run->starts.algorithms;
    run->starts = host__iter_starts(&run->wishes, REAL_PRECISION, &run->identity);
    run->identity.norm_1.exponent += scaling - run->scaling;
    run->identity.norm_inf.exponent += scaling - run->scaling;
    run->scaling = scaling;
    R(host__copy)
    (run->iter.team, matrix->inputs[METHOD_ITERATIVE_A], matrix->n, run->iter.a, run->iter.ld,
     matrix->n, REAL_LDEXP(1, scaling));
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
    if (!run->identity.finite || !v0)
        return run->identity.finite;
    struct host_identity identity =
        R(host__identify)(run->iter.team, v0, n, n, run->iter.lines, run->iter.ld);
    run->wishes.warm = !identity.zero_column && !identity.zero_row;
    return identity.finite;
}

static void answer(const struct run *run, struct host_norm norm)
{
    int64_t n = run->iter.n, info = n + 2;
    void *const *outputs = run->matrix->outputs;
    struct host_norm norm_x = run->norm;
    norm_x.finite = norm_x.exponent <= REAL_MAX_EXP;
    REAL rcond = R(host__rcond)(norm, norm_x);
    if (run->good)
        info = rcond < REAL_EPS ? n + 1 : 0;
    if (outputs[METHOD_ITERATIVE_INFO])
        *(int32_t *)outputs[METHOD_ITERATIVE_INFO] = (int32_t)info;
    put_real(outputs[METHOD_ITERATIVE_RCOND], rcond);
    if (outputs[METHOD_ITERATIVE_ALGORITHM])
        *(int32_t *)outputs[METHOD_ITERATIVE_ALGORITHM] = (int32_t)run->algorithm;
    report(run, run->iterations, (REAL)(run->residual + run->lost));
}

/* The power of two that suits A. */
static int choose_scaling(const struct run *run, struct host_norm norm)
{
    if (run->overflows && norm.exponent <= REAL_MAX_EXP - 3 * REAL_DIG)
        return 2 * REAL_DIG;
    int scaling = R(host__scaling)(norm);
    return ITERATION_LOSES_TOO_MUCH(lost_by_writing(run, scaling), run->wishes.tolerance) ? 0
                                                                                          : scaling;
}

static void run_one(const struct host_matrix *matrix)
{
    struct run run = {.residual = HUGE_VAL, .frobenius = HUGE_VAL};
    int64_t n = matrix->n;
    lay_out(&run, matrix);
    run.identity = R(host__identify)(run.iter.team, matrix->inputs[METHOD_ITERATIVE_A], n, n,
                                     run.iter.lines, run.iter.ld);
    struct host_norm norm = run.identity.norm_1;
    if (!is_finite(&run)) {
        refuse(&run, -1);
        return;
    }
    /* Certainly singular. Pivoting leaves a row of zeros to the last. */
    if (run.identity.zero_column || run.identity.zero_row) {
        refuse(&run, run.identity.zero_column ? run.identity.zero_column : n);
        return;
    }
    run.overflows = ITERATION_OVERFLOWS(run.identity.min, REAL_MAX_EXP);
    int scaling = choose_scaling(&run, norm);
    try_starts(&run, scaling);
    /* Scaled down, small entries may have vanished. */
    if (!run.good && scaling < 0)
        try_starts(&run, 0);
    if (!run.good && run.overflows)
        refuse(&run, n + 1);
    else if (isfinite(run.residual))
        answer(&run, norm);
    else
        refuse(&run, n);
}

const struct host_method R(host_method_iterative) = {
    .name = "iterative",
    .run = run_one,
    .scratch_bytes = scratch_bytes,
    .kernel = kernel,
};
