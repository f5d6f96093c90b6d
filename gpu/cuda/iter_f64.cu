/* gpu/cuda/iter_f64.cu: the passes of `iterative` in FP64. */
#include "gpu/cuda/iter_kernels.cuh"

extern "C" const struct cuda__iter_kernels cuda__iter_f64 = cuda__iter_launch<double>::kernels();
