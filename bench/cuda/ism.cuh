/* bench/cuda/ism.cuh: what the parts of the program cuda_ism share. Host code, one thread; an error
 * of CUDA or of a library ends the program.
 */
#ifndef BENCH_CUDA_ISM_CUH
#define BENCH_CUDA_ISM_CUH

#include "bench/cuda/clock.cuh"

/* Seconds of one matrix a (n x n, on the device); 0: not measured. */
struct ism_peers {
    double solver = 0; /* cuSOLVER's getrf and getrs on the identity */
};

struct ism_peers ism_peers_of(int64_t n, const float *a);
struct ism_peers ism_peers_of(int64_t n, const double *a);

#endif
