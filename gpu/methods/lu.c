/* lu: dense inverse by elimination with partial pivoting, as accurate as LAPACK's getrf + getri. */
#include "gpu/method.h"
#include "gpu/methods/residuals.h"

static double flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 * (double)n * (double)n * (double)n;
}

const struct method method_lu = {
    .name = "lu",
    .title = "Inverse by LU factorisation with partial pivoting",
    .when = "The safe choice for any dense matrix.",
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
                METHOD_RESIDUALS},
    .algorithms = {{METHOD_ALGORITHM_LU, "elimination with partial pivoting"}},
    .n_max = 32768,
    .flops = flops,
};
