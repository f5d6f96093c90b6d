/* gpu/cuda/lu_strip_tuning_h200.cuh: the shapes of lu_strip.cuh's kernel: an order takes the first
 * row that holds it. Chosen by measuring 21 to 38 shapes on an H200, 2026-11-21. Any row gives
 * right answers; the bits depend on n and the precision alone.
 */

/* CUDA__LU_STRIP(precision, order, panels of columns a warp, blocks a multiprocessor) */
/* clang-format off */
CUDA__LU_STRIP(double,  48, 2, 6)
CUDA__LU_STRIP(double,  64, 2, 4)
CUDA__LU_STRIP(double,  80, 2, 2)
CUDA__LU_STRIP(double,  96, 2, 2)
CUDA__LU_STRIP(double, 112, 2, 1)
CUDA__LU_STRIP(double, 128, 2, 1)
CUDA__LU_STRIP(double, 144, 2, 1)

CUDA__LU_STRIP(float,  48, 1, 8)
CUDA__LU_STRIP(float,  64, 2, 5)
CUDA__LU_STRIP(float,  80, 1, 4)
CUDA__LU_STRIP(float,  96, 2, 3)
CUDA__LU_STRIP(float, 112, 1, 2)
CUDA__LU_STRIP(float, 128, 2, 2)
CUDA__LU_STRIP(float, 144, 1, 1)
CUDA__LU_STRIP(float, 160, 1, 1)
CUDA__LU_STRIP(float, 176, 2, 1)
CUDA__LU_STRIP(float, 192, 2, 1)
CUDA__LU_STRIP(float, 208, 2, 1)
/* clang-format on */
