/* bench/cuda/middle_timing.cu: cuda_middle --time: rates of the kernels beside cuBLAS's batched and
 * cuSOLVER's single routines.
 *
 * Random matrices on the device: as many as fill 2 GiB (512 MiB where it must be quick), up to n =
 * 1024, and one. A figure is the
 * median of three rounds after one that is not counted. GFLOP/s count 2 n^3 operations an inverse
 * and 2/3 n^3 a factorisation, whatever is done.
 */
#include "bench/cuda/clock.cuh"
#include "bench/cuda/middle.cuh"

namespace
{

const size_t BATCH_BYTES = (size_t)2 << 30, QUICK_BYTES = (size_t)1 << 29;
const size_t WORKSPACE_BYTES = (size_t)8 << 30;
const int orders[] = {33,  48,  64,  96,  128, 144, 160,  176,  192,  208,  224,
                      256, 288, 320, 384, 512, 768, 1024, 2048, 4096, 8192, 16384};
const int quick_orders[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192};
const int BATCH_N_MAX = 1024; /* larger ones are timed alone */

template <typename T> struct bed {
    int n;
    int64_t count;
    device_array<T> in, out;
    device_array<int32_t> extra, info;
    device_array<cuda_item> items;

    bed(int order, int64_t matrices)
        : n(order), count(matrices), in((size_t)order * order * matrices),
          out((size_t)order * order * matrices), extra((size_t)matrices * std::max(order, 2)),
          info(matrices), items(1)
    {
        items.put({{in.at(0), out.at(0), extra.at(0), info.at(0), 0}});
        clock_fill<<<1024, 256>>>(in.at(0), (size_t)order * order * matrices);
        SMALL_TRY(cudaGetLastError());
    }
};

template <typename T> double time_kernel(bed<T> &of, enum small_kernel kernel, int64_t count)
{
    const enum precision precision = small_real<T>::precision;
    size_t bytes = middle_workspace(kernel, precision, of.n, count);
    size_t least = middle_workspace(kernel, precision, of.n, 1);
    bytes = std::max(least, std::min(bytes, WORKSPACE_BYTES));
    device_array<unsigned char> workspace(bytes);
    struct cuda_batch batch = {of.items.at(0), 1, count, nullptr};
    return clock_seconds(
        [&](int) {
            SMALL_TRY(middle_launch(kernel, precision, of.n, &batch, workspace.at(0), bytes));
        },
        count > 1 || of.n > BATCH_N_MAX ? 2 : 20);
}

struct line {
    const char *kernel;
    enum precision precision;
    int n;
    int64_t count;
    double ours, cublas, cusolver; /* seconds; 0: not measured */
};

double gflops(const struct line &of, double seconds)
{
    double operations = of.kernel[0] == 'i' ? 2.0 : 2.0 / 3;
    return seconds > 0 ? operations * of.n * of.n * of.n * (double)of.count / seconds * 1e-9 : 0;
}

void print(const struct line &of, FILE *csv)
{
    printf("%-7s %s %5d %8lld %12.1f %10.0f %10.0f %10.0f\n", of.kernel,
           precision_name(of.precision), of.n, (long long)of.count, of.ours * 1e6,
           gflops(of, of.ours), gflops(of, of.cublas), gflops(of, of.cusolver));
    if (csv)
        fprintf(csv, "%s,%s,%d,%lld,%.2f,%.1f,%.1f,%.1f\n", of.kernel, precision_name(of.precision),
                of.n, (long long)of.count, of.ours * 1e6, gflops(of, of.ours),
                gflops(of, of.cublas), gflops(of, of.cusolver));
    fflush(stdout);
}

/* batch_bytes 0: one matrix alone. */
template <typename T> void time_order(int n, size_t batch_bytes, FILE *csv)
{
    const enum precision precision = small_real<T>::precision;
    int64_t most = (int64_t)(batch_bytes / ((size_t)n * n * sizeof(T)));
    for (bool alone : {false, true}) {
        int64_t count = alone ? 1 : most;
        if (!alone && (n > BATCH_N_MAX || batch_bytes == 0))
            continue;
        bed<T> of(n, count);
        struct middle_peers peers = middle_peers_of(n, count, of.in);
        print({"inverse", precision, n, count, time_kernel(of, SMALL_INVERSE, count), peers.inverse,
               peers.one_inverse},
              csv);
        print({"factor", precision, n, count, time_kernel(of, SMALL_FACTOR, count), peers.factor,
               peers.one_factor},
              csv);
    }
}

} // namespace

void middle_time(int n, bool quick, bool one, FILE *csv)
{
    std::vector<int> all(std::begin(orders), std::end(orders));
    size_t bytes = one ? 0 : quick ? QUICK_BYTES : BATCH_BYTES;
    if (quick)
        all.assign(std::begin(quick_orders), std::end(quick_orders));
    if (n)
        all.assign(1, n);

    printf("%-7s %-4s %5s %8s %12s %10s %10s %10s\n", "kernel", "", "order", "matrices", "us",
           "GFLOP/s", "cuBLAS", "cuSOLVER");
    if (csv)
        fprintf(csv, "kernel,precision,n,matrices,us,gflops,cublas_gflops,cusolver_gflops\n");
    for (int order : all) {
        time_order<float>(order, bytes, csv);
        time_order<double>(order, bytes, csv);
    }
}
