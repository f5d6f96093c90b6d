/* gpu/cuda/engine/fault.h: faults on purpose on the device (gpu/process/fault.h). Test builds only.
 */
#ifndef GPU_CUDA_ENGINE_FAULT_H
#define GPU_CUDA_ENGINE_FAULT_H

#include "gpu/cuda/base/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_fault {
    double poison, hang; /* NaN: none */
    int64_t slow_ns;
};

#ifdef ENGINE_FAULTS
/* A kernel that looks at the first number of each matrix of the batch: `poison` makes it write to a
 * bad address, `hang` never return; and it takes slow_ns at least. */
cudaError_t cuda__fault_launch(const struct cuda_fault *fault, enum precision precision, int64_t n,
                               const struct cuda_batch *batch, cudaStream_t stream);
#endif

#ifdef __cplusplus
}
#endif

#endif
