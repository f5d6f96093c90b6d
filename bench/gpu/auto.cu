/* bench/gpu/auto.cu: `auto`: matrices of several kinds, and symmetric ones next to `lu`.
 *
 * Check of auto: batches of mixed kinds, every inverse by its residual and METHOD, and the bits of
 * each matrix next to those that it has alone. Time: a batch of each kind next to lu on dense ones.
 *
 * Check of structured: batches of symmetric matrices that are definite, indefinite, all but
 * singular, or differ from their transposes; also, that 4^k A has the inverse of A by 4^k. Time:
 * `auto`, the inversion without what goes before and behind it, `lu` with its recovery, and
 * cuSOLVER's potrf and potri. Ways: the inversion of one matrix in every manner
 * (gpu/cuda/structured/cholesky.h) that may suit its order.
 *
 * Seconds are those of the host's clock over all visits, as an engine makes them. Needs up to 20
 * GB.
 */
#include "bench/gpu/calls.h"

#include <cstring>

#include <cusolverDn.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/structured/cholesky.h"

namespace
{

const int ROUNDS = 5;
const int SPD = 0; /* METHOD_AUTO_SPD: its header is one for C alone */

/* `count` matrices of order n on the device, their inverses, and what the launchers take. */
template <typename T> struct bed {
    static constexpr enum precision precision = number<T>::precision;
    int64_t n, count;
    device_array<T> a, x, rcond;
    device_array<int32_t> info, algorithm;
    device_array<cuda_tensors> tensors;
    bool averages = false; /* the option `spd` */

    bed(int64_t order, int64_t matrices)
        : n(order), count(matrices), a(n * n * count), x(n * n * count), rcond(count), info(count),
          algorithm(count), tensors(1)
    {
    }
    bed(const bed &) = delete;
    bed &operator=(const bed &) = delete;

    T *matrix(int64_t m) const
    {
        return a.at(m * n * n);
    }

    /* f(call) for the matrices from `first` on, with workspace for all of them. */
    template <typename F> void with_call(int64_t first, int64_t matrices, F f)
    {
        int64_t options[METHOD_OPTIONS_MAX] = {};
        struct cuda_tensors item = {};
        options[SPD] = averages;
        item.inputs[0] = matrix(first);
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
        call.products = here().products;
        call.notes = call.d_notes = here().notes;
        call.workspace_bytes = cuda_auto_workspace(&call, matrices);
        device_array<char> workspace(call.workspace_bytes);
        call.workspace = workspace.at(0);
        TRY(cudaDeviceSynchronize());
        f(call);
    }

    int visit_all(const struct cuda_call &call)
    {
        return visit([&] { return cuda_auto(&call, here().stream); },
                     [&] { return cuda_auto_again(&call, here().stream); }, [] {});
    }

    void run(int64_t first, int64_t matrices)
    {
        TRY(cudaMemset(x.at(first * n * n), 0xff, (size_t)(n * n * matrices) * sizeof(T)));
        with_call(first, matrices, [&](const struct cuda_call &call) { visit_all(call); });
    }

    double time()
    {
        double seconds = 0;
        with_call(0, count, [&](const struct cuda_call &call) {
            seconds = host_seconds([] {}, [&] { visit_all(call); }, ROUNDS);
        });
        return seconds;
    }

    /* What is to be recovered is recovered. */
    double time_lu()
    {
        uint32_t *asked = &here().notes->asked;
        lu_call<T> lu(LU_INVERSE, n, count, a.at(0), x.at(0), asked);
        return host_seconds([] {},
                            [&] {
                                *asked = 0;
                                lu.run(here().stream);
                                TRY(cudaStreamSynchronize(here().stream));
                                if (!*(volatile uint32_t *)asked)
                                    return;
                                lu.recover(here().stream);
                                TRY(cudaStreamSynchronize(here().stream));
                            },
                            ROUNDS);
    }

    double ratio(int64_t m) const
    {
        return residual_of(matrix(m), x.at(m * n * n), n).ratio(n, number<T>::eps);
    }
};

/* Is matrix m, computed alone, other than in the batch? */
template <typename T> bool is_changed(bed<T> &bed, int64_t m)
{
    size_t numbers = (size_t)(bed.n * bed.n);
    std::vector<T> x = bed.x.get(m * numbers, numbers), rcond = bed.rcond.get(m, 1);
    int32_t algorithm = bed.algorithm.get(m, 1)[0];
    bed.run(m, 1);
    std::vector<T> alone = bed.x.get(m * numbers, numbers), own = bed.rcond.get(m, 1);
    return memcmp(x.data(), alone.data(), numbers * sizeof(T)) != 0 ||
           memcmp(rcond.data(), own.data(), sizeof(T)) != 0 ||
           algorithm != bed.algorithm.get(m, 1)[0];
}

/* Whether it is right. */
template <typename T>
bool report(const bed<T> &bed, const char *what, double worst, int changed, bool right)
{
    right = right && worst <= RATIO_MAX && changed == 0;
    printf("%s %s n = %-5d %5d matrices: residual %.3f of %g, %d changed: %s\n", what,
           precision_name(bed.precision), (int)bed.n, (int)bed.count, worst, RATIO_MAX, changed,
           right ? "good" : "BAD");
    fflush(stdout);
    return right;
}

/* ---- auto ---- */

enum kind {
    DENSE,
    DIAGONAL,
    LOWER,
    UPPER,
    TRIDIAGONAL,
    KINDS,
    MIXED = KINDS /* one after the other */
};

const char *const kind_names[] = {"dense", "diagonal", "lower", "upper", "tridiagonal", "mixed"};
const int algorithms[KINDS] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_DIAGONAL,
                               METHOD_ALGORITHM_TRIANGULAR, METHOD_ALGORITHM_TRIANGULAR,
                               METHOD_ALGORITHM_TRIDIAGONAL};

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
template <typename T> __global__ void structure(T *a, int64_t n, int64_t all, enum kind kind)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step) {
        enum kind own = kind_of(kind, e / (n * n));
        int64_t i = e / n % n, j = e % n;
        a[e] = is_zero(own, i, j) ? T(0) : i == j && own != DENSE ? (T)n + a[e] : a[e];
    }
}

template <typename T> void fill(bed<T> &bed, enum kind kind)
{
    int64_t all = bed.n * bed.n * bed.count;
    draw(bed.a.at(0), (size_t)all);
    structure<<<1024, 256>>>(bed.a.at(0), bed.n, all, kind);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
}

/* The worst ratio of all matrices; infinite where there is no answer, or by another algorithm. */
template <typename T> double worst_of(bed<T> &bed)
{
    std::vector<int32_t> info = bed.info.get(0, bed.count),
                         algorithm = bed.algorithm.get(0, bed.count);
    bool sorts = bed.n >= CUDA_AUTO_SORTED_N_MIN;
    double worst = 0;
    for (int64_t m = 0; m < bed.count; m++) {
        int expected = sorts ? algorithms[kind_of(MIXED, m)] : METHOD_ALGORITHM_LU;
        worst = worse(info[m] == 0 && algorithm[m] == expected ? bed.ratio(m) : HUGE_VAL, worst);
    }
    return worst;
}

template <typename T> bool check(int64_t n, int64_t count)
{
    bed<T> bed(n, count);
    fill(bed, MIXED);
    bed.run(0, count);
    double worst = worst_of(bed);
    int changed = 0;
    for (int64_t m = 0; m < count; m += m < 2 * KINDS ? 1 : 17)
        changed += is_changed(bed, m);
    return report(bed, "auto", worst, changed, true);
}

int check_auto(const settings &wish)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{1, 40},   {2, 1000}, {3, 1000}, {8, 9000}, {31, 200},
                {32, 200}, {33, 200}, {64, 100}, {65, 100}, {150, 40},
                {300, 20}, {513, 10}, {1000, 5}, {1030, 5}, {2048, 5}};
    int failed = 0;
    for (const auto &row : rows) {
        if (!wish.wants(row.n))
            continue;
        failed += !check<double>(row.n, row.count);
        failed += !check<float>(row.n, row.count);
    }
    return failed;
}

template <typename T> void time_kinds(int64_t n, int64_t count, recorder &to)
{
    double lu;
    {
        bed<T> bed(n, count);
        fill(bed, DENSE);
        lu = bed.time_lu();
    }
    for (int k = 0; k <= MIXED; k++) {
        bed<T> bed(n, count);
        fill(bed, (enum kind)k);
        to.add(shape_of(n, count), number<T>::precision, kind_names[k], bed.time() * 1e6, "us",
               {{"our lu", lu * 1e6}});
    }
}

void time_auto(const settings &wish, recorder &to)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{8, 1},      {8, 1000000}, {16, 500000}, {32, 200000}, {33, 1},
                {64, 40000}, {128, 8000},  {200, 3000},  {256, 2000},  {300, 1500},
                {512, 500},  {1024, 100},  {2048, 1},    {2048, 10},   {8192, 1}};
    for (const auto &row : rows) {
        if (!wish.wants(row.n))
            continue;
        time_kinds<double>(row.n, row.count, to);
        time_kinds<float>(row.n, row.count, to);
    }
}

/* ---- Symmetric matrices ---- */

enum symmetric {
    WELL, /* dominated by its diagonal */
    GRAM, /* B B^T of a square B, and 1/8 of its diagonal more */
    INDEFINITE,
    ONE_PAIR, /* as GRAM, but that one entry is not the other's image */
    ROUNDED,  /* as GRAM, but that entries differ from their images in the last bit */
    SINGULAR, /* B B^T of a B with two rows that are equal */
    ZEROS,    /* as WELL, with zeros next to the corner */
    EVEN,     /* off the diagonal small numbers of one size, which does not changee by one */
    SYMMETRIC
};

const char *const symmetric_names[] = {"well",    "gram",     "indefinite", "one pair",
                                       "rounded", "singular", "zeros",      "even"};

/* c: B B^T of a random B. */
template <typename T> __global__ void shape(T *a, const T *c, int64_t n, enum symmetric kind)
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

template <typename T> void fill(bed<T> &bed, int64_t m, enum symmetric kind)
{
    const int64_t n = bed.n;
    T *b = bed.x.at(0);
    device_array<T> gram((size_t)(n * n));
    draw(b, (size_t)(n * n));
    if (kind == SINGULAR)
        TRY(cudaMemcpy(b + (n - 1) * n, b, (size_t)n * sizeof(T), cudaMemcpyDeviceToDevice));
    struct cuda_product product = {};
    product.precision = bed.precision;
    product.rows = product.columns = product.inner = n;
    product.transpose_b = true;
    product.alpha = 1;
    product.a = product.b = cuda_matrices{b, n, 0};
    product.c = cuda_matrices{gram.at(0), n, 0};
    product.count = 1;
    TRY(cuda_product(here().products, &product, nullptr));
    shape<<<1024, 256>>>(bed.matrix(m), (const T *)gram.at(0), n, kind);
    TRY(cudaDeviceSynchronize());
}

bool is_definite(enum symmetric kind, bool averages, enum precision precision, int64_t n)
{
    if (n < CUDA_AUTO_DEFINITE_N_MIN(precision))
        return kind == ROUNDED && averages;
    return kind == WELL || kind == GRAM || kind == ZEROS || kind == EVEN ||
           (kind == ROUNDED && averages);
}

template <typename T> bool check_matrix(const bed<T> &bed, int64_t m, double *worst)
{
    enum symmetric kind = (enum symmetric)(m % SYMMETRIC);
    int32_t info = bed.info.get(m, 1)[0], algorithm = bed.algorithm.get(m, 1)[0];
    bool definite = is_definite(kind, bed.averages, bed.precision, bed.n);
    double ratio = info == 0 ? bed.ratio(m) : 0;
    bool right = algorithm == (definite ? METHOD_ALGORITHM_CHOLESKY : METHOD_ALGORITHM_LU) &&
                 ratio <= RATIO_MAX && (kind == SINGULAR || info == 0);
    *worst = worse(ratio, *worst);
    if (!right)
        printf("BAD: %s n = %d %s: METHOD %d, INFO %d, ratio %g, RCOND %g\n",
               precision_name(bed.precision), (int)bed.n, symmetric_names[kind], (int)algorithm,
               (int)info, ratio, (double)bed.rcond.get(m, 1)[0]);
    return right;
}

/* Has 2^-42 A other bits than A's inverse by 2^42? */
template <typename T> bool is_unscaled(bed<T> &bed, int64_t m)
{
    size_t numbers = (size_t)(bed.n * bed.n);
    std::vector<T> x = bed.x.get(m * numbers, numbers);
    if (bed.info.get(m, 1)[0] != 0)
        return false;
    scale(bed.matrix(m), numbers, 0x1p-42);
    TRY(cudaDeviceSynchronize());
    bed.run(m, 1);
    scale(bed.x.at(m * numbers), numbers, 0x1p-42);
    scale(bed.matrix(m), numbers, 0x1p42);
    TRY(cudaDeviceSynchronize());
    std::vector<T> other = bed.x.get(m * numbers, numbers);
    return memcmp(x.data(), other.data(), numbers * sizeof(T)) != 0;
}

template <typename T> bool check_symmetric(int64_t n, int64_t count, bool averages)
{
    bed<T> bed(n, count);
    double worst = 0;
    bool right = true;
    int changed = 0;
    bed.averages = averages;
    for (int64_t m = 0; m < count; m++)
        fill(bed, m, (enum symmetric)(m % SYMMETRIC));
    bed.run(0, count);
    for (int64_t m = 0; m < count; m++)
        right = check_matrix(bed, m, &worst) && right;
    for (int64_t m = 0; m < SYMMETRIC && m < count; m++)
        changed += is_changed(bed, m) + is_unscaled(bed, m);
    return report(bed, averages ? "spd" : "symmetric", worst, changed, right);
}

int check_structured(const settings &wish)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{5, 24},   {40, 24},  {129, 16}, {256, 32}, {257, 16}, {300, 24}, {513, 16},
                {640, 16}, {1000, 8}, {1024, 8}, {2048, 8}, {2049, 8}, {4100, 8}, {6300, 8}};
    int failed = 0;
    for (const auto &row : rows)
        for (bool averages : {false, true}) {
            if (!wish.wants(row.n))
                continue;
            failed += !check_symmetric<double>(row.n, row.count, averages);
            failed += !check_symmetric<float>(row.n, row.count, averages);
        }
    return failed;
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

/* X becomes A, to be worked on in place. */
template <typename T> void copy_matrices(bed<T> &bed)
{
    size_t bytes = (size_t)(bed.n * bed.n * bed.count) * sizeof(T);
    TRY(cudaMemcpyAsync(bed.x.at(0), bed.a.at(0), bytes, cudaMemcpyDeviceToDevice, here().stream));
    TRY(cudaStreamSynchronize(here().stream));
}

/* What goes on between the reading of A and the writing of X; 0: not measured at this order. */
template <typename T> double time_inversion(bed<T> &bed, const struct cuda_cholesky_manner &manner)
{
    if (bed.n % CUDA_CHOLESKY_UNIT != 0)
        return 0;
    device_array<char> scratch(cuda_cholesky_scratch_as(&manner, bed.precision, bed.n, bed.count));
    device_array<int32_t> failed(bed.count);
    struct cuda_cholesky task = {};
    task.precision = bed.precision;
    task.n = bed.n;
    task.count = bed.count;
    task.w = cuda_matrices{bed.x.at(0), bed.n, bed.n * bed.n};
    task.failed = failed.at(0);
    task.scratch = scratch.at(0);
    return host_seconds(
        [&] { copy_matrices(bed); },
        [&] {
            TRY(cuda_cholesky_invert_as(&manner, here().products, &task, here().stream));
            TRY(cudaStreamSynchronize(here().stream));
        },
        ROUNDS);
}

/* potrf and potri, one matrix. */
template <typename T> double time_solver(bed<T> &bed)
{
    static cusolverDnHandle_t handle;
    const cublasFillMode_t half = CUBLAS_FILL_MODE_LOWER;
    int n = (int)bed.n, factor_count = 0, invert_count = 0;
    if (!handle)
        TRY(cusolverDnCreate(&handle));
    TRY(cusolverDnSetStream(handle, here().stream));
    TRY(solver<T>::factor_bytes(handle, half, n, bed.x.at(0), n, &factor_count));
    TRY(solver<T>::invert_bytes(handle, half, n, bed.x.at(0), n, &invert_count));
    device_array<T> work((size_t)std::max(factor_count, invert_count));
    return host_seconds([&] { copy_matrices(bed); },
                        [&] {
                            TRY(solver<T>::factor(handle, half, n, bed.x.at(0), n, work.at(0),
                                                  factor_count, bed.info.at(0)));
                            TRY(solver<T>::invert(handle, half, n, bed.x.at(0), n, work.at(0),
                                                  invert_count, bed.info.at(0)));
                            TRY(cudaStreamSynchronize(here().stream));
                        },
                        ROUNDS);
}

template <typename T> void time_order(int64_t n, int64_t count, recorder &to)
{
    bed<T> bed(n, count);
    fill(bed, 0, GRAM);
    for (int64_t m = 1; m < count; m++)
        TRY(cudaMemcpy(bed.matrix(m), bed.matrix(0), (size_t)(n * n) * sizeof(T),
                       cudaMemcpyDeviceToDevice));
    double all = bed.time();
    bool definite = bed.algorithm.get(count - 1, 1)[0] == METHOD_ALGORITHM_CHOLESKY;
    double own = time_inversion(bed, cuda_cholesky_manner_of(n)), lu = bed.time_lu();
    double solver = count == 1 ? time_solver(bed) : 0;
    const std::string shape = shape_of(n, count);
    to.add(shape, bed.precision, "auto", all * 1e6, "us",
           {{"our lu", lu * 1e6}, {"cusolver potrf+potri", solver * 1e6}});
    to.add(shape, bed.precision, "auto by cholesky", definite, "1");
    if (own > 0)
        to.add(shape, bed.precision, "inversion", own * 1e6, "us",
               {{"cusolver potrf+potri", solver * 1e6}});
}

void time_structured(const settings &wish, recorder &to)
{
    static const struct {
        int64_t n, count;
    } rows[] = {{256, 1},  {512, 1},   {1024, 1},   {2048, 1},   {4096, 1},  {8192, 1},  {16384, 1},
                {256, 10}, {256, 100}, {256, 1000}, {288, 1000}, {320, 500}, {384, 1},   {384, 500},
                {512, 10}, {512, 400}, {1024, 4},   {1024, 100}, {2048, 4},  {2048, 16}, {4096, 4}};
    for (const auto &row : rows) {
        if (!wish.wants(row.n))
            continue;
        time_order<double>(row.n, row.count, to);
        time_order<float>(row.n, row.count, to);
    }
}

/* ---- Ways ---- */

template <typename T> void try_ways(int64_t n, recorder &to)
{
    bed<T> bed(n, 1);
    fill(bed, 0, WELL);
    for (int64_t group = 128; group <= 512; group *= 2)
        for (int64_t strip = 0; strip <= 4096; strip = strip ? strip * 2 : 512) {
            if (strip == 0 ? n > 8192 : n < 2048)
                continue;
            to.add(shape_of(n, 1) + " group=" + std::to_string(group) +
                       " strip=" + std::to_string(strip),
                   bed.precision, "inversion", time_inversion(bed, {group, strip}) * 1e6, "us");
        }
}

void ways(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({512, 1024, 2048, 4096, 8192})) {
        try_ways<double>(n, to);
        try_ways<float>(n, to);
    }
}

} // namespace

const struct subject auto_subject = {"auto",    "auto next to lu", check_auto,
                                     time_auto, nullptr,           nullptr};
const struct subject structured_subject = {
    "structured", "auto on symmetric matrices", check_structured, time_structured, nullptr, ways};
