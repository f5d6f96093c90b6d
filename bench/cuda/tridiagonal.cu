/* bench/cuda/tridiagonal.cu: checks and times `tridiagonal` on an NVIDIA GPU, on the device's
 * memory.
 *
 *   cuda_tridiagonal --check
 *   cuda_tridiagonal --time [--n N] [--results FOLDER]
 *
 * --check tries every variant at orders of every kind of launch by its residual, and ends with 1
 * when one is wrong. --time prints a table and writes it to FOLDER/DATE-NAME-tridiagonal.csv, where
 * NAME is the device's: microseconds for all matrices of a batch, of our variants and, in the same
 * run, of a kernel that only writes as many bytes, cuSPARSE's gtsv2 with and without pivoting on
 * the identity, and the paper's recursion as printed. Uses the first device that CUDA shows;
 * nothing else should run there. Needs up to 10 GB of its memory. An error of CUDA or of the
 * command line ends with 2.
 */
#include "bench/cuda/tridiagonal.cuh"

#include <cmath>
#include <cstring>

#include "bench/cuda/results.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#define CARD_BYTES ((int64_t)1 << 30) /* of answers in a batch of small matrices */
#define RATIO_MAX 15.0

namespace
{

const char *const variant_names[] = {"auto", "sherman_morrison", "two_sweep", "pivoted"};

const struct config {
    int64_t n, count; /* count 0: as many as fill the card */
} configs[] = {{64, 0},    {128, 0},  {256, 0},  {512, 0},  {1024, 16}, {1024, 64}, {1000, 16},
               {2048, 16}, {4096, 1}, {4095, 1}, {8192, 1}, {8192, 4},  {16384, 1}, {16383, 1}};

template <typename T> __global__ void fill_streaming(T *x, int64_t pieces, T value)
{
    typedef typename cuda__real<T>::vector vector;
    T values[cuda__real<T>::width];
    for (int k = 0; k < cuda__real<T>::width; k++)
        values[k] = value;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pieces; i += step)
        cuda__store_stream((vector *)x + i, values);
}

/* One call of the launcher, ready to be made again and again. */
template <typename T> struct launch {
    int64_t options[METHOD_OPTIONS_MAX] = {};
    device_array<cuda_tensors> tensors;
    device_array<T> rcond;
    device_array<int32_t> info, algorithm;
    device_array<char> *workspace = nullptr;
    struct cuda_call call = {};

    launch(const tridiagonal_bed<T> &bed, int variant)
        : tensors(1), rcond(bed.count), info(bed.count), algorithm(bed.count)
    {
        struct cuda_tensors item = {};
        item.inputs[METHOD_TRIDIAGONAL_DL] = bed.dl.at(0);
        item.inputs[METHOD_TRIDIAGONAL_D] = bed.d.at(0);
        item.inputs[METHOD_TRIDIAGONAL_DU] = bed.du.at(0);
        item.outputs[METHOD_TRIDIAGONAL_INVERSE] = bed.x.at(0);
        item.outputs[METHOD_TRIDIAGONAL_INFO] = info.at(0);
        item.outputs[METHOD_TRIDIAGONAL_RCOND] = rcond.at(0);
        item.outputs[METHOD_TRIDIAGONAL_ALGORITHM] = algorithm.at(0);
        tensors.put({item});
        options[0] = variant;
        call.precision = small_real<T>::precision;
        call.n = bed.n;
        call.options = options;
        call.item_count = 1;
        call.matrices = bed.count;
        call.wanted = 1u << METHOD_TRIDIAGONAL_INVERSE;
        call.tensors = tensors.at(0);
        call.workspace_bytes = cuda_tridiagonal_workspace(&call, bed.count);
        workspace = new device_array<char>(call.workspace_bytes);
        call.workspace = workspace->at(0);
    }
    ~launch()
    {
        delete workspace;
    }
    launch(const launch &) = delete;
    launch &operator=(const launch &) = delete;

    void run()
    {
        SMALL_TRY(cuda_tridiagonal(&call, nullptr));
    }
};

struct judged {
    double right, left; /* |A X - I| and |X A - I|, over n |A| |X| eps */
    double rcond;
};

/* One matrix, on the host. */
template <typename T> struct judged judge(const tridiagonal_bed<T> &bed, int64_t k)
{
    int64_t n = bed.n;
    std::vector<T> dl = bed.dl.get(k * (n - 1), n - 1), d = bed.d.get(k * n, n);
    std::vector<T> du = bed.du.get(k * (n - 1), n - 1), x = bed.x.get(k * n * n, n * n);
    double norm_a = 0, norm_x = 0, right = 0, left = 0;
    auto worse = [](double one, double other) {
        return one > other || std::isnan(one) ? one : other;
    };
    for (int64_t j = 0; j < n; j++) {
        double behind = 0, before = 0, size = 0, column = fabs((double)d[j]);
        const double above = j > 0 ? (double)du[j - 1] : 0, under = j + 1 < n ? (double)dl[j] : 0;
        column += fabs(above) + fabs(under);
        for (int64_t i = 0; i < n; i++) {
            const T *row = &x[i * n];
            double entry = (double)d[i] * (double)row[j] - (i == j);
            entry += i > 0 ? (double)dl[i - 1] * (double)x[(i - 1) * n + j] : 0;
            entry += i + 1 < n ? (double)du[i] * (double)x[(i + 1) * n + j] : 0;
            behind += fabs(entry);
            entry = (double)row[j] * (double)d[j] - (i == j);
            entry += j > 0 ? (double)row[j - 1] * above : 0;
            entry += j + 1 < n ? (double)row[j + 1] * under : 0;
            before += fabs(entry);
            size += fabs((double)row[j]);
        }
        norm_a = fmax(norm_a, column);
        norm_x = fmax(norm_x, size);
        right = worse(behind, right);
        left = worse(before, left);
    }
    const double unit = (double)n * norm_a * norm_x * small_real<T>::eps;
    return {right / unit, left / unit, 1 / norm_a / norm_x};
}

/* The matrices are dominant: each variant's own answer goes out. */
int algorithm_of(int variant)
{
    return variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON ? METHOD_ALGORITHM_SHERMAN_MORRISON
           : variant == METHOD_TRIDIAGONAL_PIVOTED        ? METHOD_ALGORITHM_PIVOTED
                                                          : METHOD_ALGORITHM_TWO_SWEEP;
}

template <typename T> bool check_order(int64_t n, int64_t count, int variant)
{
    tridiagonal_bed<T> bed(n, count);
    launch<T> ours(bed, variant);
    bool right = true;
    ours.run();
    SMALL_TRY(cudaDeviceSynchronize());
    std::vector<int32_t> info = ours.info.get(0, count), algorithm = ours.algorithm.get(0, count);
    std::vector<T> rcond = ours.rcond.get(0, count);
    for (int64_t k : {(int64_t)0, count / 2, count - 1}) {
        const struct judged of = judge(bed, k);
        const double off = fabs((double)rcond[k] / of.rcond - 1);
        const bool good = of.right <= RATIO_MAX && of.left <= RATIO_MAX && info[k] == 0 &&
                          algorithm[k] == algorithm_of(variant) &&
                          off <= 4 * (double)n * small_real<T>::eps;
        if (!good && right)
            printf("%s n = %d, %d matrices, %s: ratios %g and %g, INFO %d, METHOD %d, RCOND off by "
                   "%g: WRONG\n",
                   precision_name(small_real<T>::precision), (int)n, (int)count,
                   variant_names[variant], of.right, of.left, info[k], algorithm[k], off);
        right = right && good;
    }
    return right;
}

int check_all()
{
    static const int64_t orders[] = {1,   2,   3,   31,  32,  33,   64,   127,  128,
                                     129, 300, 511, 512, 513, 1000, 1024, 2047, 2050};
    int failed = 0;
    for (int64_t n : orders)
        for (int variant = 0; variant < 4; variant++)
            for (int64_t count : {1, 7}) {
                failed += !check_order<float>(n, count, variant);
                failed += !check_order<double>(n, count, variant);
            }
    printf("cuda_tridiagonal: %d failed\n", failed);
    return failed ? 1 : 0;
}

/* A line of the table. */
struct figures {
    double fill, ours[4], plain; /* seconds; ours by variant, but auto */
    struct tridiagonal_peers peers;
};

template <typename T> void print(int64_t n, int64_t count, const struct figures &found, FILE *csv)
{
    const char *name = precision_name(small_real<T>::precision);
    double bytes = (double)(n * n * count) * sizeof(T);
    printf("%s %6d %6d %10.1f %7.0f", name, (int)n, (int)count, found.fill * 1e6,
           bytes / found.fill * 1e-9);
    for (int v : {METHOD_TRIDIAGONAL_TWO_SWEEP, METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
                  METHOD_TRIDIAGONAL_PIVOTED})
        printf(" %10.1f (%3.0f%%)", found.ours[v] * 1e6, 100 * found.fill / found.ours[v]);
    printf(" %12.1f %12.1f %12.1f\n", found.peers.pivoting * 1e6, found.peers.plain * 1e6,
           found.plain * 1e6);
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,%.0f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", name, (int)n, (int)count,
                bytes, found.fill * 1e6, found.ours[METHOD_TRIDIAGONAL_TWO_SWEEP] * 1e6,
                found.ours[METHOD_TRIDIAGONAL_SHERMAN_MORRISON] * 1e6,
                found.ours[METHOD_TRIDIAGONAL_PIVOTED] * 1e6, found.peers.pivoting * 1e6,
                found.peers.plain * 1e6, found.plain * 1e6);
}

template <typename T> void time_one(int64_t n, int64_t count, FILE *csv)
{
    tridiagonal_bed<T> bed(n, count);
    struct figures found = {};
    int64_t numbers = n * n * count;
    int calls = (int)std::max<int64_t>(3, std::min<int64_t>(40, (16 * CARD_BYTES) / (numbers * 8)));
    found.fill = clock_seconds(
        [&](int) {
            fill_streaming<<<132 * 16, 256>>>(bed.x.at(0), numbers / cuda__real<T>::width, (T)1);
            SMALL_TRY(cudaGetLastError());
        },
        calls);
    for (int v : {METHOD_TRIDIAGONAL_TWO_SWEEP, METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
                  METHOD_TRIDIAGONAL_PIVOTED}) {
        launch<T> ours(bed, v);
        found.ours[v] = clock_seconds([&](int) { ours.run(); }, calls);
    }
    found.peers = tridiagonal_peers_of(bed);
    if (count == 1 && (n & (n - 1)) == 0) {
        device_array<T> other(numbers);
        found.plain = tridiagonal_plain(bed, other.at(0));
    }
    print<T>(n, count, found, csv);
}

void time_all(int64_t n, FILE *csv)
{
    const char *head = "precision,n,matrices,bytes,fill_us,two_sweep_us,sherman_morrison_us,"
                       "pivoted_us,gtsv2_us,gtsv2_nopivot_us,paper_us\n";
    if (csv)
        fputs(head, csv);
    printf("          n  count    fill us    GB/s     two_sweep us sherman_morrison us       "
           "pivoted us     gtsv2 us   nopivot us     paper us\n");
    for (const struct config &config : configs) {
        if (n && n != config.n)
            continue;
        for (int bytes : {8, 4}) {
            int64_t count =
                config.count ? config.count : CARD_BYTES / (config.n * config.n * bytes);
            if (bytes == 8)
                time_one<double>(config.n, count, csv);
            else
                time_one<float>(config.n, count, csv);
        }
    }
}

int time_to(int64_t n, const char *folder, const char *device)
{
    return results_to(folder, device, "tridiagonal", [&](FILE *csv) {
        time_all(n, csv);
        return 0;
    });
}

} // namespace

template <typename T>
tridiagonal_bed<T>::tridiagonal_bed(int64_t order, int64_t matrices)
    : n(order), count(matrices), dl(std::max<int64_t>((order - 1) * matrices, 1)),
      d(order * matrices), du(std::max<int64_t>((order - 1) * matrices, 1)),
      x(order * order * matrices)
{
    uint64_t state = 12345;
    auto next = [&state] {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(state >> 11) * 0x1p-53;
    };
    std::vector<T> below((n - 1) * count), middle(n * count), above((n - 1) * count);
    for (int64_t k = 0; k < count; k++) {
        T *l = below.data() + k * (n - 1), *u = above.data() + k * (n - 1);
        for (int64_t i = 0; i + 1 < n; i++) {
            l[i] = (T)(-0.1 - next());
            u[i] = (T)(-0.1 - next());
        }
        for (int64_t i = 0; i < n; i++)
            middle[k * n + i] = (T)(0.1 + 0.1 * next() - (i > 0 ? (double)l[i - 1] : 0) -
                                    (i + 1 < n ? (double)u[i] : 0));
    }
    dl.put(below);
    d.put(middle);
    du.put(above);
}

template struct tridiagonal_bed<float>;
template struct tridiagonal_bed<double>;

int main(int argc, char **argv)
{
    bool known = true, checks = false, times = false;
    const char *folder = nullptr;
    long n = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--n") == 0 && more)
            n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || checks == times) {
        fprintf(stderr, "usage: cuda_tridiagonal --check | --time [--n N] [--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    return checks ? check_all() : time_to(n, folder, device.name);
}
