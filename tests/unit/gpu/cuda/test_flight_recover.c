/* Recovery, and the memory that it takes: what the batch has where that is enough for one matrix,
 * and other memory where it is not, which is waited for, as the front is reported. On the SIMT
 * stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/cuda/ism/ism.h"
#include "gpu/methods/ism.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/flight_bed.h"

#define MIB ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* I + X Y^T, which is singular: it is found out as it is recovered. */
struct update {
    int64_t n, m, matrices, variant;
    uint32_t given; /* next to X and Y */
};

/* With a workspace less than what recovery takes. */
static const struct update thin = {70, 1, 1, METHOD_ISM_AUTO, 0};
/* Without one. */
static const struct update light = {20, 1, 1, METHOD_ISM_AUTO, METHOD_INPUT(METHOD_ISM_A0_INVERSE)};
/* With a workspace that one matrix or more are recovered in. */
static const struct update heavy = {120, 120, 8, METHOD_ISM_BLOCK, 0};

static void fill_update(struct flightbed *bed, int index, const struct update *update)
{
    struct engine_batch *batch = bed->batches[index];
    const struct method *method = method_find("ism");
    uint64_t at = (uint64_t)index * FLIGHTBED_ARENA_BYTES / 2;
    flightbed_fill(bed, index);
    batch->method = (uint32_t)method_index(method);
    batch->n = update->n;
    batch->m = update->m;
    batch->matrices = update->matrices;
    method_default_options(method, batch->options);
    batch->options[METHOD_ISM_VARIANT] = update->variant;
    struct engine_item *item = &batch->items[0];
    item->count = update->matrices;
    for (int i = 0; method->inputs[i].name; i++) {
        const bool given = ((METHOD_ISM_XY | update->given) >> i & 1) != 0;
        const bool is_thin = i == METHOD_ISM_X || i == METHOD_ISM_Y;
        const int64_t each = update->n * (is_thin ? update->m : update->n);
        double *numbers = (double *)(void *)(bed->arena + at);
        item->inputs[i] = (struct engine_tensor){
            .region = given ? ENGINE_REGION_ARENA : ENGINE_REGION_NONE, .offset_bytes = at};
        for (int64_t k = 0; given && k < update->matrices * each; k++)
            numbers[k] = is_thin ? (k % each == 0) * (i == METHOD_ISM_Y ? -1 : 1)
                                 : k % each % (update->n + 1) == 0;
        at += given ? (uint64_t)(update->matrices * each) * sizeof(double) : 0;
    }
    for (int i = 0; method->outputs[i].name; i++) {
        const bool is_factor = i == METHOD_ISM_U || i == METHOD_ISM_R || i == METHOD_ISM_V;
        const bool wanted = !is_factor && !method->outputs[i].optional;
        item->outputs[i] = (struct engine_tensor){
            .region = wanted ? ENGINE_REGION_ARENA : ENGINE_REGION_NONE, .offset_bytes = at};
        at += (uint64_t)(update->matrices * method_tensor_bytes(&method->outputs[i], PRECISION_FP64,
                                                                update->n, update->m,
                                                                batch->options));
        at = (at + 7) / 8 * 8;
    }
    assert_true(at <= (uint64_t)(index + 1) * FLIGHTBED_ARENA_BYTES / 2);
}

static void assert_recovered(const struct flightbed *bed, int index)
{
    const struct engine_batch *batch = bed->batches[index];
    const struct engine_tensor *info = &batch->items[0].outputs[METHOD_ISM_INFO];
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    assert_int_equal(batch->status, ENGINE_OK);
    assert_int_equal(atomic_load(&batch->waits), 0);
    for (int64_t k = 0; k < batch->matrices; k++) {
        int32_t found;
        memcpy(&found, bed->arena + info->offset_bytes + (size_t)k * sizeof found, sizeof found);
        assert_in_range(found, 1, batch->n);
    }
}

static struct cuda_call call_of(const struct update *update, const int64_t *options)
{
    return (struct cuda_call){.precision = PRECISION_FP64,
                              .n = update->n,
                              .m = update->m,
                              .options = options,
                              .inputs = METHOD_ISM_XY | update->given,
                              .matrices = update->matrices};
}

static size_t work_bytes(const struct update *update)
{
    const int64_t options[METHOD_OPTIONS_MAX] = {update->variant};
    const struct cuda_call call = call_of(update, options);
    return cuda_ism_workspace(&call, 1);
}

static size_t recovery_bytes(const struct update *update)
{
    const int64_t options[METHOD_OPTIONS_MAX] = {update->variant};
    const struct cuda_call call = call_of(update, options);
    return cuda_ism_recover_workspace(&call, 1);
}

static struct cuda_block take(struct flightbed *bed, bool is_long, size_t bytes)
{
    struct cuda_block block = {0};
    assert_int_equal(cuda_pool_take(bed->pool, is_long, bytes, bytes, &block), cudaSuccess);
    return block;
}

/* The other lane has no one wait for memory. */
static void assert_open(struct flightbed *bed)
{
    struct cuda_block block = take(bed, true, 1);
    cuda_pool_give(bed->pool, &block);
}

static void assert_drained(struct flightbed *bed)
{
    struct cuda_block block = {0};
    assert_int_equal(cuda_pool_take(bed->pool, true, 1, 1, &block), cudaErrorNotReady);
}

/* Flight `index` begins its update and lacks memory to recover in. */
static void launch_and_lack(struct flightbed *bed, int index)
{
    assert_true(cuda_flight_launch(&bed->flights[index], bed->batches[index]));
    assert_int_equal(bed->flights[index].state, CUDA_FLIGHT_RUNNING);
    assert_int_equal(atomic_load(&bed->batches[index]->waits), 0);
    assert_false(flightbed_look(bed, index));
    assert_int_equal(bed->flights[index].state, CUDA_FLIGHT_LACKING);
    assert_null(bed->flights[index].block.d_data);
    assert_int_equal(atomic_load(&bed->batches[index]->state), ENGINE_BATCH_RUNNING);
    assert_int_equal(atomic_load(&bed->batches[index]->waits), 1);
}

static void let_end(struct flightbed *bed, int index)
{
    const uint64_t start_ns = clock_now_ns();
    while (!flightbed_look(bed, index))
        assert_true(clock_now_ns() < start_ns + 60 * CLOCK_S);
}

/* It gives back what it has before it asks for more, and comes before those that have not begun.
 * Waiting is no work. */
static void test_waits_to_recover(void **state)
{
    (void)state;
    const struct update *updates[] = {&thin, &light};
    for (size_t i = 0; i < COUNT(updates); i++) {
        struct flightbed bed;
        const size_t other_bytes = FLIGHTBED_PART_BYTES + CUDA_WORKSPACE_ALIGN;
        struct engine_batch *batch;
        flightbed_open(&bed, recovery_bytes(updates[i]) + FLIGHTBED_PART_BYTES);
        batch = bed.batches[0];
        fill_update(&bed, 0, updates[i]);
        struct cuda_block other = take(&bed, true, other_bytes);
        launch_and_lack(&bed, 0);
        const uint64_t started_ns = atomic_load(&batch->started_ns), lacking_ns = clock_now_ns();
        assert_true(cuda_flight_launch(&bed.flights[1], bed.batches[1]));
        assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_WAITING); /* there would be enough */
        while (clock_now_ns() < lacking_ns + 2 * CLOCK_MS)
            assert_false(flightbed_look(&bed, 0));
        cuda_pool_give(bed.pool, &other);
        assert_false(flightbed_look(&bed, 1));
        assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_WAITING);
        assert_false(flightbed_look(&bed, 0));
        assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_RECOVERY);
        assert_int_equal(atomic_load(&batch->waits), 0);
        assert_true(atomic_load(&batch->started_ns) >= started_ns + 2 * CLOCK_MS);
        assert_true(atomic_load(&batch->started_ns) <= clock_now_ns());
        let_end(&bed, 0);
        assert_recovered(&bed, 0);
        assert_int_equal(bed.flights[0].launches, 2);
        let_end(&bed, 1);
        flightbed_assert_done(bed.batches[1], &bed);
        flightbed_close(&bed);
    }
}

/* Two that lack: the second one does not undo what the pool does for the first. */
static void test_lacks_in_turn(void **state)
{
    (void)state;
    struct flightbed bed;
    flightbed_open(&bed, recovery_bytes(&thin) + FLIGHTBED_PART_BYTES);
    fill_update(&bed, 0, &thin);
    fill_update(&bed, 1, &light);
    struct cuda_block other = take(&bed, false, FLIGHTBED_PART_BYTES);
    launch_and_lack(&bed, 0);
    assert_drained(&bed); /* there is enough, but in pieces */
    launch_and_lack(&bed, 1);
    assert_drained(&bed);
    cuda_pool_give(bed.pool, &other);
    assert_false(flightbed_look(&bed, 1));
    assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_LACKING);
    assert_drained(&bed);
    assert_false(flightbed_look(&bed, 0));
    assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_RECOVERY);
    for (int i = 0; i < 2; i++) {
        let_end(&bed, i);
        assert_recovered(&bed, i);
    }
    assert_open(&bed);
    flightbed_close(&bed);
}

/* No one waits any more, or there is no memory any more: the others go on. */
static void test_gives_up_recovery(void **state)
{
    (void)state;
    for (int unwanted = 0; unwanted < 2; unwanted++) {
        struct flightbed bed;
        flightbed_open(&bed, recovery_bytes(&thin) + FLIGHTBED_PART_BYTES);
        fill_update(&bed, 0, &thin);
        fill_update(&bed, 1, &light);
        struct cuda_block other = take(&bed, false, FLIGHTBED_PART_BYTES);
        launch_and_lack(&bed, 0);
        launch_and_lack(&bed, 1);
        assert_drained(&bed);
        atomic_store(&bed.batches[0]->unwanted, (uint32_t)unwanted);
        if (!unwanted)
            cuda_pool_give(bed.pool, &other);
        simt_fill_memory(!unwanted);
        assert_true(flightbed_look(&bed, 0));
        simt_fill_memory(false);
        if (unwanted)
            flightbed_assert_stopped(&bed, 0);
        else
            assert_int_equal(bed.batches[0]->status, ENGINE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&bed.batches[0]->waits), 0);
        assert_true(bed.batches[0]->finished_ns >= atomic_load(&bed.batches[0]->started_ns));
        assert_int_equal(bed.flights[0].launches, 1);
        assert_open(&bed);
        let_end(&bed, 1);
        assert_recovered(&bed, 1);
        cuda_pool_give(bed.pool, &other);
        flightbed_fill(&bed, 0);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_true(flightbed_look(&bed, 0));
        flightbed_assert_done(bed.batches[0], &bed);
        flightbed_close(&bed);
    }
}

/* The update itself would fit, or takes nothing. */
static void test_too_large_to_recover(void **state)
{
    (void)state;
    const struct update *updates[] = {&thin, &light};
    for (size_t i = 0; i < COUNT(updates); i++) {
        struct flightbed bed;
        assert_true(work_bytes(updates[i]) < recovery_bytes(updates[i]));
        flightbed_open(&bed, recovery_bytes(updates[i]) - 1);
        fill_update(&bed, 0, updates[i]);
        assert_false(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_int_equal(bed.batches[0]->status, ENGINE_OUT_OF_MEMORY);
        assert_int_equal(bed.flights[0].launches, 0);
        flightbed_close(&bed);
    }
}

/* What takes no memory before it begins passes those that wait for some, but does not recover
 * before those that lack some. */
static void test_what_takes_none_passes(void **state)
{
    (void)state;
    for (int lacking = 0; lacking < 2; lacking++) {
        struct flightbed bed;
        flightbed_open(&bed, recovery_bytes(&thin) + FLIGHTBED_PART_BYTES);
        struct cuda_block other = take(&bed, false, FLIGHTBED_PART_BYTES + CUDA_WORKSPACE_ALIGN);
        struct cuda_block rest = {0};
        if (lacking) {
            fill_update(&bed, 0, &thin);
            launch_and_lack(&bed, 0);
        } else {
            rest = take(&bed, false, recovery_bytes(&thin) - CUDA_WORKSPACE_ALIGN);
            assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
            assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_WAITING);
        }
        fill_update(&bed, 1, &light);
        assert_true(cuda_flight_launch(&bed.flights[1], bed.batches[1]));
        assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_RUNNING);
        assert_int_equal(bed.flights[1].launches, 1);
        assert_false(flightbed_look(&bed, 1));
        assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_LACKING);
        cuda_pool_give(bed.pool, &other);
        cuda_pool_give(bed.pool, &rest);
        let_end(&bed, lacking ? 0 : 1);
        let_end(&bed, lacking ? 1 : 0);
        assert_recovered(&bed, 1);
        flightbed_close(&bed);
    }
}

/* It recovers in what it has, a part at a time: or in more, where that is to be had at once and
 * no one waits for it. */
static void test_recovers_in_what_it_has(void **state)
{
    (void)state;
    enum {
        NONE_LEFT,
        OTHERS_WAIT,
        MORE_THERE,
        CASES
    };
    for (int kind = 0; kind < CASES; kind++) {
        struct flightbed bed;
        flightbed_open(&bed, 16 * MIB);
        fill_update(&bed, 0, &heavy);
        assert_in_range(work_bytes(&heavy), recovery_bytes(&heavy), 2 * MIB);
        struct cuda_block other = take(&bed, false, 4 * MIB), rest = take(&bed, false, 8 * MIB);
        struct cuda_block last = take(&bed, false, 2 * MIB);
        assert_true(cuda_flight_launch(&bed.flights[0], bed.batches[0]));
        assert_int_equal(bed.flights[0].block.bytes, 2 * MIB);
        assert_true(cuda_flight_launch(&bed.flights[1], bed.batches[1]));
        assert_int_equal(bed.flights[1].state, CUDA_FLIGHT_WAITING);
        if (kind != OTHERS_WAIT) {
            atomic_store(&bed.batches[1]->unwanted, 1);
            assert_true(flightbed_look(&bed, 1));
        }
        if (kind != NONE_LEFT)
            cuda_pool_give(bed.pool, &other);
        assert_false(flightbed_look(&bed, 0));
        assert_int_equal(bed.flights[0].state, CUDA_FLIGHT_RECOVERY);
        assert_int_equal(atomic_load(&bed.batches[0]->waits), 0);
        assert_int_equal(bed.flights[0].block.bytes > 2 * MIB, kind == MORE_THERE);
        let_end(&bed, 0);
        assert_recovered(&bed, 0);
        assert_int_equal(bed.flights[0].launches, 2);
        assert_open(&bed);
        if (kind == OTHERS_WAIT)
            let_end(&bed, 1);
        cuda_pool_give(bed.pool, &other);
        cuda_pool_give(bed.pool, &rest);
        cuda_pool_give(bed.pool, &last);
        flightbed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_to_recover),
        cmocka_unit_test(test_lacks_in_turn),
        cmocka_unit_test(test_gives_up_recovery),
        cmocka_unit_test(test_too_large_to_recover),
        cmocka_unit_test(test_what_takes_none_passes),
        cmocka_unit_test(test_recovers_in_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
