/* bench/cuda/middle_peers.cu: cuBLAS's batched and cuSOLVER's single LU and inverse on the matrices
 * of middle_timing.cu. What works in place gets a fresh copy before each round, which is not
 * counted; a round is one call.
 */
#include "bench/cuda/clock.cuh"
#include "bench/cuda/middle.cuh"

#include <cublas_v2.h>
#include <cusolverDn.h>

namespace
{

const int BATCH_N_MAX = 1024;        /* of what is asked of the batched routines */
const int ONE_INVERSE_N_MAX = 16384; /* beyond, that takes seconds */

void check(int status, const char *library)
{
    if (status == 0)
        return;
    fprintf(stderr, "cuda_middle: %s: status %d\n", library, status);
    exit(2);
}

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
    return clock_rounds(
        prepare, [&](int) { call(); }, 1)[CLOCK_ROUNDS / 2];
}

template <typename T>
void time_batch(int n, int64_t count, const device_array<T> &in, struct middle_peers *peers)
{
    size_t entries = (size_t)n * n, bytes = entries * count * sizeof(T);
    device_array<T> factors(entries * count), inverses(entries * count);
    device_array<T *> from(count), to(count);
    device_array<int> pivots((size_t)n * count), info(count);
    cublasHandle_t handle;
    from.put(pointers(factors, entries, count));
    to.put(pointers(inverses, entries, count));
    check(cublasCreate(&handle), "cuBLAS");
    peers->factor = median(
        [&] {
            SMALL_TRY(cudaMemcpyAsync(factors.at(0), in.at(0), bytes, cudaMemcpyDeviceToDevice));
        },
        [&] {
            check(
                library<T>::factor(handle, n, from.at(0), n, pivots.at(0), info.at(0), (int)count),
                "cuBLAS");
        });
    peers->inverse =
        peers->factor + median([] {},
                               [&] {
                                   check(library<T>::invert(handle, n, from.at(0), n, pivots.at(0),
                                                            to.at(0), n, info.at(0), (int)count),
                                         "cuBLAS");
                               });
    check(cublasDestroy(handle), "cuBLAS");
}

template <typename T> void time_one(int n, const device_array<T> &in, struct middle_peers *peers)
{
    size_t entries = (size_t)n * n, bytes = entries * sizeof(T);
    device_array<T> factors(entries), identity(entries), x(entries);
    device_array<int> pivots(n), info(1);
    cusolverDnHandle_t handle;
    int numbers = 0;
    std::vector<T> ones(entries, T(0));
    for (int i = 0; i < n; i++)
        ones[(size_t)i * n + i] = 1;
    identity.put(ones);
    check(cusolverDnCreate(&handle), "cuSOLVER");
    check(library<T>::one_bytes(handle, n, n, factors.at(0), n, &numbers), "cuSOLVER");
    device_array<T> work(numbers);
    auto factor = [&] {
        check(library<T>::one_factor(handle, n, n, factors.at(0), n, work.at(0), pivots.at(0),
                                     info.at(0)),
              "cuSOLVER");
    };
    peers->one_factor = median(
        [&] {
            SMALL_TRY(cudaMemcpyAsync(factors.at(0), in.at(0), bytes, cudaMemcpyDeviceToDevice));
        },
        factor);
    if (n > ONE_INVERSE_N_MAX) {
        check(cusolverDnDestroy(handle), "cuSOLVER");
        return;
    }
    peers->one_inverse =
        peers->one_factor +
        median(
            [&] {
                SMALL_TRY(
                    cudaMemcpyAsync(x.at(0), identity.at(0), bytes, cudaMemcpyDeviceToDevice));
            },
            [&] {
                check(library<T>::one_solve(handle, CUBLAS_OP_N, n, n, factors.at(0), n,
                                            pivots.at(0), x.at(0), n, info.at(0)),
                      "cuSOLVER");
            });
    check(cusolverDnDestroy(handle), "cuSOLVER");
}

template <typename T> struct middle_peers measure(int n, int64_t count, const device_array<T> &in)
{
    struct middle_peers peers;
    if (n <= BATCH_N_MAX)
        time_batch(n, count, in, &peers);
    if (count == 1)
        time_one(n, in, &peers);
    return peers;
}

} // namespace

struct middle_peers middle_peers_of(int n, int64_t count, const device_array<float> &in)
{
    return measure(n, count, in);
}

struct middle_peers middle_peers_of(int n, int64_t count, const device_array<double> &in)
{
    return measure(n, count, in);
}
