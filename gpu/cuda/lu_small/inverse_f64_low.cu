/* gpu/cuda/lu_small/inverse_f64_low.cu: the inverse kernels in FP64, one range of sizes
 * (launch.cuh). */
#include "gpu/cuda/lu_small/inverse_small.cuh"

CUDA__RANGE(cuda__inverse_f64_low, cuda__inverse_f64, 1, CUDA__LOW)
