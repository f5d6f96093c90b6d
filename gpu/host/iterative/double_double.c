/* gpu/host/iterative/double_double.c: the residual in double-double, and what rounding hides of it;
 * see shared.h.
 *
 * A row of sums takes one row of products after another: each product is split into its rounded
 * value and the error of that (fma), the errors of the additions are summed next to them (T. Ogita,
 * S. M. Rump and S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3). For FP32 that is
 * more than double-double: its products have no error in double.
 *
 * Threads: any; columns are shared out to a team. Cost: 11 operations a product; the whole
 * residual is n^3 products, its rounding 3 ITERATION_SIGNS n^2.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/iterative/shared.h"
#include "gpu/common/iteration.h"

#include "gpu/host/base/by_precision.h"

/* Columns of a piece of work. Its sums stay in the first cache. */
#define PIECE 32

/* Entry i of vector number `vector`: 1 or -1. */
static double sign(int64_t i, int64_t vector)
{
    return ITERATION_NEGATIVE((uint32_t)i, vector) ? -1 : 1;
}

/* A row of sums of products. */
struct sums {
    double high[PIECE], errors[PIECE];
};

/* sums += (x + lower) * row; lower is below x's last digit. */
HOST_INLINE void add(struct sums *sums, double x, double lower, const REAL *row, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        double a = (double)row[j], product = x * a, next = sums->high[j] + product;
        double added = next - sums->high[j];
        sums->errors[j] +=
            fma(x, a, -product) + ((sums->high[j] - (next - added)) + (product - added));
        sums->high[j] = next;
    }
    for (int64_t j = 0; lower != 0 && j < columns; j++)
        sums->errors[j] += lower * (double)row[j];
}

/* One pass of the work, over the columns from `first` on. */
struct pass {
    const struct R(host_iter) * iter;
    /* z V, a line for each vector of signs z: rounded, and what that left; of each column of
     * R - (I - V A) the mean square of its products with all z. */
    double *lines, *lower, *squares;
    void (*work)(const struct pass *, int64_t first, int64_t columns);
};

/* The columns of R. */
HOST_INLINE void residual_columns(const struct pass *pass, int64_t first, int64_t columns)
{
    const struct R(host_iter) *iter = pass->iter;
    int64_t n = iter->n, ld = iter->ld;
    for (int64_t i = 0; i < n; i++) {
        struct sums sums = {{0}, {0}};
        if (i >= first && i < first + columns)
            sums.high[i - first] = 1;
        for (int64_t k = 0; k < n; k++)
            add(&sums, -(double)iter->v[i * ld + k], 0, iter->a + k * ld + first, columns);
        for (int64_t j = 0; j < columns; j++)
            iter->r[i * ld + first + j] = (REAL)(sums.high[j] + sums.errors[j]);
    }
}

HOST_INLINE void line_columns(const struct pass *pass, int64_t first, int64_t columns)
{
    const struct R(host_iter) *iter = pass->iter;
    int64_t n = iter->n, ld = iter->ld;
    for (int64_t z = 0; z < ITERATION_SIGNS; z++) {
        struct sums sums = {{0}, {0}};
        for (int64_t i = 0; i < n; i++)
            add(&sums, sign(i, z), 0, iter->v + i * ld + first, columns);
        for (int64_t j = 0; j < columns; j++) {
            double line = sums.high[j] + sums.errors[j];
            pass->lines[z * n + first + j] = line;
            pass->lower[z * n + first + j] = sums.errors[j] - (line - sums.high[j]);
        }
    }
}

HOST_INLINE void square_columns(const struct pass *pass, int64_t first, int64_t columns)
{
    const struct R(host_iter) *iter = pass->iter;
    int64_t n = iter->n, ld = iter->ld;
    double squares[PIECE] = {0};
    for (int64_t z = 0; z < ITERATION_SIGNS; z++) {
        struct sums sums = {{0}, {0}};
        for (int64_t j = 0; j < columns; j++)
            sums.high[j] = -sign(first + j, z);
        for (int64_t i = 0; i < n; i++) {
            add(&sums, sign(i, z), 0, iter->r + i * ld + first, columns);
            add(&sums, pass->lines[z * n + i], pass->lower[z * n + i], iter->a + i * ld + first,
                columns);
        }
        for (int64_t j = 0; j < columns; j++) {
            double left = sums.high[j] + sums.errors[j];
            squares[j] += left * left / ITERATION_SIGNS;
        }
    }
    memcpy(pass->squares + first, squares, (size_t)columns * sizeof *squares);
}

/* Each for processors with FMA and for those without: the bits are the same. */
#define WORK(name)                                                                                 \
    HOST_FMA static void name##_fma(const struct pass *pass, int64_t first, int64_t columns)       \
    {                                                                                              \
        name(pass, first, columns);                                                                \
    }                                                                                              \
    static void name##_any(const struct pass *pass, int64_t first, int64_t columns)                \
    {                                                                                              \
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                       \
            name##_fma(pass, first, columns);                                                      \
        else                                                                                       \
            name(pass, first, columns);                                                            \
    }
WORK(residual_columns)
WORK(line_columns)
WORK(square_columns)
#undef WORK

static void do_piece(void *context, int64_t index)
{
    const struct pass *pass = context;
    int64_t first = index * PIECE;
    pass->work(pass, first, min_i64(PIECE, pass->iter->n - first));
}

static void go(struct pass *pass, void (*work)(const struct pass *, int64_t first, int64_t columns))
{
    pass->work = work;
    host_team_run(pass->iter->team, pieces(pass->iter->n, PIECE), do_piece, pass);
}

void R(host__iter_residual_dd)(const struct R(host_iter) * iter)
{
    struct pass pass = {.iter = iter};
    go(&pass, residual_columns_any);
}

struct host_iter_rounding R(host__iter_rounding)(const struct R(host_iter) * iter)
{
    int64_t n = iter->n;
    /* In FP32 too. */
    _Static_assert(4 * ITERATION_SIGNS <= ITERATION_WHOLE_FIRST, "lines and lower fit");
    struct pass pass = {.iter = iter,
                        .lines = (double *)(void *)iter->spare[0],
                        .squares = (double *)(void *)iter->spare[1]};
    pass.lower = pass.lines + ITERATION_SIGNS * n;
    go(&pass, line_columns_any);
    go(&pass, square_columns_any);
    double largest = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        largest = pass.squares[j] > largest || isnan(pass.squares[j]) ? pass.squares[j] : largest;
        sum += pass.squares[j];
    }
    return (struct host_iter_rounding){.norm_1 = ITERATION_SIGNS_MARGIN * sqrt((double)n * largest),
                                       .frobenius = sqrt(sum)};
}
