/* tests/unit/queue/test_inputs.c: items share a batch only with those that have the same inputs,
 * and go to no engine that does not take their order. */
#include "queue/queue_private.h"
#include "tests/unit/queue/bed.h"

/* Even ones have input 0 alone, odd ones input 1 next to it. */
static void test_other_inputs_are_another_key(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    for (int i = 0; i < 8; i++) {
        struct queue_item *item = &bench.orders[i].item;
        item->method = method_find("ism");
        item->precision = PRECISION_FP64;
        item->n = 8;
        item->m = 1;
        item->batch = 1;
        item->on_done = on_done;
        for (int k = 0; k < METHOD_INPUTS_MAX; k++)
            item->inputs[k].region = k <= i % 2 ? ENGINE_REGION_ARENA : ENGINE_REGION_NONE;
        for (int k = 0; k < METHOD_OUTPUTS_MAX; k++)
            item->outputs[k].region = ENGINE_REGION_NONE;
        queue_submit(bench.queue, item);
    }
    queue_flush(bench.queue);
    for (int batches = 0; batches < 2; batches++) {
        struct engine_batch *batch = start(bench.shared, ENGINE_LANE_SHORT);
        assert_non_null(batch);
        assert_int_equal(batch->item_count, 4);
        for (uint32_t k = 1; k < batch->item_count; k++)
            assert_int_equal(batch->items[k].inputs[1].region, batch->items[0].inputs[1].region);
        finish(batch, ENGINE_OK);
        queue_reap(bench.queue);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(bench.orders[i].done, 1);
    bench_close(&bench);
}

/* The host takes those that are too large for a CUDA engine, and no others. */
static void test_larger_orders_are_the_hosts(void **state)
{
    static const struct queue_engine cuda_engine = {QUEUE_CUDA, false, 10, "cuda:0"};
    const struct method *method = method_find("auto");
    int index = method_index(method);
    struct engine_shared *shared = calloc(1, sizeof *shared);
    struct bench bench = bench_open(&limits);
    struct queue_item item = {.method = method, .precision = PRECISION_FP64, .n = 32};
    (void)state;
    assert_non_null(shared);
    shared->n_max[index][PRECISION_FP64] = item.n;
    struct queue_lane *lane = bring(bench.queue, shared, &cuda_engine);
    assert_int_equal(queue__class_route(bench.queue, &item), QUEUE_CUDA);
    item.n++;
    assert_int_equal(queue__class_route(bench.queue, &item), QUEUE_HOST);
    take_down(&lane, false);
    bench_close(&bench);
    free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_inputs_are_another_key),
        cmocka_unit_test(test_larger_orders_are_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
