/* bench/cuda/tridiagonal_peers.cu: cuSPARSE's tridiagonal solvers on the identity. A toolkit
 * without cuSPARSE's headers builds the rest of the program, which then does not measure them.
 */
#include "bench/cuda/tridiagonal.cuh"

#if __has_include(<cusparse.h>)
#include <cusparse.h>

namespace
{

#define SPARSE_TRY(call) sparse_try((call), #call, __FILE__, __LINE__)
#define SAMPLE 4 /* matrices of a batch that are solved */

void sparse_try(cusparseStatus_t status, const char *call, const char *file, int line)
{
    if (status == CUSPARSE_STATUS_SUCCESS)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cusparseGetErrorString(status));
    exit(2);
}

/* The calls of one precision. */
template <typename T> struct solver;

template <> struct solver<float> {
    static constexpr auto size = cusparseSgtsv2_bufferSizeExt;
    static constexpr auto solve = cusparseSgtsv2;
    static constexpr auto plain_size = cusparseSgtsv2_nopivot_bufferSizeExt;
    static constexpr auto plain_solve = cusparseSgtsv2_nopivot;
};

template <> struct solver<double> {
    static constexpr auto size = cusparseDgtsv2_bufferSizeExt;
    static constexpr auto solve = cusparseDgtsv2;
    static constexpr auto plain_size = cusparseDgtsv2_nopivot_bufferSizeExt;
    static constexpr auto plain_solve = cusparseDgtsv2_nopivot;
};

template <typename T> __global__ void make_identity(T *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n * n; k += step)
        x[k] = k / n == k % n ? 1 : 0;
}

/* LAPACK's layout: dl[0] and du[n - 1] are unused. */
template <typename T> struct bands {
    device_array<T> dl, d, du;

    explicit bands(tridiagonal_bed<T> &bed) : dl(bed.n), d(bed.n), du(bed.n)
    {
        size_t beside = (size_t)(bed.n - 1) * sizeof(T);
        SMALL_TRY(cudaMemset(dl.at(0), 0, (size_t)bed.n * sizeof(T)));
        SMALL_TRY(cudaMemset(du.at(0), 0, (size_t)bed.n * sizeof(T)));
        SMALL_TRY(cudaMemcpy(dl.at(1), bed.dl.at(0), beside, cudaMemcpyDeviceToDevice));
        SMALL_TRY(
            cudaMemcpy(d.at(0), bed.d.at(0), (size_t)bed.n * sizeof(T), cudaMemcpyDeviceToDevice));
        SMALL_TRY(cudaMemcpy(du.at(0), bed.du.at(0), beside, cudaMemcpyDeviceToDevice));
    }
};

/* The first matrix's bands stand for all: the calls take the same time whatever the numbers are. */
template <typename T, typename S, typename R>
double time_solver(tridiagonal_bed<T> &bed, bands<T> &a, cusparseHandle_t handle, S size, R solve)
{
    int n = (int)bed.n, sample = (int)std::min<int64_t>(bed.count, SAMPLE);
    size_t bytes = 0;
    T *x = bed.x.at(0);
    SPARSE_TRY(size(handle, n, n, a.dl.at(0), a.d.at(0), a.du.at(0), x, n, &bytes));
    device_array<char> buffer(std::max<size_t>(bytes, 1));
    auto prepare = [&] {
        for (int k = 0; k < sample; k++)
            make_identity<<<1024, 256>>>(x + (size_t)k * n * n, (int64_t)n);
        SMALL_TRY(cudaGetLastError());
    };
    auto call = [&](int) {
        for (int k = 0; k < sample; k++)
            SPARSE_TRY(solve(handle, n, n, a.dl.at(0), a.d.at(0), a.du.at(0), x + (size_t)k * n * n,
                             n, buffer.at(0)));
    };
    double seconds = clock_rounds(prepare, call, 1)[CLOCK_ROUNDS / 2];
    return seconds * (double)bed.count / sample;
}

template <typename T> struct tridiagonal_peers time_peers(tridiagonal_bed<T> &bed)
{
    struct tridiagonal_peers peers;
    cusparseHandle_t handle;
    bands<T> a(bed);
    SPARSE_TRY(cusparseCreate(&handle));
    peers.pivoting = time_solver(bed, a, handle, solver<T>::size, solver<T>::solve);
    peers.plain = time_solver(bed, a, handle, solver<T>::plain_size, solver<T>::plain_solve);
    SPARSE_TRY(cusparseDestroy(handle));
    return peers;
}

} // namespace

#else
template <typename T> static struct tridiagonal_peers time_peers(tridiagonal_bed<T> &)
{
    return {};
}
#endif

struct tridiagonal_peers tridiagonal_peers_of(tridiagonal_bed<float> &bed)
{
    return time_peers(bed);
}

struct tridiagonal_peers tridiagonal_peers_of(tridiagonal_bed<double> &bed)
{
    return time_peers(bed);
}
