/* gpu/cuda/lu_small/factor_f64_high.cu: the LU kernels in FP64, one range of sizes (launch.cuh). */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f64_high, cuda__factor_f64, CUDA__MIDDLE + 1, CUDA__HIGH)
