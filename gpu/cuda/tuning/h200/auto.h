/* gpu/cuda/tuning/h200/auto.h: the orders from which auto's algorithms beat lu. It includes nothing
 * of CUDA, for tests that ask any engine. */
#ifndef GPU_CUDA_TUNING_H200_AUTO_H
#define GPU_CUDA_TUNING_H200_AUTO_H

#include "base/datatype.h"

/* With everything in the memory of an H200, 2026-11-22, triangular matrices took 1.3 times lu's
 * time at n = 128, and half of it at 512; diagonal and tridiagonal ones 0.4 and 0.8 times, and 0.1
 * and 0.2. */
#define CUDA_AUTO_SORTED_N_MIN 256
/* From which symmetric positive definite ones are Cholesky's. Batches of 256 x 256 in FP32 took 1.3
 * to 1.6 times lu's time, which has such orders on one multiprocessor each up to 320. */
#define CUDA_AUTO_DEFINITE_N_MIN(precision) ((precision) == PRECISION_FP32 ? 321 : 256)

#endif
