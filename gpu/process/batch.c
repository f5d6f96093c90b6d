/* gpu/process/batch.c: see batch.h. */
#include "gpu/process/batch.h"

enum engine_status process_batch_check(const struct engine_batch *batch, int64_t n_max,
                                       const struct process_faults *faults)
{
    if (batch->precision >= PRECISION_COUNT || batch->n < 1 || batch->n > n_max ||
        batch->item_count < 1 || batch->item_count > ENGINE_BATCH_ITEMS)
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
