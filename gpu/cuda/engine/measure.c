/* gpu/cuda/engine/measure.c: see measure.h. */
#include "gpu/cuda/engine/measure.h"

#include <stddef.h>

bool cuda__measure_wanted(const struct engine_batch *batch)
{
    const struct method *method = method_at((int)batch->method);
    const int left = method_residual_find(method, METHOD_LEFT);
    const int right = method_residual_find(method, METHOD_RIGHT);
    bool wanted = false;
    for (uint32_t i = 0; left >= 0 && i < batch->item_count; i++)
        wanted = wanted || batch->items[i].outputs[left].region == ENGINE_REGION_ARENA ||
                 batch->items[i].outputs[right].region == ENGINE_REGION_ARENA;
    return wanted;
}

static void *locate(struct region_map d_arena, const struct engine_tensor *tensor)
{
    return tensor->region == ENGINE_REGION_ARENA ? region_at(d_arena, tensor->offset_bytes, 0)
                                                 : NULL;
}

void cuda__measure_lay_out(const struct engine_batch *batch, struct region_map d_arena,
                           struct cuda_residual_item *items)
{
    const struct method *method = method_at((int)batch->method);
    const int left = method_residual_find(method, METHOD_LEFT);
    const int right = method_residual_find(method, METHOD_RIGHT);
    int64_t matrices = 0;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        const struct engine_item *from = &batch->items[i];
        items[i] = (struct cuda_residual_item){
            .a = locate(d_arena, &from->inputs[0]),
            .x = locate(d_arena, &from->outputs[METHOD_OUTPUT_INVERSE]),
            .rcond = locate(d_arena, &from->outputs[METHOD_OUTPUT_RCOND]),
            .ratios = {locate(d_arena, &from->outputs[left]),
                       locate(d_arena, &from->outputs[right])},
            .first = matrices};
        matrices += from->count;
    }
}

cudaError_t cuda__measure(const struct cuda_call *call, cudaStream_t stream)
{
    const struct cuda_residual_batch batch = {.items = call->residuals,
                                              .item_count = call->item_count,
                                              .matrices = call->matrices,
                                              .n = call->n};
    return cuda_residuals(call->precision, &batch, stream);
}
