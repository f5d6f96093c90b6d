/* bench/gpu/lu_peers.cu: cuBLAS's batched and cuSOLVER's single LU and inverse. What works in place
 * gets a fresh copy before each round, which is not counted; a round is one call.
 */
#include "bench/gpu/calls.h"

#include <cublas_v2.h>
#include <cusolverDn.h>

namespace
{

const int BATCH_N_MAX = 1024;        /* of what is asked of the batched routines */
const int ONE_INVERSE_N_MAX = 16384; /* beyond, that takes seconds */

/* The libraries' functions by precision. */
template <typename T> struct library;

template <> struct library<float> {
    static constexpr auto factor = cublasSgetrfBatched;
    static constexpr auto invert = cublasSgetriBatched;
    static constexpr auto one_bytes = cusolverDnSgetrf_bufferSize;
    static constexpr auto one_factor = cusolverDnSgetrf;
    static constexpr auto one_solve = cusolverDnSgetrs;
};

template <> struct library<double> {
    static constexpr auto factor = cublasDgetrfBatched;
    static constexpr auto invert = cublasDgetriBatched;
    static constexpr auto one_bytes = cusolverDnDgetrf_bufferSize;
    static constexpr auto one_factor = cusolverDnDgetrf;
    static constexpr auto one_solve = cusolverDnDgetrs;
};

template <typename T>
std::vector<T *> pointers(const device_array<T> &of, size_t entries, int64_t count)
{
    std::vector<T *> all;
    for (int64_t k = 0; k < count; k++)
        all.push_back(of.at((size_t)k * entries));
    return all;
}

template <typename P, typename F> double median(P prepare, F call)
{
    return clock_prepared(
        prepare, [&](int) { call(); }, 1);
}

template <typename T> void time_batch(int n, int64_t count, const T *in, struct lu_peers *peers)
{
    size_t entries = (size_t)n * n, bytes = entries * count * sizeof(T);
    device_array<T> factors(entries * count), inverses(entries * count);
    device_array<T *> from(count), to(count);
    device_array<int> pivots((size_t)n * count), info(count);
    cublasHandle_t handle;
    from.put(pointers(factors, entries, count));
    to.put(pointers(inverses, entries, count));
    TRY(cublasCreate(&handle));
    peers->factor = median(
        [&] { TRY(cudaMemcpyAsync(factors.at(0), in, bytes, cudaMemcpyDeviceToDevice)); },
        [&] {
            TRY(library<T>::factor(handle, n, from.at(0), n, pivots.at(0), info.at(0), (int)count));
        });
    peers->inverse =
        peers->factor + median([] {},
                               [&] {
                                   TRY(library<T>::invert(handle, n, from.at(0), n, pivots.at(0),
                                                          to.at(0), n, info.at(0), (int)count));
                               });
    TRY(cublasDestroy(handle));
}

template <typename T> void time_one(int n, const T *in, struct lu_peers *peers)
{
    size_t entries = (size_t)n * n, bytes = entries * sizeof(T);
    device_array<T> factors(entries), x(entries);
    device_array<int> pivots(n), info(1);
    cusolverDnHandle_t handle;
    int numbers = 0;
    TRY(cusolverDnCreate(&handle));
    TRY(library<T>::one_bytes(handle, n, n, factors.at(0), n, &numbers));
    device_array<T> work(numbers);
    auto factor = [&] {
        TRY(library<T>::one_factor(handle, n, n, factors.at(0), n, work.at(0), pivots.at(0),
                                   info.at(0)));
    };
    peers->one_factor = median(
        [&] { TRY(cudaMemcpyAsync(factors.at(0), in, bytes, cudaMemcpyDeviceToDevice)); }, factor);
    if (n > ONE_INVERSE_N_MAX) {
        TRY(cusolverDnDestroy(handle));
        return;
    }
    peers->one_inverse =
        peers->one_factor +
        median([&] { make_identity(x.at(0), n); },
               [&] {
                   TRY(library<T>::one_solve(handle, CUBLAS_OP_N, n, n, factors.at(0), n,
                                             pivots.at(0), x.at(0), n, info.at(0)));
               });
    TRY(cusolverDnDestroy(handle));
}

} // namespace

template <typename T> struct lu_peers lu_peers_of(int64_t n, int64_t count, const T *in)
{
    struct lu_peers peers;
    if (n <= BATCH_N_MAX)
        time_batch((int)n, count, in, &peers);
    if (count == 1)
        time_one((int)n, in, &peers);
    return peers;
}

template struct lu_peers lu_peers_of(int64_t n, int64_t count, const float *in);
template struct lu_peers lu_peers_of(int64_t n, int64_t count, const double *in);
