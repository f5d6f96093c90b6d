/* gpu/cuda/iter_step.c: the schemes of gpu/host/iter_scheme.c as launches of products and sums:
 *
 *   newton_schulz  V + R V                                                  2 products with V A
 *   chebyshev      V + R (V + R V)                                          3
 *   order5         V + (R + R^2)(I + R^2) V                                 4
 *   order7         V + (R + R^4)(I + R + R^2) V                             5
 *   order7_horner  the nine products of Varalakshmi, Kesarkar and Lopez (2018)
 *   order19        V + (R + R^2)(I + Y + ... + Y^8) V, Y = R^2              7
 *
 * A scheme leaves R and V alone and works in the spare matrices; at the end V takes the correction.
 * So matrices of a run whose turn it is not lose nothing but time.
 *
 * Threads: the lane's. Nothing is awaited.
 */
#include "gpu/cuda/iter_call.h"

#include <stddef.h>

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
                                   .count = step->run.count};
    if (step->status == cudaSuccess)
        step->status = cuda_product(step->products, &product, step->stream);
}

/* to = identity I + fx x + fy y + fz z */
static void add(struct cuda__iter_step *step, enum name to, double identity,
                struct cuda__iter_sum terms)
{
    terms.to = to;
    terms.identity = identity;
    for (int i = 0; i < 3; i++) {
        if (terms.terms[i].factor == 0)
            terms.terms[i].matrix = NONE;
    }
    if (step->status == cudaSuccess)
        step->status = step->kernels->sum(step->call, step->run, &terms, step->stream);
}

/* The terms of a sum: {factor, matrix}, up to three. */
#define OF(...) ((struct cuda__iter_sum){.terms = {__VA_ARGS__}})

static void shift(struct cuda__iter_step *step, enum name matrix, double value)
{
    if (step->status == cudaSuccess)
        step->status = step->kernels->shift(step->call, step->run, matrix, value, step->stream);
}

void cuda__iter_residual(struct cuda__iter_step *step)
{
    multiply(step, R, -1, V, A, 0);
    shift(step, R, 1);
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
    add(step, S0, 0, OF({1, S0}, {1, V}));
    multiply(step, S1, 1, R, S0, 0);
    return S1;
}

static enum name order5(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, R, 0);
    add(step, S1, 0, OF({1, R}, {1, S0}));
    shift(step, S0, 1);
    multiply(step, S2, 1, S1, S0, 0);
    multiply(step, S1, 1, S2, V, 0);
    return S1;
}

static enum name order7(struct cuda__iter_step *step)
{
    multiply(step, S0, 1, R, R, 0);
    multiply(step, S1, 1, S0, S0, 0);
    add(step, S1, 0, OF({1, S1}, {1, R}));
    add(step, S0, 1, OF({1, S0}, {1, R}));
    multiply(step, S2, 1, S1, S0, 0);
    multiply(step, S0, 1, S2, V, 0);
    return S0;
}

/* The paper's nine products; S0 = V A. What comes out is V itself. */
static enum name order7_horner(struct cuda__iter_step *step)
{
    static const double coefficients[] = {93, -315, 651, -861, 735, -393, 120};
    enum name inner = S1, outer = S2;
    add(step, S0, 1, OF({-1, R}));
    add(step, inner, -15, OF({1, S0}));
    for (size_t i = 0; i < sizeof coefficients / sizeof coefficients[0]; i++) {
        multiply(step, outer, 1, S0, inner, 0);
        shift(step, outer, coefficients[i]);
        enum name old = inner;
        inner = outer;
        outer = old;
    }
    multiply(step, outer, 0.0625, inner, V, 0);
    return outer;
}

/* Y^8 + ... + Y + I = S T + PSI Y^2 + MU Y with M = (I + A Y + Y^2)(I + B Y + Y^2), S = M + C Y,
 * T = M + D Y + E Y^2: see gpu/host/iter_scheme.c. */
#define SUM_A 0.94429363735805662
#define SUM_B (-0.44429363735805662)
#define SUM_C (-0.090285778619022631)
#define SUM_D (-0.28471422138097737)
#define SUM_E (-2.4109126902482387)
#define SUM_MU 0.375
#define SUM_PSI 0.16179435483870968

static enum name order19(struct cuda__iter_step *step)
{
    enum name y = S0, square = S1, left = S2, right = S3, sum = S4;
    multiply(step, y, 1, R, R, 0);
    multiply(step, square, 1, y, y, 0);
    add(step, left, 1, OF({SUM_A, y}, {1, square}));
    add(step, right, 1, OF({SUM_B, y}, {1, square}));
    multiply(step, sum, 1, left, right, 0); /* M */
    add(step, left, 0, OF({1, sum}, {SUM_C, y}));
    add(step, right, 0, OF({1, sum}, {SUM_D, y}, {SUM_E, square}));
    add(step, sum, 0, OF({SUM_MU, y}, {SUM_PSI, square}));
    multiply(step, sum, 1, left, right, 1);
    add(step, left, 0, OF({1, R}, {1, y}));
    multiply(step, right, 1, left, sum, 0);
    multiply(step, left, 1, right, V, 0);
    return left;
}

void cuda__iter_improve(struct cuda__iter_step *step, enum cuda__iter_scheme scheme)
{
    static enum name (*const schemes[CUDA__ITER_SCHEMES])(struct cuda__iter_step *) = {
        [CUDA__ITER_NEWTON_SCHULZ] = newton_schulz,
        [CUDA__ITER_CHEBYSHEV] = chebyshev,
        [CUDA__ITER_ORDER5] = order5,
        [CUDA__ITER_ORDER7] = order7,
        [CUDA__ITER_ORDER7_HORNER] = order7_horner,
        [CUDA__ITER_ORDER19] = order19,
    };
    enum name found = schemes[scheme](step);
    if (step->status == cudaSuccess)
        step->status =
            step->kernels->commit(step->call, step->run, CUDA__ITER_STEP + (int)scheme, (int)found,
                                  scheme != CUDA__ITER_ORDER7_HORNER, step->stream);
}
