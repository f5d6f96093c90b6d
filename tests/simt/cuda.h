/* tests/simt/cuda.h: in the place of the CUDA toolkit's header: the driver's names that the engine
 * uses, in the SIMT stand-in (simt.h). */
#ifndef TESTS_SIMT_CUDA_H
#define TESTS_SIMT_CUDA_H

#include <stdint.h>

typedef enum {
    CUDA_SUCCESS = 0,
} CUresult;

typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;

#define CU_STREAM_WRITE_VALUE_DEFAULT 0

#endif
