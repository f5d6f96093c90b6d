/* bench/cuda/ism.cu: checks and times `ism` on an NVIDIA GPU, on the device's memory.
 *
 *   cuda_ism --check
 *   cuda_ism --time [--results FOLDER]
 *   cuda_ism --steps [--results FOLDER]
 *   cuda_ism --small
 *   cuda_ism --memory
 *   cuda_ism --once N M [fp32] [inverse]
 *
 * --small prints the first table of --time alone. --memory tells what block and reduced_memory
 * reserve and write of the device's memory at m = n.
 * --once is for a profiler: up to n = 1000 a batch of updates, beyond one matrix whose A0 is
 * diagonal, or with `inverse` one update.
 * --check tries every way to give A0 and every variant at orders of every kind of launch by its
 * residual, and the algorithm of matrices that fail their trial, and ends with 1 when one is wrong.
 * --time prints two tables and writes them to FOLDER/DATE-NAME-ism.csv, where NAME is the device's.
 * Batched updates of known inverses, and single ones: microseconds of ours, of a copy of as many
 * bytes, and of our own lu on as many matrices; and how many times ours lu takes, alone and with
 * the copy, which is the least that forming A takes. One large matrix: of ours, of our lu and
 * cuSOLVER's getrf and getrs on the formed A, of a fill of n^2 numbers, and of a product of the
 * order n, all in the same run. The operations counted for ours are 2 n^2 m + 4 n m^2, with
 * A0_INVERSE 4 n^2 m more. --steps prints how the time is shared by the steps, and writes it to
 * FOLDER/DATE-NAME-ism-steps.csv. Uses the first device that CUDA shows; nothing else should run
 * there. Needs up to 20 GB of its memory. An error of CUDA or of the command line ends with 2.
 */
#include "bench/cuda/ism.cuh"

#include <cmath>
#include <cstring>

#include "bench/cuda/results.cuh"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/lu/lu.h"

#define BATCH_BYTES ((int64_t)1 << 29) /* of known inverses */
#define RATIO_MAX 15.0
/* Of ordinary matrices no more than one of so many is recovered. */
#define RECOVERED_SHARE 8
/* Calls of fewer operations are timed by ten: of two the first would count in which the device
 * waits for launches. */
#define SHORT_FLOPS 1e11
#define WHOLE_N_MAX 300 /* to this order the residual is computed whole */

namespace
{

const char *const kind_names[] = {"diagonal", "inverse", "both", "alone"};
const char *const variant_names[] = {"auto", "single", "block", "reduced_memory"};

template <typename T> __global__ void fill_with(T *a, size_t count, T value)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < count; e += step)
        a[e] = value;
}

/* ---- Check ---- */

/* A small problem's numbers in double. */
struct whole {
    int64_t n;
    std::vector<double> a, z, m; /* m: I + X Y^T A0^-1, where A0_INVERSE is alone */
};

std::vector<double> product(int64_t n, const std::vector<double> &a, const std::vector<double> &b)
{
    std::vector<double> c((size_t)(n * n));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    return c;
}

double norm(int64_t n, const std::vector<double> &a)
{
    double most = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += fabs(a[i * n + j]);
        most = sum > most || std::isnan(sum) ? sum : most;
    }
    return most;
}

template <typename T> std::vector<double> widened(const device_array<T> &of, int64_t at, int64_t n)
{
    std::vector<T> numbers = of.get((size_t)at, (size_t)n);
    return std::vector<double>(numbers.begin(), numbers.end());
}

/* a = X Y^T of matrix k, in double. */
template <typename T> std::vector<double> change_of(const bed<T> &of, int64_t k)
{
    int64_t n = of.n, m = of.m;
    std::vector<double> a((size_t)(n * n)), x = widened(of.x, k * n * m, n * m);
    std::vector<double> y = widened(of.y, k * n * m, n * m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < m; c++)
                a[i * n + j] += x[i * m + c] * y[j * m + c];
    return a;
}

/* |I - Z A| / (n |A| |Z| eps), or |B - Z M| / (n |Z| (1 + |M - I|) eps). */
template <typename T> double ratio_of(const bed<T> &of, int64_t k)
{
    int64_t n = of.n;
    double size, eps = small_real<T>::eps;
    std::vector<double> z = widened(of.z, k * n * n, n * n), b, error;
    std::vector<double> a = of.kind == ALONE ? widened(of.a0, k * n * n, n * n) : change_of(of, k);
    if (of.kind == INVERSE) {
        b = widened(of.b, k * n * n, n * n);
        a = product(n, a, b);
        size = 1 + norm(n, a);
        for (int64_t i = 0; i < n; i++)
            a[i * (n + 1)] += 1;
    } else {
        std::vector<double> a0 = of.kind == BOTH       ? widened(of.a0, k * n * n, n * n)
                                 : of.kind == DIAGONAL ? widened(of.d, k * n, n)
                                                       : std::vector<double>();
        for (int64_t i = 0; i < (int64_t)a0.size(); i++)
            a[of.kind == BOTH ? i : i * (n + 1)] += a0[i];
        size = norm(n, a);
        b.assign((size_t)(n * n), 0);
        for (int64_t i = 0; i < n; i++)
            b[i * (n + 1)] = 1;
    }
    error = product(n, z, a);
    for (int64_t e = 0; e < n * n; e++)
        error[e] -= b[e];
    return norm(n, error) / ((double)n * size * norm(n, z) * eps);
}

std::vector<double> times(int64_t n, const std::vector<double> &a, const std::vector<double> &v)
{
    std::vector<double> av((size_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            av[i] += a[i * n + j] * v[j];
    return av;
}

/* The same for a large order: of one vector v, the largest of v - Z A v, or of B v - Z M B v, over
 * the square root of n for n. */
template <typename T> double ratio_of_vector(const bed<T> &of)
{
    int64_t n = of.n, m = of.m;
    std::vector<double> v((size_t)n), av((size_t)n), thin((size_t)m);
    std::vector<double> x = widened(of.x, 0, n * m), y = widened(of.y, 0, n * m);
    std::vector<double> d = widened(of.d, 0, n), z = widened(of.z, 0, n * n);
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = i * 7 % 5 - 2.1;
        av[i] = of.kind == INVERSE ? v[i] : d[i] * v[i];
    }
    if (of.kind == INVERSE)
        v = times(n, widened(of.b, 0, n * n), v);
    for (int64_t e = 0; e < n * m; e++)
        thin[e % m] += y[e] * v[e / m];
    for (int64_t e = 0; e < n * m; e++)
        av[e / m] += x[e] * thin[e % m];
    std::vector<double> found = times(n, z, av);
    for (int64_t i = 0; i < n; i++) {
        double error = fabs(found[i] - v[i]);
        worst = error > worst || std::isnan(error) ? error : worst;
    }
    return worst / (sqrt((double)n) * 4 * norm(n, z) * small_real<T>::eps);
}

/* A0 = what lu makes of B: kinds with both. B is drawn; A0 = B^-1 by the device's lu. */
template <typename T> void invert_into(bed<T> &of)
{
    int64_t n = of.n;
    draw<T>(of.a0, (size_t)(n * n * of.count), (T)(0.5 / sqrt((double)n)), 2, n);
    if (of.kind == ALONE)
        return;
    struct cuda_item item = {of.a0.at(0), of.b.at(0), of.rcond.at(0), of.info.at(0), 0};
    device_array<cuda_item> items(1);
    items.put({item});
    struct cuda_batch batch = {items.at(0), 1, of.count, nullptr};
    size_t bytes = cuda_inverse_middle_workspace(of.call.precision, n, of.count);
    device_array<char> space(std::max<size_t>(bytes, 1));
    if (n <= CUDA_SMALL_N_MAX) {
        SMALL_TRY(cuda_inverse_small(of.call.precision, n, &batch, nullptr));
        SMALL_TRY(cuda_recover_small(of.call.precision, n, &batch, nullptr));
    } else {
        SMALL_TRY(cuda_inverse_middle(of.call.precision, n, &batch, space.at(0), bytes,
                                      of.call.products, nullptr));
        SMALL_TRY(cuda_recover_middle(of.call.precision, n, &batch, space.at(0), bytes,
                                      of.call.products, nullptr));
    }
    SMALL_TRY(cudaDeviceSynchronize());
    for (int32_t info : of.info.get(0, (size_t)of.count)) {
        if (info != 0) {
            printf("lu of a matrix of order %d: INFO %d\n", (int)n, (int)info);
            return;
        }
    }
}

template <typename T>
bool check_one(enum kind kind, int64_t n, int64_t m, int64_t count, int64_t variant, bool recovers)
{
    bed<T> of(kind, n, m, count, variant, 0);
    double worst = 0;
    int wrong = 0;
    if (kind >= BOTH)
        invert_into(of);
    if (recovers) /* A0 is far smaller than the change: the trial sees it. */
        fill_with<<<64, 256>>>(of.d.at(0), (size_t)(n * count), (T)1e-14);
    int64_t recovered = of.run_whole();
    std::vector<int32_t> info = of.info.get(0, (size_t)count);
    for (int64_t k = 0; k < count; k++)
        wrong += info[k] != 0 && !(recovers && info[k] == n + 1);
    for (int64_t k : {(int64_t)0, count / 2, count - 1}) {
        double ratio = n <= WHOLE_N_MAX ? ratio_of(of, k) : ratio_of_vector(of);
        worst = ratio > worst || std::isnan(ratio) ? ratio : worst;
    }
    bool right = worst <= RATIO_MAX && wrong == 0 &&
                 (recovers ? recovered == count : recovered <= count / RECOVERED_SHARE);
    if (!right)
        printf(
            "%s %s n = %d, m = %d, %d matrices, %s: ratio %g, %d wrong INFO, %d recovered: WRONG\n",
            precision_name(small_real<T>::precision), kind_names[kind], (int)n, (int)m, (int)count,
            variant_names[variant], worst, wrong, (int)recovered);
    return right;
}

int check_all()
{
    static const struct {
        int64_t n, m, count;
    } shapes[] = {{1, 1, 3},   {3, 2, 50},   {8, 1, 1000}, {8, 8, 33},   {13, 3, 77},  {16, 5, 9},
                  {31, 1, 40}, {32, 1, 999}, {32, 8, 50},  {33, 2, 30},  {50, 12, 5},  {64, 1, 20},
                  {64, 32, 9}, {65, 3, 7},   {128, 64, 3}, {200, 70, 2}, {257, 200, 1}};
    int failed = 0;
    for (const auto &s : shapes)
        for (int kind = 0; kind < KINDS; kind++)
            for (int64_t variant = 0; variant < 4; variant++) {
                int64_t m = kind == ALONE ? s.n : s.m;
                failed += !check_one<float>((enum kind)kind, s.n, m, s.count, variant, false);
                failed += !check_one<double>((enum kind)kind, s.n, m, s.count, variant, false);
            }
    for (int64_t n : {20, 60, 150}) {
        failed += !check_one<double>(DIAGONAL, n, n, 5, 0, true);
        failed += !check_one<double>(DIAGONAL, n, n + 5, 70, 0, true);
    }
    /* The last product makes the answer; of an odd n, in FP32 of 1502, rows begin anywhere. */
    for (int64_t n : {65, 129, 801, 1500, 1502, 3000, 3001})
        for (int64_t m : {1, 32, 33, 64}) {
            failed += !check_one<float>(DIAGONAL, n, m, 2, 0, false);
            failed += !check_one<double>(DIAGONAL, n, m, 2, 0, false);
            failed += !check_one<float>(INVERSE, n, m, 2, 0, false);
            failed += !check_one<double>(INVERSE, n, m, 2, 0, false);
        }
    for (int64_t m : {1, 64, 700})
        for (int64_t variant : {0, 2, 3}) {
            failed += !check_one<float>(DIAGONAL, 1500, m, 1, variant, false);
            failed += !check_one<double>(DIAGONAL, 1500, m, 1, variant, false);
        }
    for (int64_t m : {1300, 1536}) { /* several groups that are blocks */
        failed += !check_one<float>(DIAGONAL, 1536, m, 1, 2, false);
        failed += !check_one<double>(DIAGONAL, 1536, m, 1, 2, false);
    }
    printf("cuda_ism: %d failed\n", failed);
    return failed ? 1 : 0;
}

/* ---- Time ---- */

/* Our own lu on `count` matrices. */
template <typename T> double time_lu(int64_t n, int64_t count)
{
    size_t numbers = (size_t)(n * n * count);
    device_array<T> a(numbers), x(numbers), rcond((size_t)count);
    device_array<int32_t> info((size_t)count);
    device_array<cuda_item> items(1);
    draw<T>(a, numbers, (T)(0.5 / sqrt((double)n)), 2, n);
    items.put({cuda_item{a.at(0), x.at(0), rcond.at(0), info.at(0), 0}});
    struct cuda_batch batch = {items.at(0), 1, count, nullptr};
    enum precision precision = small_real<T>::precision;
    size_t bytes = n > CUDA_SMALL_N_MAX ? cuda_inverse_middle_workspace(precision, n, count) : 1;
    device_array<char> space(std::max<size_t>(bytes, 1));
    return clock_seconds(
        [&](int) {
            SMALL_TRY(n <= CUDA_SMALL_N_MAX ? cuda_inverse_small(precision, n, &batch, nullptr)
                                            : cuda_inverse_middle(precision, n, &batch, space.at(0),
                                                                  bytes, products(), nullptr));
        },
        2);
}

/* count: 0: as many as BATCH_BYTES hold. */
template <typename T> void time_batch(int64_t n, int64_t m, int64_t count, FILE *csv)
{
    count = count > 0 ? count : BATCH_BYTES / (n * n * (int64_t)sizeof(T));
    bed<T> of(INVERSE, n, m, count, 0, 0);
    size_t bytes = (size_t)(count * (2 * n * n + 2 * n * m + 2) + count) * sizeof(T);
    double ours = clock_seconds([&](int) { of.run(); }, 4);
    double copy = clock_copies(of.z.at(0), of.b.at(0), (size_t)(count * n * n) * sizeof(T), bytes,
                               4)[CLOCK_ROUNDS / 2];
    double lu = time_lu<T>(n, count);
    int64_t unverified = of.run_whole();
    const char *name = precision_name(small_real<T>::precision);
    printf("%s %4d %4d %8d %10.1f %10.1f (%3.0f%%) %10.1f (%.2f times, %.2f with the copy) %d "
           "unverified\n",
           name, (int)n, (int)m, (int)count, ours * 1e6, copy * 1e6, 100 * copy / ours, lu * 1e6,
           lu / ours, (copy + lu) / ours, (int)unverified);
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,%d,inverse,auto,%.2f,%.2f,%.2f,,,,\n", name, (int)n, (int)m,
                (int)count, ours * 1e6, copy * 1e6, lu * 1e6);
}

/* What a matrix of order n takes without ism, and what a device can do at that order. */
struct bounds {
    int64_t n = 0;
    double lu = 0, solver = 0, fill = 0, product = 0;
};

template <typename T> struct bounds bounds_of(int64_t n)
{
    struct bounds found;
    size_t numbers = (size_t)(n * n);
    device_array<T> a(numbers), b(numbers), c(numbers);
    draw<T>(a, numbers, (T)(0.5 / sqrt((double)n)), 2, n);
    draw<T>(b, numbers, 1, 0, 0);
    struct cuda_product square = {};
    square.precision = small_real<T>::precision;
    square.rows = square.columns = square.inner = n;
    square.alpha = 1;
    square.a = {a.at(0), n, 0};
    square.b = {b.at(0), n, 0};
    square.c = {c.at(0), n, (int64_t)numbers};
    square.count = 1;
    found.n = n;
    found.product =
        clock_seconds([&](int) { SMALL_TRY(cuda_product(products(), &square, nullptr)); }, 3);
    found.fill = clock_seconds(
        [&](int) {
            fill_with<<<132 * 16, 256>>>(c.at(0), numbers, (T)1);
            SMALL_TRY(cudaGetLastError());
        },
        10);
    found.solver = ism_peers_of(n, a.at(0)).solver;
    found.lu = time_lu<T>(n, 1);
    return found;
}

template <typename T>
void time_large(enum kind kind, int64_t m, int64_t variant, int64_t block,
                const struct bounds &bounds, FILE *csv)
{
    int64_t n = bounds.n;
    bed<T> of(kind, n, m, 1, variant, block);
    double order = (double)n, rank = (double)m;
    double flops = order * order * rank * (kind == INVERSE ? 6 : 2) + 4 * order * rank * rank;
    double ours = clock_seconds([&](int) { of.run(); }, flops < SHORT_FLOPS ? 10 : 2);
    double rate = 2 * order * order * order / bounds.product;
    int64_t unverified = of.run_whole();
    const char *name = precision_name(small_real<T>::precision);
    printf(
        "%s %5d %5d %-8s %-14s %5d %10.1f us %5.1f TFLOP/s (%3.0f%% of the product, %3.0f%% of a "
        "fill) lu %8.1f (%.1f times) cuSOLVER %9.1f (%.1f times) %.2f GB %d unverified\n",
        name, (int)n, (int)m, kind_names[kind], variant_names[variant], (int)block, ours * 1e6,
        flops / ours * 1e-12, 100 * flops / ours / rate, 100 * bounds.fill / ours, bounds.lu * 1e6,
        bounds.lu / ours, bounds.solver * 1e6, bounds.solver / ours,
        (double)cuda_ism_workspace(&of.call, 1) * 1e-9, (int)unverified);
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,1,%s,%s,%.2f,,%.2f,%.2f,%.2f,%.2f,%d\n", name, (int)n, (int)m,
                kind_names[kind], variant_names[variant], ours * 1e6, bounds.lu * 1e6,
                bounds.solver * 1e6, bounds.fill * 1e6, bounds.product * 1e6, (int)block);
}

template <typename T> void time_order(int64_t n, bool whole, FILE *csv)
{
    struct bounds bounds = bounds_of<T>(n);
    time_large<T>(DIAGONAL, 64, 0, 0, bounds, csv);
    time_large<T>(DIAGONAL, n / 8, 0, 0, bounds, csv);
    time_large<T>(DIAGONAL, n / 2, 0, 0, bounds, csv);
    time_large<T>(INVERSE, 64, 0, 0, bounds, csv);
    if (!whole)
        return;
    time_large<T>(INVERSE, n / 8, 0, 0, bounds, csv);
    for (int64_t block : {16, 32, 96, 128})
        time_large<T>(DIAGONAL, n / 2, 2, block, bounds, csv);
    for (int64_t block : {64, 128})
        time_large<T>(DIAGONAL, n / 2, 3, block, bounds, csv);
}

/* Few columns, of an order at which rows of the answer do not begin at multiples of 16 bytes. */
template <typename T> void time_odd_order(int64_t n, FILE *csv)
{
    struct bounds bounds = bounds_of<T>(n);
    time_large<T>(DIAGONAL, 64, 0, 0, bounds, csv);
    time_large<T>(INVERSE, 64, 0, 0, bounds, csv);
}

void time_batches(FILE *csv)
{
    static const struct {
        int64_t n, m;
    } batches[] = {{8, 1},    {8, 2},   {12, 3},   {16, 1},   {16, 2},   {16, 3},   {16, 4},
                   {24, 6},   {32, 1},  {32, 2},   {32, 3},   {32, 4},   {32, 5},   {32, 6},
                   {32, 8},   {40, 4},  {48, 1},   {48, 12},  {64, 1},   {64, 4},   {64, 8},
                   {64, 16},  {96, 8},  {96, 24},  {112, 8},  {128, 4},  {128, 8},  {128, 16},
                   {128, 32}, {144, 8}, {200, 8},  {200, 16}, {200, 50}, {256, 8},  {256, 64},
                   {384, 8},  {512, 8}, {512, 32}, {600, 16}, {600, 40}, {1000, 8}, {1000, 64}},
      singles[] = {{8, 1},    {8, 2},   {16, 1},   {16, 2},  {16, 4},   {32, 1},
                   {32, 2},   {32, 3},  {32, 4},   {32, 8},  {48, 12},  {64, 1},
                   {64, 8},   {64, 16}, {96, 24},  {128, 8}, {128, 32}, {176, 8},
                   {200, 16}, {256, 8}, {256, 64}, {512, 32}},
      alone[] = {{100, 4}, {200, 16}, {600, 40}, {1000, 8}, {1000, 64}};
    if (csv)
        fputs("precision,n,m,matrices,a0,variant,ism_us,copy_us,lu_us,cusolver_us,fill_us,"
              "product_us,block\n",
              csv);
    printf("        n    m    count    ism us    copy us             lu us\n");
    for (const auto &batch : batches)
        time_batch<double>(batch.n, batch.m, 0, csv);
    for (const auto &batch : singles)
        time_batch<float>(batch.n, batch.m, 0, csv);
    for (const auto &one : alone)
        time_batch<double>(one.n, one.m, 1, csv);
}

void time_all(FILE *csv)
{
    time_batches(csv);
    time_order<double>(8192, true, csv);
    time_order<double>(4096, false, csv);
    time_order<float>(8192, false, csv);
    time_odd_order<double>(8191, csv);
    time_odd_order<float>(8191, csv);
}

/* ---- Memory ---- */

#define UNTOUCHED 0xa5

__global__ void count_touched(const unsigned char *bytes, size_t count, unsigned long long *touched)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned long long found = 0;
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < count; e += step)
        found += bytes[e] != UNTOUCHED;
    atomicAdd(touched, found);
}

/* Bytes of workspace that one call writes. One byte of 256 that is written as it was is not seen;
 * nothing of random numbers is left out for that. */
double written_by(bed<double> &of)
{
    device_array<unsigned long long> touched(1);
    size_t bytes = of.call.workspace_bytes;
    touched.put({0});
    SMALL_TRY(cudaMemset(of.call.workspace, UNTOUCHED, bytes));
    int64_t recovered = of.run_whole();
    count_touched<<<132 * 16, 256>>>((unsigned char *)of.call.workspace, bytes, touched.at(0));
    SMALL_TRY(cudaDeviceSynchronize());
    if (recovered > 0)
        printf("it was recovered: the figure is lu's\n");
    return (double)touched.get(0, 1)[0];
}

/* Block beside reduced_memory at m = n. */
int measure_memory()
{
    for (int64_t n : {2048, 4096, 8192})
        for (enum kind kind : {DIAGONAL, INVERSE}) {
            double reserved[2], written[2], recovery = 0;
            for (int reduced = 0; reduced < 2; reduced++) {
                bed<double> of(kind, n, n, 1, reduced ? 3 : 2, 0);
                reserved[reduced] = (double)cuda_ism_workspace(&of.call, 1);
                written[reduced] = written_by(of);
                recovery = (double)cuda_ism_recover_workspace(&of.call, 1);
            }
            printf("FP64 n = m = %5d %-8s block reserved %.3f GB, written %.3f; reduced_memory "
                   "%.3f, %.3f; saved %.1f%%, %.1f%%; to recover it would take %.3f GB\n",
                   (int)n, kind_names[kind], reserved[0] * 1e-9, written[0] * 1e-9,
                   reserved[1] * 1e-9, written[1] * 1e-9, 100 - 100 * reserved[1] / reserved[0],
                   100 - 100 * written[1] / written[0], recovery * 1e-9);
        }
    return 0;
}

template <typename T> int once(int64_t n, int64_t m, bool update)
{
    bool batch = n <= 1000;
    int64_t count = batch ? BATCH_BYTES / (n * n * (int64_t)sizeof(T)) : 1;
    bed<T> of(batch || update ? INVERSE : DIAGONAL, n, m, count, 0, 0);
    of.run_whole();
    of.run_whole();
    return 0;
}

/* measure(file), or measure(NULL) where there is no folder. */
int time_to(const char *folder, const char *device, const char *part, void (*measure)(FILE *csv))
{
    return results_to(folder, device, part, [&](FILE *csv) {
        measure(csv);
        return 0;
    });
}

} // namespace

int main(int argc, char **argv)
{
    bool known = true, checks = false, times = false, steps = false, small = false, memory = false;
    const char *folder = nullptr;
    bool narrow = false, update = false;
    long n = 0, m = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--steps") == 0)
            steps = true;
        else if (strcmp(argv[i], "--small") == 0)
            small = true;
        else if (strcmp(argv[i], "--memory") == 0)
            memory = true;
        else if (strcmp(argv[i], "--results") == 0 && i + 1 < argc)
            folder = argv[++i];
        else if (strcmp(argv[i], "--once") == 0 && i + 2 < argc) {
            n = strtol(argv[++i], nullptr, 10);
            m = strtol(argv[++i], nullptr, 10);
        } else if (n > 0 && strcmp(argv[i], "fp32") == 0)
            narrow = true;
        else if (n > 0 && strcmp(argv[i], "inverse") == 0)
            update = true;
        else
            known = false;
    }
    if (!known || checks + times + steps + small + memory + (n > 0) != 1 || n < 0 || m < 0) {
        fprintf(stderr,
                "usage: cuda_ism --check | --time [--results FOLDER] | --steps [--results FOLDER]"
                " | --small | --memory | --once N M [fp32] [inverse]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    if (n > 0)
        return narrow ? once<float>(n, m, update) : once<double>(n, m, update);
    if (checks)
        return check_all();
    if (memory)
        return measure_memory();
    if (small)
        time_batches(nullptr);
    if (small)
        return 0;
    return steps ? time_to(folder, device.name, "ism-steps", ism_steps)
                 : time_to(folder, device.name, "ism", time_all);
}
