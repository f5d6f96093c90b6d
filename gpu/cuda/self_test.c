/* gpu/cuda/self_test.c: see self_test.h.
 *
 * An inverse is checked by |I - X A| / (n |A| |X| eps), factors by |P A - L U| / (n |A| eps),
 * against the contract's 15; the sums run in double. It is a check that this build works on this
 * device, not the tests' replacement.
 */
#include "gpu/cuda/self_test.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/method.h"

#define MATRICES 3
#define NUMBERS (CUDA_SMALL_N_MAX * CUDA_SMALL_N_MAX)
#define RATIO_MAX 15.0

/* Pinned: what one launch reads and writes. The numbers are of either precision. */
struct bench {
    double a[MATRICES * NUMBERS], result[MATRICES * NUMBERS], extra[MATRICES * CUDA_SMALL_N_MAX];
    int32_t info[MATRICES];
    uint32_t doubtful;
    struct cuda_item item;
    double work[3][NUMBERS]; /* of the check, which would burst a stack frame */
};

struct trial {
    const struct cuda_method *method;
    enum precision precision;
    int64_t n;
    struct bench *h_bench, *seen; /* seen: by the device */
    cudaStream_t stream;
};

static double get(const struct trial *trial, const void *data, int64_t index)
{
    return trial->precision == PRECISION_FP32 ? ((const float *)data)[index]
                                              : ((const double *)data)[index];
}

/* Matrices without structure whose condition grows gently with n. */
static void fill(const struct trial *trial)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < MATRICES * trial->n * trial->n; i++) {
        state = state * 1664525 + 1013904223;
        double value = (double)state / 4294967296.0 - 0.5;
        if (trial->precision == PRECISION_FP32)
            ((float *)trial->h_bench->a)[i] = (float)value;
        else
            trial->h_bench->a[i] = value;
    }
}

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

/* Matrix k's ratio; infinite when INFO says that there is no answer. */
static double ratio_of(const struct trial *trial, int64_t k)
{
    int64_t n = trial->n;
    double *a = trial->h_bench->work[0], *result = trial->h_bench->work[1];
    double *other = trial->h_bench->work[2];
    double unit = (double)n * (trial->precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = get(trial, trial->h_bench->a, k * n * n + i);
        result[i] = get(trial, trial->h_bench->result, k * n * n + i);
        other[i] = i / n == i % n;
    }
    double size = norm(n, a);
    if (trial->h_bench->info[k] != 0)
        return HUGE_VAL;
    if (trial->method->mend) /* an inverse */
        return distance(n, result, a, other) / (unit * size * norm(n, result));
    for (int64_t i = 0; i < n * n; i++) { /* L in other, U in result */
        other[i] = i % n < i / n ? result[i] : other[i];
        result[i] = i % n < i / n ? 0 : result[i];
    }
    if (!exchange(n, a, (const int32_t *)trial->h_bench->extra + k * n))
        return HUGE_VAL;
    return distance(n, other, result, a) / (unit * size);
}

static cudaError_t run(const struct trial *trial)
{
    struct bench *seen = trial->seen;
    memset(trial->h_bench, 0xa5, sizeof *trial->h_bench);
    fill(trial);
    trial->h_bench->doubtful = 0;
    trial->h_bench->item = (struct cuda_item){
        .a = seen->a, .result = seen->result, .extra = seen->extra, .info = seen->info};
    struct cuda_batch batch = {
        .items = &seen->item, .item_count = 1, .matrices = MATRICES, .doubtful = &seen->doubtful};
    cudaError_t status = trial->method->launch(trial->precision, trial->n, &batch, trial->stream);
    if (status == cudaSuccess && trial->method->mend)
        status = trial->method->mend(trial->precision, trial->n, &batch, trial->stream);
    return status == cudaSuccess ? cudaStreamSynchronize(trial->stream) : status;
}

/* One method, one precision, every order. */
static cudaError_t try(struct trial *trial, double *worst)
{
    cudaError_t status = cudaSuccess;
    *worst = 0;
    for (trial->n = 1; status == cudaSuccess && trial->n <= trial->method->n_max; trial->n++) {
        status = run(trial);
        for (int64_t k = 0; status == cudaSuccess && k < MATRICES; k++) {
            double ratio = ratio_of(trial, k);
            *worst = ratio > *worst || isnan(ratio) ? ratio : *worst;
        }
    }
    return status;
}

static enum engine_exit try_all(struct trial *trial, bool prints)
{
    enum engine_exit how = ENGINE_EXIT_OK;
    for (uint32_t i = 0; i < (uint32_t)method_count() * PRECISION_COUNT; i++) {
        double worst;
        trial->method = cuda_method_at(i / PRECISION_COUNT);
        trial->precision = (enum precision)(i % PRECISION_COUNT);
        if (!trial->method)
            continue;
        cudaError_t status = try(trial, &worst);
        if (status != cudaSuccess)
            return cuda__failed(status, "run the self-test");
        if (prints)
            printf("%-14s %s residual %.3f of %g: %s\n", trial->method->name,
                   precision_name(trial->precision), worst, RATIO_MAX,
                   worst <= RATIO_MAX ? "good" : "BAD");
        if (worst <= RATIO_MAX)
            continue;
        log_line(LOG_ERROR, "the device computes wrongly", "method", LOG_STR, trial->method->name,
                 "precision", LOG_STR, precision_name(trial->precision), "ratio", LOG_F64, worst,
                 NULL);
        how = ENGINE_EXIT_DEVICE_OUT;
    }
    return how;
}

enum engine_exit cuda_self_test(bool prints)
{
    void *memory = NULL, *seen = NULL;
    struct trial trial = {0};
    enum engine_exit how = ENGINE_EXIT_FAILURE;
    cudaError_t status = cudaHostAlloc(&memory, sizeof(struct bench), cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = cudaStreamCreateWithFlags(&trial.stream, cudaStreamNonBlocking);
    if (status == cudaSuccess) {
        trial.h_bench = memory;
        trial.seen = seen;
        how = try_all(&trial, prints);
    } else {
        how = cuda__failed(status, "prepare the self-test");
    }
    if (trial.stream)
        cudaStreamDestroy(trial.stream);
    cudaFreeHost(memory);
    return how;
}
