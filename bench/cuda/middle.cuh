/* bench/cuda/middle.cuh: what the parts of the program cuda_middle share. Host code, one thread; an
 * error of CUDA or of its libraries ends the program.
 */
#ifndef BENCH_CUDA_MIDDLE_CUH
#define BENCH_CUDA_MIDDLE_CUH

#include "bench/cuda/small.cuh"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/gemm/gemm.h"

/* What products need, on the stream NULL. Made when it is first asked for, and never destroyed. */
struct cuda_products *middle_products(void);

static inline cudaError_t middle_launch(enum small_kernel kernel, enum precision precision, int n,
                                        const struct cuda_batch *batch, void *workspace,
                                        size_t bytes)
{
    return kernel == SMALL_INVERSE ? cuda_inverse_middle(precision, n, batch, workspace, bytes,
                                                         middle_products(), nullptr)
                                   : cuda_factor_middle(precision, n, batch, workspace, bytes,
                                                        middle_products(), nullptr);
}

static inline size_t middle_workspace(enum small_kernel kernel, enum precision precision, int n,
                                      int64_t matrices)
{
    return kernel == SMALL_INVERSE ? cuda_inverse_middle_workspace(precision, n, matrices)
                                   : cuda_factor_middle_workspace(precision, n, matrices);
}

/* Prints a line for one kernel; whether it is right. most: matrices at most; 0: as many as suit the
 * order. */
bool middle_check(enum small_kernel kernel, enum precision precision, int n, int64_t most);

/* Prints a table, and writes it to `csv` unless that is NULL. n = 0: all orders; quick: some of
 * them, and smaller batches; one: no batches. */
void middle_time(int n, bool quick, bool one, FILE *csv);

/* Inverses and LU by clusters taken apart, in several ways; and products. */
void middle_profile(int n, int64_t count);
void middle_products_profile();

/* Seconds of the libraries for the matrices at `in`, `count` of them; 0: not measured. */
struct middle_peers {
    double factor = 0;  /* cuBLAS getrfBatched */
    double inverse = 0; /* cuBLAS getrfBatched, then getriBatched */
    /* One matrix: cuSOLVER getrf; getrf, then getrs with the identity. */
    double one_factor = 0, one_inverse = 0;
};

struct middle_peers middle_peers_of(int n, int64_t count, const device_array<float> &in);
struct middle_peers middle_peers_of(int n, int64_t count, const device_array<double> &in);

#endif
