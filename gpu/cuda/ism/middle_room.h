/* gpu/cuda/ism/middle_room.h: the shared memory of a block that updates a known inverse of a middle
 * order (middle.cuh), and to which n and m that of the current device suffices. Host code;
 * kernels are given it.
 *
 * Rows lie so far apart that they are read without conflicts of banks: what that takes is said
 * next to each array. Numbers given are in the precision; all others are FP64.
 */
#ifndef GPU_CUDA_ISM_MIDDLE_ROOM_H
#define GPU_CUDA_ISM_MIDDLE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/device_limits.h"

#define CUDA__ISM_MIDDLE_SLAB 16  /* columns of a warp */
#define CUDA__ISM_MIDDLE_TILE 8   /* columns of X and Y that are multiplied together */
#define CUDA__ISM_MIDDLE_MAX 32   /* columns of X */
#define CUDA__ISM_MIDDLE_PROBES 2 /* of a check */
#define CUDA__ISM_MIDDLE_WARPS 16

/* Where a matrix's tensors are. */
struct cuda__ism_middle_place {
    const void *b, *x, *y;
    void *inverse; /* NULL: it is not wanted */
    const struct cuda_tensors *item;
    int64_t within;
};

/* What the warps have found out about a matrix, for the verdict. */
struct cuda__ism_middle_result {
    double size_b[CUDA__ISM_MIDDLE_WARPS], size_z[CUDA__ISM_MIDDLE_WARPS];
    double worst[CUDA__ISM_MIDDLE_WARPS], change, lost, det;
    unsigned long long reach, met; /* the bits of numbers that are not negative */
    int64_t det_exponent;
    int32_t bad, unused; /* bad: a number that is given is not finite */
};

/* Of the matrix that is worked on, and of the next one or the one before, double-buffered. */
struct cuda__ism_middle_found {
    struct cuda__ism_middle_place places[2];
    struct cuda__ism_middle_result results[2];
};

/* Orders are filled up to whole slabs, columns of X to whole tiles. Places are in bytes. */
struct cuda__ism_middle_room {
    int order, warps, wide;
    int b, b_line; /* the inverse that is given, order x order */
    int x, x_line; /* X, order x wide */
    int y, y_line; /* Y and the probe vectors of the check, order x (m + 2); */
    int g_line;    /* later in its place -G R, order x wide */
    int k, k_line; /* K, and below it the lines times B: m + 2, or wide, lines of `order` */
    int c, c_line; /* I + K X, then its inverse; wide x wide */
    int parts, tz; /* later in its place: T Z, and (T Z) X of each warp */
    int weights;   /* the check's probe vectors */
    int thin;      /* the last times X; behind it a line of the check times X, then X's norms */
    int kept;      /* the first warp's part of G while it inverts I + K X; where wide > 16 */
    int found;
    int bytes;
};

/* The first number from `line_min` on that leaves `first` or `second` over when divided by 16. */
static inline int cuda__ism_middle_line(int64_t line_min, int first, int second)
{
    int line = (int)line_min;
    while (line % 16 != first && line % 16 != second)
        line++;
    return line;
}

static inline int cuda__ism_middle_take(struct cuda__ism_middle_room *room, int64_t bytes)
{
    int at = room->bytes;
    room->bytes += (int)((bytes + 15) / 16 * 16);
    return at;
}

/* Of numbers of 4 or 8 bytes; n and m within what an int holds. */
static inline struct cuda__ism_middle_room cuda__ism_middle_room_of(int64_t n, int64_t m, int bytes)
{
    struct cuda__ism_middle_room room;
    const int64_t real = (int64_t)sizeof(double);
    const bool narrow = bytes < (int)sizeof(double);
    const int64_t slab = CUDA__ISM_MIDDLE_SLAB, tile = CUDA__ISM_MIDDLE_TILE;
    const int64_t order = (n + slab - 1) / slab * slab, wide = (m + tile - 1) / tile * tile;
    const int64_t lines = m + CUDA__ISM_MIDDLE_PROBES;
    room.bytes = 0;
    room.order = (int)order;
    room.wide = (int)wide;
    room.warps = (int)(order / slab);
    /* Four rows and eight columns at once; eight rows and pairs of columns. */
    room.b_line = (int)order + (narrow ? 8 : 4);
    room.x_line = (int)wide + (narrow ? 4 : 2);
    room.y_line = narrow ? cuda__ism_middle_line(lines, 8, 8) : cuda__ism_middle_line(lines, 4, 12);
    room.g_line = (int)wide + 4;
    room.k_line = (int)order + 2;
    room.c_line = (int)wide + 2;
    int64_t given = order * room.y_line * bytes, later = order * room.g_line * real;
    int64_t square = wide * room.c_line, parts = room.warps * CUDA__ISM_MIDDLE_PROBES * wide;
    int64_t sums = parts + CUDA__ISM_MIDDLE_PROBES * order;
    room.b = cuda__ism_middle_take(&room, order * room.b_line * bytes);
    room.x = cuda__ism_middle_take(&room, order * room.x_line * bytes);
    room.y = cuda__ism_middle_take(&room, given > later ? given : later);
    room.k = cuda__ism_middle_take(&room, (wide > lines ? wide : lines) * room.k_line * real);
    room.c = cuda__ism_middle_take(&room, (square > sums ? square : sums) * real);
    room.parts = room.c;
    room.tz = room.c + (int)(parts * real);
    room.weights = cuda__ism_middle_take(&room, CUDA__ISM_MIDDLE_PROBES * order * real);
    room.thin = cuda__ism_middle_take(&room, (CUDA__ISM_MIDDLE_PROBES + 2) * wide * real);
    room.kept = cuda__ism_middle_take(&room, wide > 2 * tile ? slab * wide * real : 0);
    room.found = cuda__ism_middle_take(&room, (int64_t)sizeof(struct cuda__ism_middle_found));
    return room;
}

/* Can a block of threads hold an update of m columns? */
static inline bool cuda__ism_middle_holds(int64_t n, int64_t m, int bytes)
{
    const int64_t order_max = (int64_t)CUDA__ISM_MIDDLE_SLAB * CUDA__ISM_MIDDLE_WARPS;
    return n > CUDA__ISM_MIDDLE_SLAB && n <= order_max && m > 0 && m <= n &&
           m <= CUDA__ISM_MIDDLE_MAX &&
           cuda__ism_middle_room_of(n, m, bytes).bytes <= cuda__shared_max();
}

#endif
