/* A batch's workspace: it gets what there is, waits while others have the memory, in its lane's
 * order, and is reported when there will never be enough, or when it asks for what the engine does
 * not do. On the SIMT stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/methods/iterative.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/flight_bed.h"
#include "tests/unit/gpu/host/mixed.h"

#define ITERATIVE_N 20

/* With memory for one matrix, for all, and for none. */
static void test_any_workspace_will_do(void **state)
{
    (void)state;
    const size_t budgets[] = {FLIGHTBED_PART_BYTES, 2 * FLIGHTBED_PART_BYTES, (size_t)64 << 20};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        struct flightbed bed;
        flightbed_open(&bed, budgets[i]);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_true(flightbed_look(&bed, 0));
        flightbed_assert_done(bed.batches[0], &bed);
        assert_string_equal(bed.batches[0]->kernel, "cuda tridiagonal f64 n=520");
        flightbed_close(&bed);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    struct flightbed bed;
    flightbed_open(&bed, FLIGHTBED_PART_BYTES - 1);
    assert_false(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_int_equal(atomic_load(&bed.batches[0]->state), ENGINE_BATCH_DONE);
    assert_int_equal(bed.batches[0]->status, ENGINE_OUT_OF_MEMORY);
    assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_IDLE);
    flightbed_close(&bed);
}

static void test_waits_in_turn(void **state)
{
    (void)state;
    struct flightbed bed;
    struct cuda_block taken = {0};
    flightbed_open(&bed, 4 * FLIGHTBED_PART_BYTES);
    assert_int_equal(
        cuda_pool_take(bed.pool, false, 4 * FLIGHTBED_PART_BYTES, 4 * FLIGHTBED_PART_BYTES, &taken),
        cudaSuccess);
    for (int i = 0; i < 2; i++) {
        assert_true(cuda_flight_launch(&bed.flights[i], bed.batches[i]));
        assert_int_equal(bed.flights[i].state, CUDA_FLIGHT_WAITING);
        assert_int_equal(atomic_load(&bed.batches[i]->state), ENGINE_BATCH_SUBMITTED);
        assert_false(flightbed_look(&bed, i));
    }
    cuda_pool_give(bed.pool, &taken);
    assert_false(flightbed_look(&bed, 1)); /* the other one's turn */
    assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_WAITING);
    assert_false(flightbed_look(&bed, 0));
    assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_RUNNING);
    assert_true(flightbed_look(&bed, 0));
    assert_false(flightbed_look(&bed, 1));
    assert_true(flightbed_look(&bed, 1));
    for (int i = 0; i < 2; i++)
        flightbed_assert_done(bed.batches[i], &bed);
    flightbed_close(&bed);
}

/* A batch that no one waits for is not launched, and waits for no memory but for its turn. */
static void test_unwanted_is_not_launched(void **state)
{
    (void)state;
    struct flightbed bed;
    struct cuda_block taken = {0};
    flightbed_open(&bed, 4 * FLIGHTBED_PART_BYTES);
    atomic_store(&bed.batches[0]->unwanted, 1);
    assert_false(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    flightbed_assert_stopped(&bed, 0);

    flightbed_fill(&bed, 0);
    assert_int_equal(
        cuda_pool_take(bed.pool, false, 4 * FLIGHTBED_PART_BYTES, 4 * FLIGHTBED_PART_BYTES, &taken),
        cudaSuccess);
    for (int i = 0; i < 2; i++)
        assert_true(cuda_flight_launch(&bed.flights[i], bed.batches[i]));
    atomic_store(&bed.batches[0]->unwanted, 1);
    assert_true(flightbed_look(&bed, 0));
    flightbed_assert_stopped(&bed, 0);
    assert_int_equal(bed.flights[0].launches, 0);
    cuda_pool_give(bed.pool, &taken);
    assert_false(flightbed_look(&bed, 1));
    assert_true(flightbed_look(&bed, 1));
    flightbed_assert_done(bed.batches[1], &bed);
    flightbed_close(&bed);
}

/* Batch 0: one matrix of rank 1 for `iterative`, which takes one step after another. */
static void fill_iterative(struct flightbed *bed)
{
    struct engine_batch *batch = bed->batches[0];
    const struct method *method = method_find("iterative");
    uint64_t at = 0;
    flightbed_fill(bed, 0);
    batch->method = (uint32_t)method_index(method);
    batch->n = ITERATIVE_N;
    batch->matrices = 1;
    method_default_options(method, batch->options);
    struct engine_item *item = &batch->items[0];
    item->count = 1;
    item->inputs[1].region = ENGINE_REGION_NONE;
    for (int64_t k = 0; k < ITERATIVE_N * ITERATIVE_N; k++)
        ((double *)(void *)bed->arena)[k] = 1;
    at += ITERATIVE_N * ITERATIVE_N * sizeof(double);
    for (int i = 0; method->outputs[i].name; i++) {
        item->outputs[i].offset_bytes = at;
        at += (uint64_t)method_tensor_bytes(&method->outputs[i], PRECISION_FP64, ITERATIVE_N, 0,
                                            batch->options);
        at = (at + 7) / 8 * 8;
    }
}

/* It goes on by itself as long as somebody waits. */
static void test_unwanted_does_not_go_on(void **state)
{
    (void)state;
    for (int unwanted = 0; unwanted < 2; unwanted++) {
        struct flightbed bed;
        flightbed_open(&bed, FLIGHTBED_ARENA_BYTES);
        fill_iterative(&bed);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        for (int launches = 2; launches < 6; launches++) {
            assert_false(flightbed_look(&bed, 0));
            assert_int_equal(bed.flights[0].launches, launches);
        }
        atomic_store(&bed.batches[0]->unwanted, (uint32_t)unwanted);
        bool over = flightbed_look(&bed, 0);
        assert_int_equal(over, unwanted);
        while (!over)
            over = flightbed_look(&bed, 0);
        if (unwanted)
            flightbed_assert_stopped(&bed, 0);
        else
            assert_int_equal(bed.batches[0]->status, ENGINE_OK);
        assert_true(unwanted == (bed.flights[0].launches == 5));
        flightbed_close(&bed);
    }
}

/* The figure rises with the steps and never falls. A method of one launch says nothing. */
static void test_progress_is_reported(void **state)
{
    (void)state;
    struct flightbed bed;
    flightbed_open(&bed, FLIGHTBED_ARENA_BYTES);
    fill_iterative(&bed);
    const struct engine_batch *batch = bed.batches[0];
    for (int round = 0; round < 2; round++) {
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_int_equal(atomic_load(&batch->progress), 0);
        int rises = 0;
        uint64_t last = 0, progress, before = bed.flights[0].launches - 1;
        for (bool over = false; !over; last = progress) {
            over = flightbed_look(&bed, 0);
            progress = atomic_load(&batch->progress);
            assert_true(progress >= last && progress < METHOD_PROGRESS_WHOLE);
            rises += progress > last;
            /* There is no inverse: as many steps as any A may take are foreseen. */
            assert_true(progress <= 30 * (bed.flights[0].launches - before));
        }
        assert_int_equal(batch->status, ENGINE_OK);
        assert_true(rises > 10 && last > METHOD_PROGRESS_WHOLE * 3 / 4);
        fill_iterative(&bed);
    }
    flightbed_fill(&bed, 0);
    assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_true(flightbed_look(&bed, 0));
    flightbed_assert_done(batch, &bed);
    assert_int_equal(atomic_load(&batch->progress), 0);
    flightbed_close(&bed);
}

/* From V0 = (1 - 2^-6) I for I four steps of order 2 are foreseen, of two products each, behind the
 * one that measures: as the host has it (host/test_progress.c), but that the first two steps are of
 * one visit. */
static void test_foreseen_steps(void **state)
{
    (void)state;
    static const uint64_t reported[] = {111, 555, 777};
    struct flightbed bed;
    flightbed_open(&bed, FLIGHTBED_ARENA_BYTES);
    fill_iterative(&bed);
    struct engine_batch *batch = bed.batches[0];
    struct engine_tensor *v0 = &batch->items[0].inputs[METHOD_ITERATIVE_V0];
    *v0 = (struct engine_tensor){.offset_bytes = FLIGHTBED_ARENA_BYTES / 2};
    batch->options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
    for (int64_t k = 0; k < ITERATIVE_N * ITERATIVE_N; k++) {
        double identity = k % (ITERATIVE_N + 1) == 0 ? 1 : 0;
        ((double *)(void *)bed.arena)[k] = identity;
        ((double *)(void *)(bed.arena + v0->offset_bytes))[k] = identity * (1 - 0x1p-6);
    }
    assert_true(cuda_flight_launch(&bed.flights[0], batch));
    uint64_t last = 0;
    for (size_t rises = 0; !flightbed_look(&bed, 0);) {
        uint64_t progress = atomic_load(&batch->progress);
        if (progress == last)
            continue;
        assert_true(rises < sizeof reported / sizeof reported[0]);
        assert_int_equal(progress, reported[rises++]);
        last = progress;
    }
    assert_int_equal(batch->status, ENGINE_OK);
    assert_int_equal(last, reported[sizeof reported / sizeof reported[0] - 1]);
    flightbed_close(&bed);
}

/* Another engine of the device has all of its memory, and gives it back when it has ended. */
static void test_waits_for_another_engine(void **state)
{
    (void)state;
    struct flightbed bed;
    flightbed_open(&bed, 4 * FLIGHTBED_PART_BYTES);
    cuda_pool_set_patience(bed.pool, 60 * CLOCK_S);
    simt_fill_memory(true);
    assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_false(flightbed_look(&bed, 0));
    assert_int_equal(atomic_load(&bed.batches[0]->state), ENGINE_BATCH_SUBMITTED);
    simt_fill_memory(false);
    uint64_t start_ns = clock_now_ns();
    while (!flightbed_look(&bed, 0))
        assert_true(clock_now_ns() < start_ns + 60 * CLOCK_S);
    flightbed_assert_done(bed.batches[0], &bed);
    flightbed_close(&bed);
}

/* Residuals of one item are measured whatever the others want, when the batch is recovered. They
 * are of sums in double: those of FP32 are off by their own rounding, and RCOND's. */
static void test_mixed_residuals(void **state)
{
    (void)state;
    static const struct gputest_mixed rows[] = {
        {"lu", PRECISION_FP32, 1},    {"gauss_jordan", PRECISION_FP64, 7},
        {"lu", PRECISION_FP32, 20},   {"lu", PRECISION_FP64, 33},
        {"auto", PRECISION_FP32, 40}, {"auto", PRECISION_FP64, 65},
    };
    struct flightbed bed;
    flightbed_open(&bed, FLIGHTBED_ARENA_BYTES);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gputest_bed front;
        gputest_bed_create(&front, FLIGHTBED_ARENA_BYTES);
        bed.lane.d_arena = (struct region_map){front.arena, front.arena_bytes};
        struct engine_batch *batch = gputest_mixed_next(&front, ENGINE_LANE_SHORT, &rows[i]);
        atomic_store(&batch->state, ENGINE_BATCH_SUBMITTED);
        assert_true(cuda_flight_launch(&bed.flights[0], batch));
        while (!flightbed_look(&bed, 0))
            ;
        assert_int_equal(batch->status, ENGINE_OK);
        const double slack = rows[i].precision == PRECISION_FP32 ? 1e-5 : 0.5;
        assert_true(gputest_mixed_check(&front, batch, slack) > 100 || rows[i].n < 20);
        gputest_bed_destroy(&front);
    }
    flightbed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_workspace_will_do),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_waits_in_turn),
        cmocka_unit_test(test_unwanted_is_not_launched),
        cmocka_unit_test(test_unwanted_does_not_go_on),
        cmocka_unit_test(test_progress_is_reported),
        cmocka_unit_test(test_foreseen_steps),
        cmocka_unit_test(test_waits_for_another_engine),
        cmocka_unit_test(test_mixed_residuals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
