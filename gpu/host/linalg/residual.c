/* gpu/host/linalg/residual.c: see residual.h.
 *
 * A strip of rows of the product is made at a time. Both factors go through aligned scratch, of Q a
 * strip of rows too. A strip's columns are pieces of work.
 *
 * Threads: any; the pieces run on a team. Cost: see residual.h, and a copy of Q for every strip.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/residual.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

#define PIECE 128 /* columns of a piece of work */

/* Rows of a strip. Three strips and a line for the sums fit host__lines(n). */
static int64_t strip_of(int64_t n)
{
    return n < 1024 ? 16 : 40;
}

struct product {
    const REAL *p, *q;
    int64_t n, ldp, ldq, ld, strip;
    REAL factor;
    /* Lines: `strip` each but for the last. */
    REAL *rows, *part, *residual, *sums;
    int64_t at; /* the strip under way */
};

static void residual_columns(void *context, int64_t index)
{
    const struct product *product = context;
    int64_t n = product->n, ld = product->ld, at = product->at, strip = product->strip;
    int64_t rows = min_i64(strip, n - at), first = index * PIECE,
            columns = min_i64(PIECE, n - first);
    REAL *residual = product->residual + first, *part = product->part + first;
    for (int64_t i = 0; i < rows; i++)
        memset(residual + i * ld, 0, (size_t)columns * sizeof *residual);
    for (int64_t k = 0; k < n; k += strip) {
        int64_t inner = min_i64(strip, n - k);
        for (int64_t i = 0; i < inner; i++)
            memcpy(part + i * ld, product->q + (k + i) * product->ldq + first,
                   (size_t)columns * sizeof *part);
        R(host__gemm)(rows, columns, inner, product->rows + k, ld, part, ld, residual, ld);
    }
    for (int64_t i = 0; i < rows; i++, residual += ld) {
        for (int64_t j = 0; j < columns; j++)
            residual[j] = (at + i == first + j ? 1 : 0) - product->factor * residual[j];
        for (int64_t j = 0; j < columns; j++)
            product->sums[first + j] += REAL_FABS(residual[j]);
    }
}

double R(host__residual)(struct host_team *team, int64_t n, REAL factor, const REAL *p, int64_t ldp,
                         const REAL *q, int64_t ldq, REAL *lines)
{
    int64_t ld = host__ld(REAL_PRECISION, n), strip = strip_of(n);
    struct product product = {.p = p,
                              .q = q,
                              .n = n,
                              .ldp = ldp,
                              .ldq = ldq,
                              .ld = ld,
                              .strip = strip,
                              .factor = factor,
                              .rows = lines,
                              .part = lines + strip * ld,
                              .residual = lines + 2 * strip * ld,
                              .sums = lines + 3 * strip * ld};
    double largest = 0;
    memset(product.sums, 0, (size_t)n * sizeof *product.sums);
    for (; product.at < n; product.at += strip) {
        for (int64_t i = 0; i < min_i64(strip, n - product.at); i++)
            memcpy(product.rows + i * ld, p + (product.at + i) * ldp, (size_t)n * sizeof *p);
        host_team_run(team, pieces(n, PIECE), residual_columns, &product);
    }
    for (int64_t j = 0; j < n; j++) {
        double sum = (double)product.sums[j];
        largest = sum > largest || isnan(sum) ? sum : largest;
    }
    return largest;
}

double R(host__residual_ratio)(double residual, int64_t n, struct host_norm a, struct host_norm x)
{
    double size = ldexp(a.fraction * x.fraction, a.exponent + x.exponent);
    return x.finite ? residual / ((double)n * (double)REAL_EPS * size) : HUGE_VAL;
}

int64_t R(host__ratios_bytes)(int64_t n)
{
    int64_t bytes;
    if (!checked_mul(host__lines(n), host__ld(REAL_PRECISION, n), &bytes) ||
        !checked_mul(bytes, (int64_t)sizeof(REAL), &bytes))
        return -1;
    return bytes;
}

void R(host__residual_ratios)(const struct host_matrix *matrix, REAL *left, REAL *right)
{
    const int64_t n = matrix->n;
    const REAL *a = matrix->inputs[0], *x = matrix->outputs[HOST_INVERSE];
    struct host_team *team = n >= HOST_TEAM_ORDER_MIN ? matrix->team : NULL;
    const struct host_norm norm_a = R(host__norm)(team, a, n, n, matrix->scratch);
    const struct host_norm norm_x = R(host__norm)(team, x, n, n, matrix->scratch);
    for (int side = METHOD_LEFT; side <= METHOD_RIGHT; side++) {
        REAL *ratio = side == METHOD_LEFT ? left : right;
        const REAL *p = side == METHOD_LEFT ? x : a, *q = side == METHOD_LEFT ? a : x;
        if (!ratio)
            continue;
        const double residual = R(host__residual)(team, n, 1, p, n, q, n, matrix->scratch);
        *ratio = isnan(residual) ? (REAL)NAN
                                 : (REAL)R(host__residual_ratio)(residual, n, norm_a, norm_x);
    }
}
