/* bench/cuda/iterative_products.cu: FP32 products by parts (gpu/cuda/gemm/split_precision.h)
 * beside cuBLAS's own in FP32: time, and what both are off the product in FP64.
 */
#include "bench/cuda/iterative.cuh"

#include <cublas_v2.h>

#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/gemm/split_precision.h"

#define PRODUCT_COUNT 2 /* matrices of a kind, for bits in a batch */

static __global__ void product_fill(float *a, int64_t rows, int64_t columns,
                                    enum iterative_operand kind, uint64_t seed)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < rows * columns;
         e += step) {
        double x = iterative_random((uint64_t)e + seed);
        if (kind == ITERATIVE_ONE_SIGN)
            x = fabs(x);
        if (kind == ITERATIVE_SLOPE)
            x *= exp2(20.0 * (double)(e % columns) / (double)columns -
                      40.0 * (double)(e / columns) / (double)rows);
        if (kind == ITERATIVE_TINY)
            x *= seed ? 0x1p-110 : 0x1p100;
        a[e] = (float)x;
    }
}

static __global__ void product_widen(double *to, const float *from, int64_t all, bool size)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step)
        to[e] = size ? fabs((double)from[e]) : (double)from[e];
}

/* found: the largest |c - exact| / size, and the sum of its squares. */
static __global__ void product_compare(const float *c, const double *exact, const double *size,
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

namespace
{

void expect_blas(cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    fprintf(stderr, "cuda_iterative: cuBLAS failed\n");
    exit(2);
}

struct product_bed {
    int64_t rows, columns, inner;
    device_array<float> a, b, c, again;
    struct cuda_product product;

    product_bed(int64_t m, int64_t n, int64_t k, enum iterative_operand kind)
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
        SMALL_TRY(cudaGetLastError());
    }

    /* Worst and mean of the errors of C, in eps |A||B|. */
    void judge(const device_array<double> &exact, const device_array<double> &size, double *worst,
               double *mean)
    {
        device_array<double> found(2);
        SMALL_TRY(cudaMemset(found.at(0), 0, 2 * sizeof(double)));
        product_compare<<<512, 256>>>(c.at(0), exact.at(0), size.at(0), rows * columns,
                                      found.at(0));
        SMALL_TRY(cudaDeviceSynchronize());
        std::vector<double> sums = found.get(0, 2);
        *worst = sums[0] / 0x1p-23;
        *mean = sqrt(sums[1] / (double)(rows * columns)) / 0x1p-23;
    }

    void multiply_exactly(const device_array<double> &to, bool size)
    {
        device_array<double> wide_a(rows * inner), wide_b(inner * columns);
        cublasHandle_t handle;
        double one = 1, zero = 0;
        product_widen<<<1024, 256>>>(wide_a.at(0), a.at(0), rows * inner, size);
        product_widen<<<1024, 256>>>(wide_b.at(0), b.at(0), inner * columns, size);
        expect_blas(cublasCreate(&handle));
        expect_blas(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)columns, (int)rows,
                                (int)inner, &one, wide_b.at(0), (int)columns, wide_a.at(0),
                                (int)inner, &zero, to.at(0), (int)columns));
        SMALL_TRY(cudaDeviceSynchronize());
        cublasDestroy(handle);
    }
};

} // namespace

struct iterative_product iterative_try_product(int64_t rows, int64_t columns, int64_t inner,
                                               enum iterative_operand kind)
{
    struct iterative_product found = {};
    struct cuda_products *with = nullptr;
    product_bed bed(rows, columns, inner, kind);
    device_array<double> exact(rows * columns), size(rows * columns);
    size_t all = (size_t)(rows * columns), bytes = cuda__product_split_bytes(&bed.product);
    device_array<char> scratch(bytes);
    SMALL_TRY(cuda_products_create(nullptr, &with));
    bed.multiply_exactly(exact, false);
    bed.multiply_exactly(size, true);
    int calls = rows * columns * inner > INT64_C(1) << 36 ? 2 : 10;
    found.seconds =
        clock_seconds([&](int) { SMALL_TRY(cuda_product(with, &bed.product, nullptr)); }, calls);
    bed.judge(exact, size, &found.worst, &found.mean);
    bed.product.scratch = scratch.at(0);
    found.split_seconds = clock_seconds(
        [&](int) { SMALL_TRY(cuda__product_split(with, &bed.product, nullptr)); }, calls);
    /* Poison: C must be written, and not read. */
    SMALL_TRY(cudaMemset(bed.c.at(0), 0xff, PRODUCT_COUNT * all * sizeof(float)));
    SMALL_TRY(cudaMemset(scratch.at(0), 0xff, bytes));
    bed.product.count = PRODUCT_COUNT;
    SMALL_TRY(cuda__product_split(with, &bed.product, nullptr));
    bed.judge(exact, size, &found.split_worst, &found.split_mean);
    bed.product.count = 1;
    bed.product.c.at = bed.again.at(0);
    SMALL_TRY(cuda__product_split(with, &bed.product, nullptr));
    SMALL_TRY(cudaDeviceSynchronize());
    std::vector<float> batch = bed.c.get(0, PRODUCT_COUNT * all), one = bed.again.get(0, all);
    found.same = memcmp(batch.data(), one.data(), all * sizeof(float)) == 0 &&
                 memcmp(batch.data() + all, one.data(), all * sizeof(float)) == 0;
    cuda_products_destroy(&with);
    return found;
}
