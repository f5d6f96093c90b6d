/* bench/gpu/random.cuh: the one sequence of random numbers of the bench, on the device and on the
 * host.
 */
#ifndef BENCH_GPU_RANDOM_CUH
#define BENCH_GPU_RANDOM_CUH

#include <cstdint>

/* Number k, between -1 and 1. */
static __device__ __host__ inline double random_number(uint64_t k)
{
    uint64_t z = (k + 5) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)(int64_t)(z ^ (z >> 31)) * 0x1p-63;
}

#endif
