/* test_inputs.c: items share a batch only with those that have the same inputs. */
#include "tests/unit/queue/bed.h"

/* Even ones have input 0 alone, odd ones input 1 beside it. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_inputs_are_another_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
