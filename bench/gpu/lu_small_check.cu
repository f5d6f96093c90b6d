/* bench/gpu/lu_small_check.cu: gpu --check lu_small: the answers of a kernel are right, and their
 * bits do not depend on where a matrix lies.
 *
 * A set of matrices is inverted in one item and judged on all processors. Then the set is laid out
 * in other ways, up to a million matrices where no fewer are asked for, and every answer must
 * have the bits it had. Nothing beyond a batch may be written. The device lays out and compares:
 * only counts come back.
 */
#include "bench/gpu/lu.h"
#include "gpu/cuda/base/launch.cuh"

#include <algorithm>
#include <random>

namespace
{

const int64_t WHOLE = 0;  /* as many matrices as the set has, or all in one item */
const int64_t GUARD = 64; /* numbers behind the outputs that must stay as they are */
const int COPY_THREADS = 128;
const int COPY_BLOCKS = 4096;

/* One way to lay the set out: repeated or cut to `count` matrices. */
struct layout {
    const char *name;
    int64_t count, item; /* matrices, and of an item at most */
    bool shuffled, reversed, misaligned;
};

const struct layout layouts[] = {
    {"one item", WHOLE, WHOLE, false, false, false},
    {"scattered, misaligned", WHOLE, 3, true, false, true},
    {"long items, misaligned", WHOLE, 700, true, false, true},
    {"single, in reverse", WHOLE, 1, true, true, false},
    {"1 matrix", 1, WHOLE, false, false, false},
    {"2 matrices", 2, WHOLE, false, false, false},
    {"31 matrices", 31, WHOLE, false, false, false},
    {"32 matrices", 32, WHOLE, false, false, false},
    {"33 matrices", 33, WHOLE, false, false, false},
    {"4097 matrices", 4097, WHOLE, false, false, false},
    {"65535 matrices", 65535, WHOLE, false, false, false},
    {"65536 matrices", 65536, WHOLE, false, false, false},
    {"65537 matrices", 65537, WHOLE, false, false, false},
    {"1000000 matrices", 1000000, WHOLE, false, false, false},
};

/* On the device: the answers of the set, or of a layout's places. */
template <typename T> struct placed {
    const T *result;
    const unsigned char *extra; /* aligned to 4 bytes */
    const int32_t *info;
};

template <typename T> struct bed {
    enum lu_kind kind;
    int n;
    int64_t count;
    size_t entries, extra_bytes; /* of a matrix */
    std::vector<T> a;
    int64_t overrun = 0;    /* bytes written beyond a batch */
    int64_t miscounted = 0; /* launches whose count of unverified inverses was wrong */
    int64_t recovered = -1; /* of the set in one item */
};

/* Which matrix of the set stands at each place of the layout. */
std::vector<int64_t> order_of(const struct layout &layout, int64_t set)
{
    std::vector<int64_t> order(layout.count == WHOLE ? set : layout.count);
    for (size_t k = 0; k < order.size(); k++)
        order[k] = (int64_t)k % set;
    if (layout.shuffled)
        std::shuffle(order.begin(), order.end(), std::mt19937_64(order.size()));
    return order;
}

template <typename T>
std::vector<cuda_item> items_of(const bed<T> &bed, const struct layout &layout, int64_t count, T *a,
                                T *result, unsigned char *extra, int32_t *info)
{
    std::vector<cuda_item> items;
    std::vector<int64_t> lengths;
    std::mt19937_64 random(count);
    for (int64_t k = 0; k < count;) {
        int64_t length = layout.item == WHOLE ? count : 1 + (int64_t)(random() % layout.item);
        length = std::min(length, count - k);
        items.push_back({a + k * bed.entries, result + k * bed.entries, extra + k * bed.extra_bytes,
                         info + k, 0});
        lengths.push_back(length);
        k += length;
    }
    if (layout.reversed) {
        std::reverse(items.begin(), items.end());
        std::reverse(lengths.begin(), lengths.end());
    }
    for (size_t k = 1; k < items.size(); k++)
        items[k].first = items[k - 1].first + lengths[k - 1];
    return items;
}

template <typename U> int64_t touched(const device_array<U> &array, size_t from)
{
    const std::vector<U> guard = array.get(from, GUARD);
    const unsigned char *bytes = (const unsigned char *)guard.data();
    return (int64_t)(GUARD * sizeof(U)) - std::count(bytes, bytes + GUARD * sizeof(U), 0xa5);
}

/* Recovers what the launch found unverified, as an engine does. */
template <typename T>
void recover(bed<T> &bed, const struct cuda_batch &batch, const std::vector<int32_t> &info,
             uint32_t counted)
{
    int64_t unverified = std::count_if(info.begin(), info.end(), [](int32_t i) { return i < -1; });
    bed.miscounted += unverified != counted;
    bed.recovered = bed.recovered < 0 ? unverified : bed.recovered;
    if (counted)
        TRY(cuda_recover_small(number<T>::precision, bed.n, &batch, nullptr));
}

/* Device memory of a layout. Outputs are followed by numbers that must not be touched. */
template <typename T> struct space {
    size_t count, skip, entries;
    device_array<T> a, result;
    device_array<unsigned char> extra;
    device_array<int32_t> info;

    space(const bed<T> &bed, size_t count, bool misaligned)
        : count(count), skip(misaligned ? 1 : 0), entries(count * bed.entries),
          a(entries + skip + GUARD), result(entries + skip + GUARD),
          extra(count * bed.extra_bytes + GUARD), info(count + GUARD)
    {
    }
    placed<T> answer() const
    {
        return {result.at(skip), extra.at(0), info.at(0)};
    }
};

/* Inverts or factorises what lies in the layout. */
template <typename T> void run(bed<T> &bed, const struct layout &layout, const space<T> &space)
{
    const int64_t count = (int64_t)space.count;
    std::vector<cuda_item> items =
        items_of(bed, layout, count, space.a.at(space.skip), space.result.at(space.skip),
                 space.extra.at(0), space.info.at(0));
    device_array<cuda_item> device_items(items.size());
    device_array<uint32_t> unverified(1);
    device_items.put(items);
    unverified.put({0});
    struct cuda_batch batch = {device_items.at(0), (int64_t)items.size(), count, unverified.at(0)};
    TRY(lu_small_launch(bed.kind, number<T>::precision, bed.n, &batch, nullptr));
    recover(bed, batch, space.info.get(0, space.count), unverified.get(0, 1)[0]);
    TRY(cudaDeviceSynchronize());
    bed.overrun += touched(space.result, space.skip + space.entries) +
                   touched(space.extra, space.count * bed.extra_bytes) +
                   touched(space.info, space.count);
}

} // namespace

/* Place k gets matrix order[k] of the set. */
template <typename T>
__global__ void check__lay_out(const T *set, const int64_t *order, int64_t count, int64_t entries,
                               T *places)
{
    for (int64_t k = blockIdx.x; k < count; k += gridDim.x)
        for (int64_t i = threadIdx.x; i < entries; i += blockDim.x)
            places[k * entries + i] = set[order[k] * entries + i];
}

/* Adds the words in which place k's answer differs from that of matrix order[k]. */
template <typename T>
__global__ void check__compare(placed<T> base, placed<T> now, const int64_t *order, int64_t count,
                               int64_t entries, int64_t extra_bytes, unsigned long long *differ)
{
    const int64_t words = entries * (int64_t)(sizeof(T) / 4), more = extra_bytes / 4;
    unsigned long long here = 0;
    for (int64_t k = blockIdx.x; k < count; k += gridDim.x) {
        const int64_t of = order[k];
        const uint32_t *x = (const uint32_t *)(now.result + k * entries);
        const uint32_t *y = (const uint32_t *)(base.result + of * entries);
        const uint32_t *u = (const uint32_t *)(now.extra + k * extra_bytes);
        const uint32_t *v = (const uint32_t *)(base.extra + of * extra_bytes);
        for (int64_t i = threadIdx.x; i < words; i += blockDim.x)
            here += x[i] != y[i];
        for (int64_t i = threadIdx.x; i < more; i += blockDim.x)
            here += u[i] != v[i];
        here += threadIdx.x == 0 && now.info[k] != base.info[of];
    }
    if (here)
        atomicAdd(differ, here);
}

namespace
{

/* Words of the answers with other bits than those of the set in one item. */
template <typename T>
int64_t differing(bed<T> &bed, const space<T> &set, const struct layout &layout)
{
    const std::vector<int64_t> order = order_of(layout, bed.count);
    const int64_t count = (int64_t)order.size();
    const int blocks = (int)std::min<int64_t>(count, COPY_BLOCKS);
    space<T> places(bed, order.size(), layout.misaligned);
    device_array<int64_t> device_order(order.size());
    device_array<unsigned long long> differ(1);
    device_order.put(order);
    differ.put({0});
    TRY(cuda__start(check__lay_out<T>, blocks, COPY_THREADS, 0, nullptr, set.a.at(0),
                    device_order.at(0), count, bed.entries, places.a.at(places.skip)));
    run(bed, layout, places);
    TRY(cuda__start(check__compare<T>, blocks, COPY_THREADS, 0, nullptr, set.answer(),
                    places.answer(), device_order.at(0), count, bed.entries, bed.extra_bytes,
                    differ.at(0)));
    return (int64_t)differ.get(0, 1)[0];
}

template <typename T> bool check(enum lu_kind kind, int n, int64_t max)
{
    const int64_t count = std::min(n <= 8 ? INT64_C(2003) : INT64_C(1003), max);
    bed<T> bed = {kind,
                  n,
                  count,
                  (size_t)n * n,
                  lu_extra_bytes(kind, number<T>::precision, n),
                  matrices_of<T>(n, count)};
    space<T> set(bed, (size_t)count, false);
    set.a.put(bed.a);
    run(bed, layouts[0], set);
    lu_answers<T> answers = {set.result.get(0, set.entries),
                             set.extra.get(0, (size_t)count * bed.extra_bytes),
                             set.info.get(0, (size_t)count)};
    struct verdict verdict = lu_judge(kind, n, bed.a, answers);
    int64_t differ = 0;
    for (const struct layout &layout : layouts) {
        int64_t here = layout.count <= max ? differing(bed, set, layout) : 0;
        differ += here;
        if (here > 0 && verdict.first.empty())
            verdict.first = std::string("other bits: ") + layout.name;
    }
    bool right = verdict.wrong == 0 && differ == 0 && bed.overrun == 0 && bed.miscounted == 0;
    printf("%-4s %-7s %s n=%-2d residual mean %.3f worst %.3f, wrong %lld, other bits %lld,"
           " overrun %lld, miscounted %lld, recovered %lld%s%s\n",
           right ? "ok" : "FAIL", lu_name(kind), precision_name(number<T>::precision), n,
           verdict.mean(), verdict.worst, (long long)verdict.wrong, (long long)differ,
           (long long)bed.overrun, (long long)bed.miscounted, (long long)bed.recovered,
           verdict.first.empty() ? "" : ": ", verdict.first.c_str());
    fflush(stdout);
    return right;
}

} // namespace

bool lu_small_check(enum lu_kind kind, enum precision precision, int n, int64_t max)
{
    return precision == PRECISION_FP32 ? check<float>(kind, n, max) : check<double>(kind, n, max);
}
