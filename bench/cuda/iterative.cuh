/* bench/cuda/iterative.cuh: what the parts of the program cuda_iterative share. Host code, one
 * thread; an error of CUDA, cuBLAS or cuSOLVER ends the program.
 */
#ifndef BENCH_CUDA_ITERATIVE_CUH
#define BENCH_CUDA_ITERATIVE_CUH

#include <cmath>
#include <cstring>

#include "bench/cuda/clock.cuh"
#include "gpu/cuda/iterative/call.h"

/* What is asked of `iterative`. */
struct iterative_wish {
    enum method_iterative_scheme scheme = METHOD_ITERATIVE_SCHEME_AUTO;
    enum method_iterative_initial initial = METHOD_ITERATIVE_INITIAL_AUTO;
    double tolerance = 0;
    int max_iterations = 200;
    bool measures = true; /* RESIDUAL is wanted, and its history */
};

/* What came of one matrix. */
struct iterative_found {
    int32_t info = 0, algorithm = 0, iterations = 0;
    double rcond = 0, residual = 0, first = 0; /* first: the residual of the start */
    int products = 0, launches = 0;            /* of the whole call */
    double seconds = 0;
};

/* `count` matrices of order n on the device, their inverses, and what the launcher takes. */
template <typename T> struct iterative_bed {
    int64_t n, count;
    device_array<T> a, v0, x;
    device_array<T> rcond, residual, history;
    device_array<int32_t> info, algorithm, iterations;
    device_array<cuda_tensors> tensors;
    struct cuda_products *products = nullptr;
    struct cuda_notes *notes = nullptr;
    cudaStream_t stream = nullptr;

    /* with_v0: there is room for V0. */
    iterative_bed(int64_t order, int64_t matrices, bool with_v0);
    ~iterative_bed();
    iterative_bed(const iterative_bed &) = delete;
    iterative_bed &operator=(const iterative_bed &) = delete;

    /* Runs the call to its end, as an engine does, `rounds` times and once before; seconds are the
     * median's, on the host's clock. What was found is of matrix `which`; its residuals are of the
     * round before, which measures in any case (but for rounds == 0). */
    struct iterative_found run(const struct iterative_wish &wish, bool warm, int rounds,
                               int64_t which = 0);
};

/* Seconds of a call for `count` matrices of order n, and of copies that move as many bytes. */
struct iterative_passes {
    double identify, transpose, copy_of_identify, copy_of_transpose;
};
template <typename T> struct iterative_passes iterative_time_passes(int64_t n, int64_t count);

/* Seconds of so many kernels that do nothing, one behind the other, as large as the first one of
 * `identify` for n = 512. Little more than what the host needs to launch them. */
double iterative_time_launches(int launches);

/* Operands of a product. */
enum iterative_operand {
    ITERATIVE_ANY,      /* uniform between -1 and 1 */
    ITERATIVE_ONE_SIGN, /* between 0 and 1 */
    ITERATIVE_SLOPE,    /* rows and columns from 1 to 2^-40 and 2^20 */
    ITERATIVE_TINY      /* 2^100 and 2^-110 */
};

/* An FP32 product by cuBLAS's SGEMM, and by parts. The errors are in eps |A| |B| of each
 * entry: the worst, and the root of the mean square. */
struct iterative_product {
    double seconds, worst, mean;
    double split_seconds, split_worst, split_mean;
    bool same; /* the split one has the same bits again, and in a batch */
};
struct iterative_product iterative_try_product(int64_t rows, int64_t columns, int64_t inner,
                                               enum iterative_operand kind);

/* The paper's Gauss-Jordan elimination: no pivoting, an n x n identity beside A, a row at a time.
 * a becomes I; x the inverse. In the default stream. */
void iterative_plain(float *a, float *x, int64_t n);
void iterative_plain(double *a, double *x, int64_t n);

/* |I - X A|_1 by cuBLAS in FP64; slow. */
double iterative_true_residual(const float *a, const float *x, int64_t n);
double iterative_true_residual(const double *a, const double *x, int64_t n);

/* Ends with 1 when something is wrong. */
int iterative_check();

/* Number k of matrix entries, a fixed sequence between -1 and 1. */
static __device__ __host__ inline double iterative_random(uint64_t k)
{
    uint64_t z = (k + 5) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)(int64_t)(z ^ (z >> 31)) * 0x1p-63;
}

enum iterative_kind {
    ITERATIVE_RANDOM,   /* uniform */
    ITERATIVE_DOMINANT, /* strictly diagonally dominant */
    ITERATIVE_MILD,     /* 2 I and a random matrix of radius 1: condition near 10 */
    ITERATIVE_GRADED    /* the same with rows from 1 to 1/100: condition to 1e3 */
};

/* Entry (i, j) of matrix `index`. */
static __device__ __host__ inline double iterative_entry(enum iterative_kind kind, int64_t n,
                                                         uint64_t index, int64_t i, int64_t j)
{
    double x = iterative_random((index * (uint64_t)n + (uint64_t)i) * (uint64_t)n + (uint64_t)j);
    if (kind == ITERATIVE_RANDOM)
        return x;
    if (kind == ITERATIVE_DOMINANT)
        return i == j ? (double)n * (1 + fabs(x)) : x;
    x = x * sqrt(3.0 / (double)n) + (i == j ? 2 : 0);
    return kind == ITERATIVE_MILD ? x : x * pow(10.0, -2.0 * (double)i / (double)n);
}

template <typename T>
static __global__ void iterative_fill_kernel(T *a, int64_t n, int64_t count,
                                             enum iterative_kind kind)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x, all = n * n * count;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step)
        a[e] = (T)iterative_entry(kind, n, (uint64_t)(e / (n * n)), e / n % n, e % n);
}

template <typename T>
static void iterative_fill(T *a, int64_t n, int64_t count, enum iterative_kind kind)
{
    iterative_fill_kernel<<<2048, 256>>>(a, n, count, kind);
    SMALL_TRY(cudaGetLastError());
    SMALL_TRY(cudaDeviceSynchronize());
}

#endif
