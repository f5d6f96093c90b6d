/* auto: looks at each matrix and takes the cheapest algorithm that is as accurate as lu. */
#include "gpu/methods/auto.h"

#include "gpu/method.h"
#include "gpu/methods/residuals.h"

static double flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 * (double)n * (double)n * (double)n;
}

const struct method method_auto = {
    .name = "auto",
    .title = "Inverse by the method that suits each matrix",
    .when =
        "When little is known of the matrices, or they differ, from about n = 64 on. Diagonal, "
        "triangular, tridiagonal and symmetric positive definite matrices are recognised and "
        "cost less than by lu; every other one is inverted as by lu. Up to n = 32 dense "
        "matrices, symmetric ones too, are inverted by lu's code for many at once and cost "
        "what they do there. A CUDA engine knows them apart from n = 256 on, positive "
        "definite ones in FP32 from 321 on, and takes all others by lu. A matrix that equals its "
        "transpose to the last bit has an inverse that does so too, whatever it goes by; "
        "docs/numerics.md has the one exception, beyond n = 1024.",
    .inputs = {{.name = "A", .help = "matrices", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}}},
    .outputs = {[METHOD_OUTPUT_INVERSE] = {.name = "INVERSE",
                                           .help = "inverses",
                                           .rank = 2,
                                           .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                           .is_default = true},
                [METHOD_OUTPUT_INFO] =
                    {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
                [METHOD_OUTPUT_RCOND] = {.name = "RCOND",
                                         .help = "reciprocal condition number in the 1-norm",
                                         .when_empty = METHOD_EMPTY_ONES,
                                         .is_default = true},
                [METHOD_OUTPUT_ALGORITHM] = {.name = "METHOD",
                                             .help = "how each matrix was inverted",
                                             .kind = METHOD_ALGORITHM,
                                             .is_default = true},
                METHOD_RESIDUALS},
    .options =
        {[METHOD_AUTO_SPD] = {.name = "spd",
                              .help = "also try Cholesky where a_ij and a_ji differ in their last "
                                      "bits alone, by 4 eps of the smaller at most; the mean "
                                      "of the two is then inverted. A covariance formed as "
                                      "H P H^T usually differs by more and goes by lu: send "
                                      "(A + A^T) / 2, which needs no spd. With or without it, "
                                      "an A that is symmetric to the last bit is tried by "
                                      "Cholesky where n is above 32, on a CUDA engine above "
                                      "255, in FP32 above 320, and goes by lu below, which is "
                                      "faster there",
                              .kind = METHOD_OPTION_BOOL}},
    .algorithms = {{METHOD_ALGORITHM_DIAGONAL, "reciprocals of the entries"},
                   {METHOD_ALGORITHM_TRIANGULAR, "substitution"},
                   {METHOD_ALGORITHM_TRIDIAGONAL, "the recurrences of that method"},
                   {METHOD_ALGORITHM_CHOLESKY, "symmetric positive definite, by Cholesky's factor"},
                   {METHOD_ALGORITHM_LU,
                    "every other one, and one that is singular but for its scaling"}},
    .n_max = 32768,
    .flops = flops,
};
