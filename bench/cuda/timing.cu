/* bench/cuda/timing.cu: cuda_small --time: rates of the kernels beside a copy and cuBLAS.
 *
 * 1,000,000 random matrices on the device, in several sets where they are few bytes, so that the
 * second-level cache holds none of what is read. A figure is the median of three rounds after one
 * that is not counted. The copy is of as many bytes as the kernel must read and write. The peers
 * are matinvBatched and getrfBatched on the same matrices, one warm round first; getrfBatched works
 * in place and so has its own factors as input from the second call on.
 */
#include "bench/cuda/small.cuh"

#include <algorithm>

#include <cublas_v2.h>

namespace
{

const int64_t MATRICES = 1000000;
const size_t CACHE_BYTES = 400u << 20;      /* more than the cache, together with the outputs */
const size_t ROUND_BYTES = (size_t)8 << 30; /* moved in a round, about */

template <typename T> __global__ void fill(T *a, size_t count)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t z = (i + 5) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        a[i] = (T)((double)(int64_t)(z ^ (z >> 31)) * 0x1p-63);
    }
}

template <typename T> __global__ void point(T **pointers, T *base, int64_t entries, int64_t count)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += step)
        pointers[i] = base + i * entries;
}

/* Seconds that call(i) takes on the device. */
template <typename F> double seconds(F call, int calls)
{
    cudaEvent_t start, end;
    std::vector<float> rounds;
    SMALL_TRY(cudaEventCreate(&start));
    SMALL_TRY(cudaEventCreate(&end));
    call(0);
    for (int round = 0; round < 3; round++) {
        float milliseconds;
        SMALL_TRY(cudaEventRecord(start));
        for (int i = 0; i < calls; i++)
            call(i + 1);
        SMALL_TRY(cudaEventRecord(end));
        SMALL_TRY(cudaEventSynchronize(end));
        SMALL_TRY(cudaEventElapsedTime(&milliseconds, start, end));
        rounds.push_back(milliseconds);
    }
    SMALL_TRY(cudaEventDestroy(start));
    SMALL_TRY(cudaEventDestroy(end));
    std::sort(rounds.begin(), rounds.end());
    return rounds[1] / 1e3 / calls;
}

void blas(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuda_small: cuBLAS: status %d\n", (int)status);
        exit(2);
    }
}

cublasStatus_t invert(cublasHandle_t handle, int n, float **a, float **x, int *info)
{
    return cublasSmatinvBatched(handle, n, a, n, x, n, info, (int)MATRICES);
}

cublasStatus_t invert(cublasHandle_t handle, int n, double **a, double **x, int *info)
{
    return cublasDmatinvBatched(handle, n, a, n, x, n, info, (int)MATRICES);
}

cublasStatus_t factor(cublasHandle_t handle, int n, float **a, int *pivots, int *info)
{
    return cublasSgetrfBatched(handle, n, a, n, pivots, info, (int)MATRICES);
}

cublasStatus_t factor(cublasHandle_t handle, int n, double **a, int *pivots, int *info)
{
    return cublasDgetrfBatched(handle, n, a, n, pivots, info, (int)MATRICES);
}

/* The memory of one order's measurements. */
template <typename T> struct bed {
    int n;
    size_t entries; /* of a set */
    int sets;
    device_array<T> in, out;
    device_array<int32_t> extra, info;
    device_array<cuda_item> items;

    bed(int order, int count)
        : n(order), entries((size_t)order * order * MATRICES), sets(count), in(entries * count),
          out(entries * count), extra(MATRICES * std::max(order, 2)), info(MATRICES), items(count)
    {
        std::vector<cuda_item> all;
        for (int s = 0; s < sets; s++)
            all.push_back({in.at(s * entries), out.at(s * entries), extra.at(0), info.at(0), 0});
        items.put(all);
        fill<<<1024, 256>>>(in.at(0), entries * sets);
        SMALL_TRY(cudaGetLastError());
    }
};

/* What the kernel must read and write, for all matrices. */
template <typename T> size_t bytes_of(const bed<T> &bed, enum small_kernel kernel)
{
    size_t extra = small_extra_bytes(kernel, small_real<T>::precision, bed.n);
    return 2 * bed.entries * sizeof(T) + MATRICES * (extra + 4);
}

template <typename T> double time_copy(bed<T> &bed, size_t bytes, int calls)
{
    return seconds(
        [&](int i) {
            size_t set = i % bed.sets, left = (bed.sets - set) * bed.entries * sizeof(T);
            SMALL_TRY(cudaMemcpyAsync(bed.out.at(set * bed.entries), bed.in.at(set * bed.entries),
                                      std::min(bytes / 2, left), cudaMemcpyDeviceToDevice));
        },
        calls);
}

template <typename T> double time_kernel(bed<T> &bed, enum small_kernel kernel, int calls)
{
    return seconds(
        [&](int i) {
            struct cuda_batch batch = {bed.items.at(i % bed.sets), 1, MATRICES};
            SMALL_TRY(small_launch(kernel, small_real<T>::precision, bed.n, &batch));
        },
        calls);
}

template <typename T> double time_peer(bed<T> &bed, enum small_kernel kernel, cublasHandle_t handle)
{
    device_array<T *> a(MATRICES), x(MATRICES);
    point<<<256, 256>>>(a.at(0), bed.in.at(0), bed.n * bed.n, MATRICES);
    point<<<256, 256>>>(x.at(0), bed.out.at(0), bed.n * bed.n, MATRICES);
    SMALL_TRY(
        cudaMemcpy(bed.out.at(0), bed.in.at(0), bed.entries * sizeof(T), cudaMemcpyDeviceToDevice));
    return seconds(
        [&](int) {
            blas(kernel == SMALL_INVERSE
                     ? invert(handle, bed.n, a.at(0), x.at(0), bed.info.at(0))
                     : factor(handle, bed.n, x.at(0), bed.extra.at(0), bed.info.at(0)));
        },
        bed.n <= 8 ? 4 : 1);
}

template <typename T> void time_order(int n, cublasHandle_t handle, FILE *csv)
{
    size_t set_bytes = (size_t)n * n * sizeof(T) * MATRICES;
    bed<T> bed(n, (int)(CACHE_BYTES / set_bytes + 1));
    for (int k = 0; k < SMALL_KERNELS; k++) {
        enum small_kernel kernel = (enum small_kernel)k;
        const char *name = kernel == SMALL_INVERSE ? "inverse" : "factor";
        size_t bytes = bytes_of(bed, kernel);
        int calls = (int)std::min<size_t>(40, std::max<size_t>(2, ROUND_BYTES / bytes));
        double copy = time_copy(bed, bytes, calls), ours = time_kernel(bed, kernel, calls);
        double peer = time_peer(bed, kernel, handle);
        printf("%-7s %s %5d %12.2f %11.1f%% %12.2f %8.1f\n", name,
               precision_name(small_real<T>::precision), n, MATRICES / ours * 1e-6,
               100 * copy / ours, MATRICES / peer * 1e-6, peer / ours);
        fflush(stdout);
        if (csv)
            fprintf(csv, "%s,%s,%d,%.2f,%.2f,%.2f,%.2f\n", name,
                    precision_name(small_real<T>::precision), n, MATRICES / ours * 1e-6,
                    100 * copy / ours, MATRICES / peer * 1e-6, peer / ours);
    }
}

} // namespace

void small_time(int n, FILE *csv)
{
    cublasHandle_t handle;
    blas(cublasCreate(&handle));
    printf("%-7s %-4s %5s %12s %12s %12s %8s\n", "kernel", "", "order", "million/s", "of the copy",
           "cuBLAS", "times it");
    if (csv)
        fprintf(csv, "kernel,precision,n,million_per_s,percent_of_copy,cublas_million_per_s,"
                     "times_cublas\n");
    for (int order = n ? n : 1; order <= (n ? n : CUDA_SMALL_N_MAX); order++) {
        time_order<float>(order, handle, csv);
        time_order<double>(order, handle, csv);
    }
    blas(cublasDestroy(handle));
}
