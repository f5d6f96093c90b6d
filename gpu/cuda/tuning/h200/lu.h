/* gpu/cuda/tuning/h200/lu.h: how lu/ends.cuh writes an inverse. */
#ifndef GPU_CUDA_TUNING_H200_LU_H
#define GPU_CUDA_TUNING_H200_LU_H

/* Rows of so many bytes are gathered from in a cache: at n = 1024 in FP64 that took four times the
 * time of a copy, on an H200, 2026-11-22. */
#define CUDA__LU_SHORT_ROW_BYTES 4096
#define CUDA__LU_STAGED_BYTES (128 * 1024) /* of a row, in shared memory */

#endif
