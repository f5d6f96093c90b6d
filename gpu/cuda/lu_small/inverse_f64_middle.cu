/* gpu/cuda/lu_small/inverse_f64_middle.cu: the inverse kernels in FP64, one range of sizes
 * (launch.cuh). */
#include "gpu/cuda/lu_small/inverse_small.cuh"

CUDA__RANGE(cuda__inverse_f64_middle, cuda__inverse_f64, CUDA__LOW + 1, CUDA__MIDDLE)
