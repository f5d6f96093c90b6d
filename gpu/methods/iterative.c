/* iterative: a dense inverse by products of matrices alone, from a first or a known approximation.
 */
#include "gpu/methods/iterative.h"

/* The options are not known here. From a low-precision LU five products are enough; an
 * ill-conditioned matrix takes a hundred and more, and a deadline must hold for it too. */
static double flops(int64_t n, int64_t m)
{
    (void)m;
    return 60.0 * (double)n * (double)n * (double)n;
}

const struct method method_iterative = {
    .name = "iterative",
    .title = "Inverse by iteration: products of matrices alone improve an approximate inverse",
    .when = "When the iteration itself is wanted: a tolerance of one's choice, the history of the "
            "residual, a start from an approximate inverse (V0). For the inverse alone lu is "
            "faster, unless V0 is good: where the 1-norm of I - V0 A is at most 0.5 on a GPU up to "
            "n = 2048 (in FP32 4096), or 0.01 on the host engine in FP32. Ill-conditioned matrices "
            "take many products, and one that is too near to a singular one is answered with INFO "
            "n+2 and the residual that was reached.",
    .inputs = {[METHOD_ITERATIVE_A] = {.name = "A",
                                       .help = "matrices",
                                       .rank = 2,
                                       .dims = {METHOD_DIM_N, METHOD_DIM_N}},
               [METHOD_ITERATIVE_V0] =
                   {.name = "V0",
                    .help = "approximate inverses to start from; where one does not lead to the "
                            "inverse, another start is tried. One with a row or a column of zeros "
                            "counts as none",
                    .rank = 2,
                    .dims = {METHOD_DIM_N, METHOD_DIM_N},
                    .optional = true}},
    .outputs =
        {[METHOD_ITERATIVE_INVERSE] = {.name = "INVERSE",
                                       .help = "inverses",
                                       .rank = 2,
                                       .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                       .is_default = true},
         [METHOD_ITERATIVE_INFO] =
             {.name = "INFO",
              .help = "status; k in 1..n: column k has zeros alone. A row of zeros is "
                      "reported as n",
              .kind = METHOD_INT32,
              .is_default = true},
         [METHOD_ITERATIVE_RCOND] = {.name = "RCOND",
                                     .help = "reciprocal condition number in the 1-norm",
                                     .when_empty = METHOD_EMPTY_ONES,
                                     .is_default = true},
         [METHOD_ITERATIVE_ALGORITHM] = {.name = "METHOD",
                                         .help = "the start that led to each answer",
                                         .kind = METHOD_ALGORITHM},
         [METHOD_ITERATIVE_ITERATIONS] =
             {.name = "ITERATIONS",
              .help = "steps taken from that start alone, all of them; INVERSE, RCOND and RESIDUAL "
                      "are those of the best iterate (with the smallest Frobenius norm of I - X "
                      "A, A equilibrated), which with INFO n+2 may be an earlier one",
              .kind = METHOD_INT32},
         /* Optional: an engine may spare its last product where it is not asked for. */
         [METHOD_ITERATIVE_RESIDUAL] =
             {.name = "RESIDUAL",
              .help =
                  "the 1-norm of I - X A, of A as sent, measured; where its rounding could hide "
                  "that a tolerance is not reached, in double-double",
              .optional = true},
         [METHOD_ITERATIVE_HISTORY] =
             {.name = "RESIDUAL_HISTORY",
              .help =
                  "the same after 0, 1, 2, ... steps from that start, infinite where it overflows; "
                  "NaN behind the last; in JSON both are null, and ITERATIONS says how "
                  "far it goes. What the last of max_iterations steps led to is not in it",
              .rank = 1,
              .dims = {METHOD_DIM_INT(METHOD_ITERATIVE_MAX_ITERATIONS)},
              .when_empty = METHOD_EMPTY_ONE_ZERO}},
    .options =
        {[METHOD_ITERATIVE_TOLERANCE] =
             {.name = "tolerance",
              .help = "the 1-norm of I - X A, of A as sent, that is good enough: INFO 0 then "
                      "promises it, and INFO n+2 reports that it was not reached, which columns of "
                      "different scales may make impossible; 0: as small as that of lu, of A "
                      "equilibrated. Of an ill-conditioned matrix that may be a RESIDUAL near 1, "
                      "with INFO 0: look at RCOND",
              .kind = METHOD_OPTION_REAL,
              .min = 0,
              .max = 0.5},
         [METHOD_ITERATIVE_MAX_ITERATIONS] =
             {.name = "max_iterations",
              .help = "steps taken at most from each start, which 512 products of matrices bound "
                      "too; then the next start is taken",
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
              .help =
                  "the first start without V0: low_precision is an FP32 LU inverse, for FP64; "
                  "diagonal is for strictly diagonally dominant matrices; where it does not "
                  "lead to the inverse, the next one in this list is taken, after scaled_identity "
                  "as the first one transpose, and METHOD reports it; auto begins where it suits "
                  "the matrix",
              .kind = METHOD_OPTION_CHOICE,
              .choices = "auto|low_precision|diagonal|transpose|scaled_identity"}},
    .algorithms = {{METHOD_ALGORITHM_WARM_START, "V0"},
                   {METHOD_ALGORITHM_LOW_PRECISION_START, "an FP32 LU inverse"},
                   {METHOD_ALGORITHM_DIAGONAL_START, "reciprocals of the diagonal"},
                   {METHOD_ALGORITHM_TRANSPOSE_START, "the transpose, scaled"},
                   {METHOD_ALGORITHM_SCALED_IDENTITY_START, "a multiple of the identity"}},
    .n_max = 32768,
    .flops = flops,
};
