/* gpu/cuda/auto/self_test.c: the self-test of `auto`: see self_test.h. A batch of one matrix of
 * each kind, sorted and not, at orders below the least that is sorted, judged by
 * |I - X A| / (n |A| |X| eps), and by the algorithms that METHOD reports.
 */
#include "gpu/cuda/base/pool.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/process/self_test.h"

#define N_MAX 70
#define NUMBERS (N_MAX * N_MAX)

/* By their places in the batch. */
enum kind {
    DENSE,
    DIAGONAL,
    LOWER,
    UPPER,
    TRIDIAGONAL,
    DEFINITE,
    KINDS
};

static const enum method_algorithm algorithms[KINDS] = {
    [DENSE] = METHOD_ALGORITHM_LU,
    [DIAGONAL] = METHOD_ALGORITHM_DIAGONAL,
    [LOWER] = METHOD_ALGORITHM_TRIANGULAR,
    [UPPER] = METHOD_ALGORITHM_TRIANGULAR,
    [TRIDIAGONAL] = METHOD_ALGORITHM_TRIDIAGONAL,
    [DEFINITE] = METHOD_ALGORITHM_CHOLESKY,
};

/* Pinned: what one call reads and writes. The numbers are of either precision. */
struct bench {
    double a[KINDS * NUMBERS], x[KINDS * NUMBERS];
    double rcond[KINDS];
    int32_t info[KINDS], algorithm[KINDS];
    bool sorts;
    struct cuda_tensors item;
    struct cuda_notes notes;
};

static bool is_zero(enum kind kind, int64_t i, int64_t j)
{
    switch (kind) {
    case DIAGONAL:
        return i != j;
    case LOWER:
        return j > i;
    case UPPER:
        return j < i;
    case TRIDIAGONAL:
        return j > i + 1 || i > j + 1;
    default:
        return false;
    }
}

/* Random numbers where there are any; all but the dense one dominated by their diagonals. */
static void fill(struct bench *h_bench, enum precision precision, int64_t n)
{
    process_trial_fill(precision, h_bench->a, KINDS * n * n);
    for (int64_t at = 0; at < KINDS * n * n; at++) {
        int64_t i = at / n % n, j = at % n;
        enum kind kind = (enum kind)(at / (n * n));
        /* Of a symmetric one above the diagonal what is below, which comes later. */
        int64_t image = kind == DEFINITE && i < j ? at + (j - i) * (n - 1) : at;
        double value = process_trial_get(precision, h_bench->a, image);
        value = is_zero(kind, i, j) ? 0 : i == j && kind != DENSE ? (double)n + value : value;
        if (precision == PRECISION_FP32)
            ((float *)h_bench->a)[at] = (float)value;
        else
            h_bench->a[at] = value;
    }
    memset(h_bench->x, 0xa5, sizeof h_bench->x);
}

/* Matrix k's ratio; infinite when INFO says that there is no answer, or METHOD names another
 * algorithm.
 */
static double ratio_of(const struct bench *h_bench, enum precision precision, int64_t n, int64_t k)
{
    enum method_algorithm algorithm = h_bench->sorts ? algorithms[k] : METHOD_ALGORITHM_LU;
    if (h_bench->info[k] != 0 || h_bench->algorithm[k] != (int)algorithm)
        return HUGE_VAL;
    return process_trial_ratio(precision, n, h_bench->a, h_bench->x, k);
}

/* All visits of one call. */
static cudaError_t run(struct cuda_pool *pool, struct cuda_call *call, bool sorts,
                       cudaStream_t stream)
{
    struct cuda_block block = {0};
    size_t bytes = cuda__auto_bytes(call, sorts, 1);
    cudaError_t status = cuda_pool_take(pool, false, bytes, bytes, &block);
    call->workspace = block.d_data;
    call->workspace_bytes = block.bytes;
    call->notes->asked = 0;
    if (status == cudaSuccess)
        status = cuda__auto_begin(call, sorts, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    while (status == cudaSuccess && call->notes->asked) {
        call->notes->asked = 0;
        status = cuda_auto_again(call, stream);
        if (status == cudaSuccess)
            status = cudaStreamSynchronize(stream);
    }
    cuda_pool_give(pool, &block);
    return status;
}

static cudaError_t try(struct bench *h_bench, struct bench *seen, struct cuda_call *call,
                       struct cuda_pool *pool, cudaStream_t stream, double *worst)
{
    static const int64_t orders[] = {8, CUDA_SMALL_N_MAX + 1, N_MAX};
    cudaError_t status = cudaSuccess;
    h_bench->item = (struct cuda_tensors){.inputs = {seen->a},
                                          .outputs = {[METHOD_OUTPUT_INVERSE] = seen->x,
                                                      [METHOD_OUTPUT_INFO] = seen->info,
                                                      [METHOD_OUTPUT_RCOND] = seen->rcond,
                                                      [METHOD_OUTPUT_ALGORITHM] = seen->algorithm}};
    call->notes = &h_bench->notes;
    call->d_notes = &seen->notes;
    call->tensors = &seen->item;
    for (size_t k = 0; k < 2 * sizeof orders / sizeof orders[0] && status == cudaSuccess; k++) {
        bool sorts = k % 2;
        call->n = orders[k / 2];
        /* What the pool can never hold is never run. */
        if (cuda__auto_bytes(call, sorts, 1) > cuda_pool_bytes_max(pool))
            continue;
        fill(h_bench, call->precision, call->n);
        h_bench->sorts = sorts;
        status = run(pool, call, sorts, stream);
        for (int64_t m = 0; m < KINDS && status == cudaSuccess; m++) {
            double ratio = ratio_of(h_bench, call->precision, call->n, m);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    return status;
}

cudaError_t cuda__try_auto(struct cuda_pool *pool, struct cuda_products *products,
                           enum precision precision, cudaStream_t stream, double *worst)
{
    static const int64_t options[METHOD_OPTIONS_MAX];
    void *memory = NULL, *seen = NULL;
    struct cuda_call call = {.precision = precision,
                             .options = options,
                             .item_count = 1,
                             .matrices = KINDS,
                             .inputs = UINT32_MAX,
                             .wanted = UINT32_C(1) << METHOD_OUTPUT_INVERSE,
                             .products = products};
    *worst = 0;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = try(memory, seen, &call, pool, stream, worst);
    cudaFreeHost(memory);
    return status;
}
