/* gpu/cuda/lu_small/inverse_f32_high.cu: the inverse kernels in FP32, one range of sizes
 * (launch.cuh). */
#include "gpu/cuda/lu_small/inverse_small.cuh"

CUDA__RANGE(cuda__inverse_f32_high, cuda__inverse_f32, CUDA__MIDDLE + 1, CUDA__HIGH)
