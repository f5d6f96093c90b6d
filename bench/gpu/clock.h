/* bench/gpu/clock.h: random matrices on the device, and the time that calls take there. C++, host
 * code, one thread; an error of CUDA ends the program.
 */
#ifndef BENCH_GPU_CLOCK_H
#define BENCH_GPU_CLOCK_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "bench/gpu/bench.h"

#define CLOCK_CACHE_BYTES ((size_t)400 << 20) /* more than the second-level cache by far */
#define CLOCK_ROUNDS 3

/* a = scale * (number i of a fixed sequence, between -1 and 1), and `diagonal` more on the diagonal
 * of each n x n; n = 0: there is none. */
template <typename T>
void draw(T *a, size_t count, double scale = 1, double diagonal = 0, int64_t n = 0);
/* Writes as many bytes as there are in the array, and computes nothing. */
template <typename T> void fill_streaming(T *a, size_t count);
/* Reads `count` numbers: the cache then holds them, and nothing that must still be written. */
template <typename T> void read_all(const T *a, size_t count);
template <typename T> void scale(T *a, size_t count, double factor);
/* n x n */
template <typename T> void make_identity(T *x, int64_t n, int64_t matrices = 1);

/* to = from, or its magnitudes. */
template <typename T> void widen(double *to, const T *from, size_t count, bool magnitudes = false);

/* ---- Time ---- */

/* Seconds of one call(i) on the device, i counting all of them: the rounds in order, the shortest
 * first. prepare() before each round, and a round before the first, are not counted. */
template <typename P, typename F> std::vector<double> clock_rounds(P prepare, F call, int calls)
{
    cudaEvent_t start, end;
    std::vector<double> rounds;
    TRY(cudaEventCreate(&start));
    TRY(cudaEventCreate(&end));
    prepare();
    call(0);
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        float milliseconds;
        prepare();
        TRY(cudaEventRecord(start));
        for (int i = 0; i < calls; i++)
            call(i);
        TRY(cudaEventRecord(end));
        TRY(cudaEventSynchronize(end));
        TRY(cudaEventElapsedTime(&milliseconds, start, end));
        rounds.push_back(milliseconds / 1e3 / calls);
    }
    TRY(cudaEventDestroy(start));
    TRY(cudaEventDestroy(end));
    std::sort(rounds.begin(), rounds.end());
    return rounds;
}

/* The median round's. */
template <typename F> double clock_seconds(F call, int calls)
{
    return clock_rounds([] {}, call, calls)[CLOCK_ROUNDS / 2];
}

template <typename P, typename F> double clock_prepared(P prepare, F call, int calls)
{
    return clock_rounds(prepare, call, calls)[CLOCK_ROUNDS / 2];
}

/* The rounds of a copy on the device that reads and writes `bytes` together, taken from all over
 * buffers of `all` bytes each. */
std::vector<double> clock_copies(void *to, const void *from, size_t all, size_t bytes, int calls);

static inline double copy_seconds(void *to, const void *from, size_t all, size_t bytes, int calls)
{
    return clock_copies(to, from, all, bytes, calls)[CLOCK_ROUNDS / 2];
}

/* Seconds of once() by the host's clock, the median of so many rounds after one that is not
 * counted; once() awaits what it starts, and so does prepare(), which is not counted. */
template <typename P, typename F> double host_seconds(P prepare, F once, int rounds)
{
    std::vector<double> times;
    for (int round = 0; round <= rounds; round++) {
        prepare();
        auto start = std::chrono::steady_clock::now();
        once();
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (round > 0)
            times.push_back(taken.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

#endif
