/* gpu/cuda/engine/measure.h: RESIDUAL_LEFT and RESIDUAL_RIGHT of a batch, which the engine measures
 * when the method is done with it.
 *
 * Threads: the lane's own.
 */
#ifndef GPU_CUDA_ENGINE_MEASURE_H
#define GPU_CUDA_ENGINE_MEASURE_H

#include <stdbool.h>

#include "base/region.h"
#include "gpu/cuda/base/call.h"
#include "gpu/cuda/gemm/residual.h"
#include "gpu/engine.h"

/* Does some item want a residual? */
bool cuda__measure_wanted(const struct engine_batch *batch);

/* The table of items, one for each of the batch's. */
void cuda__measure_lay_out(const struct engine_batch *batch, struct region_map d_arena,
                           struct cuda_residual_item *items);

/* The launcher (base/method.h). */
cudaError_t cuda__measure(const struct cuda_call *call, cudaStream_t stream);

#endif
