/* gpu/cuda/tridiagonal/tridiagonal.c: see tridiagonal.h. */
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/base/device_limits.h"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tuning/h200/tridiagonal.h"
#include "gpu/methods/tridiagonal.h"

static bool writes(const struct cuda_call *call)
{
    return call->wanted & UINT32_C(1) << METHOD_TRIDIAGONAL_INVERSE;
}

/* Levels of merging whose factors are kept: all where X is wanted. */
static int levels_of(const struct cuda_call *call)
{
    int levels = 1;
    if (call->options[METHOD_TRIDIAGONAL_VARIANT] != METHOD_TRIDIAGONAL_SHERMAN_MORRISON)
        return 0;
    while (writes(call) && INT64_C(2) << levels < call->n)
        levels++;
    return levels;
}

/* Of what the kernel for many matrices leaves, bytes a part. */
static size_t left_bytes(const struct cuda_call *call)
{
    int64_t variant = call->options[METHOD_TRIDIAGONAL_VARIANT];
    if (call->n > CUDA__TRI_SERIAL_N_MAX || variant == METHOD_TRIDIAGONAL_PIVOTED)
        return 0;
    if (variant != METHOD_TRIDIAGONAL_SHERMAN_MORRISON)
        return CUDA__TRI_LEFT_BYTES;
    return CUDA__TRI_FOUND_HELD * (size_t)(call->n + 1) * sizeof(double);
}

static size_t part_bytes(const struct cuda_call *call)
{
    return (size_t)cuda__tri_part_bytes(call->n, levels_of(call)) + left_bytes(call);
}

size_t cuda_tridiagonal_workspace(const struct cuda_call *call, int64_t matrices)
{
    size_t part = part_bytes(call), parts = (size_t)matrices;
    size_t most = CUDA__TRI_SMALL_PARTS * (size_t)cuda__multiprocessors();
    if (call->n <= CUDA__TRI_BLOCK_N_MAX && parts > most)
        parts = most;
    return parts > SIZE_MAX / part ? SIZE_MAX : parts * part;
}

cudaError_t cuda_tridiagonal(const struct cuda_call *call, cudaStream_t stream)
{
    int levels = levels_of(call);
    struct cuda__tri_call work = {
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
        .n = call->n,
        .count = call->matrices,
        .workspace = call->workspace,
        .parts = (int64_t)(call->workspace_bytes / part_bytes(call)),
        .part_bytes = cuda__tri_part_bytes(call->n, levels),
        .variant = (int32_t)call->options[METHOD_TRIDIAGONAL_VARIANT],
        .levels = levels,
        .rows = method_range_unpack(call->options[METHOD_TRIDIAGONAL_ROWS], call->n),
        .columns = method_range_unpack(call->options[METHOD_TRIDIAGONAL_COLUMNS], call->n),
        .keeps_levels = writes(call),
        .writes = writes(call),
    };
    if (call->n < 1 || call->n > CUDA_TRIDIAGONAL_N_MAX || call->matrices < 0 || work.parts < 1)
        return cudaErrorInvalidValue;
    if (call->matrices == 0)
        return cudaSuccess;
    if (left_bytes(call) > 0) {
        if (levels > 0)
            work.found = call->workspace;
        else
            work.left = call->workspace;
        work.workspace += work.parts * (int64_t)left_bytes(call);
    }
    return call->precision == PRECISION_FP32 ? cuda__tri_launch_f32(&work, stream)
                                             : cuda__tri_launch_f64(&work, stream);
}

const struct cuda_method cuda_method_tridiagonal[] = {
    {.name = "tridiagonal",
     .kernel = "cuda tridiagonal",
     .n_min = 1,
     .n_max = {CUDA_TRIDIAGONAL_N_MAX, CUDA_TRIDIAGONAL_N_MAX},
     .takes_tensors = true,
     .launch = cuda_tridiagonal,
     .workspace = cuda_tridiagonal_workspace,
     .self_test = cuda__try_tridiagonal},
    {0},
};
