/* bench/gpu/products.cu: FP32 products by parts (gpu/cuda/gemm/split_precision.h) next to cuBLAS's
 * own in FP32: time, and what both are off the product in FP64; and which algorithm a shape takes.
 *
 * Errors are of an entry, in eps |A| |B| of that entry: the worst, and the root of the mean square.
 */
#include "bench/gpu/calls.h"

#include <cstring>

#include "bench/gpu/random.cuh"
#include "gpu/cuda/gemm/simt.h"
#include "gpu/cuda/gemm/split_precision.h"

/* Of products by parts: next to SGEMM's errors, and, where all numbers have one sign, in eps |A|
 * |B|: sums are cut off there, which adds up. */
#define PRODUCT_MEAN 4
#define PRODUCT_WORST 5
#define PRODUCT_BIAS 32
#define PRODUCT_COUNT 2 /* matrices of a kind, for bits in a batch */

namespace
{

enum operand {
    ANY,      /* uniform between -1 and 1 */
    ONE_SIGN, /* between 0 and 1 */
    SLOPE,    /* rows and columns from 1 to 2^-40 and 2^20 */
    TINY      /* 2^100 and 2^-110 */
};

const struct {
    enum operand kind;
    const char *name;
} operands[] = {
    {ANY, "random"}, {ONE_SIGN, "one sign"}, {SLOPE, "graded"}, {TINY, "2^100 by 2^-110"}};

/* An FP32 product by cuBLAS's SGEMM, and by parts. */
struct found {
    double seconds, worst, mean;
    double split_seconds, split_worst, split_mean;
    bool same; /* the split one has the same bits again, and in a batch */
};

__global__ void product_fill(float *a, int64_t rows, int64_t columns, enum operand kind,
                             uint64_t seed)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < rows * columns;
         e += step) {
        double x = random_number((uint64_t)e + seed);
        if (kind == ONE_SIGN)
            x = fabs(x);
        if (kind == SLOPE)
            x *= exp2(20.0 * (double)(e % columns) / (double)columns -
                      40.0 * (double)(e / columns) / (double)rows);
        if (kind == TINY)
            x *= seed ? 0x1p-110 : 0x1p100;
        a[e] = (float)x;
    }
}

/* found: the largest |c - exact| / size, and the sum of its squares. */
__global__ void product_compare(const float *c, const double *exact, const double *size,
                                int64_t all, double *found)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    double worst = 0, sum = 0;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step) {
        double off = fabs((double)c[e] - exact[e]) / size[e];
        off = off < HUGE_VAL ? off : 1e100;
        worst = fmax(worst, off);
        sum += off * off;
    }
    atomicMax((unsigned long long *)found, (unsigned long long)__double_as_longlong(worst));
    atomicAdd(found + 1, sum);
}

struct product_bed {
    int64_t rows, columns, inner;
    device_array<float> a, b, c, again;
    struct cuda_product product;

    product_bed(int64_t m, int64_t n, int64_t k, enum operand kind)
        : rows(m), columns(n), inner(k), a(m * k), b(k * n), c(m * n * PRODUCT_COUNT), again(m * n),
          product()
    {
        product_fill<<<1024, 256>>>(a.at(0), m, k, kind, 0);
        product_fill<<<1024, 256>>>(b.at(0), k, n, kind, 1u << 30);
        product.precision = PRECISION_FP32;
        product.rows = m;
        product.columns = n;
        product.inner = k;
        product.alpha = product.count = 1;
        product.a = {a.at(0), k, 0};
        product.b = {b.at(0), n, 0};
        product.c = {c.at(0), n, m * n};
        TRY(cudaGetLastError());
    }

    /* Worst and mean of the errors of C, in eps |A||B|. */
    void judge(const device_array<double> &exact, const device_array<double> &size, double *worst,
               double *mean)
    {
        device_array<double> found(2);
        TRY(cudaMemset(found.at(0), 0, 2 * sizeof(double)));
        product_compare<<<512, 256>>>(c.at(0), exact.at(0), size.at(0), rows * columns,
                                      found.at(0));
        TRY(cudaDeviceSynchronize());
        std::vector<double> sums = found.get(0, 2);
        *worst = sums[0] / 0x1p-23;
        *mean = sqrt(sums[1] / (double)(rows * columns)) / 0x1p-23;
    }

    void multiply_exactly(const device_array<double> &to, bool magnitudes)
    {
        device_array<double> wide_a((size_t)(rows * inner)), wide_b((size_t)(inner * columns));
        widen(wide_a.at(0), a.at(0), (size_t)(rows * inner), magnitudes);
        widen(wide_b.at(0), b.at(0), (size_t)(inner * columns), magnitudes);
        multiply_f64(rows, columns, inner, wide_a.at(0), wide_b.at(0), false, 0, to.at(0));
        TRY(cudaDeviceSynchronize());
    }
};

struct found try_product(int64_t rows, int64_t columns, int64_t inner, enum operand kind)
{
    struct found found = {};
    struct cuda_products *with = here().products;
    product_bed bed(rows, columns, inner, kind);
    device_array<double> exact(rows * columns), size(rows * columns);
    size_t all = (size_t)(rows * columns), bytes = cuda__product_split_bytes(&bed.product);
    device_array<char> scratch(bytes);
    bed.multiply_exactly(exact, false);
    bed.multiply_exactly(size, true);
    int calls = rows * columns * inner > INT64_C(1) << 36 ? 2 : 10;
    found.seconds =
        clock_seconds([&](int) { TRY(cuda_product(with, &bed.product, nullptr)); }, calls);
    bed.judge(exact, size, &found.worst, &found.mean);
    bed.product.scratch = scratch.at(0);
    found.split_seconds =
        clock_seconds([&](int) { TRY(cuda__product_split(with, &bed.product, nullptr)); }, calls);
    /* Poison: C must be written, and not read. */
    TRY(cudaMemset(bed.c.at(0), 0xff, PRODUCT_COUNT * all * sizeof(float)));
    TRY(cudaMemset(scratch.at(0), 0xff, bytes));
    bed.product.count = PRODUCT_COUNT;
    TRY(cuda__product_split(with, &bed.product, nullptr));
    bed.judge(exact, size, &found.split_worst, &found.split_mean);
    bed.product.count = 1;
    bed.product.c.at = bed.again.at(0);
    TRY(cuda__product_split(with, &bed.product, nullptr));
    TRY(cudaDeviceSynchronize());
    std::vector<float> batch = bed.c.get(0, PRODUCT_COUNT * all), one = bed.again.get(0, all);
    found.same = memcmp(batch.data(), one.data(), all * sizeof(float)) == 0 &&
                 memcmp(batch.data() + all, one.data(), all * sizeof(float)) == 0;
    return found;
}

/* The same bits each time, and nothing lost where operands are far from 1. */
int check_all(const settings &wish)
{
    int failed = 0;
    for (int64_t n : wish.orders({512, 1000, 2048, 3001}))
        for (const auto &operand : operands) {
            struct found found = try_product(n, n, n, operand.kind);
            double allowed = operand.kind == ONE_SIGN ? PRODUCT_BIAS : PRODUCT_MEAN * found.mean;
            bool right = found.same && found.split_mean <= allowed &&
                         found.split_worst <= PRODUCT_WORST * found.worst;
            failed += !right;
            if (!right)
                printf("product of n = %d, %s: %s bits, mean %g of %g, worst %g times SGEMM's: "
                       "WRONG\n",
                       (int)n, operand.name, found.same ? "the same" : "other", found.split_mean,
                       allowed, found.split_worst / found.worst);
        }
    return failed;
}

void time_product(int64_t n, int64_t inner, enum operand kind, const char *name, recorder &to)
{
    struct found found = try_product(n, n, inner, kind);
    const std::string shape = "n=" + std::to_string(n) + " inner=" + std::to_string(inner);
    const std::string what = std::string("split ") + name;
    to.add(shape, PRECISION_FP32, what, found.split_seconds * 1e6, "us",
           {{"sgemm", found.seconds * 1e6}});
    to.add(shape, PRECISION_FP32, what + " worst", found.split_worst, "eps",
           {{"sgemm", found.worst}});
    to.add(shape, PRECISION_FP32, what + " mean", found.split_mean, "eps", {{"sgemm", found.mean}});
}

void time_all(const settings &wish, recorder &to)
{
    for (const auto &operand : operands)
        for (int64_t n : wish.orders({512, 1024, 1280, 1536, 2048, 4096, 8192}))
            time_product(n, n, operand.kind, operand.name, to);
    for (int64_t n : wish.orders({2048, 4096, 8192}))
        for (int64_t inner : {128, 256, 512, 1024})
            time_product(n, inner, ANY, "update", to);
}

/* By our own kernel, and as the shape has it. */
template <typename T> void try_ways(int64_t n, int64_t inner, int64_t count, recorder &to)
{
    device_array<T> a((size_t)(n * inner * count)), b((size_t)(inner * n * count)),
        c((size_t)(n * n * count));
    draw(a.at(0), (size_t)(n * inner * count));
    draw(b.at(0), (size_t)(inner * n * count));
    draw(c.at(0), (size_t)(n * n * count));
    struct cuda_product product = {};
    product.precision = number<T>::precision;
    product.rows = product.columns = n;
    product.inner = inner;
    product.alpha = product.beta = 1;
    product.a = {a.at(0), inner, n * inner};
    product.b = {b.at(0), n, inner * n};
    product.c = {c.at(0), n, n * n};
    product.count = count;
    double own = clock_seconds([&](int) { TRY(cuda__product_own(&product, nullptr)); }, 3);
    double taken =
        clock_seconds([&](int) { TRY(cuda_product(here().products, &product, nullptr)); }, 3);
    to.add(shape_of(n, count) + " inner=" + std::to_string(inner), number<T>::precision, "product",
           taken * 1e6, "us", {{"our own kernel", own * 1e6}});
}

void ways(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}))
        for (int64_t inner : {(int64_t)128, n})
            for (int64_t count : {(int64_t)1, std::max<int64_t>(((int64_t)1 << 26) / (n * n), 1)}) {
                try_ways<double>(n, inner, count, to);
                try_ways<float>(n, inner, count, to);
            }
}

} // namespace

const struct subject products_subject = {
    "products", "FP32 products by parts", check_all, time_all, nullptr, ways};
