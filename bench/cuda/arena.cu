/* bench/cuda/arena.cu: cuda_small --arena: inverses from pinned host memory and back over PCIe, as
 * the engine's kernels read and write an arena.
 *
 * 2 GB of random FP64 matrices, each an item of its own. In random order, once all in one launch,
 * once 1,024 items a launch on several streams, for the items are few that wait together; then in
 * the order of their addresses. Beside them copies in and out at the same time. A figure is the
 * better of two rounds after one that is not counted, by the host's clock.
 */
#include "bench/cuda/clock.cuh"

#include <chrono>
#include <numeric>
#include <random>

namespace
{

const size_t ARENA_BYTES = (size_t)2 << 30;
const int64_t FEW = 1024; /* items a launch */
const int STREAMS = 4;

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Seconds of a round. */
template <typename F> double best_of(F round)
{
    double best = 0;
    for (int i = 0; i < 3; i++) {
        double start = now();
        round();
        SMALL_TRY(cudaDeviceSynchronize());
        best = i < 2 ? now() - start : std::min(best, now() - start);
    }
    return best;
}

/* Pinned host memory; freed at the end of its scope. */
struct pinned {
    unsigned char *at = nullptr;

    explicit pinned(size_t bytes)
    {
        SMALL_TRY(cudaMallocHost(&at, bytes));
    }
    ~pinned()
    {
        cudaFreeHost(at);
    }
    pinned(const pinned &) = delete;
    pinned &operator=(const pinned &) = delete;
};

struct arena {
    pinned in{ARENA_BYTES}, out{ARENA_BYTES}, numbers{ARENA_BYTES / 16};
    device_array<unsigned char> device{2 * ARENA_BYTES};
    cudaStream_t streams[STREAMS];
};

/* Seconds to copy the arena in and another one out at the same time. */
double time_copies(struct arena &arena)
{
    return best_of([&] {
        SMALL_TRY(cudaMemcpyAsync(arena.device.at(0), arena.in.at, ARENA_BYTES,
                                  cudaMemcpyHostToDevice, arena.streams[0]));
        SMALL_TRY(cudaMemcpyAsync(arena.out.at, arena.device.at(ARENA_BYTES), ARENA_BYTES,
                                  cudaMemcpyDeviceToHost, arena.streams[1]));
    });
}

struct way {
    const char *name;
    bool shuffled, few; /* items a launch */
};

const struct way ways[] = {
    {"one launch, random order", true, false},
    {"1,024 a launch, random order", true, true},
    {"1,024 a launch, in order", false, true},
};

/* Items of one matrix each, `each` of them a launch. */
std::vector<cuda_item> items_of(const struct arena &arena, int n, int64_t count, int64_t each,
                                bool shuffled)
{
    size_t bytes = (size_t)n * n * sizeof(double);
    std::vector<int64_t> order(count);
    std::vector<cuda_item> items(count);
    int32_t *info = (int32_t *)(arena.numbers.at + count * sizeof(double));
    std::iota(order.begin(), order.end(), 0);
    if (shuffled)
        std::shuffle(order.begin(), order.end(), std::mt19937_64(n));
    for (int64_t i = 0; i < count; i++)
        items[i] = {arena.in.at + order[i] * bytes, arena.out.at + order[i] * bytes,
                    arena.numbers.at + order[i] * sizeof(double), info + order[i], i % each};
    return items;
}

double time_launches(const struct arena &arena, int n, int64_t count, const struct way &way)
{
    int64_t each = way.few ? FEW : count;
    device_array<cuda_item> items(count);
    items.put(items_of(arena, n, count, each, way.shuffled));
    return best_of([&] {
        for (int64_t first = 0; first < count; first += each) {
            int64_t some = std::min(each, count - first);
            struct cuda_batch batch = {items.at(first), some, some, nullptr};
            SMALL_TRY(cuda_inverse_small(PRECISION_FP64, n, &batch,
                                         arena.streams[first / each % STREAMS]));
        }
    });
}

void report(int n, const char *how, double million, double gb, double copy_gb, FILE *csv)
{
    printf("%5d %-28s %12.2f %10.1f %13.1f%%\n", n, how, million, gb, 100 * gb / copy_gb);
    fflush(stdout);
    if (csv)
        fprintf(csv, "%d,\"%s\",%.3f,%.1f,%.1f\n", n, how, million, gb, 100 * gb / copy_gb);
}

} // namespace

void small_arena(FILE *csv)
{
    struct arena arena;
    for (cudaStream_t &stream : arena.streams)
        SMALL_TRY(cudaStreamCreate(&stream));
    clock_fill<<<1024, 256>>>((double *)arena.device.at(0), ARENA_BYTES / sizeof(double));
    SMALL_TRY(cudaMemcpy(arena.in.at, arena.device.at(0), ARENA_BYTES, cudaMemcpyDeviceToHost));
    double copy_gb = (double)ARENA_BYTES / time_copies(arena) * 1e-9;
    printf("%5s %-28s %12s %10s %14s\n", "order", "how", "million/s", "GB/s", "of the copies");
    if (csv)
        fprintf(csv, "n,how,million_per_s,gb_per_s_each_way,percent_of_copies\n");
    report(0, "copies in and out", 0, copy_gb, copy_gb, csv);
    for (int n : {8, 16, 32}) {
        size_t bytes = (size_t)n * n * sizeof(double);
        int64_t count = (int64_t)(ARENA_BYTES / std::max<size_t>(bytes, 2048));
        for (const struct way &way : ways) {
            double seconds = time_launches(arena, n, count, way);
            report(n, way.name, (double)count / seconds * 1e-6,
                   (double)(count * bytes) / seconds * 1e-9, copy_gb, csv);
        }
    }
    for (cudaStream_t &stream : arena.streams)
        SMALL_TRY(cudaStreamDestroy(stream));
}
