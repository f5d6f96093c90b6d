/* gpu/cuda/base/failed.c: see failed.h. */
#include "gpu/cuda/base/failed.h"

#include <stdint.h>

#include "base/log.h"
#include "gpu/cuda/base/status.h"

enum engine_exit cuda__failed(cudaError_t status, const char *doing)
{
    enum engine_exit how = cuda_verdict_exit(cuda_verdict_of(status));
    log_line(LOG_ERROR, "the device failed", "doing", LOG_STR, doing, "status", LOG_STR,
             cudaGetErrorName(status), "detail", LOG_STR, cudaGetErrorString(status), "code",
             LOG_I64, (int64_t)status, "exit", LOG_I64, (int64_t)how, NULL);
    return how;
}
