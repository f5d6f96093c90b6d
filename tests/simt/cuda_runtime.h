/* tests/simt/cuda_runtime.h: in the place of the CUDA toolkit's header, in the SIMT stand-in
 * (simt.h); the device language is in device.cuh. */
#ifndef TESTS_SIMT_CUDA_RUNTIME_H
#define TESTS_SIMT_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#endif
