/* gpu/cuda/lu_small/factor_f32_middle.cu: the LU kernels in FP32, one range of sizes (launch.cuh).
 */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f32_middle, cuda__factor_f32, CUDA__LOW + 1, CUDA__MIDDLE)
