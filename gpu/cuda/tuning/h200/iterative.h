/* gpu/cuda/tuning/h200/iterative.h: when visits of `iterative` join their launches; counted. */
#ifndef GPU_CUDA_TUNING_H200_ITERATIVE_H
#define GPU_CUDA_TUNING_H200_ITERATIVE_H

#include <stdint.h>

/* Multiplications of a product, of all matrices of a chunk together: beyond these a visit is cheap
 * next to a step, and it is better to ask before each whether the client still waits. */
#define CUDA__ITER_MORE_WORK (INT64_C(1) << 33)

/* Multiplications that take about as long as the launches of a step. */
#define CUDA__ITER_GAP_MAX (INT64_C(1) << 25)

#endif
