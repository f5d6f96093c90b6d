/* gpu/cuda/iterative/decide.cuh: what is known of a matrix on its way, and what it needs next: the
 * rules of gpu/host/iterative/iterative.c, a step of them at a time. One thread a matrix.
 *
 *   begin    after A is identified: refuses it, or chooses the first start
 *   decide   after R = I - V A and V are measured: another step, another start, or the end
 *   judge    the same, where decide found that R had to be measured anew for it
 *   finish   after a last step, when V is measured: the end
 *
 * A start ends REACHED, STAGNANT, DIVERGING, HOPELESS or CUT_SHORT, as the host's does. The best V
 * of all starts, the one of the least |R|_F, is the answer, whatever the end.
 *
 * gpu/common/iteration.h says which step is the last one.
 */
#ifndef GPU_CUDA_ITERATIVE_DECIDE_CUH
#define GPU_CUDA_ITERATIVE_DECIDE_CUH

#include <math.h>

#include "gpu/cuda/iterative/call.h"
#include "gpu/common/iteration.h"
#include "gpu/cuda/base/norm.cuh"
#include "gpu/cuda/base/real.cuh"

/* ---- The plan ---- */

/* What a scheme of `iterative` costs and brings, and which one is the best to go on with. Device
 * code, a thread by itself.
 */

struct cuda__iter_facts {
    int products, order;
    double growth;
};

static __device__ __forceinline__ cuda__iter_facts cuda__iter_facts_of(int scheme)
{
#define FACTS(name, products, order, growth) {products, order, growth},
    const cuda__iter_facts facts[] = {{0, 0, 0}, ITERATION_SCHEMES(FACTS)};
#undef FACTS
    return facts[scheme];
}

/* The fewest products that bring a residual to the goal, both by their logarithms, in Depth steps
 * at most; *first: the scheme to begin with. */
template <int Depth> static __device__ int cuda__iter_plan(double residual, double goal, int *first)
{
    int fewest = INT32_MAX;
    for (int s = METHOD_ITERATIVE_NEWTON_SCHULZ; s < METHOD_ITERATIVE_SCHEMES; s++) {
        if (s == METHOD_ITERATIVE_ORDER7_HORNER)
            continue;
        cuda__iter_facts facts = cuda__iter_facts_of(s);
        if (facts.products >= fewest)
            continue;
        double left = residual * facts.order;
        int products = facts.products, next;
        if (left > goal && Depth == 1)
            products += ITERATION_GUESSED;
        if constexpr (Depth > 1)
            products += left > goal ? cuda__iter_plan<Depth - 1>(left, goal, &next) : 0;
        if (products < fewest) {
            fewest = products;
            *first = s;
        }
    }
    return fewest;
}

/* x^power. Cheaper than pow(), and as good to a few roundings. */
static __device__ __forceinline__ double cuda__iter_power(double x, int power)
{
    double product = 1;
    for (; power > 0; power /= 2, x *= x)
        product *= power % 2 ? x : 1;
    return product;
}

/* What |R|_F / sqrt(n) is at least after a step of a scheme, `least` being that before: where R is
 * normal, the squares of the eigenvalues of R^p have at least the mean of those of R to the power
 * of p. What Horner's scheme leaves is R^7 (3 I + R)^2 / 16; R's eigenvalues are not negative. */
static __device__ __forceinline__ double cuda__iter_min_after(double least, int scheme)
{
    const double horner = scheme == METHOD_ITERATIVE_ORDER7_HORNER ? 9.0 / 16 : 1;
    return cuda__iter_power(least, cuda__iter_facts_of(scheme).order) * horner;
}

enum cuda__iter_ending {
    CUDA__ITER_CUT_SHORT,
    CUDA__ITER_REACHED,
    CUDA__ITER_STAGNANT,
    CUDA__ITER_DIVERGING,
    CUDA__ITER_HOPELESS
};

struct cuda__iter_state {
    int32_t action;  /* enum cuda__iter_action: its turn */
    int32_t more;    /* steps of its kind that are sure to follow: for its note */
    int32_t made;    /* the start or step that is its turn is made, and may be measured */
    int32_t refused; /* INFO where there is no inverse at all; 0: there is one */
    /* A, and 2^scaling A, which is worked on */
    struct cuda_norm norm, one, inf;
    struct cuda_norm v; /* V, as it was measured last */
    double dominance;
    int32_t dominant, warm;
    int32_t overflows; /* the inverse, for certain */
    int32_t scaling;
    int32_t is_v0;  /* V holds V0 as it came */
    int32_t reload; /* A must come in anew, with this scaling */
    /* The start under way. */
    int32_t algorithm;           /* 0: none yet */
    int32_t ending, leads;       /* leads: its V is the best of all starts */
    int32_t scheme, steps, slot; /* slot: of the history */
    int32_t products_max;        /* when it ends */
    double growth, frobenius, last, before_last, goal;
    double terms; /* the 1-norm of |V| |A|, where R is judged */
    /* All starts. */
    int32_t products;
    int32_t share; /* reported of the progress: in parts of METHOD_PROGRESS_WHOLE */
    /* The best V. */
    int32_t good, is_current; /* it is an answer with INFO 0; it is still in V */
    double residual, best_frobenius;
    struct cuda_norm best_norm;
    int32_t best_scaling, best_algorithm, best_steps, best_slot;
};

template <typename T> struct cuda__iter_real;
template <> struct cuda__iter_real<float> {
    static constexpr int digits = 24, exponent_max = 128, exponent_min = -125;
    static constexpr bool has_lower = false;
};
template <> struct cuda__iter_real<double> {
    static constexpr int digits = 53, exponent_max = 1024, exponent_min = -1021;
    static constexpr bool has_lower = true; /* a precision to start in */
};

/* ---- One matrix ---- */

/* Its thread. The state may be a copy in shared memory, which is read sooner. */
template <typename T> struct cuda__iter_mind {
    typedef cuda__iter_real<T> real;
    static constexpr double eps = (double)cuda__real<T>::eps;

    const cuda__iter_call &call;
    cuda__iter_state &state;
    T *history; /* two, of max_iterations each */
    double *factors;

    /* ---- Starts ---- */

    __device__ int algorithm_of(int initial) const
    {
        return initial == METHOD_ITERATIVE_LOW_PRECISION ? METHOD_ALGORITHM_LOW_PRECISION_START
               : initial == METHOD_ITERATIVE_DIAGONAL    ? METHOD_ALGORITHM_DIAGONAL_START
               : initial == METHOD_ITERATIVE_TRANSPOSE   ? METHOD_ALGORITHM_TRANSPOSE_START
                                                         : METHOD_ALGORITHM_SCALED_IDENTITY_START;
    }

    __device__ bool fits(int initial) const
    {
        bool named = initial == call.wishes.initial;
        if (initial == METHOD_ITERATIVE_LOW_PRECISION)
            return real::has_lower && (named || state.dominance > ITERATION_DOMINANCE_HIGH);
        return initial != METHOD_ITERATIVE_DIAGONAL || named || state.dominant;
    }

    /* Begins with the start that comes after state.algorithm; false: that was the last one. */
    __device__ bool next_start()
    {
        const int first = call.wishes.initial == METHOD_ITERATIVE_INITIAL_AUTO
                              ? (int)METHOD_ITERATIVE_LOW_PRECISION
                              : call.wishes.initial;
        if (state.algorithm == METHOD_ALGORITHM_NONE && state.warm) {
            state.algorithm = METHOD_ALGORITHM_WARM_START;
            state.action = CUDA__ITER_START_WARM;
        } else {
            bool tried = state.algorithm != METHOD_ALGORITHM_NONE &&
                         state.algorithm != METHOD_ALGORITHM_WARM_START;
            int choice = first;
            while (tried && choice < METHOD_ITERATIVE_INITIALS) {
                tried = algorithm_of(choice) != state.algorithm;
                choice = ITERATION_NEXT_CHOICE(choice, first);
            }
            while (choice < METHOD_ITERATIVE_INITIALS && !fits(choice))
                choice = ITERATION_NEXT_CHOICE(choice, first);
            if (choice >= METHOD_ITERATIVE_INITIALS)
                return false;
            state.algorithm = algorithm_of(choice);
            state.action = CUDA__ITER_START_LOW + choice - METHOD_ITERATIVE_LOW_PRECISION;
        }
        state.last = state.frobenius = HUGE_VAL;
        state.before_last = 0;
        state.scheme = call.wishes.scheme;
        state.growth = 2;
        state.ending = CUDA__ITER_CUT_SHORT;
        state.steps = state.leads = 0;
        state.products_max = state.products + ITERATION_PRODUCTS_MAX;
        set_factors();
        return true;
    }

    /* What the start's kernels multiply with. */
    __device__ void set_factors()
    {
        struct cuda_norm one = state.one, inf = state.inf;
        int least = min(one.exponent, inf.exponent);
        double first = ldexp(1.0, -one.exponent), second = 1;
        if (state.algorithm == METHOD_ALGORITHM_TRANSPOSE_START) {
            first = ldexp(1 / (one.fraction * inf.fraction), -one.exponent);
            second = ldexp(1.0, -inf.exponent);
        } else if (state.algorithm == METHOD_ALGORITHM_SCALED_IDENTITY_START) {
            first = ldexp(1.0, -least);
            second = fmin(ldexp(one.fraction, one.exponent - least),
                          ldexp(inf.fraction, inf.exponent - least));
        }
        factors[0] = first;
        factors[1] = second;
    }

    /* ---- Before ---- */

    __device__ void set_scaling(int scaling)
    {
        state.one.exponent += scaling - state.scaling;
        state.inf.exponent += scaling - state.scaling;
        state.scaling = scaling;
        state.reload = 1;
    }

    /* The power of two that suits a norm. */
    __device__ int suitable(struct cuda_norm norm) const
    {
        if (!norm.finite || norm.exponent > real::exponent_max - real::digits)
            return -real::digits;
        if (norm.fraction == 0)
            return 0;
        if (state.overflows && norm.exponent <= real::exponent_max - 3 * real::digits)
            return 2 * real::digits;
        return norm.exponent < real::exponent_min + real::digits ? 2 * real::digits : 0;
    }

    __device__ void refuse(int info)
    {
        state.refused = info;
        state.action = CUDA__ITER_STORE;
    }

    /* The first time A is seen. v0: of V0, where there is one. */
    __device__ void begin(const struct cuda_identity &a, const struct cuda_identity *v0)
    {
        int n = (int)call.n;
        bool finite = !(a.parts & CUDA_PART_NOT_FINITE);
        state = {};
        state.residual = state.best_frobenius = HUGE_VAL;
        if (v0) {
            finite = finite && !(v0->parts & CUDA_PART_NOT_FINITE);
            /* No scheme fills a row or a column of zeros. */
            state.warm = state.is_v0 =
                v0->zero_column == CUDA_NO_LINE && v0->zero_row == CUDA_NO_LINE;
        }
        if (!finite) {
            refuse(-1);
            return;
        }
        /* Singular beyond doubt. Pivoting leaves a row of zeros to the last. */
        if (a.zero_column != CUDA_NO_LINE || a.zero_row != CUDA_NO_LINE) {
            refuse(a.zero_column != CUDA_NO_LINE ? a.zero_column : n);
            return;
        }
        state.overflows = ITERATION_OVERFLOWS(a.min, real::exponent_max);
        const int scaling = suitable(cuda__norm_of<T>(a.norm_1));
        if (!cuda__norm_is_finite<T>(a.norm_1) || !cuda__norm_is_finite<T>(a.norm_inf)) {
            state.scaling = scaling;
            state.reload = 1;
            state.action = CUDA__ITER_IDENTIFY;
            return;
        }
        begin_finite(a, scaling);
    }

    /* a: of 2^state.scaling A; scaling: what it is to be. */
    __device__ void begin_finite(const struct cuda_identity &a, int scaling)
    {
        state.norm = state.one = cuda__norm_of<T>(a.norm_1);
        state.inf = cuda__norm_of<T>(a.norm_inf);
        state.norm.exponent -= state.scaling;
        state.dominance = a.dominance;
        state.dominant = a.dominant;
        if (ITERATION_LOSES_TOO_MUCH(lost(scaling), call.wishes.tolerance))
            scaling = 0;
        if (scaling != state.scaling)
            set_scaling(scaling);
        (void)next_start();
    }

    /* ---- After a measurement ---- */

    __device__ bool is_from_transpose() const
    {
        return state.algorithm == METHOD_ALGORITHM_TRANSPOSE_START;
    }

    /* Steps after which the start is given up. */
    __device__ int hopeless_steps() const
    {
        double doublings = ITERATION_DOUBLINGS_MAX(call.n, real::digits, is_from_transpose());
        return (int)ceil(doublings / log2(state.growth)) + ITERATION_HOPELESS_MARGIN;
    }

    /* hopeless_steps() is never below `least`, a scheme's growth being below 2^5: no logarithm is
     * taken until then. */
    __device__ bool is_hopeless() const
    {
        constexpr int least = real::digits / 5 + ITERATION_HOPELESS_MARGIN;
        return state.frobenius >= ITERATION_BASIN && state.steps >= least &&
               state.steps >= hopeless_steps();
    }

    /* A tolerance is 1/2 at most, so that an R within it is that of an inverse, however large
     * |R|_F. */
    __device__ bool is_reached(double residual) const
    {
        if (call.wishes.tolerance > 0)
            return residual * ITERATION_SUMMED(call.n, eps) <= state.goal;
        return state.frobenius < ITERATION_BASIN && residual <= state.goal;
    }

    __device__ bool is_over(const struct cuda_norm &v, double residual)
    {
        double now = state.frobenius, last = state.last;
        bool finite = isfinite(residual) && isfinite(now) && v.finite;
        if (finite && is_reached(residual))
            state.ending = CUDA__ITER_REACHED;
        else if (!finite || v.fraction == 0 ||
                 (now > 1 && now > ITERATION_GROWTH_MIN * last &&
                  last > ITERATION_GROWTH_MIN * state.before_last))
            state.ending = CUDA__ITER_DIVERGING;
        else if (last < ITERATION_BASIN && now > last / 2)
            state.ending = CUDA__ITER_STAGNANT;
        else if (is_hopeless())
            state.ending = CUDA__ITER_HOPELESS;
        else
            return false;
        return true;
    }

    /* By the writing of a V that is of 2^scaling A. */
    __device__ double lost(int scaling) const
    {
        return ITERATION_LOST(call.n, scaling, state.norm.fraction, state.norm.exponent,
                              real::exponent_min - real::digits, eps);
    }

    /* The reported residual of the best V. */
    __device__ T reported() const
    {
        return (T)(state.residual + lost(state.best_scaling));
    }

    __device__ double size_of(const struct cuda_norm &v, int scaling) const
    {
        return ldexp(state.norm.fraction * v.fraction, state.norm.exponent + scaling + v.exponent);
    }

    /* Does the best V keep the contract? Outside the basin there may be no inverse at all. */
    __device__ bool keeps_contract() const
    {
        double size = size_of(state.best_norm, state.best_scaling);
        return state.best_frobenius < ITERATION_BASIN &&
               state.residual <= ITERATION_RATIO_ACCEPTED * (double)call.n * eps * size;
    }

    /* V is the best so far. */
    __device__ void take(const struct cuda_norm &v, double residual)
    {
        state.leads = 1;
        state.residual = residual;
        state.best_frobenius = state.frobenius;
        state.best_norm = v;
        state.best_scaling = state.scaling;
        state.best_algorithm = state.algorithm;
    }

    /* After a last step. residual: measured, or the goal. */
    __device__ void finish(const struct cuda_norm &v, double residual)
    {
        state.is_current = v.finite;
        state.ending = v.finite ? CUDA__ITER_REACHED : CUDA__ITER_DIVERGING;
        if (v.finite)
            take(v, residual);
        end();
    }

    /* May the rounding of R hide on which side of the tolerance it is? size: |A| |V|. */
    __device__ bool is_unverified(double residual, double size) const
    {
        return call.wishes.tolerance > 0 && call.n > ITERATION_DD_ORDER_MAX &&
               fabs(residual - state.goal) < ITERATION_ROUNDING(call.n, eps, size);
    }

    /* Is R so near to the tolerance that double-double does not show on which side, the
     * rounding of the norm besides it? size: |A| |V|. */
    __device__ bool is_finest(double residual, double size) const
    {
        return call.wishes.tolerance > 0 &&
               fabs(residual - state.goal) <= 2 * ITERATION_UNSEEN(call.n, size);
    }

    /* What a measurement in double-double may not have seen is the least, and is added where
     * it could hide on which side of the tolerance R is. */
    __device__ void count_unseen(double least, bool finest, double *residual)
    {
        if (finest)
            *residual += least;
        state.frobenius = state.frobenius < least ? least : state.frobenius;
        *residual = *residual < least ? least : *residual;
    }

    /* unseen(): that, by the terms of every entry. */
    template <typename Unseen>
    __device__ void decide(const struct cuda_norm &v, const struct cuda_norm &r, double frobenius,
                           Unseen unseen)
    {
        double residual = r.finite ? ldexp(r.fraction, r.exponent) : HUGE_VAL;
        double size = size_of(v, state.scaling);
        state.v = v;
        state.products++;
        state.before_last = state.last;
        state.last = state.frobenius;
        state.frobenius = r.finite ? frobenius : HUGE_VAL;
        state.goal = call.wishes.tolerance > 0 ? call.wishes.tolerance - lost(state.scaling)
                                               : ITERATION_GOAL_ULPS * eps * size;
        bool finest = is_finest(residual, size);
        if (call.n <= ITERATION_DD_ORDER_MAX && (finest || ITERATION_MAY_BE_UNSEEN(size)))
            count_unseen(unseen(), finest, &residual);
        if (state.action < CUDA__ITER_LAST && is_unverified(residual, size)) {
            state.action =
                call.n > ITERATION_WHOLE_FIRST ? CUDA__ITER_JUDGE : CUDA__ITER_JUDGE_WHOLE;
            return;
        }
        go_on(v, residual, size);
    }

    /* r: as it was measured, or all of it in double-double. */
    __device__ void judge(const struct cuda_norm &r, double frobenius)
    {
        double residual = ldexp(r.fraction, r.exponent), hidden = factors[0];
        double size = size_of(state.v, state.scaling);
        state.frobenius = frobenius;
        if (state.action == CUDA__ITER_JUDGE) {
            if (!(residual - state.goal >= hidden) && call.n <= ITERATION_WHOLE_MAX) {
                state.action = CUDA__ITER_JUDGE_WHOLE;
                return;
            }
            residual += hidden;
            state.frobenius = hypot(frobenius, factors[1]);
        }
        if (is_finest(residual, size))
            count_unseen(ITERATION_UNSEEN(call.n, state.terms), true, &residual);
        go_on(state.v, residual, size);
    }

    /* size: |A| |V|. */
    __device__ void go_on(const struct cuda_norm &v, double residual, double size)
    {
        if (state.steps < call.wishes.max_iterations)
            history[state.slot * call.wishes.max_iterations + state.steps] =
                (T)ITERATION_REPORTED(residual + lost(state.scaling));
        if (state.action >= CUDA__ITER_LAST) {
            finish(v, residual);
            return;
        }
        bool over = is_over(v, residual);
        bool reached = over && state.ending == CUDA__ITER_REACHED;
        state.is_current = state.frobenius < state.best_frobenius || reached;
        if (state.is_current)
            take(v, residual);
        if (over && state.ending == CUDA__ITER_STAGNANT &&
            state.scheme == METHOD_ITERATIVE_ORDER7_HORNER) {
            /* What is left may be Horner's own rounding, which a plain step does not have. */
            state.scheme = METHOD_ITERATIVE_NEWTON_SCHULZ;
            over = false;
        }
        if (over || state.steps == call.wishes.max_iterations || !step(residual, size))
            end();
    }

    /* Is a step of that order the last one? size: |A| |V|. Horner's rounding is beyond the bound.
     */
    __device__ bool is_last(double residual, double size, int order) const
    {
        bool small = residual <= ITERATION_LAST_MAX && state.frobenius < ITERATION_BASIN;
        double rounding = call.wishes.tolerance > 0
                              ? ITERATION_LAST_ROUNDING * (double)call.n * eps * size
                              : 0; /* the goal is that of the size, and rounding besides it */
        return small && state.scheme != METHOD_ITERATIVE_ORDER7_HORNER &&
               cuda__iter_power(residual, order) + rounding <= state.goal;
    }

    /* Is the transpose among the starts that follow? */
    __device__ bool is_transpose_next() const
    {
        return !is_from_transpose() && (state.algorithm != METHOD_ALGORITHM_SCALED_IDENTITY_START ||
                                        call.wishes.initial == METHOD_ITERATIVE_SCALED_IDENTITY);
    }

    /* Raises the reported share, before a step of that kind: as gpu/common/iteration.h has it.
     * In FP32, which is enough. */
    __device__ void foresee(double residual, const cuda__iter_facts &facts)
    {
        const float steps_max = (float)call.wishes.max_iterations;
        float from = ITERATION_BASIN, more = 0, others = 0;
        if (state.frobenius < ITERATION_BASIN) {
            from = (float)fmin(residual, state.frobenius);
        } else {
            /* As hopeless_steps() has it. */
            float doublings = log2f((float)call.n) + real::digits;
            float once = doublings / log2f((float)facts.growth);
            float twice = ceilf(2 * once) + ITERATION_HOPELESS_MARGIN;
            more = is_from_transpose() ? twice : ceilf(once) + ITERATION_HOPELESS_MARGIN;
            more = fmaxf(more - (float)state.steps, 1);
            others = is_transpose_next() ? twice : 0;
        }
        float last = 1, left = (float)(state.products_max - state.products);
        if (from > (float)state.goal)
            last = ceilf(log2f(log2f((float)state.goal) / log2f(from)) / log2f((float)facts.order));
        /* A NaN, where the numbers are too small for FP32, counts for nothing. */
        float most = fminf(more + fmaxf(last, 1), steps_max - (float)state.steps);
        most = fminf(most * (float)facts.products, left);
        others = fminf(fminf(others, steps_max) * (float)facts.products, ITERATION_PRODUCTS_MAX);
        float made = (float)state.products;
        int share = (int)(made / (made + most + others) * METHOD_PROGRESS_WHOLE);
        state.share = max(state.share, min(share, METHOD_PROGRESS_WHOLE - 1));
    }

    /* Chooses the next step; false: there is none. */
    __device__ bool step(double residual, double size)
    {
        /* FP32's LU is near the inverse, or of no use. */
        if (state.algorithm == METHOD_ALGORITHM_LOW_PRECISION_START && state.steps == 0 &&
            !(state.frobenius < 1)) {
            state.ending = CUDA__ITER_DIVERGING;
            return false;
        }
        if (call.wishes.scheme == METHOD_ITERATIVE_SCHEME_AUTO) {
            double from = fmin(residual, state.frobenius);
            state.scheme = METHOD_ITERATIVE_ORDER19;
            if (from < ITERATION_RESIDUAL_LARGE)
                (void)cuda__iter_plan<ITERATION_PLAN_DEPTH>(log(from), log(state.goal),
                                                            &state.scheme);
        }
        cuda__iter_facts facts = cuda__iter_facts_of(state.scheme);
        if (state.products + facts.products > state.products_max)
            return false;
        foresee(residual, facts);
        state.products += facts.products - 1; /* V A is counted when it is measured */
        state.growth = facts.growth;
        state.steps++;
        bool last = is_last(residual, size, facts.order);
        state.action = state.scheme + (last ? CUDA__ITER_LAST : CUDA__ITER_STEP);
        state.more = last ? 0 : steps_to_follow(facts);
        return true;
    }

    /* After a step like the one that was chosen, how many more are sure? No 1-norm is below |.|_F /
     * sqrt(n). From the transpose R is symmetric, with eigenvalues from 0 to 1; from another start
     * it need not be normal, and no more than one step is staked on that. Where the client wants no
     * last step measured, none of these may be the last. */
    __device__ int steps_to_follow(const cuda__iter_facts &facts) const
    {
        const double n = (double)call.n;
        double least = state.frobenius / sqrt(n), bound = 2 * state.goal;
        int most = is_from_transpose() ? CUDA__ITER_MORE_MAX : 1, more = 0;
        if (n * n * n * (double)call.count > (double)CUDA__ITER_MORE_WORK || !(least < 1) ||
            state.frobenius > state.last)
            return 0;
        if (call.wishes.scheme == METHOD_ITERATIVE_SCHEME_AUTO) {
            most = state.scheme == METHOD_ITERATIVE_ORDER19 ? most : 0;
            bound = fmax(bound, ITERATION_RESIDUAL_LARGE); /* from here on it is chosen again */
        }
        most = min(most, (int)call.wishes.max_iterations - state.steps);
        most = min(most, (state.products_max - state.products - 1) / facts.products);
        least = cuda__iter_min_after(least, state.scheme);
        if (!call.wishes.measures)
            least = cuda__iter_min_after(least, state.scheme);
        for (; more < most && least > bound; more++)
            least = cuda__iter_min_after(least, state.scheme);
        return more;
    }

    /* The start is over: the next one, or the answer. */
    __device__ void end()
    {
        if (state.leads) {
            state.best_steps = state.steps;
            state.best_slot = state.slot;
            state.slot = !state.slot;
            state.good = state.ending == CUDA__ITER_REACHED ||
                         (state.ending == CUDA__ITER_STAGNANT && call.wishes.tolerance == 0 &&
                          keeps_contract());
        }
        /* The transpose leads to every inverse that there is. */
        bool last = state.good || (state.ending == CUDA__ITER_HOPELESS && is_from_transpose());
        if (!last && next_start())
            return;
        if (!state.good && state.scaling < 0) {
            /* Scaled down, small entries may have vanished. */
            set_scaling(0);
            state.algorithm = METHOD_ALGORITHM_NONE;
            if (next_start())
                return;
        }
        state.action = CUDA__ITER_STORE;
        if (!state.good && state.overflows)
            state.refused = (int)call.n + 1;
        else if (!isfinite(state.residual))
            state.refused = (int)call.n;
    }

    /* ---- The answer ---- */

    /* (1 / |A|) / |X|; 0 where X is not finite. */
    __device__ T rcond() const
    {
        struct cuda_norm x = state.best_norm;
        x.exponent += state.best_scaling;
        if (!x.finite || x.exponent > real::exponent_max || x.fraction == 0)
            return 0;
        T reciprocal = 1 / (T)state.norm.fraction / (T)x.fraction;
        return (T)ldexp(reciprocal, -state.norm.exponent - x.exponent);
    }

    __device__ int info() const
    {
        if (state.refused)
            return state.refused;
        if (!state.good)
            return (int)call.n + 2;
        return rcond() < cuda__real<T>::eps ? (int)call.n + 1 : 0;
    }
};

#endif
