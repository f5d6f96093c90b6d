/* gpu/cuda/lu_small/factor_f32_high.cu: the LU kernels in FP32, one range of sizes (launch.cuh). */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f32_high, cuda__factor_f32, CUDA__MIDDLE + 1, CUDA__HIGH)
