/* gpu/cuda/tuning/h200/lu_strip.cuh: the shapes of lu/strip.cuh's kernel: an order takes the first
 * row that holds it. Chosen by measuring 21 to 38 shapes on an H200, 2026-11-21, and 25 with far
 * panels, 2026-11-22. Any row gives right answers; the bits depend on n and the precision alone.
 * Shapes of many are those of some 60 tried the same day that were faster by 3% at least. The
 * kernel has changed since. Of the ten shapes tried anew on an H100 and an H200, 2026-11-27, those
 * of FP64 at 48, 64, 96 and 144 and of FP32 at 128 and 208 took the place of others.
 *
 * With the warp of the panels 8 warps leave 255 registers to a thread, 9 to 12 warps 168. Beyond
 * n = 224 in FP64 and 320 in FP32 other ways are faster: FP64 at 256 did 6.6 TFLOP/s (lu/wide.cuh
 * 6.8), FP32 at 352 8.6.
 */

/* CUDA__LU_STRIP(precision, order, panels of columns that a warp has in registers, such warps,
 * blocks a multiprocessor)
 * CUDA__LU_STRIP_OF_MANY(the same), for an order of those, where there are many matrices */
/* clang-format off */
CUDA__LU_STRIP(double,  48, 1, 6, 4)
CUDA__LU_STRIP(double,  64, 1, 8, 2)
CUDA__LU_STRIP(double,  80, 2, 5, 2)
CUDA__LU_STRIP(double,  96, 1, 12, 1)
CUDA__LU_STRIP(double, 112, 2, 7, 1)
CUDA__LU_STRIP(double, 128, 2, 8, 1)
CUDA__LU_STRIP(double, 144, 2, 7, 1)
CUDA__LU_STRIP(double, 160, 2, 7, 1)
CUDA__LU_STRIP(double, 176, 2, 7, 1)
CUDA__LU_STRIP(double, 192, 2, 7, 1)
CUDA__LU_STRIP(double, 208, 2, 7, 1)
CUDA__LU_STRIP(double, 224, 1, 11, 1)

CUDA__LU_STRIP(float,  48, 1, 3, 8)
CUDA__LU_STRIP(float,  64, 2, 2, 5)
CUDA__LU_STRIP(float,  80, 1, 5, 4)
CUDA__LU_STRIP(float,  96, 2, 3, 3)
CUDA__LU_STRIP(float, 112, 1, 7, 2)
CUDA__LU_STRIP(float, 128, 1, 8, 1)
CUDA__LU_STRIP(float, 144, 1, 9, 1)
CUDA__LU_STRIP(float, 160, 1, 10, 1)
CUDA__LU_STRIP(float, 176, 2, 6, 1)
CUDA__LU_STRIP(float, 192, 2, 6, 1)
CUDA__LU_STRIP(float, 208, 1, 7, 1)
CUDA__LU_STRIP(float, 224, 1, 7, 1)
CUDA__LU_STRIP(float, 256, 1, 7, 1)
CUDA__LU_STRIP(float, 288, 1, 7, 1)
CUDA__LU_STRIP(float, 320, 1, 7, 1)

CUDA__LU_STRIP_OF_MANY(double,  48, 2, 3, 6)
CUDA__LU_STRIP_OF_MANY(double,  64, 2, 4, 4)
CUDA__LU_STRIP_OF_MANY(double,  96, 2, 6, 2)
CUDA__LU_STRIP_OF_MANY(double, 112, 1, 5, 2)
CUDA__LU_STRIP_OF_MANY(double, 128, 1, 6, 2)
CUDA__LU_STRIP_OF_MANY(float,  128, 1, 3, 3)
CUDA__LU_STRIP_OF_MANY(float,  144, 1, 5, 2)
CUDA__LU_STRIP_OF_MANY(float,  160, 1, 5, 2)
CUDA__LU_STRIP_OF_MANY(float,  176, 1, 5, 2)
/* clang-format on */
