/* gpu/cuda/lu_small/factor_f64_middle.cu: the LU kernels in FP64, one range of sizes (launch.cuh).
 */
#include "gpu/cuda/lu_small/factor_small.cuh"

CUDA__RANGE(cuda__factor_f64_middle, cuda__factor_f64, CUDA__LOW + 1, CUDA__MIDDLE)
