/* gpu/cuda/lu_cluster_tuning_h200.cuh: how matrices beyond one block's panels are eliminated by
 * clusters (lu_cluster.cuh): an order takes the first row that holds it.
 *
 * Fewer columns at a time make the panels shorter, more make the products deeper. The width leaves
 * a mark on the bits, the number of blocks does not. Chosen by the times of panels, products and
 * the whole (cuda_middle --profile) on an H200, 2026-11-21, for n = 2048, 4096, 8192 and 16384.
 * n = 1024 is left to lu_wide.cuh's own way: a cluster is faster for one matrix (1.37 TFLOP/s in
 * FP64 against 0.72), but that does 16.1 TFLOP/s of a batch, and the way must not depend on the
 * batch.
 */

/* CUDA__LU_CLUSTER(precision, factor, order, columns at a time, blocks of a cluster at most) */
/* clang-format off */
CUDA__LU_CLUSTER(double, false, 6144, 128, 16)
CUDA__LU_CLUSTER(double, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(double, true, 12288, 128, 16)
CUDA__LU_CLUSTER(double, true, INT32_MAX, 256, 16)

CUDA__LU_CLUSTER(float, false, 6144, 128, 16)
CUDA__LU_CLUSTER(float, false, INT32_MAX, 256, 16)
CUDA__LU_CLUSTER(float, true, 12288, 128, 16)
CUDA__LU_CLUSTER(float, true, INT32_MAX, 256, 16)
/* clang-format on */
