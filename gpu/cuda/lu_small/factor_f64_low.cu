/* gpu/cuda/lu_small/factor_f64_low.cu: the LU kernels in FP64, one range of sizes (launch.cuh). */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f64_low, cuda__factor_f64, 1, CUDA__LOW)
