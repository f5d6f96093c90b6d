/* gpu/cuda/base/status.h: what a CUDA or cuBLAS status means for the engine: one table.
 *
 * A status is of its call, or of whatever the device ran before it. After a fatal one nothing
 * that was given to the device and is not known to be finished can be trusted, and every later call
 * fails: the process must end. Needs the toolkit's headers, none of its libraries. Threads: any;
 * constant data.
 */
#ifndef GPU_CUDA_BASE_STATUS_H
#define GPU_CUDA_BASE_STATUS_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gpu/engine.h"

enum cuda_verdict {
    CUDA_GOOD,
    CUDA_NOT_YET,       /* an answer, not an error: the work asked about still runs */
    CUDA_SMALLER,       /* the device's memory is short: ENGINE_OUT_OF_MEMORY */
    CUDA_BUG,           /* our call was wrong, and did nothing: ENGINE_UNSUPPORTED */
    CUDA_CONTEXT_LOST,  /* ENGINE_EXIT_FAULT */
    CUDA_DEVICE_OUT,    /* ENGINE_EXIT_DEVICE_OUT */
    CUDA_DEVICE_ABSENT, /* ENGINE_EXIT_DEVICE_ABSENT */
};

/* A status that the table does not know is CUDA_CONTEXT_LOST: a new process is always right. */
enum cuda_verdict cuda_verdict_of(cudaError_t status);
enum cuda_verdict cuda_verdict_of_cublas(cublasStatus_t status);
/* A status of the runtime with the same verdict. */
cudaError_t cuda_status_of_cublas(cublasStatus_t status);

/* Must the process end? */
bool cuda_verdict_is_fatal(enum cuda_verdict verdict);
/* How it ends when the verdict falls on a call it cannot do without. */
enum engine_exit cuda_verdict_exit(enum cuda_verdict verdict);
/* How a batch ends whose launch got the verdict; not of a fatal one. */
enum engine_status cuda_verdict_status(enum cuda_verdict verdict);

#endif
