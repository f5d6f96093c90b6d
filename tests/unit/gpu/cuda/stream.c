/* tests/unit/gpu/cuda/stream.c: see stream.h. */
#include "tests/unit/gpu/cuda/stream.h"

#include <stdlib.h>

cudaStream_t cudatest_stream(void)
{
    static cudaStream_t stream;
    if (!stream && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        abort();
    return stream;
}

cudaError_t cudatest_await(cudaError_t status)
{
    cudaError_t end = cudaStreamSynchronize(cudatest_stream());
    return status != cudaSuccess ? status : end;
}
