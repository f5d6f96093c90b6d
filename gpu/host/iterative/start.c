/* gpu/host/iterative/start.c: first approximate inverses; see shared.h.
 *
 * - low_precision: LU in FP32 of A brought near one: as good as |A| |X| times FP32's eps. FP64.
 * - diagonal: 1 / a_ii: |I - V A| < 1 where A is strictly diagonally dominant (the paper's A)
 * - transpose: A^T / (|A|_1 |A|_inf): the eigenvalues of I - V A lie in [0, 1) for every A that is
 *   not singular; the price is some log2 (|A| |X|)^2 doublings (the paper's B)
 * - scaled_identity: alpha I (the paper's C). alpha = tr A / |A|_F^2 minimises |I - alpha A|_F;
 *   where that is not below 1, alpha = +-1 / min(|A|_1, |A|_inf), which serves when the eigenvalues
 *   of A lie near the positive, or the negative, axis. For symmetric positive definite matrices it
 *   saves half of transpose's doublings.
 *
 * Threads: any. Cost: passes over n^2 numbers; low_precision: 2 n^3 operations in FP32.
 */
#include "gpu/host/base/speed.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/iterative/shared.h"
#include "gpu/host/linalg/blocked.h"

#include "gpu/host/base/by_precision.h"

#define NARROW_ROWS 64 /* converted by one piece */

static void start_transpose(const struct R(host_iter) * iter)
{
    struct host_norm one = iter->identity.norm_1, inf = iter->identity.norm_inf;
    REAL factor = REAL_LDEXP((REAL)(1 / (one.fraction * inf.fraction)), -one.exponent);
    R(host__transpose)(iter->team, iter->a, iter->ld, iter->v, iter->ld, iter->n, factor);
    /* In two steps, which stay in range: the product of the norms may not. */
    R(host__iter_combine)
    (iter, iter->v, 0, (struct R(host_iter_term)){REAL_LDEXP(1, -inf.exponent), iter->v},
     (struct R(host_iter_term)){0});
}

static bool start_diagonal(const struct R(host_iter) * iter)
{
    REAL excess = 0;
    R(host__iter_combine)
    (iter, iter->v, 0, (struct R(host_iter_term)){0}, (struct R(host_iter_term)){0});
    for (int64_t i = 0; i < iter->n; i++) {
        REAL reciprocal = 1 / iter->a[i * (iter->ld + 1)];
        excess += reciprocal * 0;
        iter->v[i * (iter->ld + 1)] = reciprocal;
    }
    return excess == 0;
}

static bool start_scaled_identity(const struct R(host_iter) * iter)
{
    struct host_norm one = iter->identity.norm_1, inf = iter->identity.norm_inf;
    int exponent = one.exponent < inf.exponent ? one.exponent : inf.exponent;
    double scale = ldexp(1, -exponent), trace = 0;
    struct host_measure measure = R(host__measure)(iter->team, iter->a, iter->n, iter->ld,
                                                   (REAL)scale, iter->lines, iter->ld);
    double square = measure.frobenius * measure.frobenius;
    for (int64_t i = 0; i < iter->n; i++)
        trace += (double)iter->a[i * (iter->ld + 1)] * scale;
    double min_norm = fmin(ldexp(one.fraction, one.exponent - exponent),
                           ldexp(inf.fraction, inf.exponent - exponent));
    double alpha = trace < 0 ? -1 / min_norm : 1 / min_norm;
    if ((double)iter->n - trace * trace / square < 1)
        alpha = trace / square;
    R(host__iter_combine)
    (iter, iter->v, (REAL)(alpha * scale), (struct R(host_iter_term)){0},
     (struct R(host_iter_term)){0});
    return isfinite((REAL)(alpha * scale));
}

static bool start(const struct R(host_iter) * iter, enum method_algorithm algorithm)
{
    if (algorithm == METHOD_ALGORITHM_DIAGONAL_START)
        return start_diagonal(iter);
    if (algorithm == METHOD_ALGORITHM_SCALED_IDENTITY_START)
        return start_scaled_identity(iter);
    assert(algorithm == METHOD_ALGORITHM_TRANSPOSE_START);
    start_transpose(iter);
    return true;
}

/* ---- From FP64 to FP32 and back ---- */

struct conversion {
    REAL *wide;
    float *narrow;
    int64_t n, wide_ld, narrow_ld;
    double factor;
};

static void narrow_rows(void *context, int64_t index)
{
    const struct conversion *all = context;
    int64_t end = (index + 1) * NARROW_ROWS < all->n ? (index + 1) * NARROW_ROWS : all->n;
    for (int64_t i = index * NARROW_ROWS; i < end; i++) {
        const REAL *from = all->wide + i * all->wide_ld;
        float *to = all->narrow + i * all->narrow_ld;
        for (int64_t j = 0; j < all->n; j++)
            to[j] = (float)((double)from[j] * all->factor);
    }
}

static void widen_rows(void *context, int64_t index)
{
    const struct conversion *all = context;
    int64_t end = (index + 1) * NARROW_ROWS < all->n ? (index + 1) * NARROW_ROWS : all->n;
    for (int64_t i = index * NARROW_ROWS; i < end; i++) {
        const float *from = all->narrow + i * all->narrow_ld;
        REAL *to = all->wide + i * all->wide_ld;
        for (int64_t j = 0; j < all->n; j++)
            to[j] = (REAL)((double)from[j] * all->factor);
    }
}

/* LAPACK takes the rows for columns: it inverts A^T, and the inverse's rows come out again. */
static bool start_low_precision(const struct R(host_iter) * iter)
{
    int64_t n = iter->n, pieces = (n + NARROW_ROWS - 1) / NARROW_ROWS;
    struct conversion all = {.wide = iter->a,
                             .narrow = (float *)iter->spare[0],
                             .n = n,
                             .wide_ld = iter->ld,
                             .narrow_ld = host__ld(PRECISION_FP32, n),
                             .factor = ldexp(1, -iter->identity.norm_1.exponent)};
    assert(all.narrow_ld <= 2 * iter->ld);
    host_team_run(iter->team, pieces, narrow_rows, &all);
    if (host__large_getrf_f32(iter->team, n, all.narrow, all.narrow_ld, iter->pivots) != 0)
        return false;
    host__large_getri_f32(iter->team, n, all.narrow, all.narrow_ld, iter->pivots,
                          (float *)iter->lines);
    all.wide = iter->v;
    host_team_run(iter->team, pieces, widen_rows, &all);
    return true;
}

bool R(host__iter_start)(const struct R(host_iter) * iter, enum method_algorithm algorithm)
{
    if (algorithm == METHOD_ALGORITHM_LOW_PRECISION_START)
        return REAL_BITS != 32 && start_low_precision(iter);
    return start(iter, algorithm);
}
