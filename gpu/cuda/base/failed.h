/* gpu/cuda/base/failed.h: a call of the runtime that the engine cannot do without has failed.
 *
 * Threads: any.
 */
#ifndef GPU_CUDA_BASE_FAILED_H
#define GPU_CUDA_BASE_FAILED_H

#include <cuda_runtime_api.h>

#include "gpu/engine.h"

/* Logs a failed call, `doing` as in "pin the arena", and returns how the process ends for it. */
enum engine_exit cuda__failed(cudaError_t status, const char *doing);

#endif
