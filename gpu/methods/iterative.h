/* iterative: a dense inverse by products of matrices alone, from a first or a known approximation.
 */
#ifndef GPU_METHODS_ITERATIVE_H
#define GPU_METHODS_ITERATIVE_H

#include "gpu/method.h"

/* The longest RESIDUAL_HISTORY. */
#define METHOD_ITERATIVE_ITERATIONS_MAX 1000

enum method_iterative_input {
    METHOD_ITERATIVE_A,
    METHOD_ITERATIVE_V0
};

enum method_iterative_output {
    METHOD_ITERATIVE_INVERSE,
    METHOD_ITERATIVE_INFO,
    METHOD_ITERATIVE_RCOND,
    METHOD_ITERATIVE_ALGORITHM,
    METHOD_ITERATIVE_ITERATIONS,
    METHOD_ITERATIVE_RESIDUAL,
    METHOD_ITERATIVE_HISTORY
};

enum method_iterative_option {
    METHOD_ITERATIVE_TOLERANCE,
    METHOD_ITERATIVE_MAX_ITERATIONS,
    METHOD_ITERATIVE_SCHEME,
    METHOD_ITERATIVE_INITIAL
};

/* The choices of scheme, in the order of their names below. */
enum method_iterative_scheme {
    METHOD_ITERATIVE_SCHEME_AUTO,
    METHOD_ITERATIVE_NEWTON_SCHULZ, /* order 2, 2 products */
    METHOD_ITERATIVE_CHEBYSHEV,     /* order 3, 3 products */
    METHOD_ITERATIVE_ORDER5,        /* 4 products */
    METHOD_ITERATIVE_ORDER7,        /* 5 products */
    METHOD_ITERATIVE_ORDER7_HORNER, /* 9 products */
    METHOD_ITERATIVE_ORDER19,       /* 7 products */
    METHOD_ITERATIVE_SCHEMES
};

/* The choices of initial. */
enum method_iterative_initial {
    METHOD_ITERATIVE_INITIAL_AUTO,
    METHOD_ITERATIVE_LOW_PRECISION,
    METHOD_ITERATIVE_DIAGONAL,
    METHOD_ITERATIVE_TRANSPOSE,
    METHOD_ITERATIVE_SCALED_IDENTITY
};

/* The options are not known here. From a low-precision LU five products are enough; an
 * ill-conditioned matrix takes a hundred and more, and a deadline must hold for it too. */
static inline double method_iterative_flops(int64_t n, int64_t m)
{
    (void)m;
    return 60.0 * (double)n * (double)n * (double)n;
}

static const struct method method_iterative = {
    .name = "iterative",
    .title = "Inverse by iteration: products of matrices alone improve an approximate inverse",
    .when = "When the iteration itself is wanted: a tolerance of one's choice, the history of the "
            "residual, a start from an approximate inverse (V0). For the inverse alone lu is as a "
            "rule faster, from a good V0 too. Ill-conditioned matrices take many products, and one "
            "that is too near to a singular one is answered with INFO n+2 and the residual that "
            "was reached, or with n+1.",
    .inputs = {{.name = "A", .help = "matrices", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}},
               {.name = "V0",
                .help = "approximate inverses to start from; where one does not lead to the "
                        "inverse, another start is tried. One of zeros counts as none",
                .rank = 2,
                .dims = {METHOD_DIM_N, METHOD_DIM_N},
                .optional = true}},
    .outputs =
        {{.name = "INVERSE",
          .help = "inverses",
          .rank = 2,
          .dims = {METHOD_DIM_N, METHOD_DIM_N},
          .is_default = true},
         {.name = "INFO",
          .help = "status; in 1..n: that column has zeros alone, or with n a row may",
          .kind = METHOD_INT32,
          .is_default = true},
         {.name = "RCOND",
          .help = "reciprocal condition number in the 1-norm",
          .when_empty = METHOD_EMPTY_ONES,
          .is_default = true},
         {.name = "METHOD",
          .help = "the start that led to each answer: warm_start (V0), "
                  "low_precision_start, diagonal_start, transpose_start or "
                  "scaled_identity_start",
          .kind = METHOD_ALGORITHM},
         {.name = "ITERATIONS",
          .help = "steps taken from that start, all of them; INVERSE, RCOND and RESIDUAL "
                  "are those of the best iterate (with the least Frobenius norm of I - X A), which "
                  "with INFO n+2 may be an earlier one",
          .kind = METHOD_INT32},
         /* Optional: an engine may spare its last product where nobody asks for it. */
         {.name = "RESIDUAL",
          .help = "the 1-norm of I - X A, measured; where its rounding could hide that a "
                  "tolerance is not reached, in twice the precision",
          .optional = true},
         {.name = "RESIDUAL_HISTORY",
          .help = "the same after 0, 1, 2, ... steps from that start, infinite where it overflows; "
                  "NaN behind the last; in JSON both are null, and ITERATIONS tells how "
                  "far it goes. What the last of max_iterations steps led to is not in it",
          .rank = 1,
          .dims = {METHOD_DIM_INT(METHOD_ITERATIVE_MAX_ITERATIONS)},
          .when_empty = METHOD_EMPTY_ONE_ZERO}},
    .options =
        {[METHOD_ITERATIVE_TOLERANCE] =
             {.name = "tolerance",
              .help = "the 1-norm of I - X A that is good enough: INFO 0 then promises it, and "
                      "INFO n+2 tells that it was not reached; 0: as small as that of lu. Of an "
                      "ill-conditioned matrix that may be a RESIDUAL near 1, with INFO 0: look at "
                      "RCOND",
              .kind = METHOD_OPTION_REAL,
              .min = 0,
              .max = 0.5},
         [METHOD_ITERATIVE_MAX_ITERATIONS] =
             {.name = "max_iterations",
              .help = "steps taken at most, all starts together; 512 products of matrices bound "
                      "them too",
              .kind = METHOD_OPTION_INT,
              .min = 1,
              .max = METHOD_ITERATIVE_ITERATIONS_MAX,
              .initial = 100},
         [METHOD_ITERATIVE_SCHEME] =
             {.name = "scheme",
              .help = "products of matrices a step: newton_schulz 2 (order 2), chebyshev 3 (order "
                      "3), order5 4, order7 5, order7_horner 9, order19 7; auto: for each step the "
                      "one that needs the fewest",
              .kind = METHOD_OPTION_CHOICE,
              .choices = "auto|newton_schulz|chebyshev|order5|order7|order7_horner|order19"},
         [METHOD_ITERATIVE_INITIAL] =
             {.name = "initial",
              .help = "the first start without V0: low_precision is an FP32 LU inverse, for FP64; "
                      "diagonal is for strictly diagonally dominant matrices; where it does not "
                      "lead to the inverse, the next one in this list is taken, and METHOD tells; "
                      "auto begins where it suits the matrix",
              .kind = METHOD_OPTION_CHOICE,
              .choices = "auto|low_precision|diagonal|transpose|scaled_identity"}},
    .algorithm = METHOD_ALGORITHM_NONE,
    .n_max = 32768,
    .flops = method_iterative_flops,
};

#endif
