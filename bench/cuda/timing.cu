/* bench/cuda/timing.cu: cuda_small --time: rates of the kernels beside a copy and cuBLAS.
 *
 * 1,000,000 random matrices on the device. A figure is the median of three rounds after one that is
 * not counted. The copy is of as many bytes as the kernel must read and write.
 */
#include "bench/cuda/timing.cuh"

namespace
{

const size_t ROUND_BYTES = (size_t)8 << 30; /* moved in a round, about */

/* What the kernel must read and write, for a set. */
template <typename T> size_t bytes_of(const timing_bed<T> &bed, enum small_kernel kernel)
{
    size_t extra = small_extra_bytes(kernel, small_real<T>::precision, bed.n);
    return 2 * bed.entries * sizeof(T) + TIMING_MATRICES * (extra + 4);
}

template <typename T> double time_kernel(timing_bed<T> &bed, enum small_kernel kernel, int calls)
{
    return clock_seconds(
        [&](int i) {
            struct cuda_batch batch = {bed.items.at(i % bed.sets), 1, TIMING_MATRICES, nullptr};
            SMALL_TRY(small_launch(kernel, small_real<T>::precision, bed.n, &batch));
        },
        calls);
}

template <typename T> void time_order(int n, FILE *csv)
{
    timing_bed<T> bed(n);
    double ours[SMALL_KERNELS], copy[SMALL_KERNELS], rate[SMALL_KERNELS];
    for (int k = 0; k < SMALL_KERNELS; k++) {
        size_t bytes = bytes_of(bed, (enum small_kernel)k);
        int calls = (int)std::min<size_t>(40, std::max<size_t>(2, ROUND_BYTES / bytes));
        copy[k] = clock_copies(bed.out.at(0), bed.in.at(0), bed.entries * bed.sets * sizeof(T),
                               bytes, calls)[CLOCK_ROUNDS / 2];
        ours[k] = time_kernel(bed, (enum small_kernel)k, calls);
        rate[k] = (double)bytes / copy[k] * 1e-9;
    }
    struct timing_peers peers = timing_peers_of(bed);
    const double million = (double)TIMING_MATRICES * 1e-6;
    for (int k = 0; k < SMALL_KERNELS; k++) {
        const char *name = k == SMALL_INVERSE ? "inverse" : "factor";
        double same = k == SMALL_INVERSE ? peers.inverse : peers.factor;
        double two_calls = k == SMALL_INVERSE ? million / peers.factor_solve : 0;
        printf("%-7s %s %5d %12.2f %11.1f%% %12.2f %8.1f %12.2f\n", name,
               precision_name(small_real<T>::precision), n, million / ours[k],
               100 * copy[k] / ours[k], million / same, same / ours[k], two_calls);
        if (csv)
            fprintf(csv, "%s,%s,%d,%.2f,%.2f,%.0f,%.2f,%.2f,%.2f\n", name,
                    precision_name(small_real<T>::precision), n, million / ours[k],
                    100 * copy[k] / ours[k], rate[k], million / same, same / ours[k], two_calls);
    }
    fflush(stdout);
}

} // namespace

void small_time(int n, FILE *csv)
{
    printf("%-7s %-4s %5s %12s %12s %12s %8s %12s\n", "kernel", "", "order", "million/s",
           "of the copy", "cuBLAS", "times it", "getrf+getri");
    if (csv)
        fprintf(csv, "kernel,precision,n,million_per_s,percent_of_copy,copy_gb_per_s,"
                     "cublas_million_per_s,times_cublas,getrf_getri_million_per_s\n");
    for (int order = n ? n : 1; order <= (n ? n : CUDA_SMALL_N_MAX); order++) {
        time_order<float>(order, csv);
        time_order<double>(order, csv);
    }
}
