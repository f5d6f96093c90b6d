/* tests/unit/gpu/cuda/as_host.h: `tridiagonal` of the CUDA engine in the guise of a method of the
 * host engine, so that the host's cases try its kernels too, on the SIMT stand-in. One thread.
 */
#ifndef TESTS_UNIT_GPU_CUDA_AS_HOST_H
#define TESTS_UNIT_GPU_CUDA_AS_HOST_H

#include "gpu/host/base/host.h"

/* In place of host_method_at, of one method alone. Its scratch is for show. */
const struct host_method *cudatest_method_at(uint32_t index, enum precision precision);

#endif
