/* gpu/host/linalg/transpose.c: see transpose.h.
 *
 * A square block as wide as a line of the cache is held in registers, a row in each, and transposed
 * in log2 (width) rounds: in the round of `half`, rows i and i + half exchange the parts of their
 * `2 half` columns that lie off the diagonal.
 *
 * A store across two lines costs twice. Where the rows of the result do not begin with a line, a
 * block takes, column by column, the numbers of one line: some of its rows, and before them some of
 * the block above. They come out of the rounds in the right row, turned by as many places as the
 * line begins before the block.
 *
 * What a block reads in a row, and writes, are whole lines; so their order is free. It is chosen
 * for what the processor fetches by itself: rows of `from` in the main. Memory that is only written
 * is waited for as well, and has to be fetched in time (HOST_WRITES_FETCHED).
 *
 * In a core's own caches nothing of that pays. Edges there, and CPUs without AVX-512, take STRIP
 * rows at a time number by number.
 *
 * Threads: any. Cost: see transpose.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/transpose.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#include "gpu/host/base/by_precision.h"

#define STRIP 8          /* rows moved together, number by number */
#define STRIP_COLUMNS 64 /* and columns, for as many rows as there are */
#define AHEAD 32         /* columns of a strip of blocks */

#if REAL_BITS == 32
typedef __m512 vector;
typedef __mmask16 lanes_mask;
#else
typedef __m512d vector;
typedef __mmask8 lanes_mask;
#endif

HOST_AVX512 static inline vector load(const REAL *from, REAL factor)
{
    return REAL_AVX512(mul)(REAL_AVX512(loadu)(from), REAL_AVX512(set1)(factor));
}

/* Numbers of `here` where mask has a bit, else of `above`. */
HOST_AVX512 static inline vector load_either(const REAL *above, const REAL *here, uint16_t mask,
                                             REAL factor)
{
    vector row = REAL_AVX512(mask_loadu)(REAL_AVX512(loadu)(above), (lanes_mask)mask, here);
    return REAL_AVX512(mul)(row, REAL_AVX512(set1)(factor));
}

/* Numbers of both where their masks have bits, else 0; no others are read. */
HOST_AVX512 static inline vector load_some(const REAL *above, uint16_t other, const REAL *here,
                                           uint16_t mask, REAL factor)
{
    vector row = REAL_AVX512(maskz_loadu)((lanes_mask)other, above);
    row = REAL_AVX512(mask_loadu)(row, (lanes_mask)mask, here);
    return REAL_AVX512(mul)(row, REAL_AVX512(set1)(factor));
}

HOST_AVX512 static inline void store_some(REAL *to, uint16_t mask, vector row)
{
    REAL_AVX512(mask_storeu)(to, (lanes_mask)mask, row);
}

/* Number k of the result is number index[k] of a and b, one behind the other. */
HOST_AVX512 static inline vector pick(vector a, vector b, __m512i index)
{
    return REAL_AVX512(permutex2var)(a, index, b);
}

/* Number k of the result is number index[k] of a. */
HOST_AVX512 static inline vector turn(vector a, __m512i index)
{
    return REAL_AVX512(permutexvar)(index, a);
}

/* Indexes of 32 or 64 bits. */
HOST_AVX512 static inline __m512i indexes(const int *from)
{
#if REAL_BITS == 32
    return _mm512_loadu_si512(from);
#else
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)from));
#endif
}

#define WIDTH ((int)(64 / sizeof(REAL))) /* of a block */
#define ROUNDS ((int)(sizeof(REAL) == 4 ? 4 : 3))
#define PART (HOST_TRANSPOSE_ROWS / WIDTH) /* lines of a row of the result that are a share */

/* What host__transpose_rows is given. */
struct tile {
    const REAL *from; /* rows x columns */
    int64_t from_ld, rows, columns;
    int64_t first, end; /* the rows that are the share at hand */
    REAL *to;
    int64_t to_ld;
    REAL factor;
    enum host_writes writes;
};

/* How rows of a block change places in each round, as pick has it. */
struct rounds {
    __m512i near[ROUNDS], far[ROUNDS];
};

/* Where the lines of the cache begin in WIDTH rows of the result, and in the next WIDTH. */
struct skew {
    int64_t skews[WIDTH];  /* where in its line a row begins */
    __m512i turns[WIDTH];  /* as turn has it: numbers move so far towards the end of a line */
    uint16_t masks[WIDTH]; /* of row k of a block: a bit for a column whose line has a number of
                              this row, and not of the same row of the block above */
};

/* What rows i (near) and i + half (far) of a block become. */
HOST_AVX512 HOST_INLINE void choose(int half, __m512i *near, __m512i *far)
{
    int near_numbers[WIDTH], far_numbers[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        near_numbers[k] = k & half ? WIDTH + k - half : k;
        far_numbers[k] = k & half ? WIDTH + k : k + half;
    }
    *near = indexes(near_numbers);
    *far = indexes(far_numbers);
}

HOST_AVX512 HOST_INLINE struct rounds make_rounds(void)
{
    struct rounds rounds = {0};
#pragma GCC unroll 4
    for (int round = 0; round < ROUNDS; round++)
        choose(1 << round, rounds.near + round, rounds.far + round);
    return rounds;
}

HOST_AVX512 HOST_INLINE struct skew skew_of(const struct tile *tile)
{
    struct skew skew;
    int64_t first = (int64_t)((uintptr_t)tile->to / sizeof(REAL) % WIDTH);
    for (int k = 0; k < WIDTH; k++) {
        int numbers[WIDTH];
        skew.skews[k] = (first + k * tile->to_ld) % WIDTH;
        for (int i = 0; i < WIDTH; i++)
            numbers[i] = (i + WIDTH - (int)skew.skews[k]) % WIDTH;
        skew.turns[k] = indexes(numbers);
    }
    for (int k = 0; k < WIDTH; k++) {
        skew.masks[k] = 0;
        for (int j = 0; j < WIDTH; j++)
            skew.masks[k] |= (uint16_t)((skew.skews[j] < WIDTH - k) << j);
    }
    return skew;
}

/* The loops are unrolled for good, or the block leaves the registers. */
HOST_AVX512 HOST_INLINE void transpose_block(vector block[WIDTH], const struct rounds *rounds)
{
#pragma GCC unroll 4
    for (int round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 16
        for (int k = 0; k < WIDTH; k++) {
            int other = k | 1 << round;
            if (other == k)
                continue;
            vector row = block[k];
            block[k] = pick(row, block[other], rounds->near[round]);
            block[other] = pick(row, block[other], rounds->far[round]);
        }
    }
}

/* Fetches line k of WIDTH, a block's part of the rows of the result from `ahead` on. There may be
 * fewer rows: nothing is read where they would be. */
HOST_INLINE void fetch(const struct tile *tile, const REAL *ahead, int k)
{
    if (tile->writes == HOST_WRITES_FETCHED)
        __builtin_prefetch(ahead + k / PART * tile->to_ld + k % PART * WIDTH, 0, 2);
}

HOST_AVX512 HOST_INLINE void write(const struct tile *tile, REAL *to, vector line)
{
    if (tile->writes == HOST_WRITES_PAST)
        REAL_AVX512(stream)(to, line);
    else
        REAL_AVX512(storeu)(to, line);
}

/* A whole block, from row i and column j on. */
HOST_AVX512 HOST_INLINE void move_block(const struct tile *tile, const struct rounds *rounds,
                                        int64_t i, int64_t j, const REAL *ahead)
{
    const REAL *from = tile->from + i * tile->from_ld + j;
    REAL *to = tile->to + j * tile->to_ld + i;
    vector block[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        block[k] = load(from + k * tile->from_ld, tile->factor);
    transpose_block(block, rounds);
    for (int k = 0; k < WIDTH; k++) {
        fetch(tile, ahead, k);
        write(tile, to + k * tile->to_ld, block[k]);
    }
}

/* The lines of the result that end in these rows: that of column j + k begins in row i - skew k.
 * Row m of the block takes of each column the number of row i + m, where that is in the line, and
 * else of row i + m - WIDTH, which then is. The rounds leave each line in one row, turned by its
 * skew. */
HOST_AVX512 HOST_INLINE void move_skewed(const struct tile *tile, const struct rounds *rounds,
                                         const struct skew *skew, int64_t i, int64_t j,
                                         const REAL *ahead)
{
    const REAL *from = tile->from + i * tile->from_ld + j;
    const REAL *above = from - WIDTH * tile->from_ld;
    REAL *to = tile->to + j * tile->to_ld + i;
    vector block[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        block[k] = load_either(above + k * tile->from_ld, from + k * tile->from_ld, skew->masks[k],
                               tile->factor);
    transpose_block(block, rounds);
    for (int k = 0; k < WIDTH; k++) {
        fetch(tile, ahead, k);
        write(tile, to + k * tile->to_ld - skew->skews[k], turn(block[k], skew->turns[k]));
    }
}

/* The bits of the numbers from first to end - 1 of WIDTH. */
HOST_INLINE uint16_t bits(int64_t first, int64_t end)
{
    first = first < 0 ? 0 : first;
    end = end > WIDTH ? WIDTH : end;
    return (uint16_t)(first < end ? (1U << end) - (1U << first) : 0);
}

/* The same where some of the rows, above or here, or of the columns are not there. */
HOST_AVX512 static void move_part(const struct tile *tile, const struct rounds *rounds,
                                  const struct skew *skew, int64_t i, int64_t j, const REAL *ahead)
{
    const REAL *from = tile->from + j;
    uint16_t columns = bits(0, tile->columns - j);
    vector block[WIDTH];
#pragma GCC unroll 16
    for (int k = 0; k < WIDTH; k++) {
        int64_t row = i + k, above = row - WIDTH;
        uint16_t mask = row < tile->rows ? columns & skew->masks[k] : 0;
        uint16_t other = above >= 0 && above < tile->rows ? columns & ~skew->masks[k] : 0;
        block[k] = load_some(from + (other ? above * tile->from_ld : 0), other,
                             from + (mask ? row * tile->from_ld : 0), mask, tile->factor);
    }
    transpose_block(block, rounds);
#pragma GCC unroll 16
    for (int k = 0; k < WIDTH; k++) {
        int64_t first = i - skew->skews[k];
        fetch(tile, ahead, k);
        uint16_t mask = j + k < tile->columns ? bits(-first, tile->rows - first) : 0;
        if (mask)
            store_some(tile->to + (j + k) * tile->to_ld + first, mask,
                       turn(block[k], skew->turns[k]));
    }
}

/* Blocks are moved from row to row in strips of AHEAD columns: so the lines of `from` are read one
 * behind the other. Those of the result are not written so: they are fetched while the strip before
 * is moved, or the last strip of the share before. Past the caches there is one strip. */
HOST_INLINE const REAL *ahead_of(const struct tile *tile, int64_t end)
{
    return end < tile->columns ? tile->to + end * tile->to_ld + tile->first : tile->to + tile->end;
}

HOST_INLINE int64_t strip_end(const struct tile *tile, int64_t first)
{
    bool last = tile->writes == HOST_WRITES_PAST || tile->columns - first < AHEAD;
    return last ? tile->columns : first + AHEAD;
}

HOST_AVX512 HOST_INLINE void move_blocks(const struct tile *tile)
{
    struct rounds rounds = make_rounds();
    for (int64_t first = 0, end; first < tile->columns; first = end) {
        end = strip_end(tile, first);
        const REAL *ahead = ahead_of(tile, end);
        for (int64_t i = tile->first; i < tile->end; i += WIDTH) {
            for (int64_t j = first; j < end; j += WIDTH, ahead += WIDTH / PART * tile->to_ld)
                move_block(tile, &rounds, i, j, ahead);
        }
    }
}

/* Near: lines of the result are completed one behind the other. */
HOST_AVX512 HOST_INLINE void move_near_blocks(const struct tile *tile)
{
    struct rounds rounds = make_rounds();
    for (int64_t j = 0; j < tile->columns; j += WIDTH) {
        for (int64_t i = tile->first; i < tile->end; i += WIDTH)
            move_block(tile, &rounds, i, j, tile->to);
    }
}

/* A share leaves its last numbers to the next share, which ends those lines. */
HOST_AVX512 HOST_INLINE void move_lines(const struct tile *tile)
{
    struct rounds rounds = make_rounds();
    struct skew skew = skew_of(tile);
    int64_t last = tile->end < tile->rows ? tile->end : tile->rows + WIDTH - 1;
    for (int64_t first = 0, end; first < tile->columns; first = end) {
        end = strip_end(tile, first);
        const REAL *ahead = ahead_of(tile, end);
        for (int64_t i = tile->first; i < last; i += WIDTH) {
            bool whole = i >= WIDTH && i + WIDTH <= tile->rows;
            for (int64_t j = first; j < end; j += WIDTH, ahead += WIDTH / PART * tile->to_ld) {
                if (whole && j + WIDTH <= tile->columns)
                    move_skewed(tile, &rounds, &skew, i, j, ahead);
                else
                    move_part(tile, &rounds, &skew, i, j, ahead);
            }
        }
    }
}

/* Columns of the result get `count` numbers each, from row i on. */
HOST_INLINE void move_strip(const struct tile *tile, int64_t i, int64_t count)
{
    const REAL *restrict from = tile->from + i * tile->from_ld;
    REAL *restrict to = tile->to + i;
    for (int64_t j = 0; j < tile->columns; j++) {
        for (int64_t r = 0; r < count; r++)
            to[j * tile->to_ld + r] = from[r * tile->from_ld + j] * tile->factor;
    }
}

/* Lines of the result are complete before they leave the first cache. */
static void move_strips(const struct tile *tile)
{
    struct tile part = *tile;
    for (int64_t left = tile->columns; left > 0; left -= STRIP_COLUMNS) {
        part.columns = left < STRIP_COLUMNS ? left : STRIP_COLUMNS;
        int64_t i = tile->first;
        for (; i + STRIP <= tile->end; i += STRIP)
            move_strip(&part, i, STRIP);
        move_strip(&part, i, tile->end - i);
        part.from += STRIP_COLUMNS;
        part.to += STRIP_COLUMNS * tile->to_ld;
    }
}

/* Blocks, and what is left below them and right of them. */
HOST_AVX512 HOST_INLINE void move_whole(const struct tile *tile)
{
    struct tile blocks = *tile, below = *tile, right = *tile;
    blocks.end = below.first = tile->end / WIDTH * WIDTH;
    blocks.columns = below.columns = tile->columns / WIDTH * WIDTH;
    right.from += blocks.columns;
    right.to += blocks.columns * tile->to_ld;
    right.columns -= blocks.columns;
    if (tile->writes == HOST_WRITES_NEAR)
        move_near_blocks(&blocks);
    else
        move_blocks(&blocks);
    move_strips(&below);
    move_strips(&right);
}

/* writes is known to the compiler. */
HOST_AVX512 HOST_INLINE void move(struct tile tile, enum host_writes writes)
{
    bool aligned = ((uintptr_t)tile.to | (uintptr_t)tile.to_ld * sizeof(REAL)) % 64 == 0;
    tile.writes = writes;
    if (aligned || writes == HOST_WRITES_NEAR)
        move_whole(&tile);
    else
        move_lines(&tile);
    if (writes == HOST_WRITES_PAST)
        _mm_sfence(); /* stores past the caches are in no order with others */
}

HOST_AVX512 static void move_near(const struct tile *tile)
{
    move(*tile, HOST_WRITES_NEAR);
}

HOST_AVX512 static void move_fetched(const struct tile *tile)
{
    move(*tile, HOST_WRITES_FETCHED);
}

HOST_AVX512 static void move_past(const struct tile *tile)
{
    move(*tile, HOST_WRITES_PAST);
}

void R(host__transpose_rows)(const REAL *from, int64_t from_ld, int64_t rows, int64_t columns,
                             REAL *to, int64_t to_ld, REAL factor, enum host_writes writes,
                             int64_t first)
{
    int64_t left = rows - first;
    const struct tile tile = {.from = from,
                              .from_ld = from_ld,
                              .rows = rows,
                              .columns = columns,
                              .first = first,
                              .end =
                                  left < HOST_TRANSPOSE_ROWS ? rows : first + HOST_TRANSPOSE_ROWS,
                              .to = to,
                              .to_ld = to_ld,
                              .factor = factor};
    if (!__builtin_cpu_supports("avx512f"))
        move_strips(&tile);
    else if (writes == HOST_WRITES_NEAR)
        move_near(&tile);
    else if (writes == HOST_WRITES_FETCHED)
        move_fetched(&tile);
    else
        move_past(&tile);
}
