/* gpu/common/iteration.h: the numbers that `iterative` goes by on every engine: when an iteration
 * ends, and what its schemes are made of. An engine has its own code, and these from here, so that
 * INFO means one thing everywhere.
 *
 * A is the matrix that is worked on: the one that was sent, or that one equilibrated. V is its
 * approximate inverse, R = I - V A its residual; |.| is the 1-norm. X is V scaled back, the
 * approximate inverse of the matrix that was sent.
 */
#ifndef GPU_COMMON_ITERATION_H
#define GPU_COMMON_ITERATION_H

#include <math.h>

/* ---- The end ---- */

#define ITERATION_RATIO_ACCEPTED                                                                   \
    14.0                        /* the contract has 15; what is measured errs by 0.5 at most */
#define ITERATION_GOAL_ULPS 2.0 /* of |A| |V|: as LU leaves it, at any order */
#define ITERATION_BASIN 0.5     /* of |R|_F: below it every scheme halves it at least */
#define ITERATION_GROWTH_MIN 1.015625
#define ITERATION_HOPELESS_MARGIN 4 /* steps more than rounding errors could ask for */
#define ITERATION_PRODUCTS_MAX 512  /* from one start: any input ends */

/* In so many doublings of 1 - R's least eigenvalue |R|_F comes below BASIN, for every A with
 * RCOND >= eps, from the transpose: it is at least 1 / (n |A| |X|)^2 there. A start with another
 * one is given up sooner, where it is below 1 / (n |A| |X|): the next one is as good. The scaled
 * identity of a definite matrix has no less. */
#define ITERATION_DOUBLINGS_MAX(n, digits, is_transpose)                                           \
    (((is_transpose) ? 2 : 1) * (log2((double)(n)) + (digits)))

/* ---- The matrix that is worked on ---- */

/* The matrix that was sent is equilibrated (equilibrate.h) where the sums of the magnitudes of its
 * rows and columns are not within UNEVEN_MAX of each other, or its norm is far out: within a few
 * digits of the ends of the range. Else nothing is gained by it that a user could see. All that is
 * decided on the way is decided by A, V and R. But for a tolerance, and for the contract, the
 * residual that counts is that of the matrix that was sent: its entry (i, j) is R's times
 * 2^(c_i - c_j), c being the exponents of the columns. It is R where these are all the same. */
#define ITERATION_UNEVEN_MAX 4.0
#define ITERATION_IS_FAR_OUT(exponent, exponent_min, exponent_max, digits)                         \
    ((exponent) > (exponent_max) - (digits) || (exponent) < (exponent_min) + (digits))

/* X is rounded once more when it is written: entries of it may be subnormal, or 0. Each is off by
 * half of the smallest number at most, 2^(exponent_smallest - 1), and its residual by n times that
 * and the norm of the matrix that was sent, fraction 2^exponent. So much is added to the residual
 * that counts, and a tolerance is reached where both together are within it. Where that alone is as
 * large as the tolerance nothing is equilibrated: V is X itself then. The goal that follows from
 * the size, without a tolerance, has room for it: LU's answers are written the same. */
#define ITERATION_LOST(n, fraction, exponent, exponent_smallest, eps)                              \
    ldexp((double)(n) * (fraction)*ITERATION_SUMMED(n, eps), (exponent) + (exponent_smallest)-1)
#define ITERATION_LOSES_TOO_MUCH(lost, tolerance) ((tolerance) > 0 && (lost) >= (tolerance))

/* ---- Rounding ---- */

/* R as measured in the matrix's precision, by sums of n + 1 terms in any order, is off by at most
 * this in the 1-norm; size: |A| |V|. Mostly it is off by far less; but where a sum has no more than
 * two or three terms that are not 0, its rounding may be that of its terms, or none at all. */
#define ITERATION_ROUNDING(n, eps, size) ((double)(n) * (eps) * ((size) + 1))

/* Measured in double-double of FP64, R may be off by so much, and less cannot be seen;
 * terms: the 1-norm of |V| |A|, entry by entry, or size, |A| |V|, which is no less. Each product
 * and each sum leaves 2^-53 terms at most, and the sum of those that are left is rounded n times.
 * It counts where A is singular to that precision alone; and for a tolerance as near as that, for
 * products can be made that cancel to the last bit, but for what is lost next to them. Elsewhere it
 * is nothing next to the rounding of V. */
#define ITERATION_UNSEEN(n, terms) ((double)(n) * ((double)(n) + 2) * 0x1p-104 * (terms))
#define ITERATION_MAY_BE_UNSEEN(size) ((size)*0x1p-52 >= 1)

/* The norm of an R that is known is off by at most so many times itself: n + 1 roundings. */
#define ITERATION_SUMMED(n, eps) (1 + ((double)(n) + 1) * (eps))

/* So a tolerance that is not that far from the measured |R| is judged anew. Up to WHOLE_FIRST with
 * all of R in double-double. Beyond, by what rounding has done to R: z (R - (I - V A)) in
 * double-double for vectors z of signs without a pattern, at n^2 operations each. The mean of
 * their squares is that of a column's sum of squares; by Cauchy and Schwarz the root of n times as
 * much bounds the 1-norm. The margin is for chance: an error in one place of a column is never
 * missed, one in two places with a chance of 2^-16, and one that is spread comes out below half
 * with 10^-4. That is good enough to refuse. The vectors are always the same, and a matrix can be
 * made whose errors they all miss: so up to WHOLE_MAX nothing is called reached but by all of R.
 *
 * Where the residual that counts is not R, the bound of its rounding takes the place of the
 * estimate, with the terms for the size. Their entry (i, j) is multiplied as R's is. */
#define ITERATION_WHOLE_FIRST 64
#define ITERATION_WHOLE_MAX 1024
#define ITERATION_SIGNS 16
#define ITERATION_SIGNS_MARGIN 2.0

/* C, the columns' powers of two, but for a common factor: 2^(c_i - top), top being the largest c.
 * Where entries are as far apart as numbers can be, the smaller one counts for more than it is. */
#define ITERATION_WEIGHT_MIN (-1022)

/* Is entry i of vector number `vector` -1? i: of type uint32_t. */
#define ITERATION_MIXED(x, shift, factor) (((x) ^ (x) >> (shift)) * (factor))
#define ITERATION_NEGATIVE(i, vector)                                                              \
    (ITERATION_MIXED(ITERATION_MIXED(((i) + 1) * 0x9e3779b1u, 15, 0x85ebca6bu), 13,                \
                     0xc2b2ae35u) >>                                                               \
         (16 + (vector)) &                                                                         \
     1u)

/* Up to this order R is always computed in double-double: it costs no more there. */
#define ITERATION_DD_ORDER_MAX 8

/* A step is the last one where its order p alone brings the residual to the goal: |R^p| <= |R|^p.
 * Its V is the answer, with INFO 0, measured or not: so the product that measures is made for
 * RESIDUAL and its history alone, and no answer depends on whether those are wanted.
 * In n eps |A| |V|: what rounding in the residual and in a step adds to a residual of at most
 * LAST_MAX is 2.5, and a V that is smaller by no more than a third comes out. So RATIO_ACCEPTED is
 * kept. order7_horner's rounding is beyond that: none of its steps is the last in this sense. Nor
 * is one where the residual that counts is not R, or the size of the matrix that was sent is less.
 */
#define ITERATION_LAST_MAX 0.25
#define ITERATION_LAST_ROUNDING 4.0

/* A residual in the history: infinite where terms of it have overflowed, whatever their sum has
 * become. A NaN stands behind the last. */
#define ITERATION_REPORTED(residual) (isnan(residual) ? HUGE_VAL : (residual))

/* ---- The choice of start and scheme ---- */

/* The choice of `initial` whose start follows that of `choice` where the first one is `first`;
 * METHOD_ITERATIVE_INITIALS: none does. The order is that of the choices, but the scaled identity,
 * where it is the first, is followed by the transpose, which leads to every inverse. */
#define ITERATION_NEXT_CHOICE(choice, first)                                                       \
    ((first) != METHOD_ITERATIVE_SCALED_IDENTITY    ? (choice) + 1                                 \
     : (choice) == METHOD_ITERATIVE_SCALED_IDENTITY ? METHOD_ITERATIVE_TRANSPOSE                   \
                                                    : METHOD_ITERATIVE_INITIALS)

/* Where A is so dominant, the diagonal is as good a start as FP32's LU, and costs nothing. */
#define ITERATION_DOMINANCE_HIGH 0x1p-10
#define ITERATION_RESIDUAL_LARGE 0.9 /* from here on nothing is planned */
#define ITERATION_PLAN_DEPTH 3       /* steps that are planned ahead */
#define ITERATION_GUESSED 10         /* products of a step beyond those */

/* ---- Progress ---- */

/* What is reported of a matrix on its way: made / (made + foreseen), both counted in products of
 * matrices. Whenever R is measured and a step is to follow, so many steps of its scheme are
 * foreseen:
 *
 * - |R|_F below ITERATION_BASIN: it is known how the iteration converges. A step of order
 *   p brings R to R^p, so that log(log(goal) / log |R|) / log(p) of them, rounded up, lead from the
 *   smaller norm to the goal. (If A is singular |R|_F is 1 or more, but for rounding, which may
 *   leave any number above BASIN again and again where A is singular to working precision.)
 * - else: no more is known than when the start is given up (ITERATION_DOUBLINGS_MAX). So many
 *   steps, and those from ITERATION_BASIN to the goal; and those of the transpose where that would
 *   follow.
 *
 * but never more than max_iterations and ITERATION_PRODUCTS_MAX leave. So what is reported is known
 * to be done, and most iterations are further than that until |R|_F is small: there the figure
 * leaps. It never falls: where more is to be made than was foreseen, for a rounding error or a
 * start that has failed, it stands still. The product that measures the last V is foreseen, though
 * it may be left out. All of it is reported when the matrix is answered. */

/* ---- The schemes ---- */

/* Name, products a step with V A, order, and growth: while 1 - R's eigenvalues are small, a step
 * multiplies them by so much. In the order of `enum method_iterative_scheme`. */
#define ITERATION_SCHEMES(X)                                                                       \
    X(NEWTON_SCHULZ, 2, 2, 2)                                                                      \
    X(CHEBYSHEV, 3, 3, 3)                                                                          \
    X(ORDER5, 4, 5, 5)                                                                             \
    X(ORDER7, 5, 7, 7)                                                                             \
    X(ORDER7_HORNER, 9, 7, 7.5)                                                                    \
    X(ORDER19, 7, 19, 19)

/* With S = V A: (S (S (... (S - 15) + 93) ...) + 120) V / 16; Varalakshmi, Kesarkar and Lopez
 * (2018). */
#define ITERATION_HORNER_FIRST (-15)
#define ITERATION_HORNER_OTHERS                                                                    \
    {                                                                                              \
        93, -315, 651, -861, 735, -393, 120                                                        \
    }
#define ITERATION_HORNER_FACTOR 0.0625

/* Y^8 + ... + Y + I = S T + PSI Y^2 + MU Y with M = (I + A Y + Y^2)(I + B Y + Y^2), S = M + C Y,
 * T = M + D Y + E Y^2. Comparing the powers of Y gives, with q = 2 + A B: A + B = 1/2,
 * q^2 - 3/4 q - 21/16 = 0, E = 3/4 - 2 q, C + D = -3/8, and so on down to MU = 3/8. */
#define ITERATION_SUM_A 0.94429363735805662
#define ITERATION_SUM_B (-0.44429363735805662)
#define ITERATION_SUM_C (-0.090285778619022631)
#define ITERATION_SUM_D (-0.28471422138097737)
#define ITERATION_SUM_E (-2.4109126902482387)
#define ITERATION_SUM_MU 0.375
#define ITERATION_SUM_PSI 0.16179435483870968

#endif
