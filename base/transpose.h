/* base/transpose.h: a plane of numbers, brought from column-major to row-major order.
 *
 * Threads: pure. Cost: one read and one write of each number, in tiles that a cache line serves.
 */
#ifndef BASE_TRANSPOSE_H
#define BASE_TRANSPOSE_H

#include <stdint.h>

/* rows x columns elements of 4, 8 or 16 bytes; the source is contiguous along a column, the target
 * along a row. Strides are in bytes. */
struct transpose {
    int64_t rows, columns;
    int64_t source_stride; /* from one column to the next */
    int64_t target_stride; /* from one row to the next */
    int64_t element_bytes;
};

void transpose_plane(const struct transpose *plane, unsigned char *target,
                     const unsigned char *source);

#endif
