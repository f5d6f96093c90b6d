/* gpu/cuda/lu_small/inverse_f32_middle.cu: the inverse kernels in FP32, one range of sizes
 * (launch.cuh). */
#include "gpu/cuda/lu_small/inverse_small.cuh"

CUDA__RANGE(cuda__inverse_f32_middle, cuda__inverse_f32, CUDA__LOW + 1, CUDA__MIDDLE)
