/* bench/cuda/ism_peers.cu: cuSOLVER's inverse of a formed matrix. A toolkit without cuSOLVER's
 * headers builds the rest of the program, which then does not measure it.
 */
#include "bench/cuda/ism.cuh"

#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>

namespace
{

void check(cusolverStatus_t status)
{
    if (status == CUSOLVER_STATUS_SUCCESS)
        return;
    fprintf(stderr, "cuda_ism: cuSOLVER: status %d\n", (int)status);
    exit(2);
}

template <typename T> struct library;

template <> struct library<float> {
    static constexpr auto bytes = cusolverDnSgetrf_bufferSize;
    static constexpr auto factor = cusolverDnSgetrf;
    static constexpr auto solve = cusolverDnSgetrs;
};

template <> struct library<double> {
    static constexpr auto bytes = cusolverDnDgetrf_bufferSize;
    static constexpr auto factor = cusolverDnDgetrf;
    static constexpr auto solve = cusolverDnDgetrs;
};

template <typename T> __global__ void make_identity(T *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n * n; k += step)
        x[k] = k / n == k % n ? 1 : 0;
}

template <typename T> struct ism_peers time_peers(int64_t order, const T *a)
{
    struct ism_peers peers;
    int n = (int)order, numbers = 0;
    size_t entries = (size_t)(order * order);
    device_array<T> factors(entries), x(entries);
    device_array<int> pivots((size_t)n), info(1);
    cusolverDnHandle_t handle;
    check(cusolverDnCreate(&handle));
    check(library<T>::bytes(handle, n, n, factors.at(0), n, &numbers));
    device_array<T> work((size_t)numbers);
    auto prepare = [&] {
        SMALL_TRY(cudaMemcpyAsync(factors.at(0), a, entries * sizeof(T), cudaMemcpyDeviceToDevice));
        make_identity<<<1024, 256>>>(x.at(0), order);
        SMALL_TRY(cudaGetLastError());
    };
    auto call = [&](int) {
        check(library<T>::factor(handle, n, n, factors.at(0), n, work.at(0), pivots.at(0),
                                 info.at(0)));
        check(library<T>::solve(handle, CUBLAS_OP_N, n, n, factors.at(0), n, pivots.at(0), x.at(0),
                                n, info.at(0)));
    };
    peers.solver = clock_rounds(prepare, call, 1)[CLOCK_ROUNDS / 2];
    check(cusolverDnDestroy(handle));
    return peers;
}

} // namespace

#else
template <typename T> static struct ism_peers time_peers(int64_t, const T *)
{
    return {};
}
#endif

struct ism_peers ism_peers_of(int64_t n, const float *a)
{
    return time_peers(n, a);
}

struct ism_peers ism_peers_of(int64_t n, const double *a)
{
    return time_peers(n, a);
}
