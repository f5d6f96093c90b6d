/* gpu/cuda/tuning/h200/lu_cluster.cuh: how matrices are eliminated by clusters (lu/cluster.cuh): an
 * order takes the first row that holds it; 0 columns: not by clusters.
 *
 * Fewer columns at a time make the panels shorter, more make the products deeper. Results depend on
 * the width; they are bitwise independent of the number of blocks. Chosen by the times of panels,
 * products and the whole (gpu --ways lu) on an H200, 2026-11-22, at n = 2048, 4096, 8192
 * and 16384 and widths of 32 to 256; LU up to 1024 also by the times of batches. An inverse up to n
 * = 1024 is made by groups (lu/wide.cuh): for one matrix of n = 1024 in FP64 clusters reach 1.33
 * TFLOP/s, and for a batch 11.9. By groups, whose products were others then, a batch reached 17.4,
 * and one matrix (lu/group.cuh) 1.74.
 */

/* CUDA__LU_CLUSTER(precision, factor, order, columns at a time, blocks of a cluster at most) */
/* clang-format off */
CUDA__LU_CLUSTER(double, false, 1024, 0, 0)
CUDA__LU_CLUSTER(double, false, 3072, 128, 16)
CUDA__LU_CLUSTER(double, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(double, true, 256, 256, 8)
CUDA__LU_CLUSTER(double, true, 6144, 128, 16)
CUDA__LU_CLUSTER(double, true, 12288, 192, 16)
CUDA__LU_CLUSTER(double, true, INT32_MAX, 256, 16)

CUDA__LU_CLUSTER(float, false, 1024, 0, 0)
CUDA__LU_CLUSTER(float, false, 3072, 128, 16)
CUDA__LU_CLUSTER(float, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(float, true, 3072, 128, 16)
CUDA__LU_CLUSTER(float, true, 12288, 192, 16)
CUDA__LU_CLUSTER(float, true, INT32_MAX, 256, 16)
/* clang-format on */
