/* gpu/cuda/ism/self_test.c: `ism` for the self-test: A0 diagonal, of which one matrix has a zero
 * and must be recovered, and A0 by its inverse, at an order of each kind of launch, and by every
 * variant. Checked by |I - X A| / (n |A| |X| eps), the sums in double. See self_test.h.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/methods/ism.h"

#define MATRICES 2
#define RANK 3
#define N_MAX 200 /* an update of it is streamed */

/* Pinned. The numbers are of either precision. */
struct bench {
    double x[MATRICES * N_MAX * RANK], y[MATRICES * N_MAX * RANK], d[MATRICES * N_MAX];
    double b[MATRICES * N_MAX * N_MAX], z[MATRICES * N_MAX * N_MAX];
    double rcond[MATRICES], det_ratio[MATRICES];
    int32_t info[MATRICES], algorithm[MATRICES];
    uint32_t unverified;
    struct cuda_tensors item;
};

/* What is checked. */
struct attempt {
    struct bench *h_bench, *seen; /* seen: by the device */
    struct cuda_pool *pool;
    enum precision precision;
    int64_t n;
    bool inverse; /* A0 by its inverse */
};

static double get(enum precision precision, const void *data, int64_t index)
{
    return precision == PRECISION_FP32 ? (double)((const float *)data)[index]
                                       : ((const double *)data)[index];
}

static void set(enum precision precision, void *data, int64_t index, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

/* Has A0 a zero on its diagonal? */
static bool has_zero(const struct attempt *attempt, int64_t k)
{
    return k == 1 && !attempt->inverse;
}

static void fill(const struct attempt *attempt)
{
    struct bench *h_bench = attempt->h_bench;
    enum precision precision = attempt->precision;
    int64_t n = attempt->n;
    for (int64_t k = 0; k < MATRICES * n * RANK; k++) {
        set(precision, h_bench->x, k, sin((double)(3 * k + 1)));
        set(precision, h_bench->y, k, 0.4 * cos((double)(5 * k)) / sqrt((double)n));
    }
    for (int64_t k = 0; k < MATRICES * n; k++) {
        double d = k == n && has_zero(attempt, 1) ? 0 : (double)(2 + k % 3);
        set(precision, h_bench->d, k, d);
        for (int64_t j = 0; j < n; j++)
            set(precision, h_bench->b, k * n + j, j == k % n ? 1 / d : 0);
    }
}

/* Entry (i, j) of A. */
static double entry(const struct attempt *attempt, int64_t k, int64_t i, int64_t j)
{
    const struct bench *h_bench = attempt->h_bench;
    int64_t n = attempt->n;
    double sum = i == j ? get(attempt->precision, h_bench->d, k * n + i) : 0;
    for (int64_t c = 0; c < RANK; c++)
        sum += get(attempt->precision, h_bench->x, (k * n + i) * RANK + c) *
               get(attempt->precision, h_bench->y, (k * n + j) * RANK + c);
    return sum;
}

static double ratio_of(const struct attempt *attempt, int64_t k)
{
    int64_t n = attempt->n;
    double norm_a = 0, norm_x = 0, worst = 0;
    double eps = attempt->precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON;
    if (attempt->h_bench->info[k] != 0)
        return HUGE_VAL;
    for (int64_t j = 0; j < n; j++) {
        double a[N_MAX], size_a = 0, size_x = 0, wrong = 0;
        for (int64_t i = 0; i < n; i++) {
            a[i] = entry(attempt, k, i, j);
            size_a += fabs(a[i]);
        }
        for (int64_t i = 0; i < n; i++) {
            double sum = i == j;
            for (int64_t l = 0; l < n; l++)
                sum -= get(attempt->precision, attempt->h_bench->z, (k * n + i) * n + l) * a[l];
            wrong += fabs(sum);
            size_x += fabs(get(attempt->precision, attempt->h_bench->z, (k * n + i) * n + j));
        }
        norm_a = size_a > norm_a ? size_a : norm_a;
        norm_x = size_x > norm_x ? size_x : norm_x;
        worst = wrong > worst || isnan(wrong) ? wrong : worst;
    }
    return worst / ((double)n * norm_a * norm_x * eps);
}

/* Has lu made an answer that is the algorithm's? Such an algorithm would not show in the answers.
 */
static bool is_recovered(const struct attempt *attempt, int64_t k)
{
    return attempt->h_bench->algorithm[k] == METHOD_ALGORITHM_LU && !has_zero(attempt, k) &&
           attempt->n >= RANK;
}

/* What serves its launch, and its recovery. */
static size_t bytes_of(const struct cuda_call *call)
{
    uint32_t ism = (uint32_t)method_index(method_find("ism"));
    return cuda_method_bytes_min(cuda_method_find(ism, call->precision, call->n), call);
}

/* One launch of `call`, with a workspace from the pool, and recovery. */
static cudaError_t run(const struct attempt *attempt, struct cuda_call *call, cudaStream_t stream)
{
    struct cuda_block block = {0};
    size_t bytes = bytes_of(call);
    cudaError_t status = cuda_pool_take(attempt->pool, false, bytes, bytes, &block);
    call->workspace = block.d_data;
    call->workspace_bytes = block.bytes;
    attempt->h_bench->unverified = 0;
    if (status == cudaSuccess)
        status = cuda_ism(call, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    call->to_recover = attempt->h_bench->unverified;
    if (status == cudaSuccess && call->to_recover > 0)
        status = cuda_ism_recover(call, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    cuda_pool_give(attempt->pool, &block);
    return status;
}

/* The tensors of the attempt, as the device sees them. */
static void lay_out(const struct attempt *attempt)
{
    struct bench *seen = attempt->seen;
    attempt->h_bench->item = (struct cuda_tensors){
        .inputs = {[METHOD_ISM_X] = seen->x,
                   [METHOD_ISM_Y] = seen->y,
                   [METHOD_ISM_A0_DIAGONAL] = attempt->inverse ? NULL : seen->d,
                   [METHOD_ISM_A0_INVERSE] = attempt->inverse ? seen->b : NULL},
        .outputs = {[METHOD_ISM_INVERSE] = seen->z,
                    [METHOD_ISM_INFO] = seen->info,
                    [METHOD_ISM_RCOND] = seen->rcond,
                    [METHOD_ISM_ALGORITHM] = seen->algorithm,
                    [METHOD_ISM_DET_RATIO] = seen->det_ratio}};
}

static cudaError_t check_attempt(struct attempt *attempt, struct cuda_products *products,
                                 cudaStream_t stream, double *worst)
{
    static const struct {
        int64_t n, variant;
    } rows[] = {{1, METHOD_ISM_AUTO},   {6, METHOD_ISM_AUTO},     {12, METHOD_ISM_AUTO},
                {24, METHOD_ISM_AUTO},  {32, METHOD_ISM_AUTO},    {40, METHOD_ISM_AUTO},
                {70, METHOD_ISM_AUTO},  {N_MAX, METHOD_ISM_AUTO}, {6, METHOD_ISM_SINGLE},
                {12, METHOD_ISM_BLOCK}, {70, METHOD_ISM_BLOCK},   {24, METHOD_ISM_REDUCED_MEMORY}};
    cudaError_t status = cudaSuccess;
    for (size_t k = 0; k < 2 * sizeof rows / sizeof rows[0] && status == cudaSuccess; k++) {
        int64_t options[METHOD_OPTIONS_MAX] = {rows[k / 2].variant};
        attempt->n = rows[k / 2].n;
        attempt->inverse = k % 2 == 1;
        struct cuda_call call = {
            .precision = attempt->precision,
            .n = attempt->n,
            .m = RANK,
            .options = options,
            .item_count = 1,
            .matrices = MATRICES,
            .inputs = METHOD_ISM_XY | (attempt->inverse ? METHOD_INPUT(METHOD_ISM_A0_INVERSE)
                                                        : METHOD_INPUT(METHOD_ISM_A0_DIAGONAL)),
            .wanted = METHOD_INPUT(METHOD_ISM_INVERSE),
            .tensors = &attempt->seen->item,
            .products = products,
            .batch = {.unverified = &attempt->seen->unverified}};
        /* What the pool can never hold is never run. */
        if (bytes_of(&call) > cuda_pool_bytes_max(attempt->pool))
            continue;
        fill(attempt);
        lay_out(attempt);
        memset(attempt->h_bench->z, 0xa5, sizeof attempt->h_bench->z);
        status = run(attempt, &call, stream);
        for (int64_t m = 0; m < MATRICES && status == cudaSuccess; m++) {
            double ratio = is_recovered(attempt, m) ? HUGE_VAL : ratio_of(attempt, m);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    return status;
}

cudaError_t cuda__try_ism(struct cuda_pool *pool, struct cuda_products *products,
                          enum precision precision, cudaStream_t stream, double *worst)
{
    void *memory = NULL, *seen = NULL;
    *worst = 0;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    struct attempt attempt = {
        .h_bench = memory, .seen = seen, .pool = pool, .precision = precision};
    if (status == cudaSuccess)
        status = check_attempt(&attempt, products, stream, worst);
    cudaFreeHost(memory);
    return status;
}
