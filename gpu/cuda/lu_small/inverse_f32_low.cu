/* gpu/cuda/lu_small/inverse_f32_low.cu: the inverse kernels in FP32, one range of sizes
 * (launch.cuh). */
#include "gpu/cuda/lu_small/inverse_small.cuh"

CUDA__RANGE(cuda__inverse_f32_low, cuda__inverse_f32, 1, CUDA__LOW)
