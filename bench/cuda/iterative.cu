/* bench/cuda/iterative.cu: checks and times `iterative` and its passes on an NVIDIA GPU, on the
 * device's memory.
 *
 *   cuda_iterative --check
 *   cuda_iterative --time [--part NAME] [--n-max N] [--results FOLDER]
 *
 * --check tries the passes against sums on the host, and every scheme and start by the true
 * residual; it ends with 1 when something is wrong. --time prints tables and writes them to
 * FOLDER/DATE-NAME-iterative.csv, where NAME is the device's. --n-max leaves larger orders
 * out. Its parts: passes (norms and transposes of one matrix and of batches, beside a copy, and
 * launches that do nothing), products (FP32's beside SGEMM), paper (the paper's elimination beside
 * the iteration), schemes, cold and warm starts beside cuSOLVER's getrf + getrs and our lu, and
 * batches. Seconds of `iterative` are those of the host's clock over all visits; of the others, of
 * the device's. Uses the first device that CUDA shows; nothing else should run there. Needs up to
 * 20 GB of its memory. An error of CUDA or of the command line ends with 2.
 */
#include "bench/cuda/iterative.cuh"

#include "bench/cuda/middle.cuh"
#include "bench/cuda/results.cuh"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/structured/identify.h"

namespace
{

const char *const scheme_names[] = {"auto",   "newton_schulz", "chebyshev", "order5",
                                    "order7", "order7_horner", "order19"};
const int ROUNDS = 3;

FILE *csv; /* NULL: nothing is recorded */
int64_t n_max = INT64_MAX;

const char *name_of(enum precision precision)
{
    return precision_name(precision);
}

/* One line of the record: what it is, and a number. */
void record(const char *part, enum precision precision, int64_t n, const std::string &what,
            const char *quantity, double value)
{
    if (csv)
        fprintf(csv, "%s,%s,%d,%s,%s,%.9g\n", part, name_of(precision), (int)n, what.c_str(),
                quantity, value);
}

/* ---- The passes ---- */

const size_t PASSED_BYTES = (size_t)256 << 20; /* of a batch, about */

template <typename T> void time_passes(int64_t n, int64_t count)
{
    enum precision precision = small_real<T>::precision;
    struct iterative_passes found = iterative_time_passes<T>(n, count);
    double bytes = (double)(n * n * count) * sizeof(T);
    const char *part = count > 1 ? "passes of batches" : "passes";
    printf("%s %6d x %4d  identify %10.2f us %5.0f GB/s (%3.0f%% of a copy)   transpose %10.2f us "
           "%5.0f GB/s (%3.0f%%)\n",
           name_of(precision), (int)n, (int)count, found.identify * 1e6,
           bytes / found.identify * 1e-9, 100 * found.copy_of_identify / found.identify,
           found.transpose * 1e6, 2 * bytes / found.transpose * 1e-9,
           100 * found.copy_of_transpose / found.transpose);
    fflush(stdout);
    if (count > 1)
        record(part, precision, n, "count", "matrices", (double)count);
    record(part, precision, n, "identify", "us", found.identify * 1e6);
    record(part, precision, n, "copy_as_identify", "us", found.copy_of_identify * 1e6);
    record(part, precision, n, "transpose", "us", found.transpose * 1e6);
    record(part, precision, n, "copy_as_transpose", "us", found.copy_of_transpose * 1e6);
}

template <typename T> int64_t batch_of(int64_t n)
{
    return (int64_t)(PASSED_BYTES / ((size_t)(n * n) * sizeof(T)));
}

/* What a launch takes by itself, and two, as `identify` has them. */
void time_launches()
{
    double one = iterative_time_launches(1), two = iterative_time_launches(2);
    printf("kernels that do nothing: one %.2f us, two %.2f us\n", one * 1e6, two * 1e6);
    record("launches", PRECISION_FP64, 0, "one launch", "us", one * 1e6);
    record("launches", PRECISION_FP64, 0, "two launches", "us", two * 1e6);
}

void part_passes()
{
    time_launches();
    for (int64_t n : {512, 1000, 1024, 1536, 2048, 4096, 8192, 16384, 32768}) {
        if (n > n_max)
            break;
        time_passes<double>(n, 1);
        time_passes<float>(n, 1);
    }
    for (int64_t n : {512, 1000, 1024, 2048}) {
        if (n > n_max)
            break;
        time_passes<double>(n, batch_of<double>(n));
        time_passes<float>(n, batch_of<float>(n));
    }
}

/* ---- Products ---- */

void time_product(int64_t rows, int64_t columns, int64_t inner, enum iterative_operand kind,
                  const char *name)
{
    struct iterative_product found = iterative_try_product(rows, columns, inner, kind);
    char what[64];
    snprintf(what, sizeof what, "%s %dx%dx%d", name, (int)rows, (int)columns, (int)inner);
    printf("FP32 %6d %-28s sgemm %9.1f us  split %9.1f us  %4.2f times  errors: sgemm %.3f worst "
           "%.4f mean, split %.3f worst %.4f mean\n",
           (int)rows, what, found.seconds * 1e6, found.split_seconds * 1e6,
           found.seconds / found.split_seconds, found.worst, found.mean, found.split_worst,
           found.split_mean);
    fflush(stdout);
    record("products", PRECISION_FP32, rows, what, "sgemm_us", found.seconds * 1e6);
    record("products", PRECISION_FP32, rows, what, "split_us", found.split_seconds * 1e6);
    record("products", PRECISION_FP32, rows, what, "sgemm_worst", found.worst);
    record("products", PRECISION_FP32, rows, what, "split_worst", found.split_worst);
    record("products", PRECISION_FP32, rows, what, "sgemm_mean", found.mean);
    record("products", PRECISION_FP32, rows, what, "split_mean", found.split_mean);
}

void part_products()
{
    static const struct {
        enum iterative_operand kind;
        const char *name;
    } kinds[] = {{ITERATIVE_ANY, "random"},
                 {ITERATIVE_ONE_SIGN, "one sign"},
                 {ITERATIVE_SLOPE, "graded"},
                 {ITERATIVE_TINY, "2^100 by 2^-110"}};
    for (auto &row : kinds) {
        for (int64_t n : {512, 1024, 1280, 1536, 2048, 4096, 8192}) {
            if (n <= n_max)
                time_product(n, n, n, row.kind, row.name);
        }
    }
    for (int64_t n : {2048, 4096, 8192}) {
        for (int64_t inner : {128, 256, 512, 1024}) {
            if (n <= n_max)
                time_product(n, n, inner, ITERATIVE_ANY, "update");
        }
    }
}

/* ---- One line of iterative ---- */

template <typename T>
void report(const char *part, int64_t n, const std::string &what,
            const struct iterative_found &found)
{
    enum precision precision = small_real<T>::precision;
    double work = 2.0 * (double)n * (double)n * (double)n * found.products;
    printf("%s %6d %-26s %10.3f ms  %2d steps %3d products %3d launches  %6.1f TFLOP/s  residual "
           "%.2e from %.2e  INFO %d\n",
           name_of(precision), (int)n, what.c_str(), found.seconds * 1e3, found.iterations,
           found.products, found.launches, work / found.seconds * 1e-12, found.residual,
           found.first, found.info);
    fflush(stdout);
    record(part, precision, n, what, "ms", found.seconds * 1e3);
    record(part, precision, n, what, "steps", found.iterations);
    record(part, precision, n, what, "products", found.products);
    record(part, precision, n, what, "residual", found.residual);
    record(part, precision, n, what, "first_residual", found.first);
    record(part, precision, n, what, "info", found.info);
}

template <typename T>
void report_rival(const char *part, int64_t n, const char *what, double seconds)
{
    printf("%s %6d %-26s %10.3f ms\n", name_of(small_real<T>::precision), (int)n, what,
           seconds * 1e3);
    fflush(stdout);
    record(part, small_real<T>::precision, n, what, "ms", seconds * 1e3);
}

/* ---- The paper's Table 2 ---- */

void part_paper()
{
    for (int64_t n : {512, 1024, 2048}) {
        if (n > n_max)
            break;
        for (enum iterative_kind kind : {ITERATIVE_DOMINANT, ITERATIVE_RANDOM}) {
            std::string of = kind == ITERATIVE_DOMINANT ? "dominant" : "random";
            iterative_bed<double> bed(n, 1, false);
            device_array<double> worked(n * n);
            iterative_fill(bed.a.at(0), n, 1, kind);
            double plain = clock_rounds(
                [&] {
                    SMALL_TRY(cudaMemcpyAsync(worked.at(0), bed.a.at(0),
                                              (size_t)(n * n) * sizeof(double),
                                              cudaMemcpyDeviceToDevice));
                },
                [&](int) { iterative_plain(worked.at(0), bed.x.at(0), n); }, 1)[CLOCK_ROUNDS / 2];
            report_rival<double>("paper", n, ("gauss_jordan_plain " + of).c_str(), plain);
            for (enum method_iterative_scheme scheme :
                 {METHOD_ITERATIVE_ORDER7_HORNER, METHOD_ITERATIVE_ORDER7}) {
                struct iterative_wish wish;
                wish.scheme = scheme;
                wish.initial = kind == ITERATIVE_DOMINANT ? METHOD_ITERATIVE_DIAGONAL
                                                          : METHOD_ITERATIVE_TRANSPOSE;
                report<double>("paper", n, scheme_names[scheme] + (" " + of),
                               bed.run(wish, false, ROUNDS));
            }
        }
    }
}

/* ---- Schemes ---- */

template <typename T> void time_schemes(int64_t n)
{
    iterative_bed<T> bed(n, 1, false);
    iterative_fill(bed.a.at(0), n, 1, ITERATIVE_GRADED);
    for (int scheme = METHOD_ITERATIVE_SCHEME_AUTO; scheme < METHOD_ITERATIVE_SCHEMES; scheme++) {
        struct iterative_wish wish;
        wish.scheme = (enum method_iterative_scheme)scheme;
        wish.initial = METHOD_ITERATIVE_TRANSPOSE;
        report<T>("schemes", n, scheme_names[scheme], bed.run(wish, false, n > 2048 ? 1 : ROUNDS));
    }
}

void part_schemes()
{
    for (int64_t n : {512, 1024, 4096}) {
        if (n <= n_max)
            time_schemes<double>(n);
    }
    if (n_max >= 4096)
        time_schemes<float>(4096);
}

/* ---- Cold and warm starts beside direct inverses ---- */

template <typename T> double time_lu(const iterative_bed<T> &bed)
{
    int64_t n = bed.n;
    enum precision precision = small_real<T>::precision;
    device_array<cuda_item> items(1);
    device_array<int32_t> info(1);
    device_array<T> rcond(1);
    items.put({cuda_item{bed.a.at(0), bed.x.at(0), rcond.at(0), info.at(0), 0}});
    struct cuda_batch batch = {items.at(0), 1, 1, nullptr};
    size_t bytes = cuda_inverse_middle_workspace(precision, n, 1);
    device_array<char> workspace(bytes);
    return clock_seconds(
        [&](int) {
            SMALL_TRY(cuda_inverse_middle(precision, n, &batch, workspace.at(0), bytes,
                                          bed.products, nullptr));
        },
        n > 4096 ? 1 : 2);
}

/* V0 = X + E X with |E|_1 = distance, from X in bed.x. */
template <typename T> void make_v0(iterative_bed<T> &bed, double distance)
{
    int64_t n = bed.n;
    device_array<T> e(n * n);
    device_array<cuda_identity> identity(1);
    device_array<char> scratch(cuda_identify_bytes(small_real<T>::precision, n, 1));
    iterative_fill(e.at(0), n, 1, ITERATIVE_RANDOM);
    struct cuda_identification task = {};
    task.precision = small_real<T>::precision;
    task.n = n;
    task.a = {e.at(0), n, n * n};
    task.count = task.sets = 1;
    task.to = identity.at(0);
    task.scratch = scratch.at(0);
    SMALL_TRY(cuda_identify(&task, bed.stream));
    SMALL_TRY(cudaStreamSynchronize(bed.stream));
    struct cuda_product product = {};
    product.precision = small_real<T>::precision;
    product.rows = product.columns = product.inner = n;
    product.alpha = distance / identity.get(0, 1)[0].norm_1;
    product.beta = 1;
    product.a = task.a;
    product.b = {bed.x.at(0), n, n * n};
    product.c = {bed.v0.at(0), n, n * n};
    product.count = 1;
    SMALL_TRY(cudaMemcpy(bed.v0.at(0), bed.x.at(0), (size_t)(n * n) * sizeof(T),
                         cudaMemcpyDeviceToDevice));
    SMALL_TRY(cudaDeviceSynchronize()); /* the product's stream waits for nobody */
    SMALL_TRY(cuda_product(bed.products, &product, bed.stream));
    SMALL_TRY(cudaStreamSynchronize(bed.stream));
}

/* The inverse alone, and with its residual measured, where that is worth telling. */
template <typename T>
void report_both(iterative_bed<T> &bed, struct iterative_wish wish, bool warm,
                 const std::string &what)
{
    int rounds = bed.n > 4096 ? 1 : ROUNDS;
    wish.measures = false;
    report<T>("starts", bed.n, what, bed.run(wish, warm, rounds));
    if (sizeof(T) == 4 && !warm)
        return;
    wish.measures = true;
    report<T>("starts", bed.n, what + " measured", bed.run(wish, warm, rounds));
}

template <typename T> void time_starts(int64_t n)
{
    iterative_bed<T> bed(n, 1, true);
    struct iterative_wish wish;
    iterative_fill(bed.a.at(0), n, 1, ITERATIVE_GRADED);
    struct middle_peers peers = middle_peers_of((int)n, 1, bed.a);
    report_rival<T>("starts", n, "cusolver getrf+getrs", peers.one_inverse);
    if (peers.inverse > 0)
        report_rival<T>("starts", n, "cublas getrf+getri", peers.inverse);
    report_rival<T>("starts", n, "our lu", time_lu(bed));
    wish.initial = sizeof(T) == 8 ? METHOD_ITERATIVE_LOW_PRECISION : METHOD_ITERATIVE_TRANSPOSE;
    report_both(bed, wish, false, sizeof(T) == 8 ? "cold low_precision" : "cold transpose");
    for (double distance : {0.5, 0.1, 0.01}) {
        char what[32];
        snprintf(what, sizeof what, "warm %g", distance);
        /* X is the inverse that the run before has left. */
        make_v0(bed, distance);
        wish.initial = METHOD_ITERATIVE_INITIAL_AUTO;
        report_both(bed, wish, true, what);
    }
}

void part_starts()
{
    for (int64_t n : {512, 1024, 2048, 4096, 8192}) {
        if (n > n_max)
            break;
        time_starts<double>(n);
        time_starts<float>(n);
    }
}

/* ---- Batches ---- */

template <typename T> void time_batch(int64_t n, int64_t count)
{
    iterative_bed<T> bed(n, count, false);
    struct iterative_wish wish;
    iterative_fill(bed.a.at(0), n, count, ITERATIVE_MILD);
    for (enum method_iterative_initial initial :
         {METHOD_ITERATIVE_LOW_PRECISION, METHOD_ITERATIVE_TRANSPOSE}) {
        if (sizeof(T) == 4 && initial == METHOD_ITERATIVE_LOW_PRECISION)
            continue;
        wish.initial = initial;
        std::string what = initial == METHOD_ITERATIVE_TRANSPOSE ? "transpose" : "low_precision";
        struct iterative_found found = bed.run(wish, false, ROUNDS, count / 2);
        printf("%d matrices: ", (int)count);
        report<T>("batch", n, what + " of " + std::to_string(count), found);
    }
}

void part_batch()
{
    static const struct {
        int64_t n, count;
    } rows[] = {{32, 4096}, {64, 4096}, {128, 2048}, {256, 512}, {512, 128}};
    for (auto row : rows) {
        time_batch<double>(row.n, row.count);
        time_batch<float>(row.n, row.count);
    }
}

/* ---- The program ---- */

int time_all(const char *part)
{
    static const struct {
        const char *name;
        void (*run)();
    } parts[] = {{"passes", part_passes},   {"products", part_products}, {"paper", part_paper},
                 {"schemes", part_schemes}, {"starts", part_starts},     {"batch", part_batch}};
    bool any = false;
    if (csv)
        fputs("part,precision,n,what,quantity,value\n", csv);
    for (auto &row : parts) {
        if (part && strcmp(part, row.name) != 0)
            continue;
        any = true;
        printf("---- %s\n", row.name);
        row.run();
    }
    return any ? 0 : 2;
}

int time_to(const char *part, const char *folder, const char *device)
{
    return results_to(folder, device, "iterative", [&](FILE *file) {
        csv = file;
        return time_all(part);
    });
}

} // namespace

int main(int argc, char **argv)
{
    bool known = true, checks = false, times = false;
    const char *folder = nullptr, *part = nullptr;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            checks = true;
        else if (strcmp(argv[i], "--time") == 0)
            times = true;
        else if (strcmp(argv[i], "--part") == 0 && more)
            part = argv[++i];
        else if (strcmp(argv[i], "--n-max") == 0 && more)
            n_max = atoll(argv[++i]);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || checks == times) {
        fprintf(stderr, "usage: cuda_iterative --check | --time [--part NAME] [--n-max N] "
                        "[--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    return checks ? iterative_check() : time_to(part, folder, device.name);
}
