/* bench/gpu/arena.cu: inverses from pinned host memory and back over PCIe, as
 * the engine's kernels read and write an arena.
 *
 * 2 GB of random FP64 matrices, each an item of its own. In random order, once all in one launch,
 * once 1,024 items a launch on several streams, for the items are few that wait together; then in
 * the order of their addresses. Next to them copies in and out at the same time. A figure is the
 * better of two rounds after one that is not counted, by the host's clock.
 */
#include "bench/gpu/calls.h"

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
        TRY(cudaDeviceSynchronize());
        best = i < 2 ? now() - start : std::min(best, now() - start);
    }
    return best;
}

/* Pinned host memory; freed at the end of its scope. */
struct pinned {
    unsigned char *at = nullptr;

    explicit pinned(size_t bytes)
    {
        TRY(cudaMallocHost(&at, bytes));
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
        TRY(cudaMemcpyAsync(arena.device.at(0), arena.in.at, ARENA_BYTES, cudaMemcpyHostToDevice,
                            arena.streams[0]));
        TRY(cudaMemcpyAsync(arena.out.at, arena.device.at(ARENA_BYTES), ARENA_BYTES,
                            cudaMemcpyDeviceToHost, arena.streams[1]));
    });
}

struct way {
    const char *name;
    bool shuffled, few; /* items a launch */
};

const struct way ways[] = {
    {"one launch random", true, false},
    {"1024 a launch random", true, true},
    {"1024 a launch in order", false, true},
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
            TRY(cuda_inverse_small(PRECISION_FP64, n, &batch,
                                   arena.streams[first / each % STREAMS]));
        }
    });
}

void time_all(const settings &wish, recorder &to)
{
    struct arena arena;
    for (cudaStream_t &stream : arena.streams)
        TRY(cudaStreamCreate(&stream));
    draw((double *)arena.device.at(0), ARENA_BYTES / sizeof(double));
    TRY(cudaMemcpy(arena.in.at, arena.device.at(0), ARENA_BYTES, cudaMemcpyDeviceToHost));
    double copies = time_copies(arena);
    for (int64_t n : {8, 16, 32}) {
        if (!wish.wants(n))
            continue;
        size_t bytes = (size_t)(n * n) * sizeof(double);
        int64_t count = (int64_t)(ARENA_BYTES / std::max<size_t>(bytes, 2048));
        double share = (double)((size_t)count * bytes) / (double)ARENA_BYTES;
        for (const struct way &way : ways)
            to.add(shape_of(n, count), PRECISION_FP64, way.name,
                   time_launches(arena, (int)n, count, way) * 1e6, "us",
                   {{"copies in and out", copies * share * 1e6}});
    }
    for (cudaStream_t &stream : arena.streams)
        TRY(cudaStreamDestroy(stream));
}

} // namespace

const struct subject arena_subject = {
    "arena", "lu to n = 32 from pinned host memory and back", nullptr, time_all, nullptr, nullptr};
