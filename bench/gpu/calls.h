/* bench/gpu/calls.h: what calls of the launchers need, how wrong an inverse is, and lu, ours and
 * others'. C++, host code, one thread; an error of CUDA ends the program.
 */
#ifndef BENCH_GPU_CALLS_H
#define BENCH_GPU_CALLS_H

#include <cmath>

#include "bench/gpu/clock.h"
#include "bench/gpu/lu.h"
#include "gpu/cuda/base/call.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/lu/lu.h"

/* What launchers need; made when it is first asked for, and never destroyed. The stream does not
 * wait for the default one. */
struct session {
    struct cuda_products *products = nullptr;
    struct cuda_notes *notes = nullptr; /* pinned */
    cudaStream_t stream = nullptr;
};
const session &here();

/* All visits of one call, as an engine makes them; returns how many. before(): before each but the
 * first. */
template <typename B, typename A, typename F> int visit(B begin, A again, F before)
{
    const session &with = here();
    int visits = 1;
    with.notes->asked = 0;
    TRY(begin());
    TRY(cudaStreamSynchronize(with.stream));
    for (; *(volatile uint32_t *)&with.notes->asked; visits++) {
        before();
        with.notes->asked = 0;
        TRY(again());
        TRY(cudaStreamSynchronize(with.stream));
    }
    return visits;
}

/* ---- Residuals ---- */

struct residual {
    double norm, size_a, size_x; /* |B - X A|, |A|, |X|: 1-norms */

    double ratio(int64_t n, double eps) const
    {
        return norm / ((double)n * size_a * size_x * eps);
    }
};

/* One matrix, in FP64 whatever A and X are; B: I, or n x n. Waits for the device. */
template <typename A, typename X>
struct residual residual_of(const A *a, const X *x, int64_t n, const double *b = nullptr);
template <typename T> double norm_1(const T *a, int64_t n);

/* The larger one, or NaN. */
static inline double worse(double one, double other)
{
    return one > other || std::isnan(one) ? one : other;
}

/* c = alpha op(a) op(b) + beta c, on the device, in FP64 by cuBLAS. */
void multiply_f64(int64_t rows, int64_t columns, int64_t inner, const double *a, const double *b,
                  bool transpose_b, double beta, double *c);
/* ---- Our own lu, and others' ---- */

static inline size_t lu_workspace(enum lu_kind kind, enum precision precision, int64_t n,
                                  int64_t matrices)
{
    if (n <= CUDA_SMALL_N_MAX)
        return 0;
    return kind == LU_INVERSE ? cuda_inverse_middle_workspace(precision, n, matrices)
                              : cuda_factor_middle_workspace(precision, n, matrices);
}

static inline cudaError_t lu_launch(enum lu_kind kind, enum precision precision, int64_t n,
                                    const struct cuda_batch *batch, void *workspace, size_t bytes,
                                    cudaStream_t stream)
{
    if (n <= CUDA_SMALL_N_MAX)
        return lu_small_launch(kind, precision, n, batch, stream);
    return kind == LU_INVERSE
               ? cuda_inverse_middle(precision, n, batch, workspace, bytes, here().products, stream)
               : cuda_factor_middle(precision, n, batch, workspace, bytes, here().products, stream);
}

static inline cudaError_t lu_recover(enum precision precision, int64_t n,
                                     const struct cuda_batch *batch, void *workspace, size_t bytes,
                                     cudaStream_t stream)
{
    return n <= CUDA_SMALL_N_MAX ? cuda_recover_small(precision, n, batch, stream)
                                 : cuda_recover_middle(precision, n, batch, workspace, bytes,
                                                       here().products, stream);
}

/* Inverses, or factors, of `count` matrices at `a`, ready to be made again and again. */
template <typename T> struct lu_call {
    enum lu_kind kind;
    int64_t n, count;
    device_array<int32_t> extra, info; /* extra: RCOND or pivots */
    device_array<cuda_item> items;
    size_t bytes;
    device_array<unsigned char> workspace; /* 8 GiB at most, if that suffices for a matrix */
    struct cuda_batch batch;

    lu_call(enum lu_kind kind, int64_t n, int64_t count, const T *a, T *x,
            uint32_t *unverified = nullptr);
    void run(cudaStream_t stream = nullptr);
    void recover(cudaStream_t stream = nullptr); /* what run() has left unverified */
};

/* Seconds of our lu, without recovery, on `count` matrices at `a`. */
template <typename T> double lu_seconds(int64_t n, int64_t count, const T *a, int calls);

/* Seconds of the libraries for the matrices at `in`, `count` of them; 0: not measured. */
struct lu_peers {
    double factor = 0;  /* cuBLAS getrfBatched */
    double inverse = 0; /* cuBLAS getrfBatched, then getriBatched */
    /* One matrix: cuSOLVER getrf; getrf, then getrs with the identity. */
    double one_factor = 0, one_inverse = 0;
};
template <typename T> struct lu_peers lu_peers_of(int64_t n, int64_t count, const T *in);

#endif
