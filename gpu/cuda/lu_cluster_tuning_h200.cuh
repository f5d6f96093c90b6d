/* gpu/cuda/lu_cluster_tuning_h200.cuh: how matrices are eliminated by clusters (lu_cluster.cuh): an
 * order takes the first row that holds it; 0 columns: not by clusters.
 *
 * Fewer columns at a time make the panels shorter, more make the products deeper. The width leaves
 * a mark on the bits, the number of blocks does not. Chosen by the times of panels, products and
 * the whole (cuda_middle --profile) on an H200, 2026-11-21, for n = 2048, 4096, 8192 and 16384; up
 * to 1024 by the times of batches and of one matrix at widths of 32 to 256, 2026-11-22. LU gains by
 * clusters in both. An inverse up to n = 1024 is left to lu_wide.cuh's own way: of one matrix a
 * cluster makes 1.58 TFLOP/s at n = 1024 in FP64 where that makes 0.69, but of a batch 11.1 where
 * that makes 16.1, and the way must not depend on the batch.
 */

/* CUDA__LU_CLUSTER(precision, factor, order, columns at a time, blocks of a cluster at most) */
/* clang-format off */
CUDA__LU_CLUSTER(double, false, 1024, 0, 0)
CUDA__LU_CLUSTER(double, false, 6144, 128, 16)
CUDA__LU_CLUSTER(double, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(double, true, 256, 256, 8)
CUDA__LU_CLUSTER(double, true, 1024, 128, 16)
CUDA__LU_CLUSTER(double, true, 12288, 128, 16)
CUDA__LU_CLUSTER(double, true, INT32_MAX, 256, 16)

CUDA__LU_CLUSTER(float, false, 1024, 0, 0)
CUDA__LU_CLUSTER(float, false, 6144, 128, 16)
CUDA__LU_CLUSTER(float, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(float, true, 1024, 128, 16)
CUDA__LU_CLUSTER(float, true, 12288, 128, 16)
CUDA__LU_CLUSTER(float, true, INT32_MAX, 256, 16)
/* clang-format on */
