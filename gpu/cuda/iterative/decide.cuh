/* gpu/cuda/iterative/decide.cuh: what is known of a matrix on its way, and what it needs next: the
 * rules of gpu/host/iterative/iterative.c, a step of them at a time. One thread a matrix.
 *
 *   begin    after A is identified: refuses it, has it equilibrated, or chooses the first start
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
    /* Of the matrix that was sent, and of A, which is worked on. */
    struct cuda_norm norm, one, inf;
    int32_t scaled;        /* A is equilibrated; else it is what was sent */
    int32_t uneven;        /* the columns' exponents differ: R is not what counts */
    int32_t top;           /* the largest of them */
    struct cuda_norm v, x; /* V, as it was measured last, and V scaled back */
    double sent;           /* the residual that counts */
    double dominance;
    int32_t dominant, warm;
    /* The start under way. */
    int32_t algorithm;           /* 0: none yet */
    int32_t ending, leads;       /* leads: its V is the best of all starts */
    int32_t scheme, steps, slot; /* slot: of the history */
    int32_t products_max;        /* when it ends */
    double growth, frobenius, last, before_last, goal;
    double terms; /* where R is judged: the 1-norm of |V| |A|, or of what counts of it */
    /* All starts. */
    int32_t products;
    int32_t share; /* reported of the progress: in parts of METHOD_PROGRESS_WHOLE */
    /* The best V. */
    int32_t good, is_current; /* it is an answer with INFO 0; it is still in V */
    double residual, best_sent, best_frobenius;
    struct cuda_norm best_v, best_x;
    int32_t best_algorithm, best_steps, best_slot;
};

/* What is measured of a V. */
struct cuda__iter_found {
    struct cuda_norm v, x;            /* as in the state */
    double residual, frobenius, sent; /* |R|, |R|_F, and the residual that counts */
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
            state.warm = v0->zero_column == CUDA_NO_LINE && v0->zero_row == CUDA_NO_LINE;
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
        const struct cuda_norm one = cuda__norm_of<T>(a.norm_1), inf = cuda__norm_of<T>(a.norm_inf);
        state.norm = one;
        if (!one.finite || !inf.finite) {
            factors[0] = ldexp(1.0, -real::digits);
            state.action = CUDA__ITER_IDENTIFY;
        } else if (a.min < cuda__larger(a.norm_1, a.norm_inf) / ITERATION_UNEVEN_MAX ||
                   ITERATION_IS_FAR_OUT(one.exponent, real::exponent_min, real::exponent_max,
                                        real::digits)) {
            equilibrate(a, 0);
        } else {
            begin_with(a, 0);
        }
    }

    /* a: of 2^-digits A, as sums of A are beyond range. */
    __device__ void begin_huge(const struct cuda_identity &a)
    {
        state.norm = cuda__norm_of<T>(a.norm_1);
        state.norm.exponent += real::digits;
        equilibrate(a, real::digits);
    }

    /* a: of A equilibrated. */
    __device__ void begin_scaled(const struct cuda_identity &a,
                                 const struct cuda_equilibrium &equilibrium)
    {
        state.scaled = 1;
        state.uneven = equilibrium.column_min < equilibrium.column_max;
        state.top = equilibrium.column_max;
        begin_with(a, 0);
    }

    /* a: of 2^-exponent A. */
    __device__ void equilibrate(const struct cuda_identity &a, int exponent)
    {
        state.action = CUDA__ITER_EQUILIBRATE;
        if (ITERATION_LOSES_TOO_MUCH(lost_of(state.norm), call.wishes.tolerance))
            begin_with(a, exponent);
    }

    /* a: of 2^-exponent A, which is worked on. */
    __device__ void begin_with(const struct cuda_identity &a, int exponent)
    {
        state.one = cuda__norm_of<T>(a.norm_1);
        state.inf = cuda__norm_of<T>(a.norm_inf);
        state.one.exponent += exponent;
        state.inf.exponent += exponent;
        state.dominance = a.dominance;
        state.dominant = a.dominant;
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

    __device__ bool is_over(double residual)
    {
        double now = state.frobenius, last = state.last;
        bool finite = isfinite(residual) && isfinite(now) && state.v.finite;
        if (finite && is_reached(residual))
            state.ending = CUDA__ITER_REACHED;
        else if (!finite || state.v.fraction == 0 ||
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

    /* By the writing of X, whatever the matrix is scaled by. norm: of what was sent. */
    __device__ double lost_of(const struct cuda_norm &norm) const
    {
        return ITERATION_LOST(call.n, norm.fraction, norm.exponent,
                              real::exponent_min - real::digits, eps);
    }

    __device__ double lost() const
    {
        return state.scaled ? lost_of(state.norm) : 0;
    }

    /* The reported residual of the best V. */
    __device__ T reported() const
    {
        return (T)(state.best_sent + lost());
    }

    static __device__ double product_of(const struct cuda_norm &a, const struct cuda_norm &b)
    {
        return b.finite ? ldexp(a.fraction * b.fraction, a.exponent + b.exponent) : HUGE_VAL;
    }

    /* |A| |V|, and that of the matrix that was sent. */
    __device__ double size() const
    {
        return product_of(state.one, state.v);
    }
    __device__ double size_sent() const
    {
        return product_of(state.norm, state.x);
    }
    /* That of the residual that counts, by which its rounding is bounded. */
    __device__ double size_of_residual() const
    {
        return state.uneven ? size_sent() : size();
    }

    /* What |R| is to come to. */
    __device__ double goal_of(double residual) const
    {
        const double share = state.uneven && state.sent > 0 ? residual / state.sent : 1;
        if (call.wishes.tolerance > 0)
            return (call.wishes.tolerance - lost()) * share;
        /* fmin: of a NaN, where X overflows, the other one. */
        return fmin(ITERATION_GOAL_ULPS * eps * size(),
                    ITERATION_RATIO_ACCEPTED * (double)call.n * eps * size_sent() * share);
    }

    /* Does the best V keep the contract? Outside the basin there may be no inverse at all. */
    __device__ bool keeps_contract() const
    {
        const double ratio = ITERATION_RATIO_ACCEPTED * (double)call.n * eps;
        return state.best_frobenius < ITERATION_BASIN &&
               state.residual <= ratio * product_of(state.one, state.best_v) &&
               state.best_sent <= ratio * product_of(state.norm, state.best_x);
    }

    /* V is the best so far. */
    __device__ void take(double residual)
    {
        state.leads = 1;
        state.residual = residual;
        state.best_sent = state.sent;
        state.best_frobenius = state.frobenius;
        state.best_v = state.v;
        state.best_x = state.x;
        state.best_algorithm = state.algorithm;
    }

    /* After a last step. residual: measured, or the goal. */
    __device__ void finish(double residual)
    {
        state.is_current = state.v.finite;
        state.ending = state.v.finite ? CUDA__ITER_REACHED : CUDA__ITER_DIVERGING;
        if (state.v.finite)
            take(residual);
        end();
    }

    /* V alone is measured: the last step leads to the goal. */
    __device__ void finish_unmeasured(const cuda__iter_found &found)
    {
        state.v = found.v;
        state.x = found.x;
        finish(state.goal);
    }

    /* May the rounding of R hide on which side of the tolerance it is? */
    __device__ bool is_unverified() const
    {
        return call.wishes.tolerance > 0 && call.n > ITERATION_DD_ORDER_MAX &&
               fabs(state.sent - (call.wishes.tolerance - lost())) <
                   ITERATION_ROUNDING(call.n, eps, size_of_residual());
    }

    /* Is the residual so near to the tolerance that double-double does not show on which side, the
     * rounding of the norm besides it? */
    __device__ bool is_finest() const
    {
        return call.wishes.tolerance > 0 && fabs(state.sent - (call.wishes.tolerance - lost())) <=
                                                2 * ITERATION_UNSEEN(call.n, size_of_residual());
    }

    /* Something is added to the residual that counts, and to |R|_F. */
    __device__ void add(double norm_1, double frobenius, double *residual)
    {
        state.sent += norm_1;
        state.frobenius = hypot(state.frobenius, frobenius);
        if (!state.uneven)
            *residual = state.sent;
    }

    /* What a measurement in double-double may not have seen of the residual that counts, `least`,
     * is the least, and is added where it could hide on which side of the tolerance that is; of_r:
     * of R. */
    __device__ void count_unseen(double of_r, double least, bool finest, double *residual)
    {
        *residual = *residual < of_r ? of_r : *residual;
        state.frobenius = state.frobenius < of_r ? of_r : state.frobenius;
        if (finest)
            add(least, 0, residual);
        state.sent = state.sent < least ? least : state.sent;
    }

    /* unseen(counts): that, by the terms of every entry, of R or of what counts. */
    template <typename Unseen> __device__ void decide(const cuda__iter_found &found, Unseen unseen)
    {
        double residual = found.residual;
        state.v = found.v;
        state.x = found.x;
        state.sent = found.sent;
        state.products++;
        state.before_last = state.last;
        state.last = state.frobenius;
        state.frobenius = found.frobenius;
        const bool finest = is_finest();
        if (call.n <= ITERATION_DD_ORDER_MAX && (finest || ITERATION_MAY_BE_UNSEEN(size())))
            count_unseen(unseen(false), unseen(state.uneven), finest, &residual);
        if (state.action < CUDA__ITER_LAST && is_unverified()) {
            state.action =
                call.n > ITERATION_WHOLE_FIRST ? CUDA__ITER_JUDGE : CUDA__ITER_JUDGE_WHOLE;
            return;
        }
        go_on(residual);
    }

    /* found: of R, as it was measured, or all of it in double-double. */
    __device__ void judge(const cuda__iter_found &found)
    {
        double residual = found.residual;
        state.frobenius = found.frobenius;
        state.sent = found.sent;
        if (state.action == CUDA__ITER_JUDGE) {
            const double hidden =
                state.uneven ? ITERATION_ROUNDING(call.n, eps, state.terms) : factors[0];
            if (!(state.sent - (call.wishes.tolerance - lost()) >= hidden) &&
                call.n <= ITERATION_WHOLE_MAX) {
                state.action = CUDA__ITER_JUDGE_WHOLE;
                return;
            }
            add(hidden, state.uneven ? 0 : factors[1], &residual);
        }
        if (is_finest()) {
            const double unseen = ITERATION_UNSEEN(call.n, state.terms);
            count_unseen(state.uneven ? 0 : unseen, unseen, true, &residual);
        }
        go_on(residual);
    }

    __device__ void go_on(double residual)
    {
        state.goal = goal_of(residual);
        if (state.steps < call.wishes.max_iterations)
            history[state.slot * call.wishes.max_iterations + state.steps] =
                (T)ITERATION_REPORTED(state.sent + lost());
        if (state.action >= CUDA__ITER_LAST) {
            finish(residual);
            return;
        }
        bool over = is_over(residual);
        bool reached = over && state.ending == CUDA__ITER_REACHED;
        state.is_current = state.frobenius < state.best_frobenius || reached;
        if (state.is_current)
            take(residual);
        if (over && state.ending == CUDA__ITER_STAGNANT &&
            state.scheme == METHOD_ITERATIVE_ORDER7_HORNER) {
            /* What is left may be Horner's own rounding, which a plain step does not have. */
            state.scheme = METHOD_ITERATIVE_NEWTON_SCHULZ;
            over = false;
        }
        if (over || state.steps == call.wishes.max_iterations || !step(residual))
            end();
    }

    /* Is a step of that order the last one? Horner's rounding is beyond the bound. */
    __device__ bool is_last(double residual, int order) const
    {
        bool small = residual <= ITERATION_LAST_MAX && state.frobenius < ITERATION_BASIN;
        double rounding = call.wishes.tolerance > 0
                              ? ITERATION_LAST_ROUNDING * (double)call.n * eps * size()
                              : 0; /* the goal is that of the size, and rounding besides it */
        return small && state.scheme != METHOD_ITERATIVE_ORDER7_HORNER && !state.uneven &&
               size_sent() >= size() && cuda__iter_power(residual, order) + rounding <= state.goal;
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
    __device__ bool step(double residual)
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
        bool last = is_last(residual, facts.order);
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
        state.action = CUDA__ITER_STORE;
        if (!isfinite(state.residual))
            state.refused = (int)call.n + 2;
    }

    /* ---- The answer ---- */

    /* (1 / |A|) / |X|; 0 where X is not finite. */
    static __device__ T rcond_of(const struct cuda_norm &a, const struct cuda_norm &x)
    {
        if (!x.finite || x.fraction == 0)
            return 0;
        T reciprocal = 1 / (T)a.fraction / (T)x.fraction;
        return (T)ldexp(reciprocal, -a.exponent - x.exponent);
    }

    __device__ T rcond() const
    {
        return rcond_of(state.norm, state.best_x);
    }

    __device__ int info() const
    {
        if (state.refused)
            return state.refused;
        if (!state.good)
            return (int)call.n + 2;
        /* Singular to working precision is what is so after equilibration too. */
        const T most = max(rcond(), rcond_of(state.one, state.best_v));
        return most < cuda__real<T>::eps || !state.best_x.finite ? (int)call.n + 1 : 0;
    }
};

#endif
