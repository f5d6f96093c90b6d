/* gpu/host/transpose.h: the transpose of one tile, which may lie anywhere.
 *
 * Whole lines of the cache are read and written where the AVX-512 code runs; what comes out is the
 * same without it.
 *
 * Threads: any. Cost: each number is read and written once.
 */
#ifndef GPU_HOST_TRANSPOSE_H
#define GPU_HOST_TRANSPOSE_H

#include <stdbool.h>
#include <stdint.h>

/* to (columns x rows) = factor * from^T (from: rows x columns). past_caches: `to` had better not go
 * through them; it does not where its lines begin with a line of a cache. */
void host__transpose_tile_f32(const float *from, int64_t from_ld, int64_t rows, int64_t columns,
                              float *to, int64_t to_ld, float factor, bool past_caches);
void host__transpose_tile_f64(const double *from, int64_t from_ld, int64_t rows, int64_t columns,
                              double *to, int64_t to_ld, double factor, bool past_caches);

#endif
