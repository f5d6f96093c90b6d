/* bench/cuda/small.cuh: what the parts of the program cuda_small share. Host code, one thread
 * unless said otherwise; an error of CUDA ends the program.
 */
#ifndef BENCH_CUDA_SMALL_CUH
#define BENCH_CUDA_SMALL_CUH

#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "gpu/cuda/lu_small/lu_small.h"

#define SMALL_TRY(call) small_try((call), #call, __FILE__, __LINE__)

static inline void small_try(cudaError_t error, const char *call, const char *file, int line)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    exit(2);
}

enum small_kernel {
    SMALL_INVERSE,
    SMALL_FACTOR,
    SMALL_KERNELS
};

template <typename T> struct small_real;

template <> struct small_real<float> {
    static constexpr enum precision precision = PRECISION_FP32;
    static constexpr double eps = FLT_EPSILON;
    static constexpr float largest = FLT_MAX;
    static constexpr int tiny = -115, huge = 122, denormal = -140; /* powers of two */
    static constexpr int small = -108, below_normal = -127;
    static constexpr double close = 1e-4; /* of nearly dependent rows */
    static constexpr long double denormal_step = 1.5e-45L;
};

template <> struct small_real<double> {
    static constexpr enum precision precision = PRECISION_FP64;
    static constexpr double eps = DBL_EPSILON;
    static constexpr double largest = DBL_MAX;
    static constexpr int tiny = -990, huge = 1017, denormal = -1060;
    static constexpr int small = -972, below_normal = -1023;
    static constexpr double close = 1e-10;
    static constexpr long double denormal_step = 5e-324L;
};

/* The matrices that are tried: random ones, and those that trip careless kernels. */
enum small_kind {
    KIND_RANDOM,
    KIND_CLOSE_COLUMNS,
    KIND_ZERO_COLUMN,
    KIND_NAN,
    KIND_INFINITY,
    KIND_GRADED,
    KIND_PERMUTATION,
    KIND_IDENTITY,
    KIND_TINY,
    KIND_HUGE,
    KIND_TIES,
    KIND_ZERO,
    KIND_EQUAL_ROWS,
    KIND_DENORMAL,
    KIND_HILBERT,
    KIND_DOMINANT,
    KIND_TRIANGULAR,
    KIND_LARGEST_ENTRY,
    KIND_NEAR_RANK_ONE,
    KIND_DENORMAL_COLUMN,
    /* Well conditioned, but their elements grow under partial pivoting. */
    KIND_GROWING,
    KIND_GROWING_INEXACT,
    KIND_WRIGHT,
    KIND_FOSTER,
    KIND_COUNT
};

const char *small_kind_name(enum small_kind kind);
enum small_kind small_kind_of(int64_t index); /* of a set's matrix */

/* `count` matrices of order n, the same for the same arguments. */
template <typename T> std::vector<T> small_matrices(int n, int64_t count);

/* Sums over the matrices of a set. */
struct small_verdict {
    double worst = 0, sum = 0; /* residuals over n |A| |X| eps, or n |A| eps */
    int64_t measured = 0, wrong = 0;
    std::string first; /* what is wrong with the first */
};

/* Judges one answer by the rules of gpu/method.h, in long double. Any thread. */
template <typename T>
void small_judge_inverse(int n, enum small_kind kind, const T *a, const T *x, int info, T rcond,
                         struct small_verdict *verdict);
template <typename T>
void small_judge_factor(int n, enum small_kind kind, const T *a, const T *lu, int info,
                        const int32_t *pivots, struct small_verdict *verdict);

/* Prints a line for one kernel; whether it is right. most: matrices of a batch at most; 0: as many
 * as suit a GPU. */
bool small_check(enum small_kernel kernel, enum precision precision, int n, int64_t most);

/* Prints a table, and writes it to `csv` unless that is NULL. n = 0: all orders. */
void small_time(int n, FILE *csv);
void small_arena(FILE *csv);

static inline cudaError_t small_launch(enum small_kernel kernel, enum precision precision, int n,
                                       const struct cuda_batch *batch)
{
    return kernel == SMALL_INVERSE ? cuda_inverse_small(precision, n, batch, nullptr)
                                   : cuda_factor_small(precision, n, batch, nullptr);
}

/* Bytes of a matrix's second output: RCOND or pivots. */
static inline size_t small_extra_bytes(enum small_kernel kernel, enum precision precision, int n)
{
    return kernel == SMALL_INVERSE ? (size_t)precision_bytes(precision) : (size_t)n * 4;
}

/* Device memory for `count` of U, all bytes 0xa5 at first; freed at the end of its scope. */
template <typename U> class device_array
{
  public:
    explicit device_array(size_t count) : bytes_(count * sizeof(U))
    {
        SMALL_TRY(cudaMalloc(&at_, bytes_));
        SMALL_TRY(cudaMemset(at_, 0xa5, bytes_));
    }
    ~device_array()
    {
        cudaFree(at_);
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;

    U *at(size_t index) const
    {
        return (U *)at_ + index;
    }
    void put(const std::vector<U> &from, size_t offset = 0)
    {
        SMALL_TRY(
            cudaMemcpy(at(offset), from.data(), from.size() * sizeof(U), cudaMemcpyHostToDevice));
    }
    std::vector<U> get(size_t offset, size_t count) const
    {
        std::vector<U> to(count);
        SMALL_TRY(cudaMemcpy(to.data(), at(offset), count * sizeof(U), cudaMemcpyDeviceToHost));
        return to;
    }

  private:
    void *at_ = nullptr;
    size_t bytes_;
};

#endif
