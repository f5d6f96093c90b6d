/* gpu/cuda/tuning/h200/lu_wide.cuh: the shapes of lu/wide.cuh's kernels: the first row that holds
 * the order, or the columns of the product, is taken.
 *
 * Chosen by counting registers, shared memory and wavefronts of an H200, 2026-11-21; not yet
 * measured. Another width of panels may give other bits; groups and products' tiles do not.
 */

/* CUDA__LU_PANEL(precision, order, columns of a panel, warps, columns of a group)
 * CUDA__LU_PRODUCT(precision, columns, rows and columns of a warp's tile in units, warps down and
 * across, blocks a multiprocessor) */
/* clang-format off */
CUDA__LU_PANEL(double,  256, 32,  8,  64)
CUDA__LU_PANEL(double,  512, 32, 16,  64)
CUDA__LU_PANEL(double, 1024, 16, 32, 128)
CUDA__LU_PRODUCT(double,   32, 2, 1, 2, 2, 4)
CUDA__LU_PRODUCT(double,  256, 2, 2, 2, 2, 4)
CUDA__LU_PRODUCT(double, INT32_MAX, 2, 2, 4, 2, 2)

CUDA__LU_PANEL(float,  256, 32,  8, 128)
CUDA__LU_PANEL(float,  512, 32, 16, 128)
CUDA__LU_PANEL(float, 1024, 32, 32, 128)
CUDA__LU_PRODUCT(float,   32, 2, 1, 2, 2, 4)
CUDA__LU_PRODUCT(float, INT32_MAX, 4, 2, 2, 2, 3)
/* clang-format on */
