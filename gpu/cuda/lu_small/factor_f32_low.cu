/* gpu/cuda/lu_small/factor_f32_low.cu: the LU kernels in FP32, one range of sizes (launch.cuh). */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f32_low, cuda__factor_f32, 1, CUDA__LOW)
