/* gpu/host/linalg/panels.c: see panels.h.
 *
 * The innermost loop holds HOST_PANEL_ROWS rows of VECTORS vectors in registers, 24 of the 32 that
 * AVX-512 has, and takes DEPTH steps before it goes to memory: the lines of a group fit the first
 * cache, those of a panel and of all groups of a tile the second.
 *
 * Threads: any. Cost: see panels.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/panels.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

#define VECTORS (HOST_PANEL_BYTES / PANEL_VECTOR_BYTES) /* of a panel's line */
#define DEPTH 256
#define PANEL_VECTOR_BYTES 64
#define ROWS HOST_PANEL_ROWS

#if REAL_BITS == 32
typedef __m512 vector;
#else
typedef __m512d vector;
#endif

#define LANES (PANEL_VECTOR_BYTES / (int64_t)sizeof(REAL))
#define COLUMNS (VECTORS * LANES)

/* Columns first to end - 1 of from, `width` of them at a time; the width is known to the compiler.
 */
HOST_INLINE void pack(int64_t inner, int64_t n, const REAL *from, int64_t ld, int64_t first,
                      int64_t end, int64_t width, REAL *to)
{
    for (int64_t j = first; j < end; j += width) {
        const int64_t columns = min_i64(width, n - j);
        REAL *line = to + j * inner;
        for (int64_t l = 0; l < inner; l++, line += width) {
            if (columns == width) {
                memcpy(line, from + l * ld + j, (size_t)width * sizeof *line);
                continue;
            }
            for (int64_t c = 0; c < width; c++)
                line[c] = c < columns ? from[l * ld + j + c] : 0;
        }
    }
}

void R(host__pack_panels)(int64_t inner, int64_t n, const REAL *from, int64_t ld, int64_t first,
                          int64_t end, REAL *to)
{
    pack(inner, n, from, ld, first, end, COLUMNS, to);
}

void R(host__pack_groups)(int64_t inner, int64_t n, const REAL *from, int64_t ld, int64_t first,
                          int64_t end, REAL *to)
{
    pack(inner, n, from, ld, first, end, ROWS, to);
}

/* ROWS rows of a panel's columns of c. */
HOST_AVX512 static void take_tile(int64_t inner, const REAL *group, const REAL *panel, bool sets,
                                  REAL *c, int64_t ldc)
{
    vector sums[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = REAL_AVX512(set1)(0);
    }
    for (int64_t l = 0; l < inner; l++, group += ROWS, panel += COLUMNS) {
        const vector first = REAL_AVX512(loadu)(panel), second = REAL_AVX512(loadu)(panel + LANES);
        const vector third = REAL_AVX512(loadu)(panel + 2 * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            const vector weight = REAL_AVX512(set1)(group[r]);
            sums[r][0] = REAL_AVX512(fnmadd)(weight, first, sums[r][0]);
            sums[r][1] = REAL_AVX512(fnmadd)(weight, second, sums[r][1]);
            sums[r][2] = REAL_AVX512(fnmadd)(weight, third, sums[r][2]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++, c += ldc) {
#pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            REAL_AVX512(storeu)
        (c + v * LANES,
         sets ? sums[r][v] : REAL_AVX512(add)(REAL_AVX512(loadu)(c + v * LANES), sums[r][v]));
    }
}

/* The same at an edge of c. */
HOST_AVX512 static void take_edge(int64_t rows, int64_t columns, int64_t inner, const REAL *group,
                                  const REAL *panel, bool sets, REAL *c, int64_t ldc)
{
    REAL whole[ROWS * COLUMNS];
    take_tile(inner, group, panel, true, whole, COLUMNS);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const REAL sum = whole[i * COLUMNS + j];
            c[i * ldc + j] = sets ? sum : c[i * ldc + j] + sum;
        }
    }
}

void R(host__subtract_panels)(int64_t rows, int64_t columns, int64_t inner, const REAL *groups,
                              const REAL *panels, bool sets, REAL *c, int64_t ldc)
{
    for (int64_t l = 0; l < inner; l += DEPTH, sets = false) {
        const int64_t depth = min_i64(DEPTH, inner - l);
        for (int64_t j = 0; j < columns; j += COLUMNS) {
            const REAL *panel = panels + j * inner + l * COLUMNS;
            for (int64_t i = 0; i < rows; i += ROWS) {
                const REAL *group = groups + i * inner + l * ROWS;
                REAL *to = c + i * ldc + j;
                if (rows - i >= ROWS && columns - j >= COLUMNS)
                    take_tile(depth, group, panel, sets, to, ldc);
                else
                    take_edge(min_i64(ROWS, rows - i), min_i64(COLUMNS, columns - j), depth, group,
                              panel, sets, to, ldc);
            }
        }
    }
}
