/* gpu/cuda/iterative/step.c: the schemes of gpu/host/iterative/scheme.c as launches of products and
 * sums:
 *
 *   newton_schulz  V + R V                                                  2 products with V A
 *   chebyshev      V + R (V + R V)                                          3
 *   order5         V + (R + R^2)(I + R^2) V                                 4
 *   order7         V + (R + R^4)(I + R + R^2) V                             5
 *   order7_horner  the nine products of Varalakshmi, Kesarkar and Lopez (2018)
 *   order19        V + (R + R^2)(I + Y + ... + Y^8) V, Y = R^2              7
 *
 * A scheme leaves R and V alone and works in the spare matrices; at the end V takes the correction.
 * So matrices of a run whose turn it is not lose nothing but time. Where every matrix of a run has
 * its turn order7 works in R too.
 *
 * Threads: the lane's. Nothing is awaited.
 */
#include "gpu/cuda/iterative/call.h"

#include <stddef.h>

#include "gpu/common/iteration.h"
#include "gpu/cuda/gemm/gemm.h"

/* The matrices of a step, by short names. */
enum name {
    A = CUDA__ITER_MATRIX_A,
    V = CUDA__ITER_MATRIX_V,
    R = CUDA__ITER_MATRIX_R,
    S0 = CUDA__ITER_MATRIX_SPARE,
    S1,
    S2,
    S3,
    S4,
    NONE = -1
};

/* c = alpha a b + beta c */
static void multiply(struct cuda__iter_step *step, enum name c, double alpha, enum name a,
                     enum name b, double beta)
{
    const struct cuda__iter_call *call = step->call;
    struct cuda_product product = {.precision = call->precision,
                                   .rows = call->n,
                                   .columns = call->n,
                                   .inner = call->n,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .a = cuda__iter_at(call, a, step->run),
                                   .b = cuda__iter_at(call, b, step->run),
                                   .c = cuda__iter_at(call, c, step->run),
                                   .count = step->run.count,
                                   .scratch = call->space.products};
    if (step->status == cudaSuccess)
        step->status = cuda_product(step->products, &product, step->stream);
}

/* One after the other; terms without a factor are none. */
static void add(struct cuda__iter_step *step, struct cuda__iter_sums sums)
{
    for (int i = 0; i < CUDA__ITER_SUMS_MAX * 3; i++) {
        struct cuda__iter_sum *sum = &sums.sums[i / 3];
        if (sum->terms[i % 3].factor == 0)
            sum->terms[i % 3].matrix = NONE;
    }
    if (step->status == cudaSuccess)
        step->status = step->kernels->sum(step->call, step->run, &sums, step->stream);
}

/* to = identity I + the sum of terms {factor, matrix}, up to three of them. */
#define SUM(target, multiple, ...)                                                                 \
    {                                                                                              \
        .to = (target), .identity = (multiple), .terms = { __VA_ARGS__ }                           \
    }
/* So many of them. */
#define SUMS(number, ...) ((struct cuda__iter_sums){.count = (number), .sums = {__VA_ARGS__}})

static void shift(struct cuda__iter_step *step, enum name matrix, double value)
{
    if (step->status == cudaSuccess)
        step->status = step->kernels->shift(step->call, step->run, matrix, value, step->stream);
}

void cuda__iter_residual(struct cuda__iter_step *step)
{
    if (step->call->n <= ITERATION_DD_ORDER_MAX) {
        if (step->status == cudaSuccess)
            step->status = step->kernels->residual(step->call, step->run, false, step->stream);
        return;
    }
    multiply(step, R, -1, V, A, 0);
}

/* ---- The schemes: each returns where it left what V takes ---- */

static enum name newton_schulz(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, V, 0);
    return S0;
}

static enum name chebyshev(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, V, 0);
    add(step, SUMS(1, SUM(S0, 0, {1, S0}, {1, V})));
    multiply(step, S1, 1, R, S0, 0);
    return S1;
}

static enum name order5(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, R, 0);
    add(step, SUMS(2, SUM(S1, 0, {1, R}, {1, S0}), SUM(S0, 1, {1, S0})));
    multiply(step, S2, 1, S1, S0, 0);
    multiply(step, S1, 1, S2, V, 0);
    return S1;
}

static enum name order7(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, R, 0);
    if (cuda__iter_gap(step->call->n) == 0) {
        /* R is measured anew before it is used again, also where a matrix of the run does not take
         * the step after all (take_more_steps). */
        add(step, SUMS(1, SUM(S1, 1, {1, S0}, {1, R})));
        multiply(step, R, 1, S0, S0, 1);
        multiply(step, S2, 1, R, S1, 0);
    } else {
        multiply(step, S1, 1, S0, S0, 0);
        add(step, SUMS(2, SUM(S1, 0, {1, S1}, {1, R}), SUM(S0, 1, {1, S0}, {1, R})));
        multiply(step, S2, 1, S1, S0, 0);
    }
    multiply(step, S0, 1, S2, V, 0);
    return S0;
}

/* The paper's nine products; S0 = V A. What comes out is V itself. */
static enum name order7_horner(struct cuda__iter_step *step)
{
    static const double coefficients[] = ITERATION_HORNER_OTHERS;
    enum name inner = S1, outer = S2;
    add(step, SUMS(2, SUM(S0, 1, {-1, R}), SUM(inner, ITERATION_HORNER_FIRST, {1, S0})));
    for (size_t i = 0; i < sizeof coefficients / sizeof coefficients[0]; i++) {
        multiply(step, outer, 1, S0, inner, 0);
        shift(step, outer, coefficients[i]);
        enum name old = inner;
        inner = outer;
        outer = old;
    }
    multiply(step, outer, ITERATION_HORNER_FACTOR, inner, V, 0);
    return outer;
}

/* The sum as in gpu/common/iteration.h. */
static enum name order19(struct cuda__iter_step *step)
{
    enum name y = S0, square = S1, left = S2, right = S3, sum = S4;
    multiply(step, y, 1, R, R, 0);
    multiply(step, square, 1, y, y, 0);
    add(step, SUMS(2, SUM(left, 1, {ITERATION_SUM_A, y}, {1, square}),
                   SUM(right, 1, {ITERATION_SUM_B, y}, {1, square})));
    multiply(step, sum, 1, left, right, 0); /* M */
    add(step, SUMS(3, SUM(left, 0, {1, sum}, {ITERATION_SUM_C, y}),
                   SUM(right, 0, {1, sum}, {ITERATION_SUM_D, y}, {ITERATION_SUM_E, square}),
                   SUM(sum, 0, {ITERATION_SUM_MU, y}, {ITERATION_SUM_PSI, square})));
    multiply(step, sum, 1, left, right, 1);
    add(step, SUMS(1, SUM(left, 0, {1, R}, {1, y})));
    multiply(step, right, 1, left, sum, 0);
    multiply(step, left, 1, right, V, 0);
    return left;
}

void cuda__iter_improve(struct cuda__iter_step *step, enum method_iterative_scheme scheme)
{
    static enum name (*const schemes[METHOD_ITERATIVE_SCHEMES])(struct cuda__iter_step *) = {
        [METHOD_ITERATIVE_NEWTON_SCHULZ] = newton_schulz,
        [METHOD_ITERATIVE_CHEBYSHEV] = chebyshev,
        [METHOD_ITERATIVE_ORDER5] = order5,
        [METHOD_ITERATIVE_ORDER7] = order7,
        [METHOD_ITERATIVE_ORDER7_HORNER] = order7_horner,
        [METHOD_ITERATIVE_ORDER19] = order19,
    };
    enum name found = schemes[scheme](step);
    if (step->status == cudaSuccess)
        step->status =
            step->kernels->commit(step->call, step->run, CUDA__ITER_STEP + (int)scheme, (int)found,
                                  scheme != METHOD_ITERATIVE_ORDER7_HORNER, step->stream);
}
