/* gpu/cuda/tuning/h200/lu.cuh: the shapes of lu/block.cuh's kernels: an order takes the first row
 * that holds it.
 *
 * Chosen by counting registers, shared memory and wavefronts of an H200, 2026-11-21; not yet
 * measured. Any row gives right answers on any device that has the shared memory. Another width of
 * panels may give other bits; other warps and tiles do not, but in FP64, where the device's tensor
 * cores decide.
 */

/* CUDA__LU_BLOCK(precision, order, columns of a panel, warps, rows and columns of a warp's tile in
 * units, blocks a multiprocessor) */
/* clang-format off */
CUDA__LU_BLOCK(double,  48, 16,  3, 1,  3, 5)
CUDA__LU_BLOCK(double,  64, 16,  4, 2,  2, 4)
CUDA__LU_BLOCK(double,  80, 16,  5, 1,  5, 2)
CUDA__LU_BLOCK(double,  96, 16,  6, 2,  3, 2)
CUDA__LU_BLOCK(double, 112, 16,  7, 1,  7, 1)
CUDA__LU_BLOCK(double, 128, 16,  8, 2,  4, 1)
CUDA__LU_BLOCK(double, 144, 16,  8, 1,  3, 1)

CUDA__LU_BLOCK(float,   48, 16,  3, 1,  3, 8)
CUDA__LU_BLOCK(float,   64, 16,  4, 2,  2, 6)
CUDA__LU_BLOCK(float,   80, 16,  5, 1,  5, 4)
CUDA__LU_BLOCK(float,   96, 16,  6, 1,  3, 3)
CUDA__LU_BLOCK(float,  112, 16,  7, 1,  7, 2)
CUDA__LU_BLOCK(float,  128, 16,  8, 2,  4, 2)
CUDA__LU_BLOCK(float,  144, 16,  8, 1,  3, 2)
CUDA__LU_BLOCK(float,  160, 16, 10, 2,  5, 1)
CUDA__LU_BLOCK(float,  176, 16, 11, 1, 11, 1)
CUDA__LU_BLOCK(float,  192, 16, 12, 3,  4, 1)
CUDA__LU_BLOCK(float,  208, 16,  8, 1, 13, 1)
/* clang-format on */
