/* tests/simt/cuda.h: in the place of the CUDA toolkit's header: the driver's names that the engine
 * uses, in the SIMT stand-in (simt.h). */
#ifndef TESTS_SIMT_CUDA_H
#define TESTS_SIMT_CUDA_H

#include <stdint.h>

#include "cuda_runtime_api.h"

typedef enum {
    CUDA_SUCCESS = 0,
} CUresult;

typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;

#define CU_STREAM_WRITE_VALUE_DEFAULT 0

/* Of the runtime, but the driver's function. */
typedef CUfunction cudaFunction_t;
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel);

#endif
