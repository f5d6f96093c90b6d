/* gpu/cuda/tuning/h200/gemm.cuh: the tiles of gemm/simt.cuh's products, each for either precision,
 * and the sizes from which simt.cu takes a larger tile. The larger the tiles, the less is read; but
 * few of them leave multiprocessors idle.
 *
 * Chosen by timing on an H200, 2026-11-23. Results are bitwise independent of them.
 */

/* CUDA__OWN_SHAPE(name, rows and columns of a warp's tile in units, warps down and across, blocks a
 * multiprocessor, indices staged together) */
/* clang-format off */
CUDA__OWN_SHAPE(min,    1, 1, 2, 2, 4, 16)
CUDA__OWN_SHAPE(small,  1, 1, 2, 2, 3, 32)
CUDA__OWN_SHAPE(middle, 2, 1, 2, 2, 2, 32)
CUDA__OWN_SHAPE(square, 2, 2, 2, 2, 3, 16)
CUDA__OWN_SHAPE(deep,   2, 2, 2, 2, 2, 32)
CUDA__OWN_SHAPE(large,  4, 2, 2, 2, 2, 16)

CUDA__OWN_SIZE(min_side_max,  32)  /* rows and columns up to which `min` is taken */
CUDA__OWN_SIZE(deep_inner_min, 32) /* of sums, for shapes that stage 32 indices */
CUDA__OWN_SIZE(large_side_min, 257)
/* clang-format on */
