/* tests/unit/gpu/cuda/flight_bed.c: see flight_bed.h. */
#include "tests/unit/gpu/cuda/flight_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/methods/tridiagonal.h"

void flightbed_open(struct flightbed *bed, size_t bytes_max)
{
    *bed = (struct flightbed){0};
    bed->arena = calloc(1, FLIGHTBED_ARENA_BYTES);
    assert_non_null(bed->arena);
    assert_int_equal(cuda_device_find(0, &bed->device), ENGINE_EXIT_OK);
    assert_int_equal(cuda_device_open(&bed->device), ENGINE_EXIT_OK);
    assert_int_equal(cuda_pool_create(bytes_max, &bed->pool), ENGINE_EXIT_OK);
    bed->lane = (struct cuda_flight_lane){
        .device = &bed->device, .d_arena = {bed->arena, FLIGHTBED_ARENA_BYTES}, .pool = bed->pool};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cuda_flight_create(&bed->flights[i], &bed->lane, 0), ENGINE_EXIT_OK);
        bed->batches[i] = malloc(sizeof *bed->batches[i]);
        assert_non_null(bed->batches[i]);
        flightbed_fill(bed, i);
    }
}

void flightbed_close(struct flightbed *bed)
{
    cuda_pool_destroy(&bed->pool); /* every block has come back */
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(bed->flights[i].h_memory);
        cudaFree(bed->flights[i].d_table);
        cudaStreamDestroy(bed->flights[i].stream);
        free(bed->batches[i]);
    }
    free(bed->arena);
}

/* Batch `index`: (-1, 3, -1), FLIGHTBED_MATRICES times. */
void flightbed_fill(struct flightbed *bed, int index)
{
    struct engine_batch *batch = bed->batches[index];
    const struct method *method = method_find("tridiagonal");
    uint64_t at = (uint64_t)index * FLIGHTBED_ARENA_BYTES / 2;
    memset(batch, 0, offsetof(struct engine_batch, items));
    atomic_store(&batch->state, ENGINE_BATCH_SUBMITTED);
    batch->method = (uint32_t)method_index(method);
    batch->precision = PRECISION_FP64;
    batch->item_count = 1;
    batch->n = FLIGHTBED_N;
    batch->matrices = FLIGHTBED_MATRICES;
    batch->items[0] = (struct engine_item){.count = FLIGHTBED_MATRICES};
    for (int i = 0; method->inputs[i].name; i++) {
        int64_t count = FLIGHTBED_MATRICES * (i == 1 ? FLIGHTBED_N : FLIGHTBED_N - 1);
        double *numbers = (double *)(void *)(bed->arena + at);
        for (int64_t k = 0; k < count; k++)
            numbers[k] = i == 1 ? 3 : -1;
        batch->items[0].inputs[i].offset_bytes = at;
        at += (uint64_t)count * sizeof(double);
    }
    for (int i = 0; method->outputs[i].name; i++) {
        batch->items[0].outputs[i].offset_bytes = at;
        at +=
            (uint64_t)(FLIGHTBED_MATRICES * method_tensor_bytes(&method->outputs[i], PRECISION_FP64,
                                                                FLIGHTBED_N, 0, batch->options));
        at = (at + 7) / 8 * 8;
    }
    assert_true(at <= (uint64_t)(index + 1) * FLIGHTBED_ARENA_BYTES / 2);
}

void flightbed_assert_done(const struct engine_batch *batch, const struct flightbed *bed)
{
    const struct engine_item *item = &batch->items[0];
    int info = method_output_find(method_find("tridiagonal"), "INFO");
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    assert_int_equal(batch->status, ENGINE_OK);
    assert_true(batch->finished_ns >= batch->started_ns && batch->started_ns > 0);
    for (int k = 0; k < FLIGHTBED_MATRICES; k++) {
        int32_t found;
        memcpy(&found, bed->arena + item->outputs[info].offset_bytes + k * 4, 4);
        assert_int_equal(found, 0);
        const double *x =
            (const double *)(const void *)(bed->arena +
                                           item->outputs[METHOD_TRIDIAGONAL_INVERSE].offset_bytes);
        assert_true(x[(int64_t)k * FLIGHTBED_N * FLIGHTBED_N] > 0.38 &&
                    x[(int64_t)k * FLIGHTBED_N * FLIGHTBED_N] < 0.39);
    }
}

void flightbed_assert_stopped(const struct flightbed *bed, int index)
{
    const struct engine_batch *batch = bed->batches[index];
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    assert_int_equal(batch->status, ENGINE_STOPPED);
    assert_int_equal(batch->kernel[0], 0);
    assert_int_equal(bed->flights[index].state, CUDA_FLIGHT_IDLE);
}

bool flightbed_look(struct flightbed *bed, int index)
{
    return cuda_flight_look(&bed->flights[index], clock_now_ns());
}
