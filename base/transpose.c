/* base/transpose.c: see transpose.h. */
#include "base/transpose.h"

#include <assert.h>
#include <string.h>

#include "base/minmax.h"

#define TILE 16 /* elements; two tiles of doubles are 4 KiB */

static void transpose_tile(const struct transpose *plane, unsigned char *target,
                           const unsigned char *source, int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            const unsigned char *from =
                source + row * plane->element_bytes + column * plane->source_stride;
            unsigned char *to = target + row * plane->target_stride + column * plane->element_bytes;
            if (plane->element_bytes == 8)
                memcpy(to, from, 8);
            else if (plane->element_bytes == 4)
                memcpy(to, from, 4);
            else
                memcpy(to, from, 16);
        }
    }
}

void transpose_plane(const struct transpose *plane, unsigned char *target,
                     const unsigned char *source)
{
    assert(plane->element_bytes == 4 || plane->element_bytes == 8 || plane->element_bytes == 16);
    for (int64_t row = 0; row < plane->rows; row += TILE) {
        int64_t rows = min_i64(plane->rows - row, TILE);
        for (int64_t column = 0; column < plane->columns; column += TILE)
            transpose_tile(plane,
                           target + row * plane->target_stride + column * plane->element_bytes,
                           source + row * plane->element_bytes + column * plane->source_stride,
                           rows, min_i64(plane->columns - column, TILE));
    }
}
