/* gpu/cuda/ism/norm_room.h: how norm.cuh shares a matrix among blocks, what they leave one
 * another in workspace, and the shared memory of a block. Host code; kernels are given it.
 *
 * Numbers are FP64 whatever the precision. Lines in shared memory lie 4 numbers apart beyond a
 * multiple of 16, so that they are read without conflicts of banks.
 */
#ifndef GPU_CUDA_ISM_NORM_ROOM_H
#define GPU_CUDA_ISM_NORM_ROOM_H

#include <stdint.h>

#include "gpu/common/probes.h"

#define CUDA__ISM_NORM_PARTS 32              /* of the rows of X, at most */
#define CUDA__ISM_NORM_WARPS 8               /* of a block */
#define CUDA__ISM_NORM_UNIT 16               /* rows and columns of a product */
#define CUDA__ISM_NORM_PIECE 64              /* columns that a warp reads together */
#define CUDA__ISM_NORM_DOWN 2                /* warps that share the rows of a sum over them */
#define CUDA__ISM_NORM_SUMS (ISM_PROBES + 2) /* of a column: L X, and its magnitudes twice */

/* The largest of some numbers, as check.cuh has them, and where they are. */
struct cuda__ism_norm_list {
    unsigned long long value[ISM_PROBES];
    int32_t at[ISM_PROBES];
};

struct cuda__ism_norm_room {
    int wide, line;      /* columns, to whole products; numbers from line to line */
    int rows, parts;     /* of X: of a block; blocks */
    int scored, blocks;  /* the same of Y */
    int sizes;           /* in workspace, after sums of each part: columns' norms by parts */
    int by_scores;       /* lists, one a block of Y */
    int by_bounds, left; /* likewise; how many numbers there are */
    int lines, norms;    /* in shared memory, bytes: eight lines; the norms of X's columns */
    int sums, lists;     /* of warps: a piece's sums; lists */
    int own;             /* scores of the block's rows, then bounds; or columns' norms by warps */
    int signs, chosen;   /* bits of a byte a row; columns */
    int bytes;
};

static inline int cuda__ism_norm_rounded(int64_t numbers, int to)
{
    return (int)((numbers + to - 1) / to * to);
}

static inline int cuda__ism_norm_take(int *end, int count)
{
    int at = *end;
    *end += count;
    return at;
}

/* Of matrices of order n, X and Y having m columns. */
static inline struct cuda__ism_norm_room cuda__ism_norm_room_of(int64_t n, int64_t m)
{
    const int real = (int)sizeof(double), list = (int)sizeof(struct cuda__ism_norm_list);
    const int unit = CUDA__ISM_NORM_UNIT, warps = CUDA__ISM_NORM_WARPS;
    struct cuda__ism_norm_room room;
    room.bytes = 0;
    room.wide = cuda__ism_norm_rounded(m, unit);
    room.line = room.wide + 4;
    room.rows = cuda__ism_norm_rounded((n + CUDA__ISM_NORM_PARTS - 1) / CUDA__ISM_NORM_PARTS, unit);
    room.parts = (int)((n + room.rows - 1) / room.rows);
    room.scored = unit * warps;
    room.blocks = (int)((n + room.scored - 1) / room.scored);
    room.left = room.parts * CUDA__ISM_NORM_SUMS * room.wide;
    room.sizes = cuda__ism_norm_take(&room.left, 2 * room.parts * ISM_PROBES);
    room.by_scores = cuda__ism_norm_take(&room.left, room.blocks * list / real);
    room.by_bounds = cuda__ism_norm_take(&room.left, room.blocks * list / real);
    room.lines = cuda__ism_norm_take(&room.bytes, ISM_PROBES * room.line * real);
    room.norms = cuda__ism_norm_take(&room.bytes, room.wide * real);
    room.sums = cuda__ism_norm_take(&room.bytes, CUDA__ISM_NORM_DOWN * CUDA__ISM_NORM_SUMS *
                                                     CUDA__ISM_NORM_PIECE * real);
    room.own = cuda__ism_norm_take(&room.bytes, room.scored * 2 * real);
    room.lists = cuda__ism_norm_take(&room.bytes, warps * list);
    room.chosen = cuda__ism_norm_take(&room.bytes, ISM_PROBES * (int)sizeof(int32_t));
    room.signs = cuda__ism_norm_take(&room.bytes, room.rows);
    return room;
}

#endif
