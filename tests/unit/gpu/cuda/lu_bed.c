/* tests/unit/gpu/cuda/lu_bed.c: see lu_bed.h. */
#include "tests/unit/gpu/cuda/lu_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/stream.h"

#define GUARD 5 /* numbers behind a result; an odd one, so that items differ in alignment */
#define UNTOUCHED 77

typedef cudaError_t launcher(enum precision, int64_t, const struct cuda_batch *, void *, size_t,
                             struct cuda_products *, cudaStream_t);

static size_t number_bytes(const struct lubed *bed)
{
    return (size_t)precision_bytes(bed->precision);
}

static size_t extra_bytes(const struct lubed *bed)
{
    return bed->factor ? (size_t)bed->n * sizeof(int32_t) : number_bytes(bed);
}

unsigned char *lubed_take(size_t bytes)
{
    unsigned char *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, UNTOUCHED, bytes);
    return memory;
}

struct lubed lubed_make(enum precision precision, int64_t n, int64_t count, bool factor,
                        int64_t held)
{
    struct lubed bed = {.precision = precision, .n = n, .count = count, .factor = factor};
    size_t numbers = (size_t)(n * n + GUARD), total = (size_t)count * numbers * number_bytes(&bed);
    bed.a = lubed_take(total);
    bed.result = lubed_take(total);
    bed.extra = lubed_take((size_t)count * extra_bytes(&bed));
    bed.info = (int32_t *)lubed_take((size_t)count * sizeof *bed.info);
    bed.items = (struct cuda_item *)lubed_take((size_t)count * sizeof *bed.items);
    for (int64_t k = 0; k < count; k++) {
        size_t at = (size_t)k * numbers * number_bytes(&bed);
        bed.items[k] = (struct cuda_item){.a = bed.a + at,
                                          .result = bed.result + at,
                                          .extra = bed.extra + (size_t)k * extra_bytes(&bed),
                                          .info = bed.info + k,
                                          .first = k};
    }
    bed.workspace_bytes = factor ? cuda_factor_middle_workspace(precision, n, held)
                                 : cuda_inverse_middle_workspace(precision, n, held);
    assert_int_equal(cudaMalloc(&bed.workspace, bed.workspace_bytes), cudaSuccess);
    return bed;
}

void lubed_free(struct lubed *bed)
{
    free(bed->a);
    free(bed->result);
    free(bed->extra);
    free(bed->info);
    free(bed->items);
    assert_int_equal(cudaFree(bed->workspace), cudaSuccess);
}

void lubed_put(const struct lubed *bed, int64_t k, const double *a)
{
    for (int64_t i = 0; i < bed->n * bed->n; i++) {
        if (bed->precision == PRECISION_FP32)
            ((float *)bed->items[k].a)[i] = (float)a[i];
        else
            ((double *)bed->items[k].a)[i] = a[i];
    }
}

void lubed_get(const struct lubed *bed, const void *numbers, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = bed->precision == PRECISION_FP32 ? ((const float *)numbers)[i]
                                                 : ((const double *)numbers)[i];
}

void lubed_run(struct lubed *bed, struct cuda_products *products)
{
    struct cuda_batch batch = {bed->items, bed->count, bed->count, &bed->unverified};
    launcher *launch = bed->factor ? cuda_factor_middle : cuda_inverse_middle;
    bed->unverified = 0;
    cudaError_t status = cudatest_await(launch(bed->precision, bed->n, &batch, bed->workspace,
                                               bed->workspace_bytes, products, cudatest_stream()));
    if (status == cudaSuccess && bed->unverified > 0)
        status =
            cudatest_await(cuda_recover_middle(bed->precision, bed->n, &batch, bed->workspace,
                                               bed->workspace_bytes, products, cudatest_stream()));
    if (status != cudaSuccess)
        fail_msg("n = %d: %s: %s", (int)bed->n, cudaGetErrorName(status), simt_report());
    size_t bytes = (size_t)(bed->n * bed->n) * number_bytes(bed);
    for (int64_t k = 0; k < bed->count; k++) {
        const unsigned char *guard = (unsigned char *)bed->items[k].result + bytes;
        for (size_t i = 0; bed->items[k].result && i < GUARD * number_bytes(bed); i++)
            assert_int_equal(guard[i], UNTOUCHED);
    }
}
