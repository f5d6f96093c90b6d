/* bench/cuda/middle_large.cu: cuda_middle --profile: inverses and LU by clusters, taken apart.
 *
 * For an order, of one matrix or many, by precision: the time of the whole for several widths and
 * sizes of cluster; and the time of its parts, run alone one after the other: all
 * panels, the moves of rows, what the next panel waits for, and the rest. The best whole lies
 * between the larger of panels and rest and their sum. The first answer is tried, on the device:
 * |I - X A| / (n |A| |X| eps) of an inverse; of LU |P A v - L U v| / (n |A| |v| eps), in largest
 * row sums, v being random.
 *
 * Also products by themselves, by either algorithm (gpu/cuda/gemm/gemm.h).
 */
#include "bench/cuda/clock.cuh"
#include "bench/cuda/middle.cuh"

#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/lu/wide.cuh"
#include "gpu/cuda/gemm/simt.h"

namespace
{

template <typename T> struct wide;

template <> struct wide<float> {
    static constexpr auto launch = cuda__lu_invert_wide_f32, factor = cuda__lu_factor_wide_f32;
    static constexpr auto clusters = cuda__lu_clusters_f32;
};

template <> struct wide<double> {
    static constexpr auto launch = cuda__lu_invert_wide_f64, factor = cuda__lu_factor_wide_f64;
    static constexpr auto clusters = cuda__lu_clusters_f64;
};

template <typename T> struct matrices {
    int n;
    int64_t count;
    device_array<T> a, x, rcond, product;
    device_array<int32_t> pivots, info;
    device_array<cuda_item> items;
    cuda_batch batch, factored;

    explicit matrices(int order, int64_t many)
        : n(order), count(many), a((size_t)many * n * n), x((size_t)many * n * n), rcond(many),
          product((size_t)n * n), pivots((size_t)many * n), info(many),
          items(2), batch{items.at(0), 1, many, nullptr}, factored{items.at(1), 1, many, nullptr}
    {
        items.put({{a.at(0), x.at(0), rcond.at(0), info.at(0), 0},
                   {a.at(0), x.at(0), pivots.at(0), info.at(0), 0}});
        clock_fill<<<1024, 256>>>(a.at(0), (size_t)many * n * n);
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

template <typename T> double ratio_of_inverse(const matrices<T> &of)
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

/* to = M v, M being the matrix, its upper triangle, or its lower one with ones. A block a row. */
enum shape {
    SHAPE_ALL,
    SHAPE_UPPER,
    SHAPE_LOWER
};

template <typename T>
__global__ void times_vector(const T *m, int n, enum shape shape, const double *v, double *to)
{
    __shared__ double sums[CUDA__WARP];
    int i = (int)blockIdx.x;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < n; j += CUDA__WARP) {
        double x = shape == SHAPE_LOWER && i == j ? 1 : (double)m[(int64_t)i * n + j];
        bool within = shape == SHAPE_ALL || (shape == SHAPE_UPPER ? j >= i : j <= i);
        sum += within ? x * v[j] : 0;
    }
    sums[threadIdx.x] = sum;
    __syncwarp();
    sum = 0;
    for (int k = 0; k < CUDA__WARP; k++)
        sum += sums[k];
    to[i] = sum;
}

template <typename T>
void multiply_vector(const T *m, int n, enum shape shape, const double *v, double *to)
{
    times_vector<<<n, CUDA__WARP>>>(m, n, shape, v, to);
    SMALL_TRY(cudaGetLastError());
}

template <typename T> double ratio_of_factors(const matrices<T> &of)
{
    int n = of.n;
    device_array<double> v(n), uv(n), luv(n), av(n);
    clock_fill<<<64, 256>>>(v.at(0), (size_t)n);
    multiply_vector(of.a.at(0), n, SHAPE_ALL, v.at(0), av.at(0));
    multiply_vector(of.x.at(0), n, SHAPE_UPPER, v.at(0), uv.at(0));
    multiply_vector(of.x.at(0), n, SHAPE_LOWER, uv.at(0), luv.at(0));
    std::vector<double> expected = av.get(0, (size_t)n), got = luv.get(0, (size_t)n);
    std::vector<int32_t> pivots = of.pivots.get(0, (size_t)n);
    double most = 0;
    for (int k = 0; k < n; k++)
        std::swap(expected[k], expected[pivots[k] - 1]);
    for (int k = 0; k < n; k++)
        most = std::max(most, fabs(got[k] - expected[k]));
    return most / ((double)n * (double)cuda__real<T>::eps * n / 2); /* |A| of numbers in -1 .. 1 */
}

/* The parts of one inverse, by events. */
struct parts {
    double panels, moves, next, others; /* seconds */
    double together, beside;            /* panels beside others; and those panels' own time */
};

template <typename T, bool Factor> struct parted {
    cuda__lu_sequence<T, Factor> sequence;

    /* f(at, inner, next, columns) for every step. */
    template <typename F> double each(F f)
    {
        return clock_seconds(
            [&](int) {
                for (int at = 0; sequence.columns_at(at) > 0; at += sequence.columns_at(at)) {
                    int inner = sequence.columns_at(at), next = at + inner;
                    f(at, inner, next, sequence.columns_at(next));
                }
                SMALL_TRY(sequence.status);
            },
            1);
    }

    void bring_others(int at, int inner, int next, int columns)
    {
        int rest = next + columns;
        if (Factor)
            sequence.bring_below(at, inner, rest, sequence.chunk.padded - rest);
        else
            sequence.bring_around(at, inner, rest);
    }

    /* Panels beside what is done meanwhile; between events of its own stream each. */
    void measure_together(struct parts *of)
    {
        const struct cuda_side *side = cuda_products_side(sequence.products);
        cudaEvent_t start, end;
        of->beside = 0;
        SMALL_TRY(cudaEventCreate(&start));
        SMALL_TRY(cudaEventCreate(&end));
        of->together = each([&](int at, int inner, int next, int columns) {
            float milliseconds;
            if (columns == 0)
                return;
            SMALL_TRY(cudaEventRecord(start, side->stream));
            sequence.cluster_beside(next, columns);
            SMALL_TRY(cudaEventRecord(end, side->stream));
            bring_others(at, inner, next, columns);
            SMALL_TRY(cudaStreamSynchronize(side->stream));
            SMALL_TRY(cudaStreamSynchronize(sequence.stream));
            SMALL_TRY(cudaEventElapsedTime(&milliseconds, start, end));
            of->beside += milliseconds / 1e3 / (CLOCK_ROUNDS + 1);
        });
        SMALL_TRY(cudaEventDestroy(start));
        SMALL_TRY(cudaEventDestroy(end));
    }

    struct parts measure()
    {
        struct parts of;
        int padded = sequence.chunk.padded;
        of.panels = each(
            [&](int at, int inner, int, int) { sequence.cluster(at, inner, nullptr, nullptr); });
        of.moves = each([&](int at, int inner, int next, int columns) {
            int rest = next + columns;
            sequence.move(at, inner, at, rest - at);
            sequence.move(at, inner, 0, at);
            sequence.move(at, inner, rest, padded - rest);
        });
        of.next = each([&](int at, int inner, int next, int columns) {
            if (!Factor)
                sequence.invert_triangles(at, inner);
            sequence.bring_below(at, inner, next, columns);
        });
        of.others = each([&](int at, int inner, int next, int columns) {
            bring_others(at, inner, next, columns);
        });
        measure_together(&of);
        return of;
    }
};

/* On what the whole has left in the workspace. */
template <typename T, bool Factor>
void tell_parts(const matrices<T> &of, unsigned char *space, size_t bytes, cuda__lu_manner manner)
{
    cuda__lu_chunk chunk = {space, bytes, 0, of.n, cuda__lu_padded(of.n), manner};
    int blocks = wide<T>::clusters(chunk.padded, manner.blocks);
    parted<T, Factor> parted = {
        {of.batch, chunk, (unsigned)of.count, nullptr, middle_products(), blocks, cudaSuccess}};
    struct parts parts = parted.measure();
    printf("panels %.3f moves %.3f next %.3f others %.3f together %.3f beside %.3f ms",
           parts.panels * 1e3, parts.moves * 1e3, parts.next * 1e3, parts.others * 1e3,
           parts.together * 1e3, parts.beside * 1e3);
}

/* Counted: operations over n^3. */
template <typename T, bool Factor>
void profile_manner(const matrices<T> &of, cuda__lu_manner manner)
{
    int n = of.n;
    double counted = Factor ? 2.0 / 3 : 2;
    manner.factor = Factor;
    size_t each = cuda__lu_space_bytes<T>(n, manner), bytes = each * (size_t)of.count;
    device_array<unsigned char> space(bytes);
    double seconds = clock_seconds(
        [&](int) {
            SMALL_TRY((Factor ? wide<T>::factor
                              : wide<T>::launch)(n, Factor ? of.factored : of.batch, space.at(0),
                                                 bytes, manner, middle_products(), nullptr));
        },
        1);
    printf("%s %s n %5d x %4lld width %3d blocks %2d %9.3f ms %6.2f TFLOP/s  ratio %.4f  ",
           precision_name(small_real<T>::precision), Factor ? "LU     " : "inverse", n,
           (long long)of.count, manner.width, manner.blocks, seconds * 1e3,
           counted * 1e-12 * n * n * n * (double)of.count / seconds,
           Factor ? ratio_of_factors(of) : ratio_of_inverse(of));
    if (manner.width > 0)
        tell_parts<T, Factor>(of, space.at(0), each, manner);
    printf("\n");
    fflush(stdout);
}

template <typename T> void profile_either(const matrices<T> &of, cuda__lu_manner manner)
{
    if (of.n <= CUDA_MIDDLE_N_MAX / 2)
        profile_manner<T, false>(of, manner);
    if (manner.width > 0)
        profile_manner<T, true>(of, manner);
}

template <typename T> void profile(int n, int64_t count)
{
    matrices<T> of(n, count);
    for (int width : {0, 32, 64, 128, 192, 256}) {
        for (int blocks : {16, 8, 4, 2, 1}) {
            cuda__lu_manner manner = {};
            manner.width = width;
            manner.blocks = blocks;
            manner.behind = count > 1;
            bool sensible = width == 0 ? blocks == 16 && n <= CUDA_NEAR_N_MAX
                                       : width * 2 <= n && width * 96 >= n;
            bool fits = count == 1 ? blocks == 16 || (blocks == 8 && n <= 2048)
                                   : count * blocks <= 2 * 132 || blocks == 1;
            if (sensible && fits && wide<T>::clusters(cuda__lu_padded(n), blocks) == blocks)
                profile_either(of, manner);
        }
    }
}

/* ---- Products ---- */

struct algorithm {
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
    const struct algorithm algorithms[] = {{"own", by_own}, {"by shape", by_shape}};
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
    for (const struct algorithm &algorithm : algorithms) {
        double seconds = clock_seconds([&](int) { SMALL_TRY(algorithm.multiply(&product)); }, 3);
        printf("%s product %5lld x %5lld x %5lld%s, %4lld: %-8s %9.1f us %6.2f TFLOP/s\n",
               precision_name(product.precision), (long long)rows, (long long)columns,
               (long long)inner, transposed ? " T" : "  ", (long long)count, algorithm.name,
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
    for (int64_t n : {2048, 4096, 8192, 16384}) {
        profile_product<T>(n, 128, 128, 1, false);
        for (int64_t inner : {128, 256, 512, 1024})
            profile_product<T>(n, n, inner, 1, false);
    }
}

} // namespace

void middle_profile(int n, int64_t count)
{
    profile<double>(n, count);
    profile<float>(n, count);
}

void middle_products_profile()
{
    profile_products<double>();
    profile_products<float>();
}
