/* gpu/host/iterative/tiles.c: products and sums of matrices, tile by tile; see shared.h.
 *
 * A tile of a product takes whole rows of one factor and whole columns of the other in one call, so
 * that OpenBLAS blocks the inner dimension as it likes: for one order always in the same way.
 *
 * Threads: any; tiles run on a team. Cost: 2 n^3 operations a product; a sum reads each term once.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/common/iteration.h"
#include "gpu/host/iterative/shared.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

/* Rows and columns of a tile of a product: enough of them for a team, large enough for OpenBLAS. */
#define TILE_SMALL 256
#define TILE_LARGE 512
#define TILE_LARGE_MIN 2048
#define SUM_ROWS 64     /* of a tile of a sum, as wide as the matrix */
#define SUM_COLUMNS 256 /* whose magnitudes are added up together */
#define TERMS 64        /* columns whose sums stay in the first cache */

static int64_t tile_of(int64_t n)
{
    return n < TILE_LARGE_MIN ? TILE_SMALL : TILE_LARGE;
}

struct product {
    const REAL *a, *b;
    REAL *c;
    int64_t n, ld, tile;
    bool subtract;
};

static void multiply_tile(void *context, int64_t index)
{
    const struct product *product = context;
    int64_t n = product->n, ld = product->ld, across = pieces(n, product->tile);
    int64_t row = index / across * product->tile, column = index % across * product->tile;
    int64_t rows = min_i64(product->tile, n - row), columns = min_i64(product->tile, n - column);
    const REAL *a = product->a + row * ld, *b = product->b + column;
    REAL *c = product->c + row * ld + column;
    /* C -= A B is, with columns for rows, C^T -= B^T A^T. */
    if (product->subtract)
        R(host__subtract_product)(columns, rows, n, b, ld, a, ld, c, ld);
    else
        R(host__gemm)(rows, columns, n, a, ld, b, ld, c, ld);
}

static void multiply(const struct R(host_iter) * iter, struct product product)
{
    product.n = iter->n;
    product.ld = iter->ld;
    product.tile = tile_of(iter->n);
    int64_t across = pieces(product.n, product.tile);
    ++*iter->products;
    host_team_run(iter->team, across * across, multiply_tile, &product);
    host_progress_report(iter->progress, *iter->products, iter->foreseen);
}

void R(host__iter_add_product)(const struct R(host_iter) * iter, const REAL *a, const REAL *b,
                               REAL *c)
{
    multiply(iter, (struct product){.a = a, .b = b, .c = c});
}

void R(host__iter_subtract_product)(const struct R(host_iter) * iter, const REAL *a, const REAL *b,
                                    REAL *c)
{
    multiply(iter, (struct product){.a = a, .b = b, .c = c, .subtract = true});
}

struct sum {
    REAL *to;
    REAL identity;
    struct R(host_iter_term) x, y;
    int64_t n, ld;
};

/* A row of the sum without the identity's part. */
static void sum_row(const struct sum *sum, int64_t first)
{
    REAL *to = sum->to + first, x_factor = sum->x.factor, y_factor = sum->y.factor;
    const REAL *x = sum->x.matrix ? sum->x.matrix + first : NULL;
    const REAL *y = sum->y.matrix ? sum->y.matrix + first : NULL;
    int64_t n = sum->n;
    if (!x) {
        memset(to, 0, (size_t)n * sizeof *to);
    } else if (!y) {
        for (int64_t j = 0; j < n; j++)
            to[j] = x_factor * x[j];
    } else {
        for (int64_t j = 0; j < n; j++)
            to[j] = x_factor * x[j] + y_factor * y[j];
    }
}

static void sum_rows(void *context, int64_t index)
{
    const struct sum *sum = context;
    int64_t first = index * SUM_ROWS, end = min_i64(first + SUM_ROWS, sum->n);
    for (int64_t i = first; i < end; i++) {
        sum_row(sum, i * sum->ld);
        sum->to[i * (sum->ld + 1)] += sum->identity;
    }
}

void R(host__iter_combine)(const struct R(host_iter) * iter, REAL *to, REAL identity,
                           struct R(host_iter_term) x, struct R(host_iter_term) y)
{
    struct sum sum = {.to = to, .identity = identity, .x = x, .y = y, .n = iter->n, .ld = iter->ld};
    host_team_run(iter->team, pieces(iter->n, SUM_ROWS), sum_rows, &sum);
}

/* ---- Terms ---- */

/* What C |x| |y| C^-1 is measured by; n x n, neither is a spare matrix. C: 2^exponents. */
struct terms {
    const struct R(host_iter) * iter;
    const REAL *x, *y;
    const int32_t *exponents; /* NULL: C = I */
    int32_t top;              /* the largest of them */
    double *sums, *largest;   /* of C |x|'s columns; of all, those of each piece */
};

static double weight(const struct terms *terms, int64_t i)
{
    if (!terms->exponents)
        return 1;
    const int32_t below_top = terms->exponents[i] - terms->top;
    return ldexp(1, below_top > ITERATION_WEIGHT_MIN ? below_top : ITERATION_WEIGHT_MIN);
}

/* Columns' sums of C |x|. */
static void sum_columns(void *context, int64_t index)
{
    const struct terms *terms = context;
    const int64_t n = terms->iter->n, ld = terms->iter->ld, first = index * SUM_COLUMNS;
    const int64_t columns = min_i64(SUM_COLUMNS, n - first);
    double *sums = terms->sums + first;
    memset(sums, 0, (size_t)columns * sizeof *sums);
    for (int64_t i = 0; i < n; i++) {
        const double factor = weight(terms, i);
        for (int64_t j = 0; j < columns; j++)
            sums[j] += factor * fabs((double)terms->x[i * ld + first + j]);
    }
}

/* A NaN stays. */
static double larger(double one, double other)
{
    return other > one || isnan(other) ? other : one;
}

/* The largest of columns' sums of all. */
static void sum_terms(void *context, int64_t index)
{
    const struct terms *terms = context;
    const int64_t n = terms->iter->n, ld = terms->iter->ld, first = index * TERMS;
    const int64_t columns = min_i64(TERMS, n - first);
    double sums[TERMS] = {0}, largest = 0;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t j = 0; j < columns; j++)
            sums[j] += terms->sums[k] * fabs((double)terms->y[k * ld + first + j]);
    }
    for (int64_t j = 0; j < columns; j++)
        largest = larger(largest, sums[j] / weight(terms, first + j));
    terms->largest[index] = largest;
}

double R(host__iter_terms)(const struct R(host_iter) * iter, const REAL *x, const REAL *y,
                           const int32_t *exponents)
{
    const int64_t n = iter->n;
    double *lines = (double *)(void *)iter->spare[0], largest = 0;
    struct terms terms = {.iter = iter,
                          .x = x,
                          .y = y,
                          .exponents = exponents,
                          .top = INT32_MIN,
                          .sums = lines,
                          .largest = lines + n};
    for (int64_t i = 0; exponents && i < n; i++)
        terms.top = exponents[i] > terms.top ? exponents[i] : terms.top;
    host_team_run(iter->team, pieces(n, SUM_COLUMNS), sum_columns, &terms);
    host_team_run(iter->team, pieces(n, TERMS), sum_terms, &terms);
    for (int64_t i = 0; i < pieces(n, TERMS); i++)
        largest = larger(largest, terms.largest[i]);
    return largest;
}
