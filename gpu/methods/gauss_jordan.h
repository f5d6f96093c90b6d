/* gauss_jordan: dense inverse in place by Gauss-Jordan elimination with partial pivoting. */
#ifndef GPU_METHODS_GAUSS_JORDAN_H
#define GPU_METHODS_GAUSS_JORDAN_H

#include "gpu/method.h"

static inline double method_gauss_jordan_flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 * (double)n * (double)n * (double)n;
}

static const struct method method_gauss_jordan = {
    .name = "gauss_jordan",
    .title = "Inverse by Gauss-Jordan elimination with partial pivoting",
    .when = "On the host engine an independent check of lu. A GPU runs lu's kernels for it.",
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
    .algorithm = METHOD_ALGORITHM_GAUSS_JORDAN,
    .n_max = 32768,
    .flops = method_gauss_jordan_flops,
};

#endif
