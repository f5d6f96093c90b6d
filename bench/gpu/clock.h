/* bench/gpu/clock.h: random matrices on the device, the time that calls take there, and how wrong
 * an inverse is. C++, host code, one thread; an error of CUDA ends the program.
 */
#ifndef BENCH_GPU_CLOCK_H
#define BENCH_GPU_CLOCK_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "bench/gpu/lu.h"
#include "gpu/cuda/base/call.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/lu/lu.h"

#define CLOCK_CACHE_BYTES ((size_t)400 << 20) /* more than the second-level cache by far */
#define CLOCK_ROUNDS 3

/* What launchers need; made when it is first asked for, and never destroyed. The stream does not
 * wait for the default one. */
struct session {
    struct cuda_products *products = nullptr;
    struct cuda_notes *notes = nullptr; /* pinned */
    cudaStream_t stream = nullptr;
};
const session &here();

/* a = scale * (number i of a fixed sequence, between -1 and 1), and `diagonal` more on the diagonal
 * of each n x n; n = 0: there is none. */
template <typename T>
void draw(T *a, size_t count, double scale = 1, double diagonal = 0, int64_t n = 0);
/* Writes as many bytes as there are in the array, and computes nothing. */
template <typename T> void fill_streaming(T *a, size_t count);
/* Reads `count` numbers: the cache then holds them, and nothing that must still be written. */
template <typename T> void read_all(const T *a, size_t count);
template <typename T> void scale(T *a, size_t count, double factor);
/* n x n */
template <typename T> void make_identity(T *x, int64_t n, int64_t matrices = 1);

/* ---- Time ---- */

/* Seconds of one call(i) on the device, i counting all of them: the rounds in order, the shortest
 * first. prepare() before each round, and a round before the first, are not counted. */
template <typename P, typename F> std::vector<double> clock_rounds(P prepare, F call, int calls)
{
    cudaEvent_t start, end;
    std::vector<double> rounds;
    TRY(cudaEventCreate(&start));
    TRY(cudaEventCreate(&end));
    prepare();
    call(0);
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        float milliseconds;
        prepare();
        TRY(cudaEventRecord(start));
        for (int i = 0; i < calls; i++)
            call(i);
        TRY(cudaEventRecord(end));
        TRY(cudaEventSynchronize(end));
        TRY(cudaEventElapsedTime(&milliseconds, start, end));
        rounds.push_back(milliseconds / 1e3 / calls);
    }
    TRY(cudaEventDestroy(start));
    TRY(cudaEventDestroy(end));
    std::sort(rounds.begin(), rounds.end());
    return rounds;
}

/* The median round's. */
template <typename F> double clock_seconds(F call, int calls)
{
    return clock_rounds([] {}, call, calls)[CLOCK_ROUNDS / 2];
}

template <typename P, typename F> double clock_prepared(P prepare, F call, int calls)
{
    return clock_rounds(prepare, call, calls)[CLOCK_ROUNDS / 2];
}

/* The rounds of a copy on the device that reads and writes `bytes` together, taken from all over
 * buffers of `all` bytes each. */
std::vector<double> clock_copies(void *to, const void *from, size_t all, size_t bytes, int calls);

static inline double copy_seconds(void *to, const void *from, size_t all, size_t bytes, int calls)
{
    return clock_copies(to, from, all, bytes, calls)[CLOCK_ROUNDS / 2];
}

/* Seconds of once() by the host's clock, the median of so many rounds after one that is not
 * counted; once() awaits what it starts, and so does prepare(), which is not counted. */
template <typename P, typename F> double host_seconds(P prepare, F once, int rounds)
{
    std::vector<double> times;
    for (int round = 0; round <= rounds; round++) {
        prepare();
        auto start = std::chrono::steady_clock::now();
        once();
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (round > 0)
            times.push_back(taken.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

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
/* to = from, or its magnitudes. */
template <typename T> void widen(double *to, const T *from, size_t count, bool magnitudes = false);

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
