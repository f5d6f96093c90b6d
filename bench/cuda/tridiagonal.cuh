/* bench/cuda/tridiagonal.cuh: what the parts of the program cuda_tridiagonal share. Host code, one
 * thread; an error of CUDA or cuSPARSE ends the program.
 */
#ifndef BENCH_CUDA_TRIDIAGONAL_CUH
#define BENCH_CUDA_TRIDIAGONAL_CUH

#include "bench/cuda/clock.cuh"

/* `count` matrices of order n on the device, one after the other, diagonal by diagonal. They are
 * dominant, and their signs are those that the paper's own formulas need. */
template <typename T> struct tridiagonal_bed {
    int64_t n, count;
    device_array<T> dl, d, du;
    device_array<T> x; /* count n x n */

    tridiagonal_bed(int64_t order, int64_t matrices);
};

/* Seconds for all matrices of the bed; 0: not measured. */
struct tridiagonal_peers {
    double pivoting = 0, plain = 0; /* gtsv2 and gtsv2_nopivot on the identity */
};

/* cuSPARSE has no call for several matrices with several right sides: a few are solved one after
 * the other, and their time is scaled to all. */
struct tridiagonal_peers tridiagonal_peers_of(tridiagonal_bed<float> &bed);
struct tridiagonal_peers tridiagonal_peers_of(tridiagonal_bed<double> &bed);

/* Seconds of the paper's recursion as it describes it: level by level, one thread an entry. For one
 * matrix whose order is a power of two; the result is in bed.x, or in other. */
double tridiagonal_plain(tridiagonal_bed<float> &bed, float *other);
double tridiagonal_plain(tridiagonal_bed<double> &bed, double *other);

#endif
