/* lu: dense inverse by elimination with partial pivoting, as accurate as LAPACK's getrf + getri. */
#ifndef GPU_METHODS_LU_H
#define GPU_METHODS_LU_H

#include "gpu/method.h"

static inline double method_lu_flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 * (double)n * (double)n * (double)n;
}

static const struct method method_lu = {
    .name = "lu",
    .title = "Inverse by LU factorisation with partial pivoting",
    .when = "The safe choice for any dense matrix.",
    .inputs = {{.name = "A", .help = "matrices", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}}},
    .outputs = {{.name = "INVERSE",
                 .help = "inverses",
                 .rank = 2,
                 .dims = {METHOD_DIM_N, METHOD_DIM_N},
                 .is_default = true},
                {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
                {.name = "RCOND",
                 .help = "reciprocal condition number in the 1-norm",
                 .when_empty = METHOD_EMPTY_ONES,
                 .is_default = true}},
    .algorithm = METHOD_ALGORITHM_LU,
    .n_max = 32768,
    .flops = method_lu_flops,
};

#endif
