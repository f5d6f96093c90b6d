/* bench/gpu/tridiagonal.cu: `tridiagonal`.
 *
 * Check: every variant at orders of every kind of launch, by its residuals, |A X - I| and
 * |X A - I|. Time: all matrices of a batch, by every variant, next to a kernel that only writes as
 * many bytes, cuSPARSE's gtsv2 with and without pivoting on the identity, and the paper's recursion
 * as printed. cuSPARSE has no call for several matrices with several right sides: a few are solved
 * one after the other, and their time is scaled to all. A toolkit without its headers builds the
 * rest. Needs up to 10 GB.
 */
#include "bench/gpu/calls.h"

#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#if __has_include(<cusparse.h>)
#include <cusparse.h>
#endif

#define CARD_BYTES ((int64_t)1 << 30) /* of answers in a batch of small matrices */

namespace
{

const char *const variant_names[] = {"auto", "sherman_morrison", "two_sweep", "pivoted"};
const int timed[] = {METHOD_TRIDIAGONAL_TWO_SWEEP, METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
                     METHOD_TRIDIAGONAL_PIVOTED};

/* `count` matrices of order n on the device, one after the other, diagonal by diagonal. They are
 * dominant, and their signs are those that the paper's own formulas need. */
template <typename T> struct bed {
    int64_t n, count;
    device_array<T> dl, d, du;
    device_array<T> x; /* count n x n */

    bed(int64_t order, int64_t matrices)
        : n(order), count(matrices), dl((size_t)((order - 1) * matrices)),
          d((size_t)(order * matrices)), du((size_t)((order - 1) * matrices)),
          x((size_t)(order * order * matrices))
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
};

/* One call of the launcher, ready to be made again and again. */
template <typename T> struct launch {
    int64_t options[METHOD_OPTIONS_MAX] = {};
    device_array<cuda_tensors> tensors;
    device_array<T> rcond;
    device_array<int32_t> info, algorithm;
    device_array<char> *workspace = nullptr;
    struct cuda_call call = {};

    launch(const struct bed<T> &bed, int variant)
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
        call.precision = number<T>::precision;
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
        TRY(cuda_tridiagonal(&call, nullptr));
    }
};

/* ---- Check ---- */

/* The matrices are dominant: each variant's own answer goes out. */
int algorithm_of(int variant)
{
    return variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON ? METHOD_ALGORITHM_SHERMAN_MORRISON
           : variant == METHOD_TRIDIAGONAL_PIVOTED        ? METHOD_ALGORITHM_PIVOTED
                                                          : METHOD_ALGORITHM_TWO_SWEEP;
}

/* Matrix k, n x n. */
template <typename T> std::vector<T> dense(const bed<T> &of, int64_t k)
{
    int64_t n = of.n;
    std::vector<T> a((size_t)(n * n)), d = of.d.get((size_t)(k * n), (size_t)n);
    std::vector<T> dl = of.dl.get((size_t)(k * (n - 1)), (size_t)(n - 1));
    std::vector<T> du = of.du.get((size_t)(k * (n - 1)), (size_t)(n - 1));
    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = d[i];
        if (i + 1 < n) {
            a[(i + 1) * n + i] = dl[i];
            a[i * n + i + 1] = du[i];
        }
    }
    return a;
}

template <typename T> bool check_order(int64_t n, int64_t count, int variant)
{
    bed<T> bed(n, count);
    launch<T> ours(bed, variant);
    device_array<T> a((size_t)(n * n));
    bool right = true;
    ours.run();
    for (int64_t k : {(int64_t)0, count / 2, count - 1}) {
        const T *x = bed.x.at((size_t)(k * n * n));
        int32_t info = ours.info.get(k, 1)[0], algorithm = ours.algorithm.get(k, 1)[0];
        a.put(dense(bed, k));
        struct residual left = residual_of(a.at(0), x, n);
        double one = left.ratio(n, number<T>::eps);
        double other = residual_of(x, (const T *)a.at(0), n).ratio(n, number<T>::eps);
        double rcond = (double)ours.rcond.get(k, 1)[0];
        double off = fabs(rcond * left.size_a * left.size_x - 1);
        bool good = one <= RATIO_MAX && other <= RATIO_MAX && info == 0 &&
                    algorithm == algorithm_of(variant) && off <= 4 * (double)n * number<T>::eps;
        if (!good && right)
            printf("%s n = %d, %d matrices, %s: ratios %g and %g, INFO %d, METHOD %d, RCOND off by "
                   "%g: WRONG\n",
                   precision_name(number<T>::precision), (int)n, (int)count, variant_names[variant],
                   one, other, info, algorithm, off);
        right = right && good;
    }
    return right;
}

int check_all(const settings &wish)
{
    int failed = 0;
    for (int64_t n : wish.orders(
             {1, 2, 3, 31, 32, 33, 64, 127, 128, 129, 300, 511, 512, 513, 1000, 1024, 2047, 2050}))
        for (int variant = 0; variant < 4; variant++)
            for (int64_t count : {1, 7}) {
                failed += !check_order<float>(n, count, variant);
                failed += !check_order<double>(n, count, variant);
            }
    return failed;
}

/* ---- cuSPARSE ---- */

/* Seconds for all matrices of the bed; 0: not measured. */
struct peers {
    double pivoting = 0, plain = 0; /* gtsv2 and gtsv2_nopivot */
};

#if __has_include(<cusparse.h>)
#define SAMPLE 4 /* matrices of a batch that are solved */

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

/* LAPACK's layout: dl[0] and du[n - 1] are unused. */
template <typename T> struct bands {
    device_array<T> dl, d, du;

    explicit bands(bed<T> &bed) : dl(bed.n), d(bed.n), du(bed.n)
    {
        size_t bytes = (size_t)(bed.n - 1) * sizeof(T);
        TRY(cudaMemset(dl.at(0), 0, (size_t)bed.n * sizeof(T)));
        TRY(cudaMemset(du.at(0), 0, (size_t)bed.n * sizeof(T)));
        TRY(cudaMemcpy(dl.at(1), bed.dl.at(0), bytes, cudaMemcpyDeviceToDevice));
        TRY(cudaMemcpy(d.at(0), bed.d.at(0), (size_t)bed.n * sizeof(T), cudaMemcpyDeviceToDevice));
        TRY(cudaMemcpy(du.at(0), bed.du.at(0), bytes, cudaMemcpyDeviceToDevice));
    }
};

/* The first matrix's bands stand for all: the calls take the same time whatever the numbers are. */
template <typename T, typename S, typename R>
double time_solver(bed<T> &bed, bands<T> &a, cusparseHandle_t handle, S size, R solve)
{
    int n = (int)bed.n, sample = (int)std::min<int64_t>(bed.count, SAMPLE);
    size_t bytes = 0;
    T *x = bed.x.at(0);
    TRY(size(handle, n, n, a.dl.at(0), a.d.at(0), a.du.at(0), x, n, &bytes));
    device_array<char> buffer(std::max<size_t>(bytes, 1));
    auto prepare = [&] { make_identity(x, n, sample); };
    auto call = [&](int) {
        for (int k = 0; k < sample; k++)
            TRY(solve(handle, n, n, a.dl.at(0), a.d.at(0), a.du.at(0), x + (size_t)k * n * n, n,
                      buffer.at(0)));
    };
    double seconds = clock_prepared(prepare, call, 1);
    return seconds * (double)bed.count / sample;
}

template <typename T> struct peers peers_of(bed<T> &bed)
{
    struct peers peers;
    cusparseHandle_t handle;
    bands<T> a(bed);
    TRY(cusparseCreate(&handle));
    peers.pivoting = time_solver(bed, a, handle, solver<T>::size, solver<T>::solve);
    peers.plain = time_solver(bed, a, handle, solver<T>::plain_size, solver<T>::plain_solve);
    TRY(cusparseDestroy(handle));
    return peers;
}

#else
template <typename T> struct peers peers_of(bed<T> &)
{
    return {};
}
#endif

/* ---- The paper's recursion ---- */

/* "Accelerating Tridiagonal Matrix Inversion on the GPU" (Demere, Hormenou, Yoon) as it is printed:
 * the matrix is reorganised into blocks of two rows, these are inverted, and level by level
 * neighbours are merged with one thread an entry. It needs matrices whose halves stay dominant with
 * the signs as printed, one, of an order that is a power of two. */
#define THREADS 256

template <typename T>
__global__ void reorganise(const T *dl, const T *d, const T *du, T *a, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        a[i] = d[i] - (i % 2 ? (i + 1 < n ? dl[i] : 0) : (i > 0 ? du[i - 1] : 0));
}

template <typename T>
__global__ void invert_pairs(const T *dl, const T *a, const T *du, T *x, int64_t n)
{
    int64_t i = 2 * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    if (i + 1 >= n)
        return;
    T determinant = a[i] * a[i + 1] - du[i] * dl[i];
    x[i * n + i] = a[i + 1] / determinant;
    x[i * n + i + 1] = -du[i] / determinant;
    x[(i + 1) * n + i] = -dl[i] / determinant;
    x[(i + 1) * n + i + 1] = a[i] / determinant;
}

/* Entry (i, j) of the blocks of 2 * half rows, from those of half rows. */
template <typename T>
__global__ void merge(const T *dl, const T *du, const T *from, T *to, int64_t n, int64_t half)
{
    int64_t size = 2 * half, index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t i = index / size, first = i / size * size, j = first + index % size;
    if (i >= n)
        return;
    int64_t h = first + half - 1;
    T divisor = 1 + dl[h] * from[h * n + h] + du[h] * from[(h + 1) * n + h + 1];
    T left = i <= h ? from[i * n + h] : from[i * n + h + 1];
    T right = j <= h ? dl[h] * from[h * n + j] : du[h] * from[(h + 1) * n + j];
    T before = (i <= h) == (j <= h) ? from[i * n + j] : 0;
    to[i * n + j] = before - left * right / divisor;
}

unsigned blocks(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

template <typename T> void run(bed<T> &bed, T *other, T *reorganised)
{
    int64_t n = bed.n;
    T *from = bed.x.at(0), *to = other;
    const T *dl = bed.dl.at(0), *d = bed.d.at(0), *du = bed.du.at(0);
    reorganise<<<blocks(n), THREADS>>>(dl, d, du, reorganised, n);
    invert_pairs<<<blocks(n / 2), THREADS>>>(dl, (const T *)reorganised, du, from, n);
    for (int64_t half = 2; half < n; half *= 2) {
        merge<<<blocks(2 * half * n), THREADS>>>(dl, du, (const T *)from, to, n, half);
        std::swap(from, to);
    }
    TRY(cudaGetLastError());
}

template <typename T> double paper_seconds(bed<T> &bed)
{
    device_array<T> reorganised((size_t)bed.n), other((size_t)(bed.n * bed.n));
    return clock_seconds([&](int) { run(bed, other.at(0), reorganised.at(0)); }, 3);
}

/* ---- Time ---- */

template <typename T> void time_shape(int64_t n, int64_t count, recorder &to)
{
    bed<T> bed(n, count);
    int64_t numbers = n * n * count;
    int calls = (int)std::max<int64_t>(3, std::min<int64_t>(40, (16 * CARD_BYTES) / (numbers * 8)));
    double ours[4];
    double fill = clock_seconds([&](int) { fill_streaming(bed.x.at(0), (size_t)numbers); }, calls);
    for (int v : timed) {
        launch<T> call(bed, v);
        ours[v] = clock_seconds([&](int) { call.run(); }, calls);
    }
    struct peers peers = peers_of(bed);
    double paper = count == 1 && (n & (n - 1)) == 0 ? paper_seconds(bed) : 0;
    for (int v : timed)
        to.add(shape_of(n, count), number<T>::precision, variant_names[v], ours[v] * 1e6, "us",
               {{"fill", fill * 1e6},
                {"gtsv2", peers.pivoting * 1e6},
                {"gtsv2_nopivot", peers.plain * 1e6},
                {"the paper's", paper * 1e6}});
}

void time_all(const settings &wish, recorder &to)
{
    static const struct {
        int64_t n, count; /* count 0: as many as fill the card */
    } shapes[] = {{64, 0},    {128, 0},  {256, 0},  {512, 0},  {1024, 16}, {1024, 64}, {1000, 16},
                  {2048, 16}, {4096, 1}, {4095, 1}, {8192, 1}, {8192, 4},  {16384, 1}, {16383, 1}};
    for (const auto &shape : shapes) {
        if (!wish.wants(shape.n))
            continue;
        int64_t numbers = shape.n * shape.n;
        time_shape<double>(shape.n, shape.count ? shape.count : CARD_BYTES / (numbers * 8), to);
        time_shape<float>(shape.n, shape.count ? shape.count : CARD_BYTES / (numbers * 4), to);
    }
}

} // namespace

const struct subject tridiagonal_subject = {"tridiagonal", "tridiagonal", check_all,
                                            time_all,      nullptr,       nullptr};
