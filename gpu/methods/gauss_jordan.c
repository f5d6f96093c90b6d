/* gauss_jordan: dense inverse in place by Gauss-Jordan elimination with partial pivoting. */
#include "gpu/method.h"
#include "gpu/methods/residuals.h"

static double flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 * (double)n * (double)n * (double)n;
}

const struct method method_gauss_jordan = {
    .name = "gauss_jordan",
    .title = "Inverse by Gauss-Jordan elimination with partial pivoting",
    .when = "On the host engine an independent check of lu. A GPU runs lu's kernels for it.",
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
    .algorithms = {{METHOD_ALGORITHM_GAUSS_JORDAN, "elimination in place with partial pivoting"}},
    .n_max = 32768,
    .flops = flops,
};
