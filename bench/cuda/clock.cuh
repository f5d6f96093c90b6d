/* bench/cuda/clock.cuh: random matrices on the device, and the time that calls take there. Host
 * code, one thread; an error of CUDA ends the program.
 */
#ifndef BENCH_CUDA_CLOCK_CUH
#define BENCH_CUDA_CLOCK_CUH

#include <algorithm>
#include <cstdint>

#include "bench/cuda/small.cuh"

#define CLOCK_CACHE_BYTES ((size_t)400 << 20) /* more than the second-level cache by far */
#define CLOCK_ROUNDS 3

/* Number i of a fixed sequence, between -1 and 1. */
template <typename T> static __global__ void clock_fill(T *a, size_t count)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t z = (i + 5) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        a[i] = (T)((double)(int64_t)(z ^ (z >> 31)) * 0x1p-63);
    }
}

/* Reads `count` numbers: the cache then holds them, and nothing that must still be written. `sink`
 * is for the compiler's eyes. */
template <typename T> static __global__ void clock_read(const T *a, size_t count, T *sink)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    T sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step)
        sum += a[i] * a[i];
    if (sum < 0)
        *sink = sum;
}

/* Seconds of one call(i) on the device, i counting all of them: the rounds in order, the shortest
 * first. prepare() before each round, and a round before the first, are not counted. */
template <typename P, typename F>
static std::vector<double> clock_rounds(P prepare, F call, int calls)
{
    cudaEvent_t start, end;
    std::vector<double> rounds;
    SMALL_TRY(cudaEventCreate(&start));
    SMALL_TRY(cudaEventCreate(&end));
    prepare();
    call(0);
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        float milliseconds;
        prepare();
        SMALL_TRY(cudaEventRecord(start));
        for (int i = 0; i < calls; i++)
            call(i);
        SMALL_TRY(cudaEventRecord(end));
        SMALL_TRY(cudaEventSynchronize(end));
        SMALL_TRY(cudaEventElapsedTime(&milliseconds, start, end));
        rounds.push_back(milliseconds / 1e3 / calls);
    }
    SMALL_TRY(cudaEventDestroy(start));
    SMALL_TRY(cudaEventDestroy(end));
    std::sort(rounds.begin(), rounds.end());
    return rounds;
}

/* The rounds of a copy on the device that reads and writes `bytes` together, taken from all over
 * buffers of `all` bytes each. */
static inline std::vector<double> clock_copies(void *to, const void *from, size_t all, size_t bytes,
                                               int calls)
{
    size_t part = std::min(bytes / 2, all), places = (all - part) / part + 1;
    std::vector<double> rounds =
        clock_rounds([] {},
                     [&](int i) {
                         size_t at = (size_t)i % places * part / 256 * 256;
                         SMALL_TRY(cudaMemcpyAsync((char *)to + at, (const char *)from + at, part,
                                                   cudaMemcpyDeviceToDevice));
                     },
                     calls);
    for (double &seconds : rounds)
        seconds *= (double)(bytes / 2) / (double)part;
    return rounds;
}

/* The median round's. */
template <typename F> static double clock_seconds(F call, int calls)
{
    return clock_rounds([] {}, call, calls)[CLOCK_ROUNDS / 2];
}

#endif
