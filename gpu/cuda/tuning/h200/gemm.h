/* gpu/cuda/tuning/h200/gemm.h: which products gemm/gemm.c leaves to cuBLAS.
 *
 * By timing on an H200, 2026-11-23: one product of 512 x 512 x 512 is as fast on cuBLAS in FP64, a
 * batch of them slower. Another choice may give other bits.
 */
#ifndef GPU_CUDA_TUNING_H200_GEMM_H
#define GPU_CUDA_TUNING_H200_GEMM_H

#include <stdint.h>

/* What cuBLAS asks for on Hopper; less may cost it its fastest kernels for few tiles. */
#define CUDA__BLAS_SCRATCH_BYTES ((size_t)32 << 20)

/* Multiplications of one matrix from which on cuBLAS is called. */
#define CUDA__BLAS_MIN (INT64_C(1) << 28)

/* Those from which on FP32 is split into products of TF32 parts; its rows and columns, and the
 * numbers of a sum. */
#define CUDA__SPLIT_MIN (INT64_C(1) << 31)
#define CUDA__SPLIT_SIDE_MIN 256
#define CUDA__SPLIT_INNER_MIN 128

/* Blocks of a launch that measures operands: a few for each multiprocessor; counted. */
#define CUDA__SPLIT_BLOCKS 1024

#endif
