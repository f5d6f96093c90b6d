/* A batch's workspace: it gets what there is, waits while others have the memory, in its lane's
 * order, and is told when there will never be enough, or when it asks for what the engine does not
 * do. On the SIMT stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/cuda/flight.h"
#include "gpu/cuda/tri_call.h"
#include "gpu/methods/iterative.h"
#include "tests/simt/simt.h"

#define N 520 /* a part of the workspace for each matrix */
#define MATRICES 3
#define ITERATIVE_N 20
#define ARENA_BYTES ((size_t)64 << 20)
#define PART_BYTES ((size_t)cuda__tri_part_bytes(N, 0)) /* what one matrix needs */

struct bed {
    struct cuda_device device;
    struct cuda_pool *pool;
    struct cuda_flight_lane lane;
    struct cuda_flight flights[2];
    struct engine_batch *batches[2];
    unsigned char *arena;
};

/* Batch `index`: (-1, 3, -1), MATRICES times. */
static void fill(struct bed *bed, int index)
{
    struct engine_batch *batch = bed->batches[index];
    const struct method *method = method_find("tridiagonal");
    uint64_t at = (uint64_t)index * ARENA_BYTES / 2;
    memset(batch, 0, offsetof(struct engine_batch, items));
    atomic_store(&batch->state, ENGINE_BATCH_SUBMITTED);
    batch->method = (uint32_t)method_index(method);
    batch->precision = PRECISION_FP64;
    batch->item_count = 1;
    batch->n = N;
    batch->matrices = MATRICES;
    batch->items[0] = (struct engine_item){.count = MATRICES};
    for (int i = 0; method->inputs[i].name; i++) {
        int64_t count = MATRICES * (i == 1 ? N : N - 1);
        double *numbers = (double *)(void *)(bed->arena + at);
        for (int64_t k = 0; k < count; k++)
            numbers[k] = i == 1 ? 3 : -1;
        batch->items[0].inputs[i].offset_bytes = at;
        at += (uint64_t)count * sizeof(double);
    }
    for (int i = 0; method->outputs[i].name; i++) {
        batch->items[0].outputs[i].offset_bytes = at;
        at += (uint64_t)(MATRICES * method_tensor_bytes(&method->outputs[i], PRECISION_FP64, N, 0,
                                                        batch->options));
        at = (at + 7) / 8 * 8;
    }
    assert_true(at <= (uint64_t)(index + 1) * ARENA_BYTES / 2);
}

static void set_up(struct bed *bed, size_t bytes_max)
{
    *bed = (struct bed){0};
    bed->arena = calloc(1, ARENA_BYTES);
    assert_non_null(bed->arena);
    assert_int_equal(cuda_device_find(0, &bed->device), ENGINE_EXIT_OK);
    assert_int_equal(cuda_device_open(&bed->device), ENGINE_EXIT_OK);
    assert_int_equal(cuda_pool_create(bytes_max, &bed->pool), ENGINE_EXIT_OK);
    bed->lane =
        (struct cuda_flight_lane){.device = &bed->device, .d_arena = bed->arena, .pool = bed->pool};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cuda_flight_create(&bed->flights[i], &bed->lane, 0), ENGINE_EXIT_OK);
        bed->batches[i] = malloc(sizeof *bed->batches[i]);
        assert_non_null(bed->batches[i]);
        fill(bed, i);
    }
}

static void tear_down(struct bed *bed)
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

static void assert_done(const struct engine_batch *batch, const struct bed *bed)
{
    const struct engine_item *item = &batch->items[0];
    int info = method_output_find(method_find("tridiagonal"), "INFO");
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    assert_int_equal(batch->status, ENGINE_OK);
    assert_true(batch->finished_ns >= batch->started_ns && batch->started_ns > 0);
    for (int k = 0; k < MATRICES; k++) {
        int32_t found;
        memcpy(&found, bed->arena + item->outputs[info].offset_bytes + k * 4, 4);
        assert_int_equal(found, 0);
        const double *x =
            (const double *)(const void *)(bed->arena + item->outputs[0].offset_bytes);
        assert_true(x[(int64_t)k * N * N] > 0.38 && x[(int64_t)k * N * N] < 0.39);
    }
}

static bool look(struct bed *bed, int index)
{
    return cuda_flight_look(&bed->flights[index], clock_now_ns());
}

/* With memory for one matrix, for all, and for none. */
static void test_any_workspace_will_do(void **state)
{
    (void)state;
    const size_t budgets[] = {PART_BYTES, 2 * PART_BYTES, (size_t)64 << 20};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        struct bed bed;
        set_up(&bed, budgets[i]);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_true(look(&bed, 0));
        assert_done(bed.batches[0], &bed);
        assert_string_equal(bed.batches[0]->kernel, "cuda tridiagonal f64 n=520");
        tear_down(&bed);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, PART_BYTES - 1);
    assert_false(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_int_equal(atomic_load(&bed.batches[0]->state), ENGINE_BATCH_DONE);
    assert_int_equal(bed.batches[0]->status, ENGINE_OUT_OF_MEMORY);
    assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_IDLE);
    tear_down(&bed);
}

static void test_waits_in_turn(void **state)
{
    (void)state;
    struct bed bed;
    struct cuda_block taken = {0};
    set_up(&bed, 4 * PART_BYTES);
    assert_int_equal(cuda_pool_take(bed.pool, false, 4 * PART_BYTES, 4 * PART_BYTES, &taken),
                     cudaSuccess);
    for (int i = 0; i < 2; i++) {
        assert_true(cuda_flight_launch(&bed.flights[i], bed.batches[i]));
        assert_int_equal(bed.flights[i].state, CUDA_FLIGHT_WAITING);
        assert_int_equal(atomic_load(&bed.batches[i]->state), ENGINE_BATCH_SUBMITTED);
        assert_false(look(&bed, i));
    }
    cuda_pool_give(bed.pool, &taken);
    assert_false(look(&bed, 1)); /* the other one's turn */
    assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_WAITING);
    assert_false(look(&bed, 0));
    assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_RUNNING);
    assert_true(look(&bed, 0));
    assert_false(look(&bed, 1));
    assert_true(look(&bed, 1));
    for (int i = 0; i < 2; i++)
        assert_done(bed.batches[i], &bed);
    tear_down(&bed);
}

static void assert_stopped(const struct bed *bed, int index)
{
    const struct engine_batch *batch = bed->batches[index];
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    assert_int_equal(batch->status, ENGINE_STOPPED);
    assert_int_equal(batch->kernel[0], 0);
    assert_int_equal(bed->flights[index].state, CUDA_FLIGHT_IDLE);
}

/* A batch that nobody waits for is not launched, and waits for no memory but for its turn. */
static void test_unwanted_is_not_launched(void **state)
{
    (void)state;
    struct bed bed;
    struct cuda_block taken = {0};
    set_up(&bed, 4 * PART_BYTES);
    atomic_store(&bed.batches[0]->unwanted, 1);
    assert_false(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_stopped(&bed, 0);

    fill(&bed, 0);
    assert_int_equal(cuda_pool_take(bed.pool, false, 4 * PART_BYTES, 4 * PART_BYTES, &taken),
                     cudaSuccess);
    for (int i = 0; i < 2; i++)
        assert_true(cuda_flight_launch(&bed.flights[i], bed.batches[i]));
    atomic_store(&bed.batches[0]->unwanted, 1);
    assert_true(look(&bed, 0));
    assert_stopped(&bed, 0);
    assert_int_equal(bed.flights[0].launches, 0);
    cuda_pool_give(bed.pool, &taken);
    assert_false(look(&bed, 1));
    assert_true(look(&bed, 1));
    assert_done(bed.batches[1], &bed);
    tear_down(&bed);
}

/* Batch 0: one matrix of rank 1 for `iterative`, which takes one step after another. */
static void fill_iterative(struct bed *bed)
{
    struct engine_batch *batch = bed->batches[0];
    const struct method *method = method_find("iterative");
    uint64_t at = 0;
    fill(bed, 0);
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
        struct bed bed;
        set_up(&bed, ARENA_BYTES);
        fill_iterative(&bed);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        for (int launches = 2; launches < 6; launches++) {
            assert_false(look(&bed, 0));
            assert_int_equal(bed.flights[0].launches, launches);
        }
        atomic_store(&bed.batches[0]->unwanted, (uint32_t)unwanted);
        bool over = look(&bed, 0);
        assert_int_equal(over, unwanted);
        while (!over)
            over = look(&bed, 0);
        if (unwanted)
            assert_stopped(&bed, 0);
        else
            assert_int_equal(bed.batches[0]->status, ENGINE_OK);
        assert_true(unwanted == (bed.flights[0].launches == 5));
        tear_down(&bed);
    }
}

/* The figure rises with the steps and never falls. A method of one launch says nothing. */
static void test_progress_is_told(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, ARENA_BYTES);
    fill_iterative(&bed);
    const struct engine_batch *batch = bed.batches[0];
    for (int round = 0; round < 2; round++) {
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_int_equal(atomic_load(&batch->progress), 0);
        int rises = 0;
        uint64_t last = 0, progress, before = bed.flights[0].launches - 1;
        for (bool over = false; !over; last = progress) {
            over = look(&bed, 0);
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
    fill(&bed, 0);
    assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_true(look(&bed, 0));
    assert_done(batch, &bed);
    assert_int_equal(atomic_load(&batch->progress), 0);
    tear_down(&bed);
}

/* From V0 = (1 - 2^-6) I for I four steps of order 2 are foreseen, of two products each, behind the
 * one that measures: as the host has it (test_host_progress.c), but that the first two steps are of
 * one visit. */
static void test_foreseen_steps(void **state)
{
    (void)state;
    static const uint64_t told[] = {111, 555, 777};
    struct bed bed;
    set_up(&bed, ARENA_BYTES);
    fill_iterative(&bed);
    struct engine_batch *batch = bed.batches[0];
    struct engine_tensor *v0 = &batch->items[0].inputs[METHOD_ITERATIVE_V0];
    *v0 = (struct engine_tensor){.offset_bytes = ARENA_BYTES / 2};
    batch->options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
    for (int64_t k = 0; k < ITERATIVE_N * ITERATIVE_N; k++) {
        double identity = k % (ITERATIVE_N + 1) == 0 ? 1 : 0;
        ((double *)(void *)bed.arena)[k] = identity;
        ((double *)(void *)(bed.arena + v0->offset_bytes))[k] = identity * (1 - 0x1p-6);
    }
    assert_true(cuda_flight_launch(&bed.flights[0], batch));
    uint64_t last = 0;
    for (size_t rises = 0; !look(&bed, 0);) {
        uint64_t progress = atomic_load(&batch->progress);
        if (progress == last)
            continue;
        assert_true(rises < sizeof told / sizeof told[0]);
        assert_int_equal(progress, told[rises++]);
        last = progress;
    }
    assert_int_equal(batch->status, ENGINE_OK);
    assert_int_equal(last, told[sizeof told / sizeof told[0] - 1]);
    tear_down(&bed);
}

/* Another engine of the device has all of its memory, and gives it back when it has ended. */
static void test_waits_for_another_engine(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, 4 * PART_BYTES);
    cuda_pool_be_patient(bed.pool, CLOCK_S);
    simt_fill_memory(true);
    assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
    assert_false(look(&bed, 0));
    assert_int_equal(atomic_load(&bed.batches[0]->state), ENGINE_BATCH_SUBMITTED);
    simt_fill_memory(false);
    uint64_t start_ns = clock_now_ns();
    while (!look(&bed, 0))
        assert_true(clock_now_ns() < start_ns + CLOCK_S);
    assert_done(bed.batches[0], &bed);
    tear_down(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_workspace_will_do),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_waits_in_turn),
        cmocka_unit_test(test_unwanted_is_not_launched),
        cmocka_unit_test(test_unwanted_does_not_go_on),
        cmocka_unit_test(test_progress_is_told),
        cmocka_unit_test(test_foreseen_steps),
        cmocka_unit_test(test_waits_for_another_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
