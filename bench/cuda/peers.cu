/* bench/cuda/peers.cu: cuBLAS's batched inverse and LU on the matrices of timing.cu.
 *
 * matinvBatched and getriBatched read one set and write another one, as our kernels do.
 * getrfBatched works in place: each call of a round takes another buffer, all of them copied from
 * the matrices before the round. Together they exceed the cache by far, so that it too finds none
 * of its data there; nor must it write out what the copy has left.
 */
#include "bench/cuda/timing.cuh"

#include <cublas_v2.h>

namespace
{

const int CALLS_MAX = 40; /* in a round */

template <typename T> __global__ void point(T **pointers, T *base, int64_t entries, int64_t count)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += step)
        pointers[i] = base + i * entries;
}

void blas(cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    fprintf(stderr, "cuda_small: cuBLAS: status %d\n", (int)status);
    exit(2);
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

template <typename T> struct timing_peers measure(timing_bed<T> &bed)
{
    const int n = bed.n, count = (int)TIMING_MATRICES, calls = std::min(CALLS_MAX, bed.sets);
    const size_t bytes = bed.entries * sizeof(T);
    const int64_t all = TIMING_MATRICES * bed.sets;
    cublasHandle_t handle;
    struct timing_peers peers;
    device_array<T *> in(all), out(all), third(TIMING_MATRICES);
    device_array<T> inverse(bed.entries);
    auto refill = [&] {
        SMALL_TRY(
            cudaMemcpyAsync(bed.out.at(0), bed.in.at(0), bytes * calls, cudaMemcpyDeviceToDevice));
        clock_read<<<1024, 256>>>(bed.in.at(0), CLOCK_CACHE_BYTES / sizeof(T), inverse.at(0));
        SMALL_TRY(cudaGetLastError());
    };
    auto set = [&](int i) { return (size_t)(i % bed.sets) * TIMING_MATRICES; };
    auto pivots = [&](int i) { return bed.extra.at((i % bed.sets) * bed.extras()); };
    auto info = [&](int i) { return bed.info.at(set(i)); };
    blas(cublasCreate(&handle));
    point<<<256, 256>>>(in.at(0), bed.in.at(0), n * n, all);
    point<<<256, 256>>>(out.at(0), bed.out.at(0), n * n, all);
    point<<<256, 256>>>(third.at(0), inverse.at(0), n * n, TIMING_MATRICES);
    peers.inverse = clock_seconds(
        [&](int i) {
            blas(
                library<T>::invert(handle, n, in.at(set(i)), n, out.at(set(i)), n, info(i), count));
        },
        calls);
    peers.factor = clock_rounds(
        refill,
        [&](int i) {
            blas(library<T>::factor(handle, n, out.at(set(i)), n, pivots(i), info(i), count));
        },
        calls)[CLOCK_ROUNDS / 2];
    peers.factor_solve =
        peers.factor + clock_seconds(
                           [&](int) {
                               blas(library<T>::solve(handle, n, out.at(0), n, pivots(0),
                                                      third.at(0), n, info(0), count));
                           },
                           1);
    blas(cublasDestroy(handle));
    return peers;
}

} // namespace

struct timing_peers timing_peers_of(timing_bed<float> &bed)
{
    return measure(bed);
}

struct timing_peers timing_peers_of(timing_bed<double> &bed)
{
    return measure(bed);
}
