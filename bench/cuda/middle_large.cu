/* bench/cuda/middle_large.cu: cuda_middle --profile: one large inverse, taken apart.
 *
 * For an order beyond one block's panels, by precision: the time of the whole for several widths
 * and sizes of cluster; and for each the time of its parts, run alone one after the other: all
 * panels, the rows that are collected, the products that the next panel waits for, and the others.
 * The best whole lies between the larger of panels and products and their sum. The answer of each
 * is tried: |I - X A| / (n |A| |X| eps), on the device. Beside each the time of the same matrix's
 * LU.
 *
 * Also products by themselves, on either road (gpu/cuda/product.h).
 */
#include "bench/cuda/clock.cuh"
#include "bench/cuda/middle.cuh"

#include "gpu/cuda/lu_wide_launch.cuh"
#include "gpu/cuda/product_own.h"

namespace
{

template <typename T> struct wide;

template <> struct wide<float> {
    static constexpr auto launch = cuda__lu_invert_wide_f32, factor = cuda__lu_factor_wide_f32;
    static constexpr auto clusters = cuda__lu_invert_clusters_f32;
};

template <> struct wide<double> {
    static constexpr auto launch = cuda__lu_invert_wide_f64, factor = cuda__lu_factor_wide_f64;
    static constexpr auto clusters = cuda__lu_invert_clusters_f64;
};

template <typename T> struct one_matrix {
    int n;
    device_array<T> a, x, rcond, product;
    device_array<int32_t> pivots, info;
    device_array<cuda_item> items;
    cuda_batch batch, factored;

    explicit one_matrix(int order)
        : n(order), a((size_t)n * n), x((size_t)n * n), rcond(1), product((size_t)n * n), pivots(n),
          info(1), items(2), batch{items.at(0), 1, 1, nullptr}, factored{items.at(1), 1, 1, nullptr}
    {
        items.put({{a.at(0), x.at(0), rcond.at(0), info.at(0), 0},
                   {a.at(0), x.at(0), pivots.at(0), info.at(0), 0}});
        clock_fill<<<1024, 256>>>(a.at(0), (size_t)n * n);
        SMALL_TRY(cudaGetLastError());
    }
};

/* Adds the magnitudes of a column of `minus` I - P, or of P. */
template <typename T> __global__ void column_sums(const T *p, int n, bool minus, double *sums)
{
    int j = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    double sum = 0;
    for (int i = 0; j < n && i < n; i++) {
        double x = (double)p[(int64_t)i * n + j];
        sum += fabs(minus && i == j ? 1 - x : minus ? -x : x);
    }
    if (j < n)
        sums[j] = sum;
}

template <typename T> double norm_of(const T *p, int n, bool minus)
{
    device_array<double> sums(n);
    column_sums<<<(n + 255) / 256, 256>>>(p, n, minus, sums.at(0));
    SMALL_TRY(cudaGetLastError());
    std::vector<double> all = sums.get(0, (size_t)n);
    double most = 0;
    for (double sum : all)
        most = sum > most || sum != sum ? sum : most;
    return most;
}

template <typename T> double ratio_of(const one_matrix<T> &of)
{
    struct cuda_product product = {};
    int64_t n = of.n;
    product.precision = small_real<T>::precision;
    product.rows = product.columns = product.inner = n;
    product.alpha = 1;
    product.a = cuda_matrices{of.x.at(0), n, 0};
    product.b = cuda_matrices{of.a.at(0), n, 0};
    product.c = cuda_matrices{of.product.at(0), n, 0};
    product.count = 1;
    SMALL_TRY(cuda_product(middle_products(), &product, nullptr));
    return norm_of(of.product.at(0), of.n, true) /
           ((double)n * (double)cuda__real<T>::eps * norm_of(of.a.at(0), of.n, false) *
            norm_of(of.x.at(0), of.n, false));
}

/* The parts of one inverse, by events. */
struct parts {
    double panels, rows, next, others; /* seconds */
};

template <typename T> struct parted {
    cuda__lu_journey<T, false> journey;

    /* f(at, inner, next, columns) for every step. */
    template <typename F> double each(F f)
    {
        return clock_seconds(
            [&](int) {
                for (int at = 0; journey.columns_at(at) > 0; at += journey.columns_at(at)) {
                    int inner = journey.columns_at(at), next = at + inner;
                    f(at, inner, next, journey.columns_at(next));
                }
                SMALL_TRY(journey.status);
            },
            1);
    }

    struct parts measure()
    {
        struct parts of;
        int padded = journey.chunk.padded;
        of.panels = each(
            [&](int at, int inner, int, int) { journey.cluster(at, inner, nullptr, nullptr); });
        of.rows = each([&](int at, int inner, int next, int) {
            journey.collect(at, inner, 0, at);
            journey.collect(at, inner, next, padded - next);
        });
        of.next = each([&](int at, int inner, int next, int columns) {
            journey.cluster_product(at, inner, next, columns);
        });
        of.others = each([&](int at, int inner, int next, int columns) {
            journey.cluster_product(at, inner, 0, at);
            journey.cluster_product(at, inner, next + columns, padded - next - columns);
        });
        return of;
    }
};

/* On what an inverse has left in the workspace. */
template <typename T>
struct parts parts_of(const one_matrix<T> &of, unsigned char *space, size_t bytes,
                      cuda__lu_manner manner)
{
    cuda__lu_chunk chunk = {space, bytes, 0, of.n, cuda__lu_padded(of.n), manner};
    int blocks = wide<T>::clusters(chunk.padded, manner.blocks);
    parted<T> parted = {{of.batch, chunk, 1, nullptr, middle_products(), blocks, cudaSuccess}};
    return parted.measure();
}

template <typename T> void profile_manner(const one_matrix<T> &of, cuda__lu_manner manner)
{
    int n = of.n;
    size_t bytes = cuda__lu_space_bytes<T>(n, manner);
    device_array<unsigned char> space(bytes);
    double seconds = clock_seconds(
        [&](int) {
            SMALL_TRY(wide<T>::launch(n, of.batch, space.at(0), bytes, manner, middle_products(),
                                      nullptr));
        },
        1);
    printf("%s n %5d width %3d blocks %2d %-6s %9.3f ms %6.2f TFLOP/s  ratio %.3f  ",
           precision_name(small_real<T>::precision), n, manner.width, manner.blocks,
           manner.behind ? "behind" : "beside", seconds * 1e3, 2e-12 * n * n * n / seconds,
           ratio_of(of));
    if (!manner.behind) {
        struct parts parts = parts_of(of, space.at(0), bytes, manner);
        printf("panels %.3f rows %.3f next %.3f others %.3f ms", parts.panels * 1e3,
               parts.rows * 1e3, parts.next * 1e3, parts.others * 1e3);
    }
    printf("\n");
    fflush(stdout);
}

/* The same matrix's LU. */
template <typename T> void profile_factor(const one_matrix<T> &of, cuda__lu_manner manner)
{
    int n = of.n;
    manner.factor = true;
    size_t bytes = cuda__lu_space_bytes<T>(n, manner);
    device_array<unsigned char> space(bytes);
    double seconds = clock_seconds(
        [&](int) {
            SMALL_TRY(wide<T>::factor(n, of.factored, space.at(0), bytes, manner, middle_products(),
                                      nullptr));
        },
        1);
    printf("%s n %5d width %3d blocks %2d LU     %9.3f ms %6.2f TFLOP/s\n",
           precision_name(small_real<T>::precision), n, manner.width, manner.blocks, seconds * 1e3,
           2e-12 / 3 * n * n * n / seconds);
}

template <typename T> void profile_either(const one_matrix<T> &of, cuda__lu_manner manner)
{
    profile_manner(of, manner);
    profile_factor(of, manner);
}

template <typename T> void profile(int n)
{
    one_matrix<T> of(n);
    for (int width : {64, 128, 192, 256}) {
        for (int blocks : {16, 8}) {
            cuda__lu_manner manner = {};
            manner.shared = true;
            manner.width = width;
            manner.blocks = blocks;
            bool sensible = width * 4 <= n && width * 256 >= n && (blocks == 16 || n <= 2048);
            if (sensible && wide<T>::clusters(cuda__lu_padded(n), blocks) == blocks)
                profile_either(of, manner);
        }
    }
}

/* ---- Products ---- */

struct road {
    const char *name;
    cudaError_t (*multiply)(const struct cuda_product *product);
};

cudaError_t by_own(const struct cuda_product *product)
{
    return cuda__product_own(product, nullptr);
}

cudaError_t by_shape(const struct cuda_product *product)
{
    return cuda_product(middle_products(), product, nullptr);
}

template <typename T>
void profile_product(int64_t rows, int64_t columns, int64_t inner, int64_t count, bool transposed)
{
    const struct road roads[] = {{"own", by_own}, {"by shape", by_shape}};
    device_array<T> a(rows * inner * count), b(inner * columns * count), c(rows * columns * count);
    clock_fill<<<1024, 256>>>(a.at(0), (size_t)(rows * inner * count));
    clock_fill<<<1024, 256>>>(b.at(0), (size_t)(inner * columns * count));
    clock_fill<<<1024, 256>>>(c.at(0), (size_t)(rows * columns * count));
    struct cuda_product product = {};
    product.precision = small_real<T>::precision;
    product.rows = rows;
    product.columns = columns;
    product.inner = inner;
    product.transpose_b = transposed;
    product.alpha = product.beta = 1;
    product.a = cuda_matrices{a.at(0), inner, rows * inner};
    product.b = cuda_matrices{b.at(0), transposed ? inner : columns, inner * columns};
    product.c = cuda_matrices{c.at(0), columns, rows * columns};
    product.count = count;
    for (const struct road &road : roads) {
        double seconds = clock_seconds([&](int) { SMALL_TRY(road.multiply(&product)); }, 3);
        printf("%s product %5lld x %5lld x %5lld%s, %4lld: %-8s %9.1f us %6.2f TFLOP/s\n",
               precision_name(product.precision), (long long)rows, (long long)columns,
               (long long)inner, transposed ? " T" : "  ", (long long)count, road.name,
               seconds * 1e6,
               2e-12 * (double)rows * (double)columns * (double)inner * (double)count / seconds);
    }
}

template <typename T> void profile_products()
{
    const int64_t orders[] = {32, 64, 128, 256, 512, 1024, 2048, 4096};
    for (int64_t n : orders) {
        int64_t many = (INT64_C(1) << 26) / (n * n);
        profile_product<T>(n, n, n, many, false);
        profile_product<T>(n, n, n, many < 4 ? 1 : many, true);
        if (n >= 512)
            profile_product<T>(n, n, n, 1, false);
    }
    for (int64_t n : {2048, 4096, 8192}) {
        profile_product<T>(n, 128, 128, 1, false);
        profile_product<T>(n, n, 128, 1, false);
        profile_product<T>(n, n, 256, 1, false);
    }
}

} // namespace

void middle_profile(int n)
{
    profile<double>(n);
    profile<float>(n);
}

void middle_products_profile()
{
    profile_products<double>();
    profile_products<float>();
}
