/* gpu/cuda/tuning/h200/structured.h: where the kernels of structured/ change their shapes. */
#ifndef GPU_CUDA_TUNING_H200_STRUCTURED_H
#define GPU_CUDA_TUNING_H200_STRUCTURED_H

#include <stdint.h>

/* Wide tiles of a multiprocessor from which FP32 takes them; by timing on an H100, 2026-11-26.
 * FP64, whose wide tile is no taller than FP32's narrow one, gains nothing by a narrow one. */
#define CUDA__TRANSPOSE_TILES_MIN 6

/* Warps of identify's second kernel, where there are groups for so many; by timing batches of 256
 * MiB on an H200, 2026-11-24, before its lines were read together. */
#define CUDA__IDENTIFY_ENOUGH 4096

/* Orders up to which identify's strips are one tile wide, and two; beyond, four. Wide strips have
 * fewer sums to write, narrow ones more blocks, which one small matrix wants; by timing one matrix
 * on an H100, 2026-11-27. Another width may give other bits. */
#define CUDA__IDENTIFY_ONE_TILE_MAX(precision) ((precision) == PRECISION_FP64 ? 3500 : 5000)
#define CUDA__IDENTIFY_TWO_TILES_MAX 8000

/* Cholesky: the largest order; columns of a group; columns of W that a product updates, 0: all are
 * updated together. Chosen by timing on an H200, 2026-11-22. Others may give other bits. */
/* clang-format off */
#define CUDA__CHOL_ROWS {2048, {128, 0}}, {6144, {256, 1024}}, {INT64_MAX, {512, 1024}}
/* clang-format on */
/* Numbers of a product up to which its tiles are small. */
#define CUDA__CHOL_SMALL_TILES_MAX (INT64_C(1) << 19)

#endif
