/* gpu/cuda/lu/methods.c: the rows of `lu`, `lu_factor` and `gauss_jordan`: to CUDA_SMALL_N_MAX by
 * lu_small/lu_small.h, beyond by lu.h.
 *
 * Threads: constant data; launchers as those of lu.h.
 */
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/methods/lu_factor.h"

/* ---- Launchers of lu_small/lu_small.h ---- */

static cudaError_t inverse_small(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_inverse_small(call->precision, call->n, &call->batch, stream);
}

static cudaError_t recover_small(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_recover_small(call->precision, call->n, &call->batch, stream);
}

static cudaError_t factor_small(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_factor_small(call->precision, call->n, &call->batch, stream);
}

/* ---- Launchers of lu/lu.h ---- */

static cudaError_t inverse_middle(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_inverse_middle(call->precision, call->n, &call->batch, call->workspace,
                               call->workspace_bytes, call->products, stream);
}

static cudaError_t recover_middle(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_recover_middle(call->precision, call->n, &call->batch, call->workspace,
                               call->workspace_bytes, call->products, stream);
}

static size_t inverse_middle_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda_inverse_middle_workspace(call->precision, call->n, matrices);
}

static cudaError_t factor_middle(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_factor_middle(call->precision, call->n, &call->batch, call->workspace,
                              call->workspace_bytes, call->products, stream);
}

static size_t factor_middle_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda_factor_middle_workspace(call->precision, call->n, matrices);
}

/* ---- The rows ---- */

const struct cuda_method cuda_method_lu[] = {
    {.name = "lu",
     .kernel = "cuda lu fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = METHOD_OUTPUT_INVERSE,
     .info = METHOD_OUTPUT_INFO,
     .extra = METHOD_OUTPUT_RCOND,
     .launch = inverse_small,
     .recover = recover_small},
    {.name = "lu",
     .kernel = "cuda lu blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = METHOD_OUTPUT_INVERSE,
     .info = METHOD_OUTPUT_INFO,
     .extra = METHOD_OUTPUT_RCOND,
     .takes_products = true,
     .launch = inverse_middle,
     .recover = recover_middle,
     .workspace = inverse_middle_workspace},
    {0},
};

const struct cuda_method cuda_method_lu_factor[] = {
    {.name = "lu_factor",
     .kernel = "cuda lu_factor fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = METHOD_LU_FACTOR_LU,
     .extra = METHOD_LU_FACTOR_PIVOTS,
     .info = METHOD_LU_FACTOR_INFO,
     .launch = factor_small},
    {.name = "lu_factor",
     .kernel = "cuda lu_factor blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = METHOD_LU_FACTOR_LU,
     .extra = METHOD_LU_FACTOR_PIVOTS,
     .info = METHOD_LU_FACTOR_INFO,
     .takes_products = true,
     .launch = factor_middle,
     .workspace = factor_middle_workspace},
    {0},
};

/* The blocked elimination in place is Gauss-Jordan's, with partial pivoting. */
const struct cuda_method cuda_method_gauss_jordan[] = {
    {.name = "gauss_jordan",
     .kernel = "cuda gauss-jordan fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = METHOD_OUTPUT_INVERSE,
     .info = METHOD_OUTPUT_INFO,
     .extra = METHOD_OUTPUT_RCOND,
     .launch = inverse_small,
     .recover = recover_small},
    {.name = "gauss_jordan",
     .kernel = "cuda gauss-jordan blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = METHOD_OUTPUT_INVERSE,
     .info = METHOD_OUTPUT_INFO,
     .extra = METHOD_OUTPUT_RCOND,
     .takes_products = true,
     .launch = inverse_middle,
     .recover = recover_middle,
     .workspace = inverse_middle_workspace},
    {0},
};
