/* bench/cuda/auto.cu: checks and times `auto` beside `lu` on an NVIDIA GPU, on the device's memory.
 *
 *   cuda_auto --check [--sort]
 *   cuda_auto --time [--sort] [--n N] [--results FOLDER]
 *
 * --check inverts batches of mixed kinds, judges every inverse by |I - X A| / (n |A| |X| eps) and
 * METHOD, and compares the bits of each matrix with those that it has alone; it ends with 1 when
 * something is wrong. --sort has matrices of every order sorted, where `auto` itself leaves small
 * ones to lu. --time prints a line for each order and precision, and writes the figures to
 * FOLDER/DATE-NAME-auto.csv, where NAME is the device's. Seconds are those of the host's clock over
 * all visits, as an engine makes them. Uses the first device that CUDA shows; nothing else should
 * run there. Needs up to 20 GB of its memory. An error of CUDA or of the command line ends with 2.
 */
#include <chrono>
#include <cmath>
#include <cstring>

#include "bench/cuda/clock.cuh"
#include "bench/cuda/results.cuh"
#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/lu/lu.h"

namespace
{

const double RATIO_MAX = 15;
const int ROUNDS = 5;

enum kind {
    DENSE,
    DIAGONAL,
    LOWER,
    UPPER,
    TRIDIAGONAL,
    KINDS,
    MIXED = KINDS /* one after the other */
};

const char *const names[] = {"dense", "diagonal", "lower", "upper", "tridiagonal", "mixed"};
const int algorithms[KINDS] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_DIAGONAL,
                               METHOD_ALGORITHM_TRIANGULAR, METHOD_ALGORITHM_TRIANGULAR,
                               METHOD_ALGORITHM_TRIDIAGONAL};

FILE *csv; /* NULL: nothing is recorded */
bool sort_all;

/* Of all calls, which come one after the other. Made by main, and never destroyed. */
struct cuda_products *products;
struct cuda_notes *notes;
cudaStream_t stream;

__host__ __device__ enum kind kind_of(enum kind kind, int64_t matrix)
{
    return kind == MIXED ? (enum kind)(matrix % KINDS) : kind;
}

__device__ bool is_zero(enum kind kind, int64_t i, int64_t j)
{
    return (kind == DIAGONAL && i != j) || (kind == LOWER && j > i) || (kind == UPPER && i > j) ||
           (kind == TRIDIAGONAL && (j > i + 1 || i > j + 1));
}

/* Random numbers; but for dense matrices, dominated by the diagonal. */
template <typename T> __global__ void shape(T *a, int64_t n, int64_t all, enum kind kind)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step) {
        enum kind own = kind_of(kind, e / (n * n));
        int64_t i = e / n % n, j = e % n;
        a[e] = is_zero(own, i, j) ? T(0) : i == j && own != DENSE ? (T)n + a[e] : a[e];
    }
}

/* Of matrix blockIdx.y the sums of |I - X A|, |A| and |X| down the thread's column; in double. */
template <typename T>
__global__ void measure(const T *a, const T *x, int64_t n, double *sums, int64_t matrices)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
    const T *own_a = a + m * n * n, *own_x = x + m * n * n;
    double residual = 0, size_a = 0, size_x = 0;
    if (j >= n)
        return;
    for (int64_t i = 0; i < n; i++) {
        double entry = i == j ? -1 : 0;
        for (int64_t k = 0; k < n; k++)
            entry = fma((double)own_x[i * n + k], (double)own_a[k * n + j], entry);
        residual += fabs(entry);
        size_a += fabs((double)own_a[i * n + j]);
        size_x += fabs((double)own_x[i * n + j]);
    }
    double *to = sums + (m * n + j) * 3;
    to[0] = residual;
    to[1] = size_a;
    to[2] = size_x;
}

/* `count` matrices of order n on the device, their inverses, and what the launchers take. */
template <typename T> struct bed {
    int64_t n, count;
    device_array<T> a, x, rcond;
    device_array<int32_t> info, algorithm;
    device_array<cuda_tensors> tensors;
    device_array<cuda_item> items;
    int visits = 0;

    bed(int64_t order, int64_t matrices, enum kind kind)
        : n(order), count(matrices), a(n * n * count), x(n * n * count), rcond(count), info(count),
          algorithm(count), tensors(1), items(1)
    {
        clock_fill<<<1024, 256>>>(a.at(0), (size_t)(n * n * count));
        shape<<<1024, 256>>>(a.at(0), n, n * n * count, kind);
        SMALL_TRY(cudaGetLastError());
        SMALL_TRY(cudaDeviceSynchronize());
    }
    bed(const bed &) = delete;
    bed &operator=(const bed &) = delete;

    static constexpr enum precision precision = small_real<T>::precision;

    /* A call for the matrices from `first` on. */
    struct cuda_call call_of(int64_t first, int64_t matrices)
    {
        static const int64_t options[METHOD_OPTIONS_MAX] = {};
        struct cuda_tensors item = {};
        item.inputs[0] = a.at(first * n * n);
        item.outputs[METHOD_OUTPUT_INVERSE] = x.at(first * n * n);
        item.outputs[METHOD_OUTPUT_INFO] = info.at(first);
        item.outputs[METHOD_OUTPUT_RCOND] = rcond.at(first);
        item.outputs[METHOD_OUTPUT_ALGORITHM] = algorithm.at(first);
        tensors.put({item});
        struct cuda_call call = {};
        call.precision = precision;
        call.n = n;
        call.options = options;
        call.item_count = 1;
        call.matrices = matrices;
        call.inputs = 1;
        call.tensors = tensors.at(0);
        call.products = products;
        call.notes = call.d_notes = notes;
        return call;
    }

    bool sorts() const
    {
        return sort_all || n >= CUDA_AUTO_SORTED_N_MIN;
    }

    /* All visits of one call. */
    void visit(const struct cuda_call &call)
    {
        notes->asked = 0;
        SMALL_TRY(cuda__auto_begin(&call, sorts(), stream));
        SMALL_TRY(cudaStreamSynchronize(stream));
        for (visits = 1; *(volatile uint32_t *)&notes->asked; visits++) {
            notes->asked = 0;
            SMALL_TRY(cuda_auto_again(&call, stream));
            SMALL_TRY(cudaStreamSynchronize(stream));
        }
    }

    void run(int64_t first, int64_t matrices)
    {
        struct cuda_call call = call_of(first, matrices);
        call.workspace_bytes = cuda__auto_bytes(&call, sorts(), matrices);
        device_array<char> workspace(call.workspace_bytes);
        call.workspace = workspace.at(0);
        SMALL_TRY(cudaDeviceSynchronize());
        visit(call);
    }

    template <typename F> static double seconds_of(F once)
    {
        std::vector<double> times;
        for (int round = 0; round <= ROUNDS; round++) {
            auto start = std::chrono::steady_clock::now();
            once();
            std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
            if (round > 0)
                times.push_back(taken.count());
        }
        std::sort(times.begin(), times.end());
        return times[ROUNDS / 2];
    }

    double time()
    {
        struct cuda_call call = call_of(0, count);
        call.workspace_bytes = cuda__auto_bytes(&call, sorts(), count);
        device_array<char> workspace(call.workspace_bytes);
        call.workspace = workspace.at(0);
        SMALL_TRY(cudaDeviceSynchronize());
        return seconds_of([&] { visit(call); });
    }

    double time_lu()
    {
        size_t bytes =
            n > CUDA_SMALL_N_MAX ? cuda_inverse_middle_workspace(precision, n, count) : 1;
        device_array<char> workspace(bytes);
        items.put({cuda_item{a.at(0), x.at(0), rcond.at(0), info.at(0), 0}});
        struct cuda_batch batch = {items.at(0), 1, count, nullptr};
        SMALL_TRY(cudaDeviceSynchronize());
        return seconds_of([&] {
            SMALL_TRY(n > CUDA_SMALL_N_MAX
                          ? cuda_inverse_middle(precision, n, &batch, workspace.at(0), bytes,
                                                products, stream)
                          : cuda_inverse_small(precision, n, &batch, stream));
            SMALL_TRY(cudaStreamSynchronize(stream));
        });
    }
};

/* ---- Check ---- */

/* The worst ratio of all matrices; infinite where there is no answer, or by another algorithm. */
template <typename T> double worst_of(bed<T> &bed, enum kind kind)
{
    int64_t n = bed.n;
    device_array<double> sums(bed.count * n * 3);
    measure<<<dim3((unsigned)((n + 63) / 64), (unsigned)bed.count), 64>>>(bed.a.at(0), bed.x.at(0),
                                                                          n, sums.at(0), bed.count);
    SMALL_TRY(cudaDeviceSynchronize());
    std::vector<double> found = sums.get(0, bed.count * n * 3);
    std::vector<int32_t> info = bed.info.get(0, bed.count),
                         algorithm = bed.algorithm.get(0, bed.count);
    double worst = 0;
    for (int64_t m = 0; m < bed.count; m++) {
        double most[3] = {0, 0, 0};
        for (int64_t e = 0; e < n * 3; e++) {
            double value = found[m * n * 3 + e];
            most[e % 3] = value > most[e % 3] || std::isnan(value) ? value : most[e % 3];
        }
        double ratio = most[0] / ((double)n * most[1] * most[2] * small_real<T>::eps);
        enum kind own = kind_of(kind, m);
        /* Of order 1 all are dense, of order 2 no one is tridiagonal, and so on. */
        int expected = bed.sorts() ? algorithms[own] : METHOD_ALGORITHM_LU;
        if (info[m] != 0 || (n > 2 && algorithm[m] != expected))
            ratio = HUGE_VAL;
        worst = ratio > worst || std::isnan(ratio) ? ratio : worst;
    }
    return worst;
}

/* How many matrices have other bits alone than in the batch. */
template <typename T> int count_changed(bed<T> &bed)
{
    int changed = 0;
    int64_t numbers = bed.n * bed.n;
    for (int64_t m = 0; m < bed.count; m += m < 2 * KINDS ? 1 : 17) {
        std::vector<T> x = bed.x.get(m * numbers, numbers), rcond = bed.rcond.get(m, 1);
        std::vector<int32_t> algorithm = bed.algorithm.get(m, 1);
        SMALL_TRY(cudaMemset(bed.x.at(m * numbers), 0xff, numbers * sizeof(T)));
        bed.run(m, 1);
        std::vector<T> alone = bed.x.get(m * numbers, numbers), own = bed.rcond.get(m, 1);
        changed += memcmp(x.data(), alone.data(), numbers * sizeof(T)) != 0 ||
                   memcmp(rcond.data(), own.data(), sizeof(T)) != 0 ||
                   algorithm[0] != bed.algorithm.get(m, 1)[0];
    }
    return changed;
}

template <typename T> bool check(int64_t n, int64_t count)
{
    bed<T> bed(n, count, MIXED);
    SMALL_TRY(cudaMemset(bed.x.at(0), 0xff, (size_t)(n * n * count) * sizeof(T)));
    bed.run(0, count);
    double worst = worst_of(bed, MIXED);
    int changed = count_changed(bed);
    bool right = worst <= RATIO_MAX && changed == 0;
    printf("auto %s n = %-5d %5d matrices: residual %.3f of %g, %d changed: %s\n",
           precision_name(bed.precision), (int)n, (int)count, worst, RATIO_MAX, changed,
           right ? "good" : "BAD");
    fflush(stdout);
    return right;
}

int check_all()
{
    static const struct {
        int64_t n, count;
    } rows[] = {{1, 40},   {2, 1000}, {3, 1000}, {8, 9000}, {31, 200},
                {32, 200}, {33, 200}, {64, 100}, {65, 100}, {150, 40},
                {300, 20}, {513, 10}, {1000, 5}, {1030, 5}, {2048, 5}};
    bool right = true;
    for (auto row : rows) {
        right = check<double>(row.n, row.count) && right;
        right = check<float>(row.n, row.count) && right;
    }
    return right ? 0 : 1;
}

/* ---- Time ---- */

template <typename T> void record(int64_t n, int64_t count, const char *what, double seconds)
{
    if (csv)
        fprintf(csv, "%s,%d,%d,%s,%.9g\n", precision_name(small_real<T>::precision), (int)n,
                (int)count, what, seconds * 1e6);
}

/* lu, then auto on each kind: its time, and how many times lu's that is. */
template <typename T> void time_order(int64_t n, int64_t count)
{
    double lu;
    {
        bed<T> bed(n, count, DENSE);
        lu = bed.time_lu();
    }
    record<T>(n, count, "lu", lu);
    printf("%s n = %-5d x %-8d lu %10.1f us;", precision_name(small_real<T>::precision), (int)n,
           (int)count, lu * 1e6);
    for (int k = 0; k <= MIXED; k++) {
        bed<T> bed(n, count, (enum kind)k);
        double seconds = bed.time();
        record<T>(n, count, names[k], seconds);
        printf(" %s %.2f (%d)", names[k], seconds / lu, bed.visits);
    }
    printf("\n");
    fflush(stdout);
}

void time_all(int64_t n)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{8, 1},      {8, 1000000}, {16, 500000}, {32, 200000}, {33, 1},
                {64, 40000}, {128, 8000},  {200, 3000},  {256, 2000},  {300, 1500},
                {512, 500},  {1024, 100},  {2048, 1},    {2048, 10},   {8192, 1}};
    if (csv)
        fputs("precision,n,matrices,what,us\n", csv);
    printf("auto's time over lu's for the same batch, by kind (visits)\n");
    for (auto row : rows) {
        if (n != 0 && n != row.n)
            continue;
        time_order<double>(row.n, row.count);
        time_order<float>(row.n, row.count);
    }
}

int time_to(int64_t n, const char *folder, const char *device)
{
    return results_to(folder, device, "auto", [&](FILE *file) {
        csv = file;
        time_all(n);
        return 0;
    });
}

} // namespace

int main(int argc, char **argv)
{
    bool known = true, checks = false, times = false;
    const char *folder = nullptr;
    void *memory = nullptr;
    long n = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--sort") == 0)
            sort_all = true;
        else if (strcmp(argv[i], "--n") == 0 && more)
            n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || checks == times) {
        fprintf(stderr, "usage: cuda_auto --check | --time [--sort] [--n N] [--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    SMALL_TRY(cudaHostAlloc(&memory, sizeof *notes, cudaHostAllocMapped));
    notes = (struct cuda_notes *)memory;
    SMALL_TRY(cuda_products_create(nullptr, &products));
    SMALL_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return checks ? check_all() : time_to(n, folder, device.name);
}
