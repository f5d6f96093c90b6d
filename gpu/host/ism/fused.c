/* gpu/host/ism/fused.c: the fused update of `ism` (ism.h): up to HOST_ISM_RANK columns of X and Y
 * at once, in two passes over the inverse, for orders at which a call to OpenBLAS takes longer than
 * the work.
 *
 * A pass reads a row once and does everything with it: the first pass A0^-1 X and Y^T A0^-1, the
 * second A0^-1 - (G R) K. Numbers are taken in vectors of 64 bytes, whatever the machine's are, so
 * the order of every sum is the same on all of them.
 *
 * Threads: any, each on its own matrix. Cost: 6 n^2 operations a column, at most 2 n^2 for the
 * first HOST_ISM_RANK of them where A0 is diagonal.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/base/stop.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define RANK HOST_ISM_RANK
#define ROWS 2 /* of the inverse, taken together */

/* How many of the columns that are left are taken together: as many as there is code for. */
static int step_of(int64_t left)
{
    return left >= RANK ? RANK : left >= 2 ? 2 : 1;
}

/* `count` columns of X and Y, from `first` on. Arrays are `count` lines of n numbers, ld apart,
 * with zeros behind them up to a multiple of LANES. */
struct update {
    const REAL *from; /* n x n: the inverse so far; NULL: diagonal */
    REAL *z;
    int64_t n, ld;
    const REAL *x, *y; /* X^T, Y^T */
    REAL *g, *k, *gr;  /* G^T = (Z X)^T, K = Y^T Z, (G R)^T */
};

/* `rows` rows from i on are read for g = (Z X)^T and k = Y^T Z. rows and count are known to the
 * compiler. */
HOST_INLINE void read_rows(const struct update *update, int64_t i, int rows, int count)
{
    int64_t n = update->n, ld = update->ld, j = 0;
    const REAL *from = update->from + i * n;
    lanes sums[ROWS][RANK] = {{{0}}};
    for (; j + LANES <= n; j += LANES) {
        lanes z[ROWS];
        for (int r = 0; r < rows; r++)
            z[r] = *(const lanes *)(from + r * n + j);
        for (int c = 0; c < count; c++) {
            lanes *k = (lanes *)(update->k + c * ld + j);
            lanes sum = *k, x = *(const lanes *)(update->x + c * ld + j);
            for (int r = 0; r < rows; r++) {
                sum += z[r] * update->y[c * ld + i + r];
                sums[r][c] += z[r] * x;
            }
            *k = sum;
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < count; c++)
            update->g[c * ld + i + r] = total(&sums[r][c]);
    }
    for (; j < n; j++) {
        for (int c = 0; c < count; c++) {
            for (int r = 0; r < rows; r++) {
                update->k[c * ld + j] += from[r * n + j] * update->y[c * ld + i + r];
                update->g[c * ld + i + r] += from[r * n + j] * update->x[c * ld + j];
            }
        }
    }
}

/* `rows` rows from i on of z = from - (G R) K */
HOST_INLINE void write_rows(const struct update *update, int64_t i, int rows, int count)
{
    int64_t n = update->n, ld = update->ld, j = 0;
    const REAL *from = update->from ? update->from + i * n : NULL;
    REAL *to = update->z + i * n;
    for (; j + LANES <= n; j += LANES) {
        for (int r = 0; r < rows; r++) {
            lanes z = {0};
            if (from)
                z = *(const lanes *)(from + r * n + j);
            for (int c = 0; c < count; c++)
                z -= *(const lanes *)(update->k + c * ld + j) * update->gr[c * ld + i + r];
            *(lanes *)(to + r * n + j) = z;
        }
    }
    for (; j < n; j++) {
        for (int r = 0; r < rows; r++) {
            REAL z = from ? from[r * n + j] : 0;
            for (int c = 0; c < count; c++)
                z -= update->k[c * ld + j] * update->gr[c * ld + i + r];
            to[r * n + j] = z;
        }
    }
}

HOST_INLINE void pass(const struct update *update, int count, bool reads)
{
    int64_t i = 0, n = update->n;
    for (int c = 0; reads && c < count; c++)
        memset(update->k + c * update->ld, 0, (size_t)update->ld * sizeof(REAL));
    for (; i + ROWS <= n; i += ROWS) {
        if (reads)
            read_rows(update, i, ROWS, count);
        else
            write_rows(update, i, ROWS, count);
    }
    for (; i < n; i++) {
        if (reads)
            read_rows(update, i, 1, count);
        else
            write_rows(update, i, 1, count);
    }
}

HOST_INLINE void pass_any(const struct update *update, int count, bool reads)
{
    if (count == 1)
        pass(update, 1, reads);
    else if (count == 2)
        pass(update, 2, reads);
    else
        pass(update, RANK, reads);
}

HOST_AVX512 static void pass_avx512(const struct update *update, int count, bool reads)
{
    pass_any(update, count, reads);
}

HOST_AVX2 static void pass_avx2(const struct update *update, int count, bool reads)
{
    pass_any(update, count, reads);
}

static void pass_best(const struct update *update, int count, bool reads)
{
    if (__builtin_cpu_supports("avx512f"))
        pass_avx512(update, count, reads);
    else if (__builtin_cpu_supports("avx2"))
        pass_avx2(update, count, reads);
    else
        pass_any(update, count, reads);
}

static REAL dot(const struct update *update, const REAL *a, const REAL *b)
{
    lanes sums = {0};
    for (int64_t j = 0; j < update->n; j += LANES)
        sums += *(const lanes *)(a + j) * *(const lanes *)(b + j);
    return total(&sums);
}

/* Inverts t (count x count) in place by Gauss and Jordan with partial pivoting. */
static bool invert_small(struct R(host_ism) * ism, REAL t[RANK][RANK], int count)
{
    int pivots[RANK];
    for (int s = 0; s < count; s++) {
        int best = s;
        for (int i = s + 1; i < count; i++)
            best = REAL_FABS(t[i][s]) > REAL_FABS(t[best][s]) ? i : best;
        pivots[s] = best;
        for (int j = 0; j < count; j++) {
            REAL old = t[s][j];
            t[s][j] = t[best][j];
            t[best][j] = old;
        }
        REAL pivot = t[s][s];
        if (pivot == 0 || !isfinite(pivot))
            return false;
        ism->det_ratio = scaled_times(ism->det_ratio, best == s ? (double)pivot : -(double)pivot);
        t[s][s] = 1;
        for (int j = 0; j < count; j++)
            t[s][j] /= pivot;
        for (int i = 0; i < count; i++) {
            REAL factor = t[i][s];
            for (int j = 0; i != s && j < count; j++)
                t[i][j] = (j == s ? 0 : t[i][j]) - factor * t[s][j];
        }
    }
    for (int s = count - 1; s >= 0; s--) {
        for (int i = 0; i < count; i++) {
            REAL old = t[i][s];
            t[i][s] = t[i][pivots[s]];
            t[i][pivots[s]] = old;
        }
    }
    return true;
}

/* gr = (G R)^T with R = (I + Y^T G)^-1. */
static bool couple(struct R(host_ism) * ism, const struct update *update, int count)
{
    REAL t[RANK][RANK];
    int64_t n = update->n, ld = update->ld;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++)
            t[i][j] = (i == j ? 1 : 0) + dot(update, update->y + i * ld, update->g + j * ld);
    }
    if (!invert_small(ism, t, count))
        return false;
    for (int c = 0; c < count; c++) {
        for (int64_t i = 0; i < n; i++) {
            REAL sum = 0;
            for (int l = 0; l < count; l++)
                sum += update->g[l * ld + i] * t[l][c];
            update->gr[c * ld + i] = sum;
        }
    }
    return true;
}

/* g and k of a diagonal A0. */
static void scale(const struct R(host_ism) * ism, const struct update *update, int count)
{
    for (int c = 0; c < count; c++) {
        int64_t line = c * update->ld;
        for (int64_t i = 0; i < update->n; i++) {
            update->g[line + i] = ism->e[i] * update->x[line + i];
            update->k[line + i] = ism->e[i] * update->y[line + i];
        }
    }
}

bool R(host__ism_fused)(struct R(host_ism) * ism)
{
    int64_t n = ism->n, m = ism->m, ld = ism->ld, step = RANK * ld;
    struct update update = {.from = ism->b, .z = ism->z, .n = n, .ld = ld};
    REAL **arrays[] = {&update.g, &update.k, &update.gr};
    memset(ism->work, 0, (size_t)(HOST_ISM_FUSED_LINES * ld) * sizeof(REAL));
    for (int i = 0; i < 3; i++)
        *arrays[i] = ism->work + i * step;
    ism->det_ratio = (struct scaled){.fraction = 1};
    ism->seen = false;
    int count;
    for (int64_t first = 0; first < m; first += count) {
        host_stop_check();
        count = step_of(m - first);
        update.x = ism->xt + first * ld;
        update.y = ism->yt + first * ld;
        if (update.from)
            pass_best(&update, count, true);
        else
            scale(ism, &update, count);
        if (!couple(ism, &update, count))
            return false;
        pass_best(&update, count, false);
        for (int64_t i = 0; !update.from && i < n; i++)
            ism->z[i * (n + 1)] += ism->e[i];
        update.from = ism->z;
    }
    return true;
}
