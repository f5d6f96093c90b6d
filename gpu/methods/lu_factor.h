/* lu_factor: the factors themselves, P A = L U, as LAPACK's getrf returns them. */
#ifndef GPU_METHODS_LU_FACTOR_H
#define GPU_METHODS_LU_FACTOR_H

#include "gpu/method.h"

static inline double method_lu_factor_flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 / 3.0 * (double)n * (double)n * (double)n;
}

static const struct method method_lu_factor = {
    .name = "lu_factor",
    .title = "LU factorisation with partial pivoting",
    .when = "When systems are to be solved, or a determinant is wanted, rather than the inverse "
            "itself.",
    .inputs = {{.name = "A", .help = "matrices", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}}},
    .outputs = {{.name = "LU",
                 .help = "L below the diagonal (its ones are not stored), U on and above it",
                 .rank = 2,
                 .dims = {METHOD_DIM_N, METHOD_DIM_N},
                 .is_default = true},
                {.name = "PIVOTS",
                 .help = "row interchanges, 1-based: at step i, row i was exchanged with row "
                         "PIVOTS[i]",
                 .kind = METHOD_INT32,
                 .rank = 1,
                 .dims = {METHOD_DIM_N},
                 .is_default = true},
                {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true}},
    .algorithm = METHOD_ALGORITHM_LU,
    .n_max = 32768,
    .flops = method_lu_factor_flops,
};

#endif
