/* bench/cuda/cholesky.cu: checks and times `auto` on symmetric positive definite matrices, on the
 * memory of an NVIDIA GPU.
 *
 *   cuda_cholesky --check
 *   cuda_cholesky --time [--n N] [--results FOLDER]
 *   cuda_cholesky --manners --n N
 *
 * --check inverts batches of symmetric matrices that are definite, indefinite, all but singular,
 * or differ from their transposes, and judges METHOD, INFO and |I - X A| / (n |A| |X| eps); that a
 * matrix has the same bits alone; and that 4^k A has the inverse of A by 4^k. It ends with 1 when
 * something is wrong. --time prints a line for each order and precision: `auto`, the inversion
 * without what goes before and behind it, `lu` with its recovery, and cuSOLVER's potrf and potri;
 * and writes the figures to FOLDER/DATE-NAME-cholesky.csv, where NAME is the device's. --manners
 * times the inversion of one matrix in every manner (gpu/cuda/structured/cholesky.h) that may suit
 * its order. Nothing else should run on the first device that CUDA shows. An error of CUDA or of
 * the command line ends with 2.
 */
#include <chrono>
#include <cmath>
#include <cstring>

#include <cusolverDn.h>

#include "bench/cuda/clock.cuh"
#include "bench/cuda/results.cuh"
#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/structured/cholesky.h"
#include "gpu/cuda/lu/lu.h"

namespace
{

const double RATIO_MAX = 15;
const int ROUNDS = 5;
const int SPD = 0; /* METHOD_AUTO_SPD: its header is one for C alone */

enum kind {
    WELL, /* dominated by its diagonal */
    GRAM, /* B B^T of a square B, and 1/8 of its diagonal more */
    INDEFINITE,
    ONE_PAIR, /* as GRAM, but that one entry is not the other's image */
    ROUNDED,  /* as GRAM, but that entries differ from their images in the last bit */
    SINGULAR, /* B B^T of a B with two rows that are equal */
    ZEROS,    /* as WELL, with zeros beside the corner */
    EVEN,     /* off the diagonal small numbers of one size, which leave no mark one by one */
    KINDS
};

const char *const names[] = {"well",    "gram",     "indefinite", "one pair",
                             "rounded", "singular", "zeros",      "even"};

FILE *csv; /* NULL: nothing is recorded */

/* Of all calls, which come one after the other. Made by main, and never destroyed. */
struct cuda_products *products;
struct cuda_notes *notes;
cudaStream_t stream;

/* b: B, random; c: B B^T. */
template <typename T> __global__ void shape(T *a, const T *c, int64_t n, enum kind kind)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < n * n; e += step) {
        int64_t i = e / n, j = e % n, low = min(i, j), high = max(i, j);
        T gram = c[high * n + low] * (kind != SINGULAR && i == j ? T(1.125) : T(1)), x = gram;
        if (kind == WELL || kind == ZEROS)
            x = i == j ? (T)n : gram / (T)n;
        if (kind == ZEROS && high == 1 && low == 0)
            x = 0;
        if (kind == INDEFINITE && low == high && low == n / 2)
            x = gram / (T)n / 64;
        if (kind == EVEN)
            x = i == j ? (T)n : (T)0.04;
        if (kind == ONE_PAIR && i == n - 1 && j == n / 2)
            x = gram + (T)0.5;
        if (kind == ROUNDED && i > j && (i + j) % 3 == 0)
            x = gram * (1 + (sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52)));
        a[e] = x;
    }
}

template <typename T> __global__ void scale(T *a, int64_t count, T factor)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < count; e += step)
        a[e] *= factor;
}

/* Adds the magnitudes of a column of `minus` I - P, or of P. */
template <typename T> __global__ void column_sums(const T *p, int64_t n, bool minus, double *sums)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int64_t i = 0; j < n && i < n; i++) {
        double x = (double)p[i * n + j];
        sum += fabs(minus && i == j ? 1 - x : minus ? -x : x);
    }
    if (j < n)
        sums[j] = sum;
}

template <typename T> double norm_of(const T *p, int64_t n, bool minus)
{
    device_array<double> sums(n);
    column_sums<<<(unsigned)((n + 255) / 256), 256>>>(p, n, minus, sums.at(0));
    SMALL_TRY(cudaGetLastError());
    double most = 0;
    for (double sum : sums.get(0, (size_t)n))
        most = sum > most || sum != sum ? sum : most;
    return most;
}

/* C = A op(B), n x n. */
template <typename T> void multiply(const T *a, const T *b, bool turned, T *c, int64_t n)
{
    struct cuda_product product = {};
    product.precision = small_real<T>::precision;
    product.rows = product.columns = product.inner = n;
    product.transpose_b = turned;
    product.alpha = 1;
    product.a = cuda_matrices{(void *)a, n, 0};
    product.b = cuda_matrices{(void *)b, n, 0};
    product.c = cuda_matrices{c, n, 0};
    product.count = 1;
    SMALL_TRY(cuda_product(products, &product, stream));
    SMALL_TRY(cudaStreamSynchronize(stream));
}

/* `count` matrices of order n on the device, their inverses, and what the launchers take. */
template <typename T> struct bed {
    int64_t n, count;
    device_array<T> a, x, rcond, other;
    device_array<int32_t> info, algorithm;
    device_array<cuda_tensors> tensors;
    device_array<cuda_item> items;
    bool averages = false;

    bed(int64_t order, int64_t matrices)
        : n(order), count(matrices), a(n * n * count), x(n * n * count), rcond(count), other(n * n),
          info(count), algorithm(count), tensors(1), items(1)
    {
    }
    bed(const bed &) = delete;
    bed &operator=(const bed &) = delete;

    static constexpr enum precision precision = small_real<T>::precision;

    T *matrix(int64_t m) const
    {
        return a.at(m * n * n);
    }

    void fill(int64_t m, enum kind kind)
    {
        T *b = x.at(0);
        clock_fill<<<1024, 256>>>(b, (size_t)(n * n));
        if (kind == SINGULAR)
            SMALL_TRY(
                cudaMemcpy(b + (n - 1) * n, b, (size_t)n * sizeof(T), cudaMemcpyDeviceToDevice));
        SMALL_TRY(cudaDeviceSynchronize()); /* the product's stream waits for nobody */
        multiply(b, b, true, other.at(0), n);
        shape<<<1024, 256>>>(matrix(m), other.at(0), n, kind);
        SMALL_TRY(cudaDeviceSynchronize());
    }

    /* A call for the matrices from `first` on. */
    struct cuda_call call_of(int64_t first, int64_t matrices)
    {
        static int64_t options[METHOD_OPTIONS_MAX];
        struct cuda_tensors item = {};
        options[SPD] = averages;
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

    /* All visits of one call. */
    void visit(const struct cuda_call &call)
    {
        notes->asked = 0;
        SMALL_TRY(cuda_auto(&call, stream));
        SMALL_TRY(cudaStreamSynchronize(stream));
        while (*(volatile uint32_t *)&notes->asked) {
            notes->asked = 0;
            SMALL_TRY(cuda_auto_again(&call, stream));
            SMALL_TRY(cudaStreamSynchronize(stream));
        }
    }

    template <typename F> void with_call(int64_t first, int64_t matrices, F f)
    {
        struct cuda_call call = call_of(first, matrices);
        call.workspace_bytes = cuda_auto_workspace(&call, matrices);
        device_array<char> workspace(call.workspace_bytes);
        call.workspace = workspace.at(0);
        SMALL_TRY(cudaMemset(workspace.at(0), 0xff, call.workspace_bytes));
        SMALL_TRY(cudaDeviceSynchronize());
        f(call);
    }

    void run(int64_t first, int64_t matrices)
    {
        SMALL_TRY(cudaMemset(x.at(first * n * n), 0xff, (size_t)(n * n * matrices) * sizeof(T)));
        with_call(first, matrices, [&](const struct cuda_call &call) { visit(call); });
    }

    double ratio(int64_t m)
    {
        double size_a = norm_of(matrix(m), n, false), size_x = norm_of(x.at(m * n * n), n, false);
        multiply(x.at(m * n * n), matrix(m), false, other.at(0), n);
        return norm_of(other.at(0), n, true) / ((double)n * size_a * size_x * small_real<T>::eps);
    }
};

/* ---- Check ---- */

bool is_definite(enum kind kind, bool averages, enum precision precision, int64_t n)
{
    if (n < CUDA_AUTO_DEFINITE_N_MIN(precision))
        return kind == ROUNDED && averages;
    return kind == WELL || kind == GRAM || kind == ZEROS || kind == EVEN ||
           (kind == ROUNDED && averages);
}

template <typename T> bool check_matrix(bed<T> &bed, int64_t m, double *worst)
{
    enum kind kind = (enum kind)(m % KINDS);
    int32_t info = bed.info.get(m, 1)[0], algorithm = bed.algorithm.get(m, 1)[0];
    bool definite = is_definite(kind, bed.averages, bed.precision, bed.n);
    double ratio = info == 0 ? bed.ratio(m) : 0;
    bool right = algorithm == (definite ? METHOD_ALGORITHM_CHOLESKY : METHOD_ALGORITHM_LU) &&
                 ratio <= RATIO_MAX && (kind == SINGULAR || info == 0);
    *worst = ratio > *worst || std::isnan(ratio) ? ratio : *worst;
    if (!right)
        printf("BAD: %s n = %d %s: METHOD %d, INFO %d, ratio %g, RCOND %g\n",
               precision_name(bed.precision), (int)bed.n, names[kind], (int)algorithm, (int)info,
               ratio, (double)bed.rcond.get(m, 1)[0]);
    return right;
}

/* The bits alone, and those of the matrix by a power of four. */
template <typename T> int count_changed(bed<T> &bed, int64_t m)
{
    size_t numbers = (size_t)(bed.n * bed.n);
    std::vector<T> x = bed.x.get(m * numbers, numbers), rcond = bed.rcond.get(m, 1);
    int32_t algorithm = bed.algorithm.get(m, 1)[0], info = bed.info.get(m, 1)[0];
    bed.run(m, 1);
    std::vector<T> alone = bed.x.get(m * numbers, numbers), own = bed.rcond.get(m, 1);
    int changed = memcmp(x.data(), alone.data(), numbers * sizeof(T)) != 0 ||
                  memcmp(rcond.data(), own.data(), sizeof(T)) != 0 ||
                  algorithm != bed.algorithm.get(m, 1)[0];
    if (info != 0)
        return changed;
    scale<<<1024, 256>>>(bed.matrix(m), (int64_t)numbers, T(0x1p-42));
    SMALL_TRY(cudaDeviceSynchronize());
    bed.run(m, 1);
    scale<<<1024, 256>>>(bed.x.at(m * numbers), (int64_t)numbers, T(0x1p-42));
    scale<<<1024, 256>>>(bed.matrix(m), (int64_t)numbers, T(0x1p42));
    SMALL_TRY(cudaDeviceSynchronize());
    alone = bed.x.get(m * numbers, numbers);
    return changed + 2 * (memcmp(x.data(), alone.data(), numbers * sizeof(T)) != 0);
}

template <typename T> bool check(int64_t n, int64_t count, bool averages)
{
    bed<T> bed(n, count);
    bed.averages = averages;
    for (int64_t m = 0; m < count; m++)
        bed.fill(m, (enum kind)(m % KINDS));
    bed.run(0, count);
    double worst = 0;
    bool right = true;
    int changed = 0;
    for (int64_t m = 0; m < count; m++)
        right = check_matrix(bed, m, &worst) && right;
    for (int64_t m = 0; m < KINDS && m < count; m++)
        changed += count_changed(bed, m);
    right = right && changed == 0;
    printf("%s n = %-5d %4d matrices%s: residual %.3f of %g, %d changed: %s\n",
           precision_name(bed.precision), (int)n, (int)count, averages ? ", spd" : "", worst,
           RATIO_MAX, changed, right ? "good" : "BAD");
    fflush(stdout);
    return right;
}

int check_all(int64_t n)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{5, 24},   {40, 24},  {129, 16}, {256, 32}, {257, 16}, {300, 24}, {513, 16},
                {640, 16}, {1000, 8}, {1024, 8}, {2048, 8}, {2049, 8}, {4100, 8}, {6300, 8}};
    bool right = true;
    for (auto row : rows) {
        if (n != 0 && n != row.n)
            continue;
        for (int averages = 0; averages < 2; averages++) {
            right = check<double>(row.n, row.count, averages) && right;
            right = check<float>(row.n, row.count, averages) && right;
        }
    }
    return right ? 0 : 1;
}

/* ---- Time ---- */

template <typename T> struct solver;

template <> struct solver<float> {
    static constexpr auto factor_bytes = cusolverDnSpotrf_bufferSize;
    static constexpr auto invert_bytes = cusolverDnSpotri_bufferSize;
    static constexpr auto factor = cusolverDnSpotrf;
    static constexpr auto invert = cusolverDnSpotri;
};

template <> struct solver<double> {
    static constexpr auto factor_bytes = cusolverDnDpotrf_bufferSize;
    static constexpr auto invert_bytes = cusolverDnDpotri_bufferSize;
    static constexpr auto factor = cusolverDnDpotrf;
    static constexpr auto invert = cusolverDnDpotri;
};

void demand(int status)
{
    if (status == 0)
        return;
    fprintf(stderr, "cuda_cholesky: cuSOLVER: status %d\n", status);
    exit(2);
}

/* Seconds of once() by the host's clock; prepare(), which awaits what it starts, is not counted. */
template <typename P, typename F> double seconds_of(P prepare, F once)
{
    std::vector<double> times;
    for (int round = 0; round <= ROUNDS; round++) {
        prepare();
        auto start = std::chrono::steady_clock::now();
        once();
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (round > 0)
            times.push_back(taken.count());
    }
    std::sort(times.begin(), times.end());
    return times[ROUNDS / 2];
}

template <typename F> double seconds_of(F once)
{
    return seconds_of([] {}, once);
}

template <typename T> double time_auto(bed<T> &bed)
{
    double seconds = 0;
    bed.with_call(0, bed.count, [&](const struct cuda_call &call) {
        seconds = seconds_of([&] { bed.visit(call); });
    });
    return seconds;
}

/* What is to be recovered is recovered. */
template <typename T> double time_lu(bed<T> &bed)
{
    size_t bytes = cuda_inverse_middle_workspace(bed.precision, bed.n, bed.count);
    device_array<char> workspace(bytes);
    bed.items.put({cuda_item{bed.a.at(0), bed.x.at(0), bed.rcond.at(0), bed.info.at(0), 0}});
    struct cuda_batch batch = {bed.items.at(0), 1, bed.count, &notes->asked};
    SMALL_TRY(cudaDeviceSynchronize());
    return seconds_of([&] {
        notes->asked = 0;
        SMALL_TRY(cuda_inverse_middle(bed.precision, bed.n, &batch, workspace.at(0), bytes,
                                      products, stream));
        SMALL_TRY(cudaStreamSynchronize(stream));
        if (!*(volatile uint32_t *)&notes->asked)
            return;
        SMALL_TRY(cuda_recover_middle(bed.precision, bed.n, &batch, workspace.at(0), bytes,
                                      products, stream));
        SMALL_TRY(cudaStreamSynchronize(stream));
    });
}

/* X becomes A, to be worked on in place. */
template <typename T> void copy_matrices(bed<T> &bed)
{
    size_t bytes = (size_t)(bed.n * bed.n * bed.count) * sizeof(T);
    SMALL_TRY(cudaMemcpyAsync(bed.x.at(0), bed.a.at(0), bytes, cudaMemcpyDeviceToDevice, stream));
    SMALL_TRY(cudaStreamSynchronize(stream));
}

/* What goes on between the reading of A and the writing of X. W is A again in each round, which is
 * not counted. */
template <typename T> double time_inversion(bed<T> &bed, const struct cuda_cholesky_manner &manner)
{
    int64_t n = (bed.n + CUDA_CHOLESKY_UNIT - 1) / CUDA_CHOLESKY_UNIT * CUDA_CHOLESKY_UNIT;
    size_t bytes = cuda_cholesky_scratch_as(&manner, bed.precision, n, bed.count);
    device_array<char> scratch(bytes);
    device_array<int32_t> failed(bed.count);
    if (n != bed.n)
        return 0;
    struct cuda_cholesky task = {};
    task.precision = bed.precision;
    task.n = n;
    task.count = bed.count;
    task.w = cuda_matrices{bed.x.at(0), n, n * n};
    task.failed = failed.at(0);
    task.scratch = scratch.at(0);
    return seconds_of([&] { copy_matrices(bed); },
                      [&] {
                          SMALL_TRY(cuda_cholesky_invert_as(&manner, products, &task, stream));
                          SMALL_TRY(cudaStreamSynchronize(stream));
                      });
}

/* potrf and potri, one matrix. */
template <typename T> double time_solver(bed<T> &bed)
{
    static cusolverDnHandle_t handle;
    const cublasFillMode_t half = CUBLAS_FILL_MODE_LOWER;
    int n = (int)bed.n, factor_count = 0, invert_count = 0;
    if (!handle)
        demand(cusolverDnCreate(&handle));
    demand(cusolverDnSetStream(handle, stream));
    demand(solver<T>::factor_bytes(handle, half, n, bed.x.at(0), n, &factor_count));
    demand(solver<T>::invert_bytes(handle, half, n, bed.x.at(0), n, &invert_count));
    device_array<T> work((size_t)std::max(factor_count, invert_count));
    return seconds_of([&] { copy_matrices(bed); },
                      [&] {
                          demand(solver<T>::factor(handle, half, n, bed.x.at(0), n, work.at(0),
                                                   factor_count, bed.info.at(0)));
                          demand(solver<T>::invert(handle, half, n, bed.x.at(0), n, work.at(0),
                                                   invert_count, bed.info.at(0)));
                          SMALL_TRY(cudaStreamSynchronize(stream));
                      });
}

template <typename T> void time_order(int64_t n, int64_t count)
{
    bed<T> bed(n, count);
    bed.fill(0, GRAM);
    for (int64_t m = 1; m < count; m++)
        SMALL_TRY(cudaMemcpy(bed.matrix(m), bed.matrix(0), (size_t)(n * n) * sizeof(T),
                             cudaMemcpyDeviceToDevice));
    double all = time_auto(bed);
    bool definite = bed.algorithm.get(count - 1, 1)[0] == METHOD_ALGORITHM_CHOLESKY;
    double own = time_inversion(bed, cuda_cholesky_manner_of(n)), lu = time_lu(bed);
    double peer = count == 1 ? time_solver(bed) : 0;
    double operations = (double)count * (double)n * (double)n * (double)n;
    printf(
        "%s n = %-5d x %-5d %s auto %10.1f us %6.0f GFLOP/s; inversion %10.1f; lu %10.1f (%.2f); "
        "cuSOLVER %10.1f (%.2f)\n",
        precision_name(bed.precision), (int)n, (int)count, definite ? "cholesky" : "LU", all * 1e6,
        operations / all / 1e9, own * 1e6, lu * 1e6, lu / all, peer * 1e6, peer / all);
    if (csv)
        fprintf(csv, "%s,%d,%d,%.9g,%.9g,%.9g,%.9g\n", precision_name(bed.precision), (int)n,
                (int)count, all * 1e6, own * 1e6, lu * 1e6, peer * 1e6);
    fflush(stdout);
}

template <typename T> void time_manners(int64_t n)
{
    bed<T> bed(n, 1);
    bed.fill(0, WELL);
    auto time = [&](const struct cuda_cholesky_manner &manner) {
        printf("%s n = %d: groups of %d, strips of %d: %.1f us\n", precision_name(bed.precision),
               (int)n, (int)manner.group, (int)manner.strip, time_inversion(bed, manner) * 1e6);
        fflush(stdout);
    };
    for (int64_t group = 128; group <= 512; group *= 2) {
        if (n <= 8192)
            time({group, 0});
        for (int64_t strip = 512; n >= 2048 && strip <= 4096; strip *= 2)
            time({group, strip});
    }
}

int time_all(int64_t n)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{256, 1},  {512, 1},   {1024, 1},   {2048, 1},   {4096, 1},  {8192, 1},  {16384, 1},
                {256, 10}, {256, 100}, {256, 1000}, {288, 1000}, {320, 500}, {384, 1},   {384, 500},
                {512, 10}, {512, 400}, {1024, 4},   {1024, 100}, {2048, 4},  {2048, 16}, {4096, 4}};
    if (csv)
        fputs("precision,n,matrices,auto_us,inversion_us,lu_us,cusolver_us\n", csv);
    for (auto row : rows) {
        if (n != 0 && n != row.n)
            continue;
        time_order<double>(row.n, row.count);
        time_order<float>(row.n, row.count);
    }
    return 0;
}

int time_to(int64_t n, const char *folder, const char *device)
{
    return results_to(folder, device, "cholesky", [&](FILE *file) {
        csv = file;
        return time_all(n);
    });
}

} // namespace

int main(int argc, char **argv)
{
    bool known = true, checks = false, times = false, manners = false;
    const char *folder = nullptr;
    void *memory = nullptr;
    long n = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--manners") == 0)
            manners = true;
        else if (strcmp(argv[i], "--n") == 0 && more)
            n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || checks + times + manners != 1 || (manners && n == 0)) {
        fprintf(stderr, "usage: cuda_cholesky --check | --time [--n N] [--results FOLDER] | "
                        "--manners --n N\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    SMALL_TRY(cudaHostAlloc(&memory, sizeof *notes, cudaHostAllocMapped));
    notes = (struct cuda_notes *)memory;
    SMALL_TRY(cuda_products_create(nullptr, &products));
    SMALL_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (manners) {
        time_manners<double>(n);
        time_manners<float>(n);
        return 0;
    }
    return checks ? check_all(n) : time_to(n, folder, device.name);
}
