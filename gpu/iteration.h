/* gpu/iteration.h: the numbers that `iterative` goes by on every engine: when an iteration ends,
 * and what its schemes are made of. An engine has its own code, and these from here, so that INFO
 * means one thing everywhere.
 *
 * V is the approximate inverse of A, R = I - V A its residual; |.| is the 1-norm.
 */
#ifndef GPU_ITERATION_H
#define GPU_ITERATION_H

/* ---- The end ---- */

#define ITERATION_RATIO_ACCEPTED                                                                   \
    14.0                        /* the contract has 15; what is measured errs by 0.5 at most */
#define ITERATION_GOAL_ULPS 2.0 /* of |A| |V|: as LU leaves it, at any order */
#define ITERATION_BASIN 0.5     /* of |R|_F: below it every scheme halves it at least */
#define ITERATION_GROWTH_LEAST 1.015625
#define ITERATION_HOPELESS_MARGIN 4 /* steps more than rounding errors could ask for */
#define ITERATION_PRODUCTS_MAX 512  /* of one matrix: any input ends */

/* Up to this order R is computed in twice the precision. The rounding errors of so few products may
 * cancel, or all be 0, and a residual that is there would not be seen. */
#define ITERATION_TWICE_ORDER_MAX 8

/* ---- The choice of start and scheme ---- */

/* Where A is so dominant, the diagonal is as good a start as FP32's LU, and costs nothing. */
#define ITERATION_DOMINANCE_HIGH 0x1p-10
#define ITERATION_RESIDUAL_LARGE 0.9 /* from here on nothing is planned */
#define ITERATION_PLAN_DEPTH 3       /* steps that are planned ahead */
#define ITERATION_GUESSED 10         /* products of a step beyond those */

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
