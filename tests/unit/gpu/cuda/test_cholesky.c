/* gpu/cuda/structured/cholesky.h on the SIMT stand-in: every manner, at orders around corners and
 * groups: the inverse keeps the contract, has the same bits alone as among others, and is left out
 * where a pivot is not positive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/structured/cholesky.h"
#include "tests/simt/simt.h"
#include "gpu/cuda/gemm/gemm.h"
#include "tests/unit/gpu/cuda/stream.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MATRICES 3
#define NOISE 0xff /* a NaN, of whatever is read before it is written */

/* The manners of small and large orders, and what tests of them find at small ones. */
static const struct cuda_cholesky_manner manners[] = {{128, 0},   {256, 0},   {128, 128},
                                                      {128, 256}, {256, 128}, {384, 512}};

static struct cuda_products *products(void)
{
    static struct cuda_products *made;
    if (!made)
        assert_int_equal(cuda_products_create(NULL, &made), cudaSuccess);
    return made;
}

static void put(enum precision precision, void *to, int64_t index, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)to)[index] = (float)value;
    else
        ((double *)to)[index] = value;
}

static double get(enum precision precision, const void *from, int64_t index)
{
    return precision == PRECISION_FP32 ? (double)((const float *)from)[index]
                                       : ((const double *)from)[index];
}

/* Some rows' diagonal is small: B B^T by its first rows, of which the matrix is dominated. */
static double entry(int64_t n, int64_t matrix, int64_t i, int64_t j)
{
    int64_t low = i < j ? i : j, high = i < j ? j : i;
    uint64_t seed = (uint64_t)((matrix * 7 + low) * 1000 + high);
    double size = 1 + (double)(i % 5) * (double)(j % 5) / 4, x = gputest_random(&seed);
    return size * (i == j ? 1.2 : x / (double)n);
}

/* MATRICES lower triangles with noise above them. */
static void fill(enum precision precision, int64_t n, void *w)
{
    memset(w, NOISE, (size_t)(MATRICES * n * n * precision_bytes(precision)));
    for (int64_t m = 0; m < MATRICES; m++) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++)
                put(precision, w, (m * n + i) * n + j, entry(n, m, i, j));
        }
    }
}

/* Inverts `count` matrices from `first` on, which come by way of the stream. */
static void run(const struct cuda_cholesky_manner *manner, enum precision precision, int64_t n,
                void *w, int64_t first, int64_t count, int32_t *failed)
{
    size_t bytes = cuda_cholesky_scratch_as(manner, precision, n, count);
    size_t given_bytes = (size_t)(count * n * n * precision_bytes(precision));
    struct cuda_cholesky task = {
        .precision = precision,
        .n = n,
        .count = count,
        .w = {(char *)w + first * n * n * precision_bytes(precision), n, n * n},
        .failed = failed};
    void *given = malloc(given_bytes);
    assert_non_null(given);
    memcpy(given, task.w.at, given_bytes);
    memset(task.w.at, NOISE, given_bytes);
    assert_int_equal(cudaMalloc(&task.scratch, bytes), cudaSuccess);
    cudaMemset(task.scratch, NOISE, bytes);
    memset(failed, 0, (size_t)count * sizeof *failed);
    cudaError_t status =
        cudaMemcpyAsync(task.w.at, given, given_bytes, cudaMemcpyDeviceToDevice, cudatest_stream());
    if (status == cudaSuccess)
        status = cuda_cholesky_invert_as(manner, products(), &task, cudatest_stream());
    status = cudatest_await(status);
    if (status != cudaSuccess)
        fail_msg("status %d: %s", (int)status, simt_report());
    cudaFree(task.scratch);
    free(given);
}

static void assert_inverse(enum precision precision, int64_t n, const void *w, int64_t m)
{
    double *a = gputest_numbers(n * n), *x = gputest_numbers(n * n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double value = entry(n, m, i, j);
            a[i * n + j] = precision == PRECISION_FP32 ? (double)(float)value : value;
            x[i * n + j] = get(precision, w, (m * n + (i > j ? i : j)) * n + (i > j ? j : i));
        }
    }
    double ratio = gputest_inverse_ratio(precision, n, a, x);
    if (!(ratio <= 1))
        fail_msg("n = %d, %s, matrix %d: ratio %g", (int)n, precision_name(precision), (int)m,
                 ratio);
    free(a);
    free(x);
}

/* The lower triangles of one matrix in both. */
static void assert_same(enum precision precision, int64_t n, const void *one, const void *other,
                        int64_t m)
{
    int64_t unit = precision_bytes(precision);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (m * n + i) * n * unit;
        assert_memory_equal((const char *)one + at, (const char *)other + at,
                            (size_t)((i + 1) * unit));
    }
}

static void try_order(const struct cuda_cholesky_manner *manner, enum precision precision,
                      int64_t n)
{
    void *w = NULL, *alone = NULL;
    size_t bytes = (size_t)(MATRICES * n * n * precision_bytes(precision));
    int32_t failed[MATRICES];
    assert_int_equal(cudaMalloc(&w, bytes), cudaSuccess);
    assert_int_equal(cudaMalloc(&alone, bytes), cudaSuccess);
    fill(precision, n, w);
    run(manner, precision, n, w, 0, MATRICES, failed);
    for (int64_t m = 0; m < MATRICES; m++) {
        assert_int_equal(failed[m], 0);
        assert_inverse(precision, n, w, m);
    }
    for (int how = SIMT_STREAMS_AT_ONCE; how <= SIMT_STREAMS_EARLY; how++) {
        simt_set_streams((enum simt_streams)how);
        fill(precision, n, alone);
        run(manner, precision, n, alone, 1, 1, failed);
        assert_same(precision, n, w, alone, 1);
    }
    simt_set_streams(SIMT_STREAMS_AT_ONCE);
    cudaFree(w);
    cudaFree(alone);
}

static void test_manners(void **state)
{
    static const int64_t orders[] = {32, 96, 128, 160, 288, 416};
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        for (size_t k = 0; k < COUNT(manners); k++)
            try_order(&manners[k], (enum precision)((i + k) % 2), orders[i]);
    }
}

/* The others are inverted all the same. */
static void test_not_positive(void **state)
{
    static const int64_t rows[] = {0, 31, 32, 100, 128, 191};
    const enum precision precision = PRECISION_FP64;
    int64_t n = 192;
    double *w = NULL;
    (void)state;
    assert_int_equal(cudaMalloc((void **)&w, (size_t)(MATRICES * n * n) * sizeof *w), cudaSuccess);
    for (size_t i = 0; i < COUNT(rows); i++) {
        int32_t failed[MATRICES];
        fill(precision, n, w);
        w[n * n + rows[i] * (n + 1)] = i % 2 ? 0 : -1;
        run(&manners[i % 2], precision, n, w, 0, MATRICES, failed);
        assert_int_equal(failed[0], 0);
        assert_int_equal(failed[1], 1);
        assert_int_equal(failed[2], 0);
        assert_inverse(precision, n, w, 0);
        assert_inverse(precision, n, w, 2);
    }
    cudaFree(w);
}

static void test_refusals(void **state)
{
    static const int64_t orders[] = {0, 31, 33, -32};
    static const struct cuda_cholesky_manner wrong[] = {
        {0, 0}, {64, 0}, {160, 128}, {128, 64}, {128, -128}};
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct cuda_cholesky task = {.precision = PRECISION_FP64, .n = orders[i], .count = 1};
        assert_int_equal(cuda_cholesky_invert(products(), &task, NULL), cudaErrorInvalidValue);
    }
    struct cuda_cholesky task = {.precision = PRECISION_FP64, .n = 64, .count = -1};
    assert_int_equal(cuda_cholesky_invert(products(), &task, NULL), cudaErrorInvalidValue);
    task.count = CUDA_CHOLESKY_MATRICES_MAX + 1;
    assert_int_equal(cuda_cholesky_invert(products(), &task, NULL), cudaErrorInvalidValue);
    task.count = 0;
    assert_int_equal(cuda_cholesky_invert(products(), &task, NULL), cudaSuccess);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(cuda_cholesky_invert_as(&wrong[i], products(), &task, NULL),
                         cudaErrorInvalidValue);
    for (int64_t n = 32; n <= 32768; n *= 2) {
        struct cuda_cholesky_manner manner = cuda_cholesky_manner_of(n);
        assert_int_equal(cuda_cholesky_invert_as(&manner, products(), &task, NULL), cudaSuccess);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_positive),
        cmocka_unit_test(test_manners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
