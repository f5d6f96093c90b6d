/* gpu/process/batch.c: see batch.h. */
#include "gpu/process/batch.h"

static bool has(const struct engine_item *item, int output)
{
    return item->outputs[output].region != ENGINE_REGION_NONE;
}

/* Has every item, with an output, those that it is made of? */
static bool is_complete(const struct engine_batch *batch)
{
    const struct method *method = method_at((int)batch->method);
    for (int i = 0; method->outputs[i].name; i++) {
        const uint32_t needs = method->outputs[i].needs;
        for (uint32_t k = 0; needs != 0 && k < batch->item_count; k++) {
            for (int j = 0; has(&batch->items[k], i) && needs >> j != 0; j++) {
                if ((needs >> j & 1) != 0 && !has(&batch->items[k], j))
                    return false;
            }
        }
    }
    return true;
}

enum engine_status process_batch_check(const struct engine_batch *batch, int64_t n_max,
                                       const struct process_faults *faults)
{
    if (batch->precision >= PRECISION_COUNT || batch->n < 1 || batch->n > n_max ||
        batch->item_count < 1 || batch->item_count > ENGINE_BATCH_ITEMS || !is_complete(batch))
        return ENGINE_UNSUPPORTED;
#ifdef ENGINE_FAULTS
    if (process_fault_oom(faults, batch))
        return ENGINE_OUT_OF_MEMORY;
#else
    (void)faults;
#endif
    return ENGINE_OK;
}

bool process_batch_unwanted(const struct engine_batch *batch)
{
    return atomic_load_explicit(&batch->unwanted, memory_order_relaxed) != 0;
}

void process_batch_advance(struct engine_batch *batch, uint64_t parts)
{
    atomic_fetch_add_explicit(&batch->progress, parts, memory_order_relaxed);
}
