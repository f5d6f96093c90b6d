/* gpu/cuda/tuning/h200/engine.h: how a batch is handed to the device and awaited; measured on an
 * H200 and its host, 2026-11-21. */
#ifndef GPU_CUDA_TUNING_H200_ENGINE_H
#define GPU_CUDA_TUNING_H200_ENGINE_H

#include "base/clock.h"

/* A table of at most so many items is read across the bus by the kernels. For one 8x8 that saves
 * some 2 us of 17; at 256 items the copy to the device saves 5 us of 37, at 1024 30 of 94. */
#define CUDA__NEAR_ITEMS_MAX 64
/* Up to so many bytes of matrices a batch ends with a word: seen some 1 us sooner than the stream
 * says so, and up to 10 us at 1024 matrices of 8x8. Beyond, with batches in flight side by side,
 * the word costs some 6% of the rate (32x32, 512 or 1024 a batch), and the stream is asked instead.
 */
#define CUDA__WORD_BYTES_MAX (INT64_C(2) << 20)
/* How often the stream is asked while its word has not changed. */
#define CUDA__QUERY_NS (100 * CLOCK_US)

#endif
