/* bench/gpu/lu.h: the matrices that lu and lu_factor are tried with, and the judgement of their
 * answers. C++, host code.
 */
#ifndef BENCH_GPU_LU_H
#define BENCH_GPU_LU_H

#include "bench/gpu/bench.h"
#include "gpu/cuda/lu_small/lu_small.h"

enum lu_kind {
    LU_INVERSE,
    LU_FACTOR,
    LU_KINDS
};

static inline const char *lu_name(enum lu_kind kind)
{
    return kind == LU_INVERSE ? "inverse" : "factor";
}

static inline cudaError_t lu_small_launch(enum lu_kind kind, enum precision precision, int64_t n,
                                          const struct cuda_batch *batch, cudaStream_t stream)
{
    return kind == LU_INVERSE ? cuda_inverse_small(precision, n, batch, stream)
                              : cuda_factor_small(precision, n, batch, stream);
}

/* Bytes of a matrix's second output: RCOND or pivots. */
static inline size_t lu_extra_bytes(enum lu_kind kind, enum precision precision, int64_t n)
{
    return kind == LU_INVERSE ? (size_t)precision_bytes(precision) : (size_t)n * 4;
}

/* Random matrices, and those that trip careless kernels. */
enum matrix_kind {
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

const char *matrix_kind_name(enum matrix_kind kind);
enum matrix_kind matrix_kind_of(int64_t index); /* of a set's matrix */

/* `count` matrices of order n, the same for the same arguments. */
template <typename T> std::vector<T> matrices_of(int n, int64_t count);

/* The answers of a set, in the order of its matrices; extra: RCOND or pivots. */
template <typename T> struct lu_answers {
    std::vector<T> result;
    std::vector<unsigned char> extra;
    std::vector<int32_t> info;
};

/* Sums over the matrices of a set. */
struct verdict {
    double worst = 0, sum = 0; /* residuals over n |A| |X| eps, or n |A| eps */
    int64_t measured = 0, wrong = 0;
    std::string first; /* what is wrong with the first */

    double mean() const
    {
        return measured ? sum / (double)measured : 0;
    }
};

/* By the rules of gpu/method.h, in long double, on all processors. a: matrices_of(n, count), or
 * others of the same kinds. */
template <typename T>
struct verdict lu_judge(enum lu_kind kind, int n, const std::vector<T> &a,
                        const lu_answers<T> &answers);

/* Prints a line for one kernel; whether it is right. max: matrices of a batch at most. */
bool lu_small_check(enum lu_kind kind, enum precision precision, int n, int64_t max);

#endif
