/* gpu/cuda/engine/self_test.c: see self_test.h.
 *
 * An inverse is checked by |I - X A| / (n |A| |X| eps), factors by |P A - L U| / (n |A| eps),
 * against the contract's 15; the sums run in double. It is a check that this build works on this
 * device, not the tests' replacement.
 */
#include "gpu/cuda/base/failed.h"
#include "gpu/cuda/base/self_test.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "gpu/cuda/engine/device.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/process/self_test.h"

/* Every order to EVERY_N_MAX is tried, and of a row that begins beyond it the first, if it is no
 * more than TRIED_N_MAX: the check takes n^3 steps. */
#define EVERY_N_MAX CUDA_SMALL_N_MAX
#define TRIED_N_MAX 128
/* Enough for the algorithms of whole groups of small matrices and for what is left of one. */
#define MATRICES_SMALL 130
#define MATRICES_LARGE 3
#define JUDGED 3 /* the first, one in the middle, the last */
#define SMALL_NUMBERS (MATRICES_SMALL * EVERY_N_MAX * EVERY_N_MAX)
#define NUMBERS (TRIED_N_MAX * TRIED_N_MAX) /* of one matrix */
_Static_assert(SMALL_NUMBERS >= MATRICES_LARGE * NUMBERS, "a batch of either kind fits");
#define RATIO_MAX 15.0

/* Pinned: what one launch reads and writes. The numbers are of either precision. */
struct bench {
    double a[SMALL_NUMBERS], result[SMALL_NUMBERS], extra[MATRICES_SMALL * EVERY_N_MAX];
    int32_t info[MATRICES_SMALL];
    uint32_t unverified;
    struct cuda_item item;
    double work[3][NUMBERS]; /* of the check, which would burst a stack frame */
};

struct attempt {
    const struct cuda_method *method;
    enum precision precision;
    int64_t n;
    struct bench *h_bench, *seen; /* seen: by the device */
    cudaStream_t stream;
    struct cuda_pool *pool;
    struct cuda_products *products;
};

/* The 1-norm of the difference of left * right and `expected`, all n x n. */
static double distance(int64_t n, const double *left, const double *right, const double *expected)
{
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        double column = 0;
        for (int64_t i = 0; i < n; i++) {
            double sum = -expected[i * n + j];
            for (int64_t k = 0; k < n; k++)
                sum += left[i * n + k] * right[k * n + j];
            column += fabs(sum);
        }
        largest = column > largest || isnan(column) ? column : largest;
    }
    return largest;
}

static double norm(int64_t n, const double *a)
{
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        double column = 0;
        for (int64_t i = 0; i < n; i++)
            column += fabs(a[i * n + j]);
        largest = column > largest || isnan(column) ? column : largest;
    }
    return largest;
}

/* Rows of a as the pivots exchange them; false when a pivot is none. */
static bool exchange(int64_t n, double *a, const int32_t *pivots)
{
    for (int64_t i = 0; i < n; i++) {
        if (pivots[i] < i + 1 || pivots[i] > n)
            return false;
        for (int64_t j = 0; j < n; j++) {
            double held = a[i * n + j];
            a[i * n + j] = a[(pivots[i] - 1) * n + j];
            a[(pivots[i] - 1) * n + j] = held;
        }
    }
    return true;
}

/* An inverse's extra number is RCOND; factors have pivots. */
static bool is_inverse(const struct cuda_method *row)
{
    return strcmp(method_find(row->name)->outputs[row->extra].name, "RCOND") == 0;
}

/* Matrix k's ratio; infinite when INFO says that there is no answer. */
static double ratio_of(const struct attempt *attempt, int64_t k)
{
    int64_t n = attempt->n;
    double *a = attempt->h_bench->work[0], *result = attempt->h_bench->work[1];
    double *other = attempt->h_bench->work[2];
    double unit = (double)n * (attempt->precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = process_attempt_get(attempt->precision, attempt->h_bench->a, k * n * n + i);
        result[i] =
            process_attempt_get(attempt->precision, attempt->h_bench->result, k * n * n + i);
        other[i] = i / n == i % n;
    }
    double size = norm(n, a);
    if (attempt->h_bench->info[k] != 0)
        return HUGE_VAL;
    if (is_inverse(attempt->method))
        return distance(n, result, a, other) / (unit * size * norm(n, result));
    for (int64_t i = 0; i < n * n; i++) { /* L in other, U in result */
        other[i] = i % n < i / n ? result[i] : other[i];
        result[i] = i % n < i / n ? 0 : result[i];
    }
    if (!exchange(n, a, (const int32_t *)attempt->h_bench->extra + k * n))
        return HUGE_VAL;
    return distance(n, other, result, a) / (unit * size);
}

static int64_t matrices_of(int64_t n)
{
    return n <= EVERY_N_MAX ? MATRICES_SMALL : MATRICES_LARGE;
}

static struct cuda_call call_of(const struct attempt *attempt)
{
    struct bench *seen = attempt->seen;
    static const int64_t options[METHOD_OPTIONS_MAX];
    attempt->h_bench->item = (struct cuda_item){
        .a = seen->a, .result = seen->result, .extra = seen->extra, .info = seen->info};
    return (struct cuda_call){.precision = attempt->precision,
                              .n = attempt->n,
                              .options = options,
                              .item_count = 1,
                              .matrices = matrices_of(attempt->n),
                              .products = attempt->products,
                              .batch = {.items = &seen->item,
                                        .item_count = 1,
                                        .matrices = matrices_of(attempt->n),
                                        .unverified = &seen->unverified}};
}

/* May the pool ever hold what the order needs? No batch of it runs otherwise. */
static bool has_room(const struct attempt *attempt)
{
    struct cuda_call call = call_of(attempt);
    return cuda_method_bytes_min(attempt->method, &call) <= cuda_pool_bytes_max(attempt->pool);
}

static cudaError_t run(const struct attempt *attempt)
{
    const struct cuda_method *method = attempt->method;
    struct cuda_block block = {0};
    cudaError_t status = cudaSuccess;
    memset(attempt->h_bench->result, 0xa5, sizeof attempt->h_bench->result);
    memset(attempt->h_bench->extra, 0xa5, sizeof attempt->h_bench->extra);
    memset(attempt->h_bench->info, 0xa5, sizeof attempt->h_bench->info);
    attempt->h_bench->unverified = 0;
    struct cuda_call call = call_of(attempt);
    size_t bytes = cuda_method_bytes_min(method, &call);
    if (bytes > 0)
        status = cuda_pool_take(attempt->pool, false, bytes, bytes, &block);
    call.workspace = block.d_data;
    call.workspace_bytes = block.bytes;
    if (status == cudaSuccess)
        status = method->launch(&call, attempt->stream);
    if (status == cudaSuccess && method->recover)
        status = method->recover(&call, attempt->stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(attempt->stream);
    cuda_pool_give(attempt->pool, &block);
    return status;
}

/* The order to be tried after n; 0: that was the last one. */
static int64_t next_order(const struct cuda_method *method, enum precision precision, int64_t n)
{
    int64_t next = n < method->n_min ? method->n_min : n + 1;
    int64_t most = method->n_min > EVERY_N_MAX ? method->n_min : EVERY_N_MAX;
    most = most < TRIED_N_MAX ? most : TRIED_N_MAX;
    most = most < method->n_max[precision] ? most : method->n_max[precision];
    return next <= most ? next : 0;
}

/* One row, one precision. *worst stays below 0 where the pool has no room for any order. */
static cudaError_t try(struct attempt *attempt, double *worst)
{
    cudaError_t status = cudaSuccess;
    process_attempt_fill(attempt->precision, attempt->h_bench->a, SMALL_NUMBERS);
    attempt->n = next_order(attempt->method, attempt->precision, 0);
    while (status == cudaSuccess && attempt->n > 0) {
        bool tried = has_room(attempt);
        if (tried)
            status = run(attempt);
        for (int64_t k = 0; tried && status == cudaSuccess && k < JUDGED; k++) {
            double ratio = ratio_of(attempt, k * (matrices_of(attempt->n) - 1) / (JUDGED - 1));
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
        attempt->n = next_order(attempt->method, attempt->precision, attempt->n);
    }
    return status;
}

static cudaError_t try_row(struct attempt *attempt, double *worst)
{
    if (!attempt->method->takes_tensors)
        return try(attempt, worst);
    return attempt->method->self_test(attempt->pool, attempt->products, attempt->precision,
                                      attempt->stream, worst);
}

static enum engine_exit try_all(struct attempt *attempt, bool prints)
{
    enum engine_exit how = ENGINE_EXIT_OK;
    for (int i = 0; cuda_method_row(i / PRECISION_COUNT); i++) {
        double worst = -1;
        attempt->method = cuda_method_row(i / PRECISION_COUNT);
        attempt->precision = (enum precision)(i % PRECISION_COUNT);
        bool has_test = !attempt->method->takes_tensors || attempt->method->self_test;
        if (attempt->method->n_max[attempt->precision] == 0 || !has_test)
            continue;
        cudaError_t status = try_row(attempt, &worst);
        if (status != cudaSuccess)
            return cuda__failed(status, "run the self-test");
        if (prints && worst < 0)
            printf("%-22s %s not tried: too little memory\n", attempt->method->kernel,
                   precision_name(attempt->precision));
        else if (prints)
            printf("%-22s %s residual %.3f of %g: %s\n", attempt->method->kernel,
                   precision_name(attempt->precision), worst, RATIO_MAX,
                   worst <= RATIO_MAX ? "good" : "BAD");
        if (worst <= RATIO_MAX)
            continue;
        log_line(LOG_ERROR, "the device computes wrongly", "method", LOG_STR, attempt->method->name,
                 "precision", LOG_STR, precision_name(attempt->precision), "ratio", LOG_F64, worst,
                 NULL);
        how = ENGINE_EXIT_DEVICE_OUT;
    }
    return how;
}

enum engine_exit cuda_self_test(struct cuda_pool *pool, bool prints)
{
    void *memory = NULL, *seen = NULL;
    struct attempt attempt = {0};
    enum engine_exit how = ENGINE_EXIT_FAILURE;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = cudaStreamCreateWithFlags(&attempt.stream, cudaStreamNonBlocking);
    if (status == cudaSuccess)
        status = cuda_products_create(NULL, &attempt.products);
    if (status == cudaSuccess) {
        attempt.h_bench = memory;
        attempt.seen = seen;
        attempt.pool = pool;
        how = try_all(&attempt, prints);
    } else {
        how = cuda__failed(status, "prepare the self-test");
    }
    cuda_products_destroy(&attempt.products);
    if (attempt.stream)
        cudaStreamDestroy(attempt.stream);
    cudaFreeHost(memory);
    return how;
}
