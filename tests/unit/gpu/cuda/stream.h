/* tests/unit/gpu/cuda/stream.h: the stream that a test gives its calls, on the SIMT stand-in: not
 * the default one, which does everything at once whatever simt_set_streams() says. One thread.
 */
#ifndef TESTS_UNIT_GPU_CUDA_STREAM_H
#define TESTS_UNIT_GPU_CUDA_STREAM_H

#include <cuda_runtime_api.h>

/* The same for all calls. */
cudaStream_t cudatest_stream(void);

/* What became of a call that returned `status`, when the stream has done what it put there. */
cudaError_t cudatest_await(cudaError_t status);

#endif
