/* gpu/cuda/tridiagonal/self_test.c: `tridiagonal` for the self-test: a dominant matrix and one that
 * is not, by every variant, at an order of each kind of launch. Checked by
 * |I - A X| / (n |A| |X| eps), the sums in double. See self_test.h.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/base/pool.h"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#define MATRICES 2
#define N_MAX 530
#define VARIANTS 4

/* Pinned. The numbers are of either precision. */
struct bench {
    double dl[MATRICES * N_MAX], d[MATRICES * N_MAX], du[MATRICES * N_MAX];
    double x[MATRICES * N_MAX * N_MAX], rcond[MATRICES];
    int32_t info[MATRICES], algorithm[MATRICES];
    struct cuda_tensors item;
};

static double get(enum precision precision, const void *data, int64_t index)
{
    return precision == PRECISION_FP32 ? (double)((const float *)data)[index]
                                       : ((const double *)data)[index];
}

static void put(enum precision precision, void *data, int64_t index, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

/* The diagonal of the second matrix is too small to dominate, and no entry is zero. */
static void fill(struct bench *h_bench, enum precision precision, int64_t n)
{
    for (int64_t k = 0; k < MATRICES * n; k++) {
        double wave = sin((double)(3 * k + 1));
        put(precision, h_bench->d, k, k < n ? 2.5 + 0.4 * wave : 0.6 + 0.3 * wave);
    }
    for (int64_t k = 0; k < MATRICES * (n - 1); k++) {
        put(precision, h_bench->dl, k, 1 - 0.2 * cos((double)(5 * k)));
        put(precision, h_bench->du, k, -1 + 0.3 * cos((double)(7 * k + 2)));
    }
}

static double ratio_of(const struct bench *h_bench, enum precision precision, int64_t n, int64_t k)
{
    double norm_a = 0, norm_x = 0, worst = 0;
    double eps = precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON;
    if (h_bench->info[k] != 0)
        return HUGE_VAL;
    for (int64_t j = 0; j < n; j++) {
        double wrong = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = (k * n + i) * n + j, beside = k * (n - 1) + i;
            double x = get(precision, h_bench->x, at), sum = i == j ? -1 : 0, row;
            double d = get(precision, h_bench->d, k * n + i);
            double left = i > 0 ? get(precision, h_bench->dl, beside - 1) : 0;
            double right = i + 1 < n ? get(precision, h_bench->du, beside) : 0;
            sum += d * x + (i > 0 ? left * get(precision, h_bench->x, at - n) : 0);
            sum += i + 1 < n ? right * get(precision, h_bench->x, at + n) : 0;
            row = fabs(left) + fabs(d) + fabs(right);
            norm_a = row > norm_a ? row : norm_a;
            wrong += fabs(sum);
            size += fabs(x);
        }
        norm_x = size > norm_x ? size : norm_x;
        worst = wrong > worst || isnan(wrong) ? wrong : worst;
    }
    return worst / ((double)n * norm_a * norm_x * eps);
}

/* One launch of `call`, with a workspace from the pool. */
static cudaError_t run(struct cuda_pool *pool, struct cuda_call *call, cudaStream_t stream)
{
    struct cuda_block block = {0};
    size_t bytes = cuda_tridiagonal_workspace(call, 1);
    cudaError_t status = cuda_pool_take(pool, false, bytes, bytes, &block);
    call->workspace = block.d_data;
    call->workspace_bytes = block.bytes;
    if (status == cudaSuccess)
        status = cuda_tridiagonal(call, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    cuda_pool_give(pool, &block);
    return status;
}

static cudaError_t try(struct bench *h_bench, struct bench *seen, struct cuda_pool *pool,
                       enum precision precision, cudaStream_t stream, double *worst)
{
    static const int64_t orders[] = {1, 6, 70, 200, N_MAX};
    cudaError_t status = cudaSuccess;
    h_bench->item =
        (struct cuda_tensors){.inputs = {seen->dl, seen->d, seen->du},
                              .outputs = {[METHOD_TRIDIAGONAL_INVERSE] = seen->x,
                                          [METHOD_TRIDIAGONAL_INFO] = seen->info,
                                          [METHOD_TRIDIAGONAL_RCOND] = seen->rcond,
                                          [METHOD_TRIDIAGONAL_ALGORITHM] = seen->algorithm}};
    for (int k = 0; k < VARIANTS * 5 && status == cudaSuccess; k++) {
        int64_t n = orders[k / VARIANTS], options[METHOD_OPTIONS_MAX] = {k % VARIANTS};
        struct cuda_call call = {.precision = precision,
                                 .n = n,
                                 .options = options,
                                 .item_count = 1,
                                 .matrices = MATRICES,
                                 .wanted = UINT32_C(1) << METHOD_TRIDIAGONAL_INVERSE,
                                 .tensors = &seen->item};
        /* What the pool can never hold is never run. */
        if (cuda_tridiagonal_workspace(&call, 1) > cuda_pool_bytes_max(pool))
            continue;
        fill(h_bench, precision, n);
        memset(h_bench->x, 0xa5, (size_t)(MATRICES * n * n) * sizeof(double));
        status = run(pool, &call, stream);
        for (int64_t m = 0; m < MATRICES && status == cudaSuccess; m++) {
            double ratio = ratio_of(h_bench, precision, n, m);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    return status;
}

cudaError_t cuda__try_tridiagonal(struct cuda_pool *pool, struct cuda_products *products,
                                  enum precision precision, cudaStream_t stream, double *worst)
{
    (void)products;
    void *memory = NULL, *seen = NULL;
    *worst = 0;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = try(memory, seen, pool, precision, stream, worst);
    cudaFreeHost(memory);
    return status;
}
