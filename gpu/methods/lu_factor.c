/* lu_factor: the factors themselves, P A = L U, as LAPACK's getrf returns them. */
#include "gpu/methods/lu_factor.h"

#include "gpu/method.h"

static double flops(int64_t n, int64_t m)
{
    (void)m;
    return 2.0 / 3.0 * (double)n * (double)n * (double)n;
}

const struct method method_lu_factor = {
    .name = "lu_factor",
    .title = "LU factorisation with partial pivoting",
    .when = "When systems are to be solved, or a determinant is wanted, rather than the inverse "
            "itself.",
    .inputs = {{.name = "A", .help = "matrices", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}}},
    .outputs = {[METHOD_LU_FACTOR_LU] =
                    {.name = "LU",
                     .help = "L below the diagonal (its ones are not stored), U on and above it",
                     .rank = 2,
                     .dims = {METHOD_DIM_N, METHOD_DIM_N},
                     .is_default = true},
                [METHOD_LU_FACTOR_PIVOTS] =
                    {.name = "PIVOTS",
                     .help = "row interchanges, 1-based: at step i, row i was exchanged with row "
                             "PIVOTS[i]",
                     .kind = METHOD_INT32,
                     .rank = 1,
                     .dims = {METHOD_DIM_N},
                     .is_default = true},
                [METHOD_LU_FACTOR_INFO] =
                    {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true}},
    .algorithms = {{METHOD_ALGORITHM_LU, "elimination with partial pivoting"}},
    .n_max = 32768,
    .flops = flops,
};
