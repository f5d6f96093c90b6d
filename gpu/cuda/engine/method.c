/* gpu/cuda/engine/method.c: see method.h. */
#include "gpu/cuda/base/method.h"

#include <stddef.h>
#include <string.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"
#include "gpu/methods/auto.h"

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

static const struct cuda_method table[] = {
    {.name = "lu",
     .kernel = "cuda lu fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = 0,
     .info = 1,
     .extra = 2,
     .launch = inverse_small,
     .recover = recover_small},
    {.name = "lu",
     .kernel = "cuda lu blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = 0,
     .info = 1,
     .extra = 2,
     .takes_products = true,
     .launch = inverse_middle,
     .recover = recover_middle,
     .workspace = inverse_middle_workspace},
    {.name = "lu_factor",
     .kernel = "cuda lu_factor fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = 0,
     .extra = 1,
     .info = 2,
     .launch = factor_small},
    {.name = "lu_factor",
     .kernel = "cuda lu_factor blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = 0,
     .extra = 1,
     .info = 2,
     .takes_products = true,
     .launch = factor_middle,
     .workspace = factor_middle_workspace},
    /* The blocked elimination in place is Gauss-Jordan's, with partial pivoting. */
    {.name = "gauss_jordan",
     .kernel = "cuda gauss-jordan fused",
     .n_min = 1,
     .n_max = {CUDA_SMALL_N_MAX, CUDA_SMALL_N_MAX},
     .result = 0,
     .info = 1,
     .extra = 2,
     .launch = inverse_small,
     .recover = recover_small},
    {.name = "gauss_jordan",
     .kernel = "cuda gauss-jordan blocked",
     .n_min = CUDA_SMALL_N_MAX + 1,
     .n_max = {CUDA_MIDDLE_N_MAX, CUDA_MIDDLE_N_MAX},
     .result = 0,
     .info = 1,
     .extra = 2,
     .takes_products = true,
     .launch = inverse_middle,
     .recover = recover_middle,
     .workspace = inverse_middle_workspace},
    {.name = "auto",
     .kernel = "cuda auto",
     .n_min = 1,
     .n_max = {CUDA_AUTO_N_MAX, CUDA_AUTO_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_auto,
     .again = cuda_auto_again,
     .workspace = cuda_auto_workspace},
    {.name = "iterative",
     .kernel = "cuda iterative",
     .n_min = 1,
     .n_max = {CUDA_ITERATIVE_N_MAX, CUDA_ITERATIVE_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_iterative,
     .again = cuda_iterative_again,
     .workspace = cuda_iterative_workspace},
    {.name = "tridiagonal",
     .kernel = "cuda tridiagonal",
     .n_min = 1,
     .n_max = {CUDA_TRIDIAGONAL_N_MAX, CUDA_TRIDIAGONAL_N_MAX},
     .takes_tensors = true,
     .launch = cuda_tridiagonal,
     .workspace = cuda_tridiagonal_workspace},
    {.name = "ism",
     .kernel = "cuda ism",
     .n_min = 1,
     .n_max = {CUDA_ISM_N_MAX, CUDA_ISM_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_ism,
     .recover = cuda_ism_recover,
     .workspace = cuda_ism_workspace,
     .recover_workspace = cuda_ism_recover_workspace},
};

#define ROWS ((int)(sizeof table / sizeof table[0]))

size_t cuda_method_bytes_min(const struct cuda_method *method, const struct cuda_call *call)
{
    size_t work = method->workspace ? method->workspace(call, 1) : 0;
    size_t recovery = method->recover_workspace ? method->recover_workspace(call, 1) : 0;
    return work > recovery ? work : recovery;
}

const struct cuda_method *cuda_method_row(int row)
{
    return row < ROWS ? &table[row] : NULL;
}

static bool is_of(const struct cuda_method *row, uint32_t index)
{
    return index < (uint32_t)method_count() && strcmp(row->name, method_at((int)index)->name) == 0;
}

const struct cuda_method *cuda_method_find(uint32_t index, enum precision precision, int64_t n)
{
    for (int i = 0; i < ROWS; i++) {
        const struct cuda_method *row = &table[i];
        if (n >= row->n_min && n <= row->n_max[precision] && is_of(row, index))
            return row;
    }
    return NULL;
}

int64_t cuda_method_n_max(uint32_t index, enum precision precision)
{
    int64_t most = 0;
    for (int i = 0; i < ROWS; i++)
        if (is_of(&table[i], index) && table[i].n_max[precision] > most)
            most = table[i].n_max[precision];
    return most;
}
