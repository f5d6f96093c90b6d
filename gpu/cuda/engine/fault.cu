/* gpu/cuda/engine/fault.cu: see fault.h. */
#include "gpu/cuda/engine/fault.h"

#ifdef ENGINE_FAULTS

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/stage.cuh"

#define THREADS 128
#define BLOCKS_MAX 1024
/* Nothing is ever mapped there. */
#define BAD_ADDRESS 64

template <typename T>
static __global__ void fault_kernel(const cuda_batch batch, int64_t n, const cuda_fault fault)
{
    uint64_t until = cuda__now_ns() + (uint64_t)fault.slow_ns;
    int64_t index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (; index < batch.matrices; index += (int64_t)gridDim.x * THREADS) {
        const cuda_item &item = batch.items[cuda__find_item(batch, index)];
        double first = (double)((const T *)item.a)[(index - item.first) * n * n];
        if (first == fault.poison)
            *(volatile int *)BAD_ADDRESS = 1;
        while (first == fault.hang)
            __nanosleep(1000);
    }
    while (cuda__now_ns() < until)
        __nanosleep(100);
}

cudaError_t cuda__fault_launch(const struct cuda_fault *fault, enum precision precision, int64_t n,
                               const struct cuda_batch *batch, cudaStream_t stream)
{
    int64_t blocks = (batch->matrices + THREADS - 1) / THREADS;
    unsigned grid = (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    return cuda__start(precision == PRECISION_FP32 ? fault_kernel<float> : fault_kernel<double>,
                       grid, THREADS, 0, stream, *batch, n, *fault);
}

#endif
