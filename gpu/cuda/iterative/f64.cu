/* gpu/cuda/iterative/f64.cu: the passes of `iterative` in FP64. */
#include "gpu/cuda/iterative/kernels.cuh"

extern "C" const struct cuda__iter_kernels cuda__iter_f64 = cuda__iter_launch<double>::kernels();
