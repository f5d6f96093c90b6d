/* bench/gpu/lu_small.cu: `lu` and `lu_factor` to n = 32.
 *
 * Check: lu_small_check.cu. Time: 1,000,000 random matrices, in one launch, next to a copy of as
 * many bytes as the kernel must read and write, and cuBLAS. Needs up to 26 GB.
 *
 * matinvBatched and getriBatched read one set and write another one, as our kernels do.
 * getrfBatched works in place: each call of a round takes another buffer, all of them copied from
 * the matrices before the round. Together they exceed the cache by far, so that it too finds none
 * of its data there; nor must it write out what the copy has left.
 */
#include "bench/gpu/calls.h"

#include <cublas_v2.h>

namespace
{

const int64_t MATRICES = 1000000;
const size_t ROUND_BYTES = (size_t)8 << 30; /* moved in a round, about */

/* Several sets of matrices where they are few bytes, so that the second-level cache holds none of
 * what is read or written. */
template <typename T> struct bed {
    int n;
    size_t entries; /* of a set */
    int sets;
    device_array<T> in, out;
    device_array<int32_t> extra, info;
    device_array<cuda_item> items;

    explicit bed(int order)
        : n(order), entries((size_t)order * order * MATRICES),
          sets((int)(CLOCK_CACHE_BYTES / (entries * sizeof(T)) + 1)), in(entries * sets),
          out(entries * sets), extra(extras() * sets), info(MATRICES * sets), items(sets)
    {
        std::vector<cuda_item> all;
        for (int s = 0; s < sets; s++)
            all.push_back({in.at(s * entries), out.at(s * entries), extra.at(s * extras()),
                           info.at(s * MATRICES), 0});
        items.put(all);
        draw(in.at(0), entries * sets);
    }

    /* The pivots of a set, or its RCOND, in units of int32. */
    int64_t extras() const
    {
        return MATRICES * std::max(n, 2);
    }
};

/* ---- cuBLAS ---- */

/* Seconds for a set. */
struct peers {
    double inverse = 0;      /* matinvBatched */
    double factor = 0;       /* getrfBatched */
    double factor_solve = 0; /* getrfBatched, then getriBatched */
};

const int CALLS_MAX = 40; /* in a round */

template <typename T> __global__ void point(T **pointers, T *base, int64_t entries, int64_t count)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += step)
        pointers[i] = base + i * entries;
}

/* cuBLAS's functions by precision. */
template <typename T> struct library;

template <> struct library<float> {
    static constexpr auto invert = cublasSmatinvBatched;
    static constexpr auto factor = cublasSgetrfBatched;
    static constexpr auto solve = cublasSgetriBatched;
};

template <> struct library<double> {
    static constexpr auto invert = cublasDmatinvBatched;
    static constexpr auto factor = cublasDgetrfBatched;
    static constexpr auto solve = cublasDgetriBatched;
};

template <typename T> struct peers peers_of(bed<T> &bed)
{
    const int n = bed.n, count = (int)MATRICES, calls = std::min(CALLS_MAX, bed.sets);
    const size_t bytes = bed.entries * sizeof(T);
    const int64_t all = MATRICES * bed.sets;
    cublasHandle_t handle;
    struct peers peers;
    device_array<T *> in(all), out(all), third(MATRICES);
    device_array<T> inverse(bed.entries);
    auto refill = [&] {
        TRY(cudaMemcpyAsync(bed.out.at(0), bed.in.at(0), bytes * calls, cudaMemcpyDeviceToDevice));
        read_all(bed.in.at(0), CLOCK_CACHE_BYTES / sizeof(T));
    };
    auto set = [&](int i) { return (size_t)(i % bed.sets) * MATRICES; };
    auto pivots = [&](int i) { return bed.extra.at((i % bed.sets) * bed.extras()); };
    auto info = [&](int i) { return bed.info.at(set(i)); };
    TRY(cublasCreate(&handle));
    point<<<256, 256>>>(in.at(0), bed.in.at(0), n * n, all);
    point<<<256, 256>>>(out.at(0), bed.out.at(0), n * n, all);
    point<<<256, 256>>>(third.at(0), inverse.at(0), n * n, MATRICES);
    peers.inverse = clock_seconds(
        [&](int i) {
            TRY(library<T>::invert(handle, n, in.at(set(i)), n, out.at(set(i)), n, info(i), count));
        },
        calls);
    peers.factor = clock_prepared(
        refill,
        [&](int i) {
            TRY(library<T>::factor(handle, n, out.at(set(i)), n, pivots(i), info(i), count));
        },
        calls);
    peers.factor_solve =
        peers.factor + clock_seconds(
                           [&](int) {
                               TRY(library<T>::solve(handle, n, out.at(0), n, pivots(0),
                                                     third.at(0), n, info(0), count));
                           },
                           1);
    TRY(cublasDestroy(handle));
    return peers;
}

/* ---- Ours ---- */

/* What the kernel must read and write, for a set. */
template <typename T> size_t bytes_of(const bed<T> &bed, enum lu_kind kind)
{
    size_t extra = lu_extra_bytes(kind, number<T>::precision, bed.n);
    return 2 * bed.entries * sizeof(T) + MATRICES * (extra + 4);
}

template <typename T> double time_kernel(bed<T> &bed, enum lu_kind kind, int calls)
{
    return clock_seconds(
        [&](int i) {
            struct cuda_batch batch = {bed.items.at(i % bed.sets), 1, MATRICES, nullptr};
            TRY(lu_small_launch(kind, number<T>::precision, bed.n, &batch, nullptr));
        },
        calls);
}

template <typename T> void time_order(int n, recorder &to)
{
    bed<T> bed(n);
    double ours[LU_KINDS], copy[LU_KINDS];
    for (int k = 0; k < LU_KINDS; k++) {
        size_t bytes = bytes_of(bed, (enum lu_kind)k);
        int calls = (int)std::min<size_t>(40, std::max<size_t>(2, ROUND_BYTES / bytes));
        copy[k] = copy_seconds(bed.out.at(0), bed.in.at(0), bed.entries * bed.sets * sizeof(T),
                               bytes, calls);
        ours[k] = time_kernel(bed, (enum lu_kind)k, calls);
    }
    struct peers peers = peers_of(bed);
    const std::string shape = shape_of(n, MATRICES);
    to.add(shape, number<T>::precision, "inverse", ours[LU_INVERSE] * 1e6, "us",
           {{"copy", copy[LU_INVERSE] * 1e6},
            {"cublas matinv", peers.inverse * 1e6},
            {"cublas getrf+getri", peers.factor_solve * 1e6}});
    to.add(shape, number<T>::precision, "factor", ours[LU_FACTOR] * 1e6, "us",
           {{"copy", copy[LU_FACTOR] * 1e6}, {"cublas getrf", peers.factor * 1e6}});
}

std::vector<int64_t> orders_of(const settings &wish)
{
    std::vector<int64_t> all;
    for (int64_t n = 1; n <= CUDA_SMALL_N_MAX; n++)
        all.push_back(n);
    all = wish.orders(wish.quick ? std::vector<int64_t>{2, 4, 8, 12, 16, 17, 24, 32} : all);
    return all.empty() || all[0] <= CUDA_SMALL_N_MAX ? all : std::vector<int64_t>();
}

void time_all(const settings &wish, recorder &to)
{
    for (int64_t n : orders_of(wish)) {
        time_order<float>((int)n, to);
        time_order<double>((int)n, to);
    }
}

int check_all(const settings &wish)
{
    int failed = 0;
    for (int64_t n : orders_of(wish))
        for (int k = 0; k < LU_KINDS * PRECISION_COUNT; k++)
            failed +=
                !lu_small_check((enum lu_kind)(k / PRECISION_COUNT),
                                (enum precision)(k % PRECISION_COUNT), (int)n, wish.matrices_max);
    return failed;
}

} // namespace

const struct subject lu_small_subject = {
    "lu_small", "lu and lu_factor to n = 32", check_all, time_all, nullptr, nullptr};
