/* gpu/cuda/iterative/f32.cu: the passes of `iterative` in FP32. */
#include "gpu/cuda/iterative/kernels.cuh"

extern "C" const struct cuda__iter_kernels cuda__iter_f32 = cuda__iter_launch<float>::kernels();
